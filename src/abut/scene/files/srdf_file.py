"""Read and write SRDF files: groups, named states, end effectors and disabled link pairs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from abut.errors import FileError
from abut.io import existing, reading
from abut.io.write import replacing
from abut.scene.files.robot_description import EndEffector, JointGroup, LinkPair, RobotDescription
from abut.scene.robots.kinematics import Kinematics

ALL = "all"  # the group of states that no group of the robot has

Element = ElementTree.Element


@dataclass
class Semantics:
    """The contents of an SRDF file: a description, and named states as values by joint."""

    description: RobotDescription
    states: dict[str, dict[str, float]]


def srdf_beside(path: Path) -> Path:
    """The SRDF of a URDF: of the same name, else the only one in its folder."""
    same = path.with_suffix(".srdf")
    if same.is_file():
        return same
    there = sorted(path.parent.glob("*.srdf"))
    if len(there) != 1:
        found = f"{len(there)} SRDF files" if there else "no SRDF file"
        raise FileError(f"there is {found} beside {path}; name one, srdf=FILE.")
    return there[0]


def read_srdf(path: Any, kinematics: Kinematics, children: dict[str, int]) -> Semantics:
    """Read an SRDF file.

    Args:
        path: The file.
        kinematics: The robot that the file describes.
        children: The link that each joint moves, by name; fixed and mimicking joints included.

    Raises:
        FileError: The file is damaged, or names what the robot does not have.
    """
    path = existing(path)
    with reading(path, "SRDF"):
        root = ElementTree.parse(path).getroot()
        if root.tag != "robot":
            raise FileError(f"{path}: an SRDF begins with <robot>, not <{root.tag}>.")
        return _Reader(root, kinematics, children).read()


class _Reader:
    """One pass over an SRDF document."""

    def __init__(self, root: Element, kinematics: Kinematics, children: dict[str, int]) -> None:
        self.root, self.kinematics, self.children = root, kinematics, children
        self.links = {name: k for k, name in enumerate(kinematics.links)}
        self.elements = {_text(x, "name"): x for x in root.findall("group")}

    def read(self) -> Semantics:
        """The whole document."""
        groups = {name: self._group(name) for name in self.elements}
        found = self.root.findall("end_effector")
        effectors = {_text(x, "name"): self._effector(x) for x in found}
        name = self.root.get("name") or "robot"
        pairs = list(self._pairs())
        return Semantics(RobotDescription(name, groups, effectors, pairs), self._states())

    def _effector(self, part: Element) -> EndEffector:
        link = _known(part, "parent_link", self.links)
        return EndEffector(_known(part, "group", self.elements), link, part.get("parent_group"))

    def _group(self, name: str) -> JointGroup:
        links: set[int] = set()
        self._collect(name, links, [])
        moves = self.kinematics.moves
        columns = sorted({k for link in links for joint in moves[link] for k in joint.columns})
        joints = [self.kinematics.joints[k] for k in columns]
        return JointGroup(joints, [self.kinematics.links[k] for k in sorted(links)])

    def _collect(self, name: str, links: set[int], above: list[str]) -> None:
        """Add the links of a group and of the groups in it."""
        if name in above:
            raise FileError(f"group {name} contains itself.")
        for part in self.elements[name]:
            if part.tag == "link":
                links.add(self.links[_known(part, "name", self.links)])
            elif part.tag in ("joint", "passive_joint"):
                joint = _known(part, "name", self.children, self._virtual())
                links |= {self.children[joint]} if joint in self.children else set()
            elif part.tag == "chain":
                links |= set(self._chain(part))
            elif part.tag == "group":
                self._collect(_known(part, "name", self.elements), links, [*above, name])

    def _chain(self, part: Element) -> Iterator[int]:
        """Links from the tip of a chain up to its base."""
        base = self.links[_known(part, "base_link", self.links)]
        link = self.links[_known(part, "tip_link", self.links)]
        yield link
        while link != base:
            link = self.kinematics.parents[link]
            if link < 0:
                names = part.get("tip_link"), part.get("base_link")
                raise FileError("chain: {} is not below {}.".format(*names))
            yield link

    def _virtual(self) -> set[str]:
        return {_text(x, "name") for x in self.root.findall("virtual_joint")}

    def _states(self) -> dict[str, dict[str, float]]:
        """States by name, or by group and name where several groups have one of that name."""
        found = self.root.findall("group_state")
        names = [_text(x, "name") for x in found]
        out: dict[str, dict[str, float]] = {}
        for name, state in zip(names, found, strict=True):
            key = name if names.count(name) == 1 else f"{_text(state, 'group')}/{name}"
            _known(state, "group", self.elements)
            out[key] = dict(self._values(state, name))
        return out

    def _values(self, state: Element, name: str) -> Iterator[tuple[str, float]]:
        known = {*self.children, *self.kinematics.joints, *self.kinematics.wide}
        for part in state.findall("joint"):
            joint = _known(part, "name", known, self._virtual())
            words = _text(part, "value").split()
            try:
                values = [float(word) for word in words]
            except ValueError:
                values = []
            if not values or not np.isfinite(values).all():
                raise FileError(f"state {name}: joint {joint} has the value {part.get('value')!r}.")
            columns = self.kinematics.wide.get(joint, [])
            if columns:
                if len(values) != len(columns):
                    raise FileError(f"state {name}: joint {joint} needs {len(columns)} values.")
                names = [self.kinematics.joints[k] for k in columns]
                yield from zip(names, _rotated(values, 1), strict=True)
            elif joint in self.kinematics.joints:  # others are fixed, or mimic one of these
                yield joint, values[0]

    def _pairs(self) -> Iterator[LinkPair]:
        enabled = {
            frozenset(_link_names(x, self.links)) for x in self.root.findall("enable_collisions")
        }
        for part in self.root.findall("disable_default_collisions"):
            link = _known(part, "link", self.links)
            for other in self.links:
                if other != link and frozenset((link, other)) not in enabled:
                    yield LinkPair(link, other, "Default")
        for part in self.root.findall("disable_collisions"):
            yield LinkPair(*_link_names(part, self.links), part.get("reason") or "User")


def _rotated(values: list[float], by: int) -> list[float]:
    """Seven values of a floating joint: MoveIt has w last, abut first (by 1; back by -1)."""
    if len(values) != 7:
        return values
    return [*values[:3], *np.roll(values[3:], by).tolist()]


def write_srdf(
    path: Any,
    description: RobotDescription,
    states: dict[str, dict[str, float]],
    kinematics: Kinematics,
) -> None:
    """Write groups, states, end effectors and link pairs as an SRDF file."""
    whole = {kinematics.joints[k]: x for x, columns in kinematics.wide.items() for k in columns}
    root = Element("robot", name=description.name)
    owners = {name: _group_of(name, state, description) for name, state in states.items()}
    everything = {joint: None for name in states if owners[name] == ALL for joint in states[name]}
    more = {ALL: JointGroup(list(everything), [])} if everything else {}
    for name, group in (description.groups | more).items():
        element = ElementTree.SubElement(root, "group", name=name)
        for link in group.links:
            ElementTree.SubElement(element, "link", name=link)
        for joint in dict.fromkeys(whole.get(joint, joint) for joint in group.joints):
            ElementTree.SubElement(element, "joint", name=joint)
    for name, state in states.items():
        about = {"group": owners[name], "name": name.rpartition("/")[2]}
        element = ElementTree.SubElement(root, "group_state", about)
        words: dict[str, list[float]] = {}
        for joint, value in state.items():
            words.setdefault(whole.get(joint, joint), []).append(float(value))
        for joint, values in words.items():
            text = " ".join(map(repr, _rotated(values, -1)))
            ElementTree.SubElement(element, "joint", name=joint, value=text)
    for name, effector in description.end_effectors.items():
        about = {"name": name, "parent_link": effector.parent_link, "group": effector.group}
        if effector.parent_group is not None:
            about["parent_group"] = effector.parent_group
        ElementTree.SubElement(root, "end_effector", about)
    for a, b, reason in description.pairs:
        ElementTree.SubElement(root, "disable_collisions", link1=a, link2=b, reason=reason)
    ElementTree.indent(root)
    with replacing(path) as part:
        ElementTree.ElementTree(root).write(part, encoding="utf-8", xml_declaration=True)


def _group_of(name: str, state: dict[str, float], description: RobotDescription) -> str:
    """The group of a state: that of its name, else the smallest one with all of its joints."""
    if "/" in name and name.partition("/")[0] in description.groups:
        return name.partition("/")[0]
    groups = description.groups.items()
    fits = [(len(group.joints), name) for name, group in groups if set(state) <= {*group.joints}]
    return min(fits)[1] if fits else ALL


def _link_names(part: Element, links: Iterable[str]) -> tuple[str, str]:
    return _known(part, "link1", links), _known(part, "link2", links)


def _text(part: Element, attribute: str) -> str:
    """An attribute that must be there."""
    text = part.get(attribute)
    if not text:
        raise FileError(f"<{part.tag}> has no {attribute}.")
    return text


def _known(part: Element, attribute: str, names: Iterable[str], more: Iterable[str] = ()) -> str:
    """An attribute that must name something of the robot."""
    name = _text(part, attribute)
    if name not in names and name not in more:
        kind = "joint" if "joint" in part.tag else attribute.rstrip("12")
        raise FileError(f"<{part.tag}> names {kind} {name}, which the robot does not have.")
    return name
