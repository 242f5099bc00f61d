"""Markup files of BCF: a topic for each clash."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from abut.coordination.bcf.bcf_xml import Element, add, document, filled, truth, xml_text
from abut.coordination.report.report_columns import PartFacts

AUTHOR = "abut"
TYPE = "Clash"
OPEN, CLOSED = "Open", "Closed"
NO_NAME = "(no name)"


@dataclass(frozen=True)
class BcfComment:
    """A remark about a topic."""

    guid: str
    author: str
    text: str


@dataclass(frozen=True)
class BcfTopic:
    """A topic: texts, files and references.

    Attributes:
        created: Date as text.
        viewpoints: (guid, file, snapshot or None) of each viewpoint.
        related: GUIDs of other topics.
    """

    guid: str
    title: str
    description: str
    status: str
    labels: Sequence[str]
    created: str
    parts: Sequence[PartFacts]
    comments: Sequence[BcfComment] = ()
    viewpoints: Sequence[tuple[str, str, str | None]] = ()
    related: Sequence[str] = field(default_factory=list)


def markup_file(topic: BcfTopic, version: str) -> bytes:
    """The markup file of a topic in BCF 3.0 or 2.1."""
    new = version == "3.0"
    root = Element("Markup")
    header = add(root, "Header")
    files = add(header, "Files") if new else header
    for name in dict.fromkeys(Path(facts.file).name for facts in topic.parts):
        external = {"IsExternal" if new else "isExternal": truth(True)}
        add(add(files, "File", **external), "Filename", filled(name, NO_NAME))
    about = {"Guid": topic.guid, "TopicType": TYPE, "TopicStatus": topic.status}
    element = add(root, "Topic", **about)
    add(element, "Title", filled(topic.title, NO_NAME))
    _add_all(element, "Labels", "Label", [filled(x, NO_NAME) for x in topic.labels], new)
    add(element, "CreationDate", topic.created)
    add(element, "CreationAuthor", AUTHOR)
    add(element, "Description", xml_text(topic.description).strip() or NO_NAME)
    related = add(element, "RelatedTopics") if new and topic.related else element
    for guid in topic.related:
        add(related, "RelatedTopic", Guid=guid)
    _add_comments(root, element, topic, new)
    _add_viewpoints(root, element, topic, new)
    return document(root)


def _add_all(parent: Element, many: str, one: str, texts: Sequence[str], new: bool) -> None:
    """Texts as a list in BCF 3.0, as repeated elements in 2.1."""
    if not texts:
        return
    target = add(parent, many) if new else parent
    for text in texts:
        add(target, one if new else many, text)


def _add_comments(root: Element, element: Element, topic: BcfTopic, new: bool) -> None:
    if not topic.comments:
        return
    target = add(element, "Comments") if new else root
    for comment in topic.comments:
        made = add(target, "Comment", Guid=comment.guid)
        add(made, "Date", topic.created)
        add(made, "Author", filled(comment.author, AUTHOR))
        add(made, "Comment", filled(comment.text, NO_NAME))


def _add_viewpoints(root: Element, element: Element, topic: BcfTopic, new: bool) -> None:
    if not topic.viewpoints:
        return
    target = add(element, "Viewpoints") if new else root
    for index, (guid, file, snapshot) in enumerate(topic.viewpoints):
        made = add(target, "ViewPoint" if new else "Viewpoints", Guid=guid)
        add(made, "Viewpoint", file)
        if snapshot is not None:
            add(made, "Snapshot", snapshot)
        add(made, "Index", index)
