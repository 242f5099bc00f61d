"""Read MJCF files as links, joints and meshes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.io import reading
from abut.scene.files.mjcf_shapes import mesh_of_geom
from abut.scene.files.robot_description import RobotDescription
from abut.scene.files.robot_files import ReadOptions, RobotFile
from abut.scene.files.robot_parts import (
    LinkGeometry,
    mesh_of_file,
    name_parts,
    quaternion_pose,
    required,
)
from abut.scene.robots.kinematics import Joint, Kinematics
from abut.scene.robots.wide_joints import ENDLESS, JointColumns


def read_mjcf(path: Path, options: ReadOptions) -> RobotFile:
    """Read an MJCF file with MuJoCo; a part that MuJoCo collides is collision geometry."""
    mujoco = required("mujoco")
    mujoco.mj_clearCache(mujoco.mj_getCache())  # its keys are paths and times, not contents
    with reading(path, "MJCF"), _without_warnings(mujoco):
        for file in _mjcf_files(mujoco, path):
            mesh_of_file(file, None, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    by_collision = options.geometry == "collision"
    if by_collision and ((model.flex_contype != 0) | (model.flex_conaffinity != 0)).any():
        raise FileError(f"{path} has a flexible body, which has no pose; only rigid ones are read.")
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    collides[[*model.pair_geom1, *model.pair_geom2]] = True
    wanted = np.flatnonzero(collides == by_collision)
    parts, geoms = [], []
    for geom in wanted.tolist():
        pose = _pose(model.geom_pos[geom], model.geom_quat[geom])
        with reading(path, "MJCF"):
            mesh = mesh_of_geom(mujoco, model, geom, options)
        parts.append(LinkGeometry(model.geom(geom).name, int(model.geom_bodyid[geom]), pose, mesh))
        geoms.append(geom)
    _exclude(mujoco, model, parts, geoms, by_collision)
    kinematics = _kinematics(mujoco, model)
    description = RobotDescription(_model_name(model))
    return RobotFile(kinematics, name_parts(parts, kinematics.links), description)


def _model_name(model: Any) -> str:
    """The name of a model, which its names begin with."""
    return bytes(model.names).partition(b"\0")[0].decode(errors="replace") or "robot"


@contextmanager
def _without_warnings(mujoco: Any) -> Iterator[None]:
    """Drop warnings, which MuJoCo prints and appends to a file in the working directory."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _mjcf_files(mujoco: Any, path: Path) -> list[Path]:
    """The mesh files of a model that abut can check; MuJoCo accepts truncated OBJ files."""
    spec = mujoco.MjSpec.from_file(str(path))
    folder = path.parent / (spec.meshdir or "")
    named = [folder / mesh.file for mesh in spec.meshes if mesh.file]
    return [file for file in named if file.suffix.lower() in (".obj", ".stl") and file.is_file()]


def _kinematics(mujoco: Any, model: Any) -> Kinematics:
    """Links and joints, whose values are those of ``qpos``, in its order."""
    moves: list[list[Joint]] = [[] for _ in range(model.nbody)]
    frames = np.stack(list(map(_pose, model.body_pos, model.body_quat)))
    columns = JointColumns()
    for k in range(model.njnt):
        body = model.jnt_bodyid[k]
        if model.jnt_type[k] == int(mujoco.mjtJoint.mjJNT_FREE):
            frames[body] = np.eye(4)  # its values are the pose in the world
        moves[body] += _moves(mujoco, model, k, columns)
    links = [model.body(k).name for k in range(model.nbody)]
    parents = [-1, *model.body_parentid[1:].tolist()]
    out = Kinematics([], links, parents, frames, moves, has_world=True)
    columns.describe(out)
    for k in range(model.nkey):
        values = zip(out.joints, model.key_qpos[k].tolist(), strict=True)
        out.states[model.key(k).name or f"key{k}"] = dict(values)
    return out


def _moves(mujoco: Any, model: Any, k: int, columns: JointColumns) -> list[Joint]:
    """The motions of a joint of a model."""
    kinds, kind = mujoco.mjtJoint, int(model.jnt_type[k])
    name, first = model.joint(k).name or f"joint{k}", int(model.jnt_qposadr[k])
    rest, limited = model.qpos0[first:], bool(model.jnt_limited[k])
    anchor, ends = model.jnt_pos[k].copy(), tuple(model.jnt_range[k].tolist())
    if kind == int(kinds.mjJNT_FREE):
        return columns.floating(name, rest[:3], tuple(rest[3:7]))
    if kind == int(kinds.mjJNT_BALL):
        most = (np.cos(0.5 * ends[1]), np.inf) if limited and ends[1] < np.pi else ENDLESS
        return [columns.ball(name, anchor, most, tuple(rest[:4]))]
    axis, hinge = model.jnt_axis[k].copy(), kind == int(kinds.mjJNT_HINGE)
    limits = (ends[0], ends[1]) if limited else ENDLESS
    return [columns.single(name, axis, hinge, limits, anchor, float(rest[0]))]


def _exclude(
    mujoco: Any, model: Any, parts: list[LinkGeometry], geoms: list[int], by_bits: bool
) -> None:
    """Mark pairs that MuJoCo does not test: of one rigid part, of parent and child, or excluded.

    A pair that the model names in <pair> is tested nevertheless. What is fixed to the world is no
    parent in this sense. Static parts are left to the filter of static objects, since a caller may
    move them.
    """
    bodies = model.geom_bodyid[geoms].astype(np.int64)
    weld = model.body_weldid[bodies]
    above = model.body_weldid[model.body_parentid[weld]]
    barred = (bodies[:, None] == bodies) | ((weld[:, None] == weld) & (weld != 0))
    if not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT):
        child = (above[:, None] == weld) & (weld != 0)
        barred |= child | child.T
    signature = (np.minimum(bodies[:, None], bodies) << 16) + np.maximum(bodies[:, None], bodies)
    barred |= np.isin(signature, model.exclude_signature)
    if by_bits:
        kind, other = model.geom_contype[geoms], model.geom_conaffinity[geoms]
        meets = (kind[:, None] & other) != 0
        barred |= ~(meets | meets.T)
        place = {geom: k for k, geom in enumerate(geoms)}
        for ends in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True):
            a, b = (place[geom] for geom in ends)
            barred[a, b] = barred[b, a] = False
    for k, part in enumerate(parts):
        part.ignored = set(np.flatnonzero(barred[k]).tolist()) - {k}


def _pose(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """(4, 4) pose of a position and a quaternion w x y z."""
    return quaternion_pose(position, np.roll(quaternion, -1))
