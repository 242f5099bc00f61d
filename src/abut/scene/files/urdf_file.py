"""Read URDF files as links, joints and meshes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from abut.errors import FileError
from abut.io import reading
from abut.scene.files.package_paths import find_file
from abut.scene.files.robot_description import RobotDescription
from abut.scene.files.robot_files import ReadOptions, RobotFile
from abut.scene.files.robot_parts import (
    LinkGeometry,
    LinkMesh,
    mesh_of_file,
    name_parts,
    primitive,
    required,
)
from abut.scene.files.srdf_file import read_srdf, srdf_beside
from abut.scene.files.urdf_check import check_urdf
from abut.scene.robots.kinematics import Joint, Kinematics


def read_urdf(path: Path, options: ReadOptions) -> RobotFile:
    """Read a URDF file with yourdfpy."""
    yourdfpy = required("yourdfpy")
    with reading(path, "URDF"):
        ElementTree.parse(path)  # yourdfpy reads what is left of damaged XML
        model = yourdfpy.URDF.load(str(path), build_scene_graph=False, load_meshes=False).robot
        check_urdf(model, path)
    above = {joint.child: joint for joint in model.joints}
    links = _parents_first(model.links, above, path)
    index = {link.name: k for k, link in enumerate(links)}
    shapes = "collisions" if options.geometry == "collision" else "visuals"
    parts = [
        LinkGeometry("", index[link.name], _matrix(shape.origin), mesh)
        for link in links
        for shape in getattr(link, shapes)
        for mesh in _meshes(shape.geometry, path, options)
    ]
    kinematics = _kinematics(model, links, index, above)
    children = {joint.name: index[joint.child] for joint in model.joints}
    held = RobotFile(kinematics, parts, RobotDescription(model.name or "robot"), children)
    near = kinematics.neighbours()
    if options.srdf not in (None, False):
        near = _described(held, srdf_beside(path) if options.srdf is True else options.srdf)
    for part in name_parts(parts, kinematics.links):
        part.ignored = {k for k, other in enumerate(parts) if near[part.link, other.link]}
    return held


def _described(held: RobotFile, srdf: Any) -> np.ndarray:
    """Add what an SRDF says about a robot; returns (n, n) bool of links that are not tested."""
    kinematics = held.kinematics
    semantics = read_srdf(srdf, kinematics, held.children)
    held.description, kinematics.states = semantics.description, semantics.states
    index = {name: k for k, name in enumerate(kinematics.links)}
    untested = np.eye(len(kinematics.links), dtype=bool)
    for a, b, _ in held.description.pairs:
        untested[index[a], index[b]] = untested[index[b], index[a]] = True
    return untested


def _parents_first(links: list[Any], above: dict[str, Any], path: Path) -> list[Any]:
    """Links in an order in which each follows its parent."""
    ordered: list[Any] = []
    waiting, done = list(links), set[str]()
    while waiting:
        ready = [x for x in waiting if x.name not in above or above[x.name].parent in done]
        if not ready:
            raise FileError(f"{path}: the links of the robot form a cycle.")
        ordered += ready
        done |= {link.name for link in ready}
        waiting = [x for x in waiting if x.name not in done]
    return ordered


def _kinematics(model: Any, links: list[Any], index: dict, above: dict) -> Kinematics:
    moving = [j for j in model.joints if j.type in ("revolute", "continuous", "prismatic")]
    free = [joint for joint in moving if joint.mimic is None]
    column = {joint.name: k for k, joint in enumerate(free)}
    frames, parents = np.tile(np.eye(4), (len(links), 1, 1)), [-1] * len(links)
    moves: list[list[Joint]] = [[] for _ in links]
    for k, link in enumerate(links):
        joint = above.get(link.name)
        if joint is None:
            continue
        frames[k], parents[k] = _matrix(joint.origin), index[joint.parent]
        if joint in moving:
            scale, shift, name = 1.0, 0.0, joint.name
            if joint.mimic is not None:
                scale, shift, name = joint.mimic.multiplier, joint.mimic.offset, joint.mimic.joint
            axis = np.array([1.0, 0, 0] if joint.axis is None else joint.axis, dtype=float)
            axis /= np.linalg.norm(axis)
            hinge = joint.type != "prismatic"
            about = (column[name], 1.0 if scale is None else scale, shift or 0.0)
            moves[k] = [Joint(axis, hinge, np.zeros(3), *about)]
    limits = np.array([_limits(joint) for joint in free]).reshape(-1, 2)
    names = [link.name for link in links]
    return Kinematics([j.name for j in free], names, parents, frames, moves, [], limits)


def _limits(joint: Any) -> tuple[float, float]:
    if joint.type == "continuous" or joint.limit is None:
        return -np.inf, np.inf
    low, high = joint.limit.lower, joint.limit.upper
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _meshes(shape: Any, path: Path, options: ReadOptions) -> Iterator[LinkMesh]:
    """The mesh of a geometry."""
    if shape.mesh is not None:
        with reading(path, "URDF"):
            file = find_file(shape.mesh.filename, path, options.packages)
        yield mesh_of_file(file, shape.mesh.scale, path)
    elif shape.box is not None:
        yield primitive("box", shape.box.size, options.chord)
    elif shape.sphere is not None:
        yield primitive("sphere", [shape.sphere.radius], options.chord)
    elif shape.cylinder is not None:
        size = [shape.cylinder.radius, shape.cylinder.length]
        yield primitive("cylinder", size, options.chord)


def _matrix(origin: Any) -> np.ndarray:
    return np.eye(4) if origin is None else np.array(origin, dtype=np.float64)
