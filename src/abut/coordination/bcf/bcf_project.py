"""Files of a BCF archive that are not about a topic: version, project, extensions."""

from collections.abc import Sequence

from abut.coordination.bcf.bcf_markup import CLOSED, OPEN, TYPE
from abut.coordination.bcf.bcf_xml import Element, add, document, filled, stable_guid

SCHEMA = "http://www.w3.org/2001/XMLSchema"
LISTS = {  # names of a list and of its items in 3.0; the type that 2.1 restricts
    "TopicTypes": ("TopicType", "TopicType"),
    "TopicStatuses": ("TopicStatus", "TopicStatus"),
    "TopicLabels": ("TopicLabel", "TopicLabel"),
    "Users": ("User", "UserIdType"),
}


def project_files(
    version: str, title: str, labels: Sequence[str], users: Sequence[str]
) -> list[tuple[str, bytes]]:
    """Names and contents of the files at the top of an archive.

    Args:
        version: ``"3.0"`` or ``"2.1"``.
        title: Name of the project.
        labels, users: All labels and authors of topics.
    """
    words = {"TopicTypes": [TYPE], "TopicStatuses": [OPEN, CLOSED]}
    words |= {"TopicLabels": list(labels), "Users": list(users)}
    root = Element("Version", VersionId=version)
    if version == "3.0":
        info = Element("ProjectInfo")
        last = "extensions.xml", _extensions(words)
    else:
        add(root, "DetailedVersion", version)
        info = Element("ProjectExtension")
        last = "extensions.xsd", _extension_schema(words)
    name = filled(title, "Clash report")
    add(add(info, "Project", ProjectId=stable_guid("project", name)), "Name", name)
    if version == "2.1":
        add(info, "ExtensionSchema", last[0])
    return [("bcf.version", document(root)), ("project.bcfp", document(info)), last]


def _extensions(words: dict[str, list[str]]) -> bytes:
    """The words that topics use, in BCF 3.0."""
    root = Element("Extensions")
    for name, (one, _) in LISTS.items():
        parent = add(root, name)
        for word in words[name]:
            add(parent, one, word)
    return document(root)


def _extension_schema(words: dict[str, list[str]]) -> bytes:
    """The words that topics use, in BCF 2.1: a schema that restricts types of the markup."""
    root = Element("xs:schema", {"xmlns:xs": SCHEMA})
    redefine = add(root, "xs:redefine", schemaLocation="markup.xsd")
    for name, (_, restricted) in LISTS.items():
        if words[name]:
            made = add(redefine, "xs:simpleType", name=restricted)
            choice = add(made, "xs:restriction", base=restricted)
            for word in words[name]:
                add(choice, "xs:enumeration", value=word)
    return document(root)
