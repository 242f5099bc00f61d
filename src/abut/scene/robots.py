"""Read URDF and MJCF files as links, joints and meshes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from abut.cases.placed_shapes import rotations_of_quaternions
from abut.errors import FileError, ToolError
from abut.io import read_mesh, reading
from abut.scene.kinematics import Joint, Kinematics
from abut.scene.urdf_check import check_urdf

SIDES = 32  # of round primitives
INFINITE = 1000.0  # half the length of an infinite plane
PRIMITIVE_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3}  # numbers


@dataclass
class LinkGeometry:
    """A mesh on a link.

    Attributes:
        pose: (4, 4), in the frame of the link.
        shape: Key of the mesh, equal for parts with equal meshes.
        ignored: Other parts that the file excludes from tests against it.
    """

    name: str
    link: int
    pose: np.ndarray
    shape: Any
    vertices: np.ndarray
    faces: np.ndarray
    ignored: set[int] = field(default_factory=set)

    @property
    def source(self) -> str | None:
        """The mesh file it was read from, if any."""
        return self.shape[0] if isinstance(self.shape[1], tuple) else None


def read_urdf(path: Path, geometry: str) -> tuple[Kinematics, list[LinkGeometry]]:
    """Read the collision or visual geometry of a URDF file with yourdfpy."""
    yourdfpy = _required("yourdfpy")
    with reading(path, "URDF"):
        ElementTree.parse(path)  # yourdfpy reads what is left of damaged XML
        model = yourdfpy.URDF.load(str(path), build_scene_graph=False, load_meshes=False).robot
        check_urdf(model, path)
    above = {joint.child: joint for joint in model.joints}
    ordered: list[Any] = []
    waiting = list(model.links)
    while waiting:
        done = {link.name for link in ordered}
        ready = [x for x in waiting if x.name not in above or above[x.name].parent in done]
        if not ready:
            raise FileError(f"{path}: the links of the robot form a cycle.")
        ordered += ready
        waiting = [x for x in waiting if x not in ready]
    index = {link.name: k for k, link in enumerate(ordered)}
    kinematics = _urdf_kinematics(model, ordered, index, above)
    parts = [
        LinkGeometry(f"{link.name}/{k}", index[link.name], _matrix(shape.origin), *mesh)
        for link in ordered
        for k, shape in enumerate(link.collisions if geometry == "collision" else link.visuals)
        for mesh in _urdf_meshes(shape.geometry, path)
    ]
    return kinematics, _with_unique_names(parts)


def _urdf_kinematics(model: Any, links: list[Any], index: dict, above: dict) -> Kinematics:
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
    limits = np.array([_urdf_limits(joint) for joint in free]).reshape(-1, 2)
    names = [link.name for link in links]
    return Kinematics([j.name for j in free], names, parents, frames, moves, [], limits)


def _urdf_limits(joint: Any) -> tuple[float, float]:
    if joint.type == "continuous" or joint.limit is None:
        return -np.inf, np.inf
    low, high = joint.limit.lower, joint.limit.upper
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _urdf_meshes(shape: Any, path: Path) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """(shape, vertices, faces) of a geometry."""
    if shape.mesh is not None:
        import yourdfpy

        with reading(path, "URDF"):
            file = Path(yourdfpy.filename_handler_magic(shape.mesh.filename, str(path.parent)))
        if not file.is_file():
            raise FileError(f"{path} names a mesh {shape.mesh.filename}, which is not there.")
        vertices, faces = _read_mesh(file, path)
        scale = np.ones(3) if shape.mesh.scale is None else np.ones(3) * shape.mesh.scale
        faces = faces[:, ::-1] if scale.prod() < 0 else faces
        yield (str(file), tuple(scale)), vertices * scale, np.ascontiguousarray(faces)
    elif shape.box is not None:
        yield _primitive("box", np.asarray(shape.box.size, dtype=float) / 2)
    elif shape.sphere is not None:
        yield _primitive("sphere", [shape.sphere.radius])
    elif shape.cylinder is not None:
        yield _primitive("cylinder", [shape.cylinder.radius, shape.cylinder.length / 2])


def _read_mesh(file: Path, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a mesh file that a robot file names; errors name both files."""
    try:
        return read_mesh(file)[:2]
    except FileError as error:
        raise FileError(f"{path} names a mesh that cannot be used: {error}") from None


