"""Read URDF files as links, joints and meshes."""

from pathlib import Path
from typing import Any

import numpy as np

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
)
from abut.scene.files.srdf_file import read_srdf, srdf_beside
from abut.scene.files.urdf_model import MOVING, UrdfJoint, UrdfLink, UrdfShape, read_urdf_model
from abut.scene.robots.kinematics import Kinematics
from abut.scene.robots.wide_joints import JointColumns


def read_urdf(path: Path, options: ReadOptions) -> RobotFile:
    """Read a URDF file."""
    with reading(path, "URDF"):
        model = read_urdf_model(path, options.geometry)
    above = {joint.child: joint for joint in model.joints}
    links = _parents_first(model.links, above)
    index = {link.name: k for k, link in enumerate(links)}
    parts = [
        LinkGeometry("", index[link.name], shape.origin, _mesh(shape, path, options))
        for link in links
        for shape in link.shapes
    ]
    kinematics = _kinematics(model.joints, links, index)
    children = {joint.name: index[joint.child] for joint in model.joints}
    held = RobotFile(kinematics, parts, RobotDescription(model.name), children)
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


def _parents_first(links: list[UrdfLink], above: dict[str, UrdfJoint]) -> list[UrdfLink]:
    """Links of a tree in an order in which each follows its parent."""
    ordered: list[UrdfLink] = []
    waiting, done = list(links), set[str]()
    while waiting:
        ordered += [x for x in waiting if x.name not in above or above[x.name].parent in done]
        done |= {link.name for link in ordered}
        waiting = [x for x in waiting if x.name not in done]
    return ordered


def _kinematics(
    joints: list[UrdfJoint], links: list[UrdfLink], index: dict[str, int]
) -> Kinematics:
    columns = JointColumns()
    own = [joint for joint in joints if joint.kind != "fixed" and joint.mimic is None]
    moves_of = {joint.name: _moves(joint, columns) for joint in own}
    frames, parents = np.tile(np.eye(4), (len(links), 1, 1)), [-1] * len(links)
    out = Kinematics([], [link.name for link in links], parents, frames, [[] for _ in links])
    for joint in joints:
        k = index[joint.child]
        frames[k], parents[k] = joint.origin, index[joint.parent]
        if joint.mimic is not None:
            name, scale, shift = joint.mimic
            at = moves_of[name][0].column
            hinge = joint.kind != "prismatic"
            out.moves[k] = [columns.follower(joint.axis, hinge, at, scale, shift)]
        elif joint.kind != "fixed":
            out.moves[k] = moves_of[joint.name]
    columns.describe(out)
    return out


def _moves(joint: UrdfJoint, columns: JointColumns) -> list[Any]:
    """The motions of a joint that has values of its own."""
    if joint.kind in MOVING:
        hinge = joint.kind != "prismatic"
        return [columns.single(joint.name, joint.axis, hinge, joint.limits)]
    if joint.kind == "planar":
        return columns.planar(joint.name, joint.axis)
    return columns.floating(joint.name)


def _mesh(shape: UrdfShape, path: Path, options: ReadOptions) -> LinkMesh:
    """The mesh of a geometry."""
    if shape.kind != "mesh":
        return primitive(shape.kind, shape.size, options.chord)
    with reading(path, "URDF"):
        file = find_file(shape.filename, path, options.packages)
    return mesh_of_file(file, shape.size, path)
