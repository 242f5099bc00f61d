"""Links, joints and shapes of a URDF file, checked: links form one tree, sizes are positive."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from abut.errors import FileError

MOVING = ("revolute", "continuous", "prismatic")  # joints of one value
WIDE = ("planar", "floating")
SIZES = {  # attributes of shapes, and how many numbers each has
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
}
XACRO = "xacro"  # in the name space of macros
READ = ("link", "joint", "mesh", "origin", "axis", "limit", "mimic", *SIZES)

Element = ElementTree.Element


@dataclass
class UrdfShape:
    """A geometry of a link.

    Attributes:
        kind: ``mesh``, or a key of SIZES.
        size: Numbers of SIZES one after another; the scale of a mesh.
        origin: (4, 4), in the frame of the link.
        filename: Of a mesh.
    """

    kind: str
    size: np.ndarray
    origin: np.ndarray
    filename: str = ""


@dataclass
class UrdfLink:
    """A link and its collision or visual geometry."""

    name: str
    shapes: list[UrdfShape]


@dataclass
class UrdfJoint:
    """A joint between two links.

    Attributes:
        kind: ``fixed``, or one of MOVING or WIDE.
        origin: (4, 4), of the child in the frame of the parent.
        axis: (3,) of length 1.
        limits: Lowest and highest value; infinite where the file has none.
        mimic: (joint, multiplier, offset), or None.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: np.ndarray
    axis: np.ndarray
    limits: tuple[float, float]
    mimic: tuple[str, float, float] | None


@dataclass
class UrdfModel:
    """A robot of a URDF file."""

    name: str
    links: list[UrdfLink]
    joints: list[UrdfJoint]


def read_urdf_model(path: Path, geometry: str) -> UrdfModel:
    """Read the ``collision`` or ``visual`` geometry, links and joints of a URDF file.

    Raises:
        FileError: The file is damaged, or describes no tree of links; names the link or joint.
    """
    root = ElementTree.parse(path).getroot()
    _refuse_xacro(root)
    for part in root.iter():
        part.tag = str(part.tag).rpartition("}")[2]  # a name space of all elements, as of Drake
    if root.tag != "robot":
        raise FileError(f"a URDF begins with <robot>, not <{root.tag}>.")
    links = [_link(part, geometry) for part in root.findall("link")]
    model = UrdfModel(
        root.get("name") or "robot", links, [_joint(x) for x in root.findall("joint")]
    )
    _require_tree(model)
    _resolve_mimics(model)
    return model


def _refuse_xacro(root: Element) -> None:
    """Refuse macros that nobody has expanded."""
    for part in root.iter():
        space, _, tag = str(part.tag).rpartition("}")
        words = " ".join(part.attrib.values()) if tag in READ else ""
        if XACRO in space or "${" in words or "$(" in words:
            raise FileError(f"<{tag}> is of xacro; `xacro FILE` expands it.")


def _link(part: Element, geometry: str) -> UrdfLink:
    name = _name(part, "a link")
    return UrdfLink(name, [_shape(x, f"link {name}") for x in part.findall(geometry)])


def _shape(part: Element, where: str) -> UrdfShape:
    """The geometry of a collision or visual element."""
    found = [shape for geometry in part.findall("geometry") for shape in geometry]
    if len(found) != 1:
        how = "without geometry" if not found else f"of {len(found)} geometries; one is expected"
        raise FileError(f"{where} has a <{part.tag}> {how}.")
    shape, origin = found[0], _origin(part, where)
    if shape.tag == "mesh":
        name = shape.get("filename")
        if not name:
            raise FileError(f"{where} has a mesh without a filename.")
        text = shape.get("scale") or "1"
        count = 1 if len(_words(text)) == 1 else 3
        scale = _numbers(text, count, f"{where} has a mesh whose scale") * np.ones(3)
        if not scale.all():
            raise FileError(f"{where} has a mesh whose scale is {text}.")
        return UrdfShape("mesh", scale, origin, name)
    if shape.tag not in SIZES:
        raise FileError(f"{where} has a shape <{shape.tag}>; there are mesh, {', '.join(SIZES)}.")
    size = [
        _numbers(shape.get(name), count, f"{where} has a {shape.tag} whose {name}")
        for name, count in SIZES[shape.tag].items()
    ]
    if min(map(np.min, size)) <= 0:
        raise FileError(f"{where} has a {shape.tag} with a size that is not positive.")
    return UrdfShape(shape.tag, np.concatenate(size), origin)