def read_mjcf(path: Path, geometry: str) -> tuple[Kinematics, list[LinkGeometry]]:
    """Read the collision or visual geometry of an MJCF file with MuJoCo."""
    mujoco = _required("mujoco")
    mujoco.mj_clearCache(mujoco.mj_getCache())  # its keys are paths and times, not contents
    with reading(path, "MJCF"), _without_warnings(mujoco):
        for file in _mjcf_files(mujoco, path):
            _read_mesh(file, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    wanted = np.flatnonzero(collides == (geometry == "collision"))
    parts, geoms = [], []
    for geom in wanted.tolist():
        for mesh in _mjcf_mesh(mujoco, model, geom):
            name = model.geom(geom).name or f"{model.body(model.geom_bodyid[geom]).name}/{geom}"
            pose = _pose_of(model.geom_pos[geom], model.geom_quat[geom])
            parts.append(LinkGeometry(name, int(model.geom_bodyid[geom]), pose, *mesh))
            geoms.append(geom)
    if geometry == "collision":
        _exclude(model, parts, geoms)
    return _mjcf_kinematics(mujoco, model), _with_unique_names(parts)


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


def _mjcf_kinematics(mujoco: Any, model: Any) -> Kinematics:
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
    frames = np.stack(list(map(_pose_of, model.body_pos, model.body_quat)))
    parents = [-1, *model.body_parentid[1:].tolist()]
    limits = np.where(model.jnt_limited[:, None].astype(bool), model.jnt_range, [-np.inf, np.inf])
    links = [model.body(k).name for k in range(model.nbody)]
    return Kinematics(names, links, parents, frames, moves, [], limits.reshape(-1, 2), True)


def _mjcf_mesh(mujoco: Any, model: Any, geom: int) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    types = mujoco.mjtGeom
    if kind == int(types.mjGEOM_MESH):
        mesh = int(model.geom_dataid[geom])
        first, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
        vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]].astype(np.float64)
        faces = model.mesh_face[face : face + model.mesh_facenum[mesh]].copy()
        yield ("mesh", mesh), vertices, faces
        return
    if kind == int(types.mjGEOM_PLANE):
        yield _plane(*(float(x) or INFINITE for x in size[:2]))
        return
    for name, sizes in PRIMITIVE_SIZES.items():
        if kind == int(getattr(types, f"mjGEOM_{name.upper()}")):
            yield _primitive(name, size[:sizes])
            return
    raise FileError(f"geom {model.geom(geom).name or geom} is of a kind that has no faces.")


def _exclude(model: Any, parts: list[LinkGeometry], geoms: list[int]) -> None:
    """Mark pairs that MuJoCo does not test: by their bits, or excluded by the file."""
    kind, other = model.geom_contype[geoms], model.geom_conaffinity[geoms]
    meets = (kind[:, None] & other) != 0
    bodies = model.geom_bodyid[geoms].astype(np.int64)
    excluded = set(model.exclude_signature.tolist())
    signature = (np.minimum(bodies[:, None], bodies) << 16) + np.maximum(bodies[:, None], bodies)
    barred = ~(meets | meets.T) | np.isin(signature, list(excluded))
    for k, part in enumerate(parts):
        part.ignored = set(np.flatnonzero(barred[k]).tolist())


def _primitive(kind: str, size: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A box, or a polyhedron inscribed in a round shape; sizes are radii and half lengths."""
    import trimesh

    make, size = trimesh.creation, [float(x) for x in size]
    if kind == "box":
        mesh = make.box(extents=2 * np.array(size))
    elif kind == "cylinder":
        mesh = make.cylinder(radius=size[0], height=2 * size[1], sections=SIDES)
    elif kind == "capsule":
        mesh = make.capsule(radius=size[0], height=2 * size[1], count=[SIDES, SIDES])
        mesh.vertices -= mesh.bounds.mean(axis=0)
    else:
        mesh = make.icosphere(subdivisions=3)
        mesh.apply_scale(size[0] if kind == "sphere" else size)
    return (kind, *size), np.array(mesh.vertices), np.array(mesh.faces)


def _plane(x: float, y: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """A rectangle of half lengths x and y."""
    corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]])
    return ("plane", x, y), corners, np.array([[0, 1, 2], [0, 2, 3]])


def _with_unique_names(parts: list[LinkGeometry]) -> list[LinkGeometry]:
    """Rename parts whose name an earlier part has."""
    seen: set[str] = set()
    for part in parts:
        name, k = part.name, 1
        while part.name in seen:
            part.name, k = f"{name}#{k}", k + 1
        seen.add(part.name)
    return parts


def _matrix(origin: Any) -> np.ndarray:
    return np.eye(4) if origin is None else np.array(origin, dtype=np.float64)


def _pose_of(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """(4, 4) pose of a position and a quaternion w x y z."""
    out = np.eye(4)
    out[:3, :3] = rotations_of_quaternions(np.roll(quaternion, -1)[None])[0]
    out[:3, 3] = position
    return out


def _required(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolError(f"{name} is missing; pip install 'abut[robots]' brings it.") from error
