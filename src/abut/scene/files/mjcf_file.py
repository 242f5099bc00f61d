"""Read MJCF files as links, joints and meshes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.io import reading
from abut.scene.files.robot_description import RobotDescription
from abut.scene.files.robot_files import ReadOptions, RobotFile
from abut.scene.files.robot_parts import (
    LinkGeometry,
    LinkMesh,
    half_space,
    mesh_of_file,
    name_parts,
    primitive,
    quaternion_pose,
    required,
)
from abut.scene.robots.kinematics import Joint, Kinematics

PRIMITIVE_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3}  # numbers


def read_mjcf(path: Path, options: ReadOptions) -> RobotFile:
    """Read an MJCF file with MuJoCo; a part that MuJoCo collides is collision geometry."""
    mujoco = required("mujoco")
    mujoco.mj_clearCache(mujoco.mj_getCache())  # its keys are paths and times, not contents
    with reading(path, "MJCF"), _without_warnings(mujoco):
        for file in _mjcf_files(mujoco, path):
            mesh_of_file(file, None, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    wanted = np.flatnonzero(collides == (options.geometry == "collision"))
    parts, geoms = [], []
    for geom in wanted.tolist():
        pose = _pose(model.geom_pos[geom], model.geom_quat[geom])
        for mesh in _meshes(mujoco, model, geom, options):
            link = int(model.geom_bodyid[geom])
            parts.append(LinkGeometry(model.geom(geom).name, link, pose, mesh))
            geoms.append(geom)
    _exclude(mujoco, model, parts, geoms, options.geometry == "collision")
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
    hinge, slide = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
    moves: list[list[Joint]] = [[] for _ in range(model.nbody)]
    names = []
    for k in range(model.njnt):
        name = model.joint(k).name or f"joint{k}"
        if model.jnt_type[k] not in (hinge, slide):
            raise FileError(f"joint {name} is neither a hinge nor a slide.")
        about = model.jnt_axis[k].copy(), model.jnt_type[k] == hinge, model.jnt_pos[k].copy()
        rest = float(model.qpos0[model.jnt_qposadr[k]])
        moves[model.jnt_bodyid[k]].append(Joint(*about, k, 1.0, -rest))
        names.append(name)
    frames = np.stack(list(map(_pose, model.body_pos, model.body_quat)))
    parents = [-1, *model.body_parentid[1:].tolist()]
    limits = np.where(model.jnt_limited[:, None].astype(bool), model.jnt_range, [-np.inf, np.inf])
    links = [model.body(k).name for k in range(model.nbody)]
    rest = model.qpos0[model.jnt_qposadr].copy()
    limits = limits.reshape(-1, 2)
    states = {
        model.key(k).name or f"key{k}": dict(
            zip(names, model.key_qpos[k][model.jnt_qposadr].tolist(), strict=True)
        )
        for k in range(model.nkey)
    }
    return Kinematics(names, links, parents, frames, moves, [], limits, True, rest, states)


def _meshes(mujoco: Any, model: Any, geom: int, options: ReadOptions) -> Iterator[LinkMesh]:
    """The mesh of a geom."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    types = mujoco.mjtGeom
    if kind == int(types.mjGEOM_MESH):
        yield _mesh(model, int(model.geom_dataid[geom]), options.convex)
        return
    if kind == int(types.mjGEOM_PLANE):  # infinite for contacts, whatever its size
        yield half_space()
        return
    for name, count in PRIMITIVE_SIZES.items():
        if kind == int(getattr(types, f"mjGEOM_{name.upper()}")):
            full = size[:count] * 2 if name == "box" else size[:count].copy()
            if name in ("cylinder", "capsule"):
                full[1] *= 2  # MuJoCo has half lengths
            yield primitive(name, full, options.chord)
            return
    raise FileError(f"geom {model.geom(geom).name or geom} is of a kind that has no faces.")


def _mesh(model: Any, mesh: int, convex: bool) -> LinkMesh:
    """A mesh of a model, or the convex hull that MuJoCo collides."""
    first, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
    vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]].astype(np.float64)
    faces = model.mesh_face[face : face + model.mesh_facenum[mesh]].copy()
    if convex and model.mesh_graphadr[mesh] >= 0:
        graph = model.mesh_graph[model.mesh_graphadr[mesh] :]
        corners, count = int(graph[0]), int(graph[1])
        start = 2 + 3 * corners + 3 * count  # after addresses, vertices and edges of the hull
        faces = graph[start : start + 3 * count].reshape(-1, 3)
    return LinkMesh(("mesh", mesh, convex), vertices, np.ascontiguousarray(faces, np.int32))


def _exclude(
    mujoco: Any, model: Any, parts: list[LinkGeometry], geoms: list[int], by_bits: bool
) -> None:
    """Mark pairs that MuJoCo does not test: of one rigid part, of parent and child, or excluded.

    What is fixed to the world is no parent in this sense. Static parts are left to the filter of
    static objects, since a caller may move them.
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
    for k, part in enumerate(parts):
        part.ignored = set(np.flatnonzero(barred[k]).tolist()) - {k}


def _pose(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """(4, 4) pose of a position and a quaternion w x y z."""
    return quaternion_pose(position, np.roll(quaternion, -1))
