"""Read messages of MoveIt from YAML files: poses, shapes, joint states, with checked numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.io import existing
from abut.scene.files.package_paths import find_file
from abut.scene.files.robot_parts import (
    FAR,
    LinkMesh,
    mesh_of_file,
    primitive,
    quaternion_pose,
    required,
)
from abut.scene.robots.joint_rotations import quaternion_of
from abut.scene.robots.kinematics import Kinematics

KINDS = {1: "box", 2: "sphere", 3: "cylinder", 4: "cone"}
SIZE_COUNTS = {"box": 3, "sphere": 1, "cylinder": 2, "cone": 2}
MOST_BYTES = 1 << 28
NO_FRAMES = np.empty((0, 4, 4))


def read_yaml(path: Any) -> dict[str, Any]:
    """The mapping that a YAML or JSON file holds."""
    path = existing(path)
    yaml = required("yaml")
    if path.stat().st_size > MOST_BYTES:
        raise FileError(f"{path} is larger than any planning scene.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    held = yaml.load(path.read_bytes(), loader)
    if not isinstance(held, Mapping):
        raise FileError(f"{path} holds no planning scene or request.")
    return dict(held)


def entries(held: Any, name: str) -> list[Any]:
    """A list of a mapping; an empty one where it is missing."""
    value = fields(held, "message").get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise FileError(f"{name} is no list.")
    return value


def fields(held: Any, name: str) -> Mapping[str, Any]:
    """A mapping; an empty one for None."""
    if held is None:
        return {}
    if not isinstance(held, Mapping):
        raise FileError(f"{name} is no mapping.")
    return held


def numbers(held: Any, count: int | None, name: str, letters: str = "xyzw") -> np.ndarray:
    """Finite numbers, as a list or as a mapping of x, y, z, w."""
    if isinstance(held, Mapping) and count is not None:
        held = [held.get(letter) for letter in letters[:count]]
    plain = isinstance(held, list) and all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in held
    )
    if not plain or (count is not None and len(held) != count):
        raise FileError(f"{name} must be {count or 'a list of'} numbers.")
    values = np.array(held, np.float64)
    if not np.isfinite(values).all():
        raise FileError(f"{name} is not finite.")
    return values


def message_pose(held: Any, name: str) -> np.ndarray:
    """(4, 4) of a pose message; the identity where it is missing."""
    parts = fields(held, name)
    position = parts.get("position", parts.get("translation", [0, 0, 0]))
    turn = parts.get("orientation", parts.get("rotation", [0, 0, 0, 1]))
    place = numbers(position, 3, f"{name}: position")
    turn = numbers(turn, 4, f"{name}: orientation")
    if abs(np.linalg.norm(turn) - 1) > 1e-3:
        if turn.any():
            raise FileError(f"{name}: orientation {turn.tolist()} is no unit quaternion.")
        turn = np.array([0.0, 0, 0, 1])  # as messages are before they are filled in
    return quaternion_pose(place, turn)


def message_shapes(
    held: Any, name: str, path: Path, packages: Any, chord: float | None
) -> list[tuple[LinkMesh, np.ndarray]]:
    """Meshes of a collision object with their poses in its frame."""
    out = []
    for kind, make in (
        ("primitive", lambda x: _primitive(x, name, chord)),
        ("mesh", lambda x: _mesh(x, name, path, packages)),
        ("plane", lambda x: _plane(x, name)),
    ):
        shapes = entries(held, "meshes" if kind == "mesh" else f"{kind}s")
        poses = entries(held, f"{kind}_poses")
        if poses and len(poses) != len(shapes):
            raise FileError(f"{name}: {len(shapes)} of {kind}s and {len(poses)} poses.")
        for k, shape in enumerate(shapes):
            pose = message_pose(poses[k], name) if poses else np.eye(4)
            out.append((make(fields(shape, name)), pose))
    return out


def state_values(held: Any, name: str, kinematics: Kinematics | None) -> dict[str, float]:
    """Values of a robot state by joint, of joints that the robot has; messages have others too.

    Raises:
        FileError: A joint that the robot does not have puts it anywhere but at the origin.
    """
    found, robot = joint_positions(held, name), kinematics or Kinematics([], [], [], NO_FRAMES, [])
    values = {joint: value for joint, value in found.items() if joint in robot.joints}
    state = fields(fields(held, name).get("multi_dof_joint_state"), name)
    joints, poses = entries(state, "joint_names"), entries(state, "transforms")
    if len(joints) != len(poses):
        raise FileError(f"{name}: {len(joints)} joints and {len(poses)} transforms.")
    for joint, held_pose in zip(map(str, joints), poses, strict=True):
        pose = message_pose(held_pose, f"{name}: {joint}")
        columns = robot.wide.get(joint)
        if columns is not None:
            names = [robot.joints[k] for k in columns]
            every = (move for moves in robot.moves for move in moves)
            flat = any(move.column == columns[-1] and move.axis[2] == 1 for move in every)
            values |= zip(names, _wide_values(pose, len(columns), flat, joint), strict=True)
        elif not np.allclose(pose, np.eye(4)):
            raise FileError(f"{name}: {joint} moves the robot, which has no such joint.")
    return values


def _wide_values(pose: np.ndarray, count: int, flat: bool, joint: str) -> list[float]:
    """Values of a floating joint, or of a planar one in the plane of x and y, at a pose."""
    if count == 7:
        return [*pose[:3, 3].tolist(), *quaternion_of(pose[:3, :3]).tolist()]
    if count != 3 or not flat or pose[2, 3] != 0 or abs(pose[2, 2] - 1) > 1e-9:
        raise FileError(f"joint {joint} cannot reach its transform.")
    return [*pose[:2, 3].tolist(), float(np.arctan2(pose[1, 0], pose[0, 0]))]


def joint_positions(held: Any, name: str) -> dict[str, float]:
    """Positions of a joint state by joint."""
    state = fields(fields(held, name).get("joint_state"), name)
    joints = entries(state, "name")
    positions = numbers(entries(state, "position"), None, f"{name}: position")
    if len(joints) != len(positions):
        raise FileError(f"{name}: {len(joints)} joints and {len(positions)} positions.")
    return {str(joint): float(x) for joint, x in zip(joints, positions, strict=True)}


def _primitive(held: Mapping[str, Any], name: str, chord: float | None) -> LinkMesh:
    kind = held.get("type")
    kind = KINDS.get(kind, kind) if isinstance(kind, int) else str(kind).lower()
    if kind not in SIZE_COUNTS:
        raise FileError(f"{name}: a primitive of type {held.get('type')!r} cannot be read.")
    size = numbers(held.get("dimensions"), SIZE_COUNTS[kind], f"{name}: dimensions of a {kind}")
    if (size <= 0).any():
        raise FileError(f"{name}: dimensions of a {kind} are {size.tolist()}.")
    if kind in ("cylinder", "cone"):
        size = size[::-1]  # messages have the height first
    return primitive(kind, size, chord)


def _mesh(held: Mapping[str, Any], name: str, path: Path, packages: Any) -> LinkMesh:
    """A mesh that stands in the message, or a file that it names as ``resource``."""
    if "resource" in held:
        scale = held.get("dimensions", held.get("scale"))
        scale = None if scale is None else numbers(scale, 3, f"{name}: scale of a mesh")
        return mesh_of_file(find_file(str(held["resource"]), path, packages), scale, path)
    vertices = [numbers(x, 3, f"{name}: a vertex") for x in entries(held, "vertices")]
    faces = []
    for triangle in entries(held, "triangles"):
        corners = triangle.get("vertex_indices") if isinstance(triangle, Mapping) else triangle
        faces.append(numbers(corners, 3, f"{name}: a triangle"))
    rows = np.array(faces, np.int64).reshape(-1, 3)
    points = np.array(vertices, np.float64).reshape(-1, 3)
    if not len(rows):
        raise FileError(f"{name}: a mesh has no triangles.")
    return LinkMesh((str(path), name, len(rows), points.tobytes(), rows.tobytes()), points, rows)


def _plane(held: Mapping[str, Any], name: str) -> LinkMesh:
    """A square in place of the plane of ax + by + cz + d = 0."""
    *normal, offset = numbers(held.get("coef"), 4, f"{name}: coefficients of a plane")
    length = float(np.linalg.norm(normal))
    if length == 0:
        raise FileError(f"{name}: a plane has no normal.")
    n = np.array(normal) / length
    u = np.cross(n, np.eye(3)[np.argmin(abs(n))])
    u /= np.linalg.norm(u)
    corners = [FAR * (a * u + b * np.cross(n, u)) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    points = np.array(corners) - n * (offset / length)
    return LinkMesh(("plane", *normal, offset), points, np.array([[0, 1, 2], [0, 2, 3]]))
