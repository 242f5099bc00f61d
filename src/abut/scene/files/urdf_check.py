"""Check a URDF model: links, joints and sizes that no robot has are refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError

MOVING = ("revolute", "continuous", "prismatic")
SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}


def check_urdf(model: Any, path: Path) -> None:
    """Refuse a model that is no tree of links, or has joints or shapes that cannot be used.

    Raises:
        FileError: Names the file, and the link or joint.
    """
    _require_unique((link.name for link in model.links), "link", path)
    _require_unique((joint.name for joint in model.joints), "joint", path)
    _require_unique((joint.child for joint in model.joints), "child", path)
    links = {link.name for link in model.links}
    joints = {joint.name: joint for joint in model.joints}
    for joint in model.joints:
        why = _fault_of_joint(joint, links, joints)
        if why:
            raise FileError(f"{path}: joint {joint.name} {why}.")
    for link in model.links:
        for shape in [*link.collisions, *link.visuals]:
            why = _fault_of_shape(shape)
            if why:
                raise FileError(f"{path}: link {link.name} has {why}.")


def _require_unique(names: Any, kind: str, path: Path) -> None:
    for name, count in Counter(names).items():
        if not name:
            raise FileError(f"{path}: a {kind} has no name.")
        if count > 1:
            many = "has two parents" if kind == "child" else f"is the name of {count} {kind}s"
            raise FileError(f"{path}: {name} {many}.")


def _fault_of_joint(joint: Any, links: set[str], joints: dict[str, Any]) -> str | None:
    """Return what is wrong with a joint, or None."""
    if joint.type not in (*MOVING, "fixed"):
        return f"is {joint.type}; only hinges, slides and fixed joints are read"
    for link in (joint.parent, joint.child):
        if link not in links:
            return f"joins {link}, but there is no such link"
    if not _is_pose(joint.origin):
        return "has an origin that is no pose"
    if joint.type == "fixed":
        return None
    axis = [1.0, 0.0, 0.0] if joint.axis is None else joint.axis
    if not _are_numbers(axis, 3) or not np.any(axis):
        return "has an axis that is no direction"
    limit = joint.limit and [x for x in (joint.limit.lower, joint.limit.upper) if x is not None]
    if limit and (not _are_numbers(limit, len(limit)) or limit != sorted(limit)):
        return "has limits that are no range"
    if joint.mimic is None:
        return None
    other = joints.get(joint.mimic.joint)
    if other is None or other.type not in MOVING:
        return f"mimics {joint.mimic.joint}, but there is no such joint that moves"
    if other.mimic is not None:
        return f"mimics {other.name}, which is itself a mimic"
    scale = [x for x in (joint.mimic.multiplier, joint.mimic.offset) if x is not None]
    return None if _are_numbers(scale, len(scale)) else "mimics by something that is no number"


def _fault_of_shape(shape: Any) -> str | None:
    """Return what is wrong with a geometry, or None."""
    if not _is_pose(shape.origin):
        return "a shape whose origin is no pose"
    if shape.geometry is None:
        return "a shape without geometry"
    if shape.geometry.mesh is not None:
        mesh = shape.geometry.mesh
        if not mesh.filename:
            return "a mesh without a filename"
        scale = 1.0 if mesh.scale is None else mesh.scale
        known = _are_numbers(scale, 1) or _are_numbers(scale, 3)
        return None if known and np.all(scale) else "a mesh whose scale is neither 1 nor 3 numbers"
    for kind, names in SIZES.items():
        held = getattr(shape.geometry, kind)
        for name in names if held is not None else ():
            size = getattr(held, name)
            if not _are_numbers(size, 3 if kind == "box" else 1) or np.min(size) <= 0:
                return f"a {kind} whose {name} is {size}"
        if held is not None:
            return None
    return "a shape of a kind that is not known"


def _are_numbers(values: Any, count: int) -> bool:
    array = np.asarray(values)
    return array.dtype.kind in "iuf" and array.size == count and bool(np.isfinite(array).all())


def _is_pose(origin: Any) -> bool:
    return origin is None or _are_numbers(origin, 16)