def _joint(part: Element) -> UrdfJoint:
    name = _name(part, "a joint")
    where, kind = f"joint {name}", part.get("type")
    if kind not in (*MOVING, *WIDE, "fixed"):
        raise FileError(f"{where} is {kind}; there are fixed, {', '.join((*MOVING, *WIDE))}.")
    parent = _attribute(part, "parent", "link", where)
    child = _attribute(part, "child", "link", where)
    plain = "0 0 1" if kind == "planar" else "1 0 0"
    text = _attribute(part, "axis", "xyz", where, plain) if kind != "fixed" else plain
    axis = _numbers(text, 3, f"{where} has an axis that")
    if not axis.any():
        raise FileError(f"{where} has an axis that is no direction.")
    axis /= np.linalg.norm(axis)
    limits, mimic = _limits(part, kind, where), _mimic(part, where)
    return UrdfJoint(name, kind, parent, child, _origin(part, where), axis, limits, mimic)


def _limits(part: Element, kind: str, where: str) -> tuple[float, float]:
    limit = part.find("limit")
    if kind not in ("revolute", "prismatic") or limit is None:
        return -np.inf, np.inf
    ends = []
    for name, none in (("lower", -np.inf), ("upper", np.inf)):
        text = limit.get(name)
        ends.append(none if text is None else float(_numbers(text, 1, f"{where}: limit {name}")[0]))
    if ends[0] > ends[1]:
        raise FileError(f"{where} has limits that are no range.")
    return ends[0], ends[1]


def _mimic(part: Element, where: str) -> tuple[str, float, float] | None:
    mimic = part.find("mimic")
    if mimic is None or part.get("type") == "fixed":
        return None
    scale, shift = (
        float(_numbers(mimic.get(name, plain), 1, f"{where} mimics with a {name} that")[0])
        for name, plain in (("multiplier", "1"), ("offset", "0"))
    )
    return mimic.get("joint") or "", scale, shift


def _require_tree(model: UrdfModel) -> None:
    """Refuse repeated names, links that are not there, two parents, two roots and cycles."""
    _require_unique((link.name for link in model.links), "link")
    _require_unique((joint.name for joint in model.joints), "joint")
    _require_unique((joint.child for joint in model.joints), "child")
    parents = {joint.child: joint.parent for joint in model.joints}
    names = {link.name for link in model.links}
    for joint in model.joints:
        for link in (joint.parent, joint.child):
            if link not in names:
                raise FileError(f"joint {joint.name} joins {link}, but there is no such link.")
    roots = [link.name for link in model.links if link.name not in parents]
    if len(roots) > 1:
        raise FileError(f"{roots[0]} and {roots[1]} have no parent; a robot has one root.")
    reached = set(roots)
    while more := {joint.child for joint in model.joints if joint.parent in reached} - reached:
        reached |= more
    if reached != names:
        raise FileError("the links of the robot form a cycle.")


def _require_unique(names: Iterable[str], kind: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            many = "has two parents" if kind == "child" else f"is the name of {count} {kind}s"
            raise FileError(f"{name} {many}.")


def _resolve_mimics(model: UrdfModel) -> None:
    """Let joints mimic joints that have a value of their own."""
    joints = {joint.name: joint for joint in model.joints}
    for joint in model.joints:
        if joint.mimic is not None and joint.kind not in MOVING:
            raise FileError(f"joint {joint.name} is {joint.kind} and cannot mimic another one.")
    for joint in model.joints:
        seen = {joint.name}
        while joint.mimic is not None:
            name, scale, shift = joint.mimic
            other = joints.get(name)
            if other is None or other.kind not in MOVING:
                raise FileError(
                    f"joint {joint.name} mimics {name}, but there is no such joint of one value."
                )
            if name in seen:
                raise FileError(f"joint {joint.name} mimics itself.")
            if other.mimic is None:
                break
            seen.add(name)
            further, times, offset = other.mimic
            joint.mimic = further, scale * times, scale * offset + shift


def _origin(part: Element, where: str) -> np.ndarray:
    """(4, 4) pose of the origin of an element."""
    from trimesh.transformations import euler_matrix

    origin = part.find("origin")
    if origin is None:
        return np.eye(4)
    about = f"{where} has an origin that"
    pose = euler_matrix(*_numbers(origin.get("rpy", "0 0 0"), 3, about), axes="sxyz")
    pose[:3, 3] = _numbers(origin.get("xyz", "0 0 0"), 3, about)
    return pose


def _name(part: Element, kind: str) -> str:
    name = part.get("name")
    if not name:
        raise FileError(f"{kind} has no name.")
    return name


def _attribute(part: Element, tag: str, name: str, where: str, plain: str | None = None) -> str:
    """An attribute of the element ``tag`` in another one; ``plain`` where there is none."""
    found = part.find(tag)
    text = plain if found is None else found.get(name)
    if text is None:
        raise FileError(f"{where} has no {tag}.")
    return text


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _numbers(text: Any, count: int, what: str) -> np.ndarray:
    """(count,) finite numbers of a text."""
    try:
        numbers = np.array([float(word) for word in _words(text or "")])
    except ValueError:
        numbers = np.empty(0)
    if len(numbers) != count or not np.isfinite(numbers).all():
        many = "a number" if count == 1 else f"{count} numbers"
        raise FileError(f"{what} is {text!r}, not {many}.")
    return numbers
