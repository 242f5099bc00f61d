"""Planning scenes and motion requests of MoveIt, read from YAML files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abut.errors import FileError
from abut.io import reading
from abut.mesh import Mesh
from abut.scene.files.planning_message import (
    entries,
    fields,
    message_pose,
    message_shapes,
    numbers,
    read_yaml,
    state_values,
)
from abut.scene.files.robot_parts import LinkMesh, checked_chord
from abut.scene.files.robot_scene import mesh_of_part
from abut.scene.objects import ALL_GROUPS
from abut.scene.robots.joint_values import known_name
from abut.scene.robots.kinematics import Kinematics

if TYPE_CHECKING:
    from abut.scene.scene import Scene

OBSTACLES = 1 << 1  # the group of obstacles, which do not meet each other


@dataclass
class PlanningScene:
    """Objects that a planning scene has added to a scene.

    Attributes:
        name: Of the planning scene.
        objects: Indices of the objects of each collision object, by its name.
        attached: Names of those that a link carries.
        start: Values by joint of the robot's state.
    """

    name: str
    objects: dict[str, list[int]] = field(default_factory=dict)
    attached: list[str] = field(default_factory=list)
    start: dict[str, float] = field(default_factory=dict)


@dataclass
class MotionRequest:
    """Start and goals of a motion.

    Attributes:
        group: The group of joints that moves.
        start: Values by joint.
        goals: Values by joint, of each goal that is given by joints.
    """

    group: str
    start: dict[str, float]
    goals: list[dict[str, float]]


@dataclass
class _Placed:
    """A collision object: meshes with their poses, in the frame of a link."""

    name: str
    frame: str
    shapes: list[tuple[LinkMesh, np.ndarray]]
    link: str | None = None
    touch_links: list[str] = field(default_factory=list)

    def part_names(self) -> list[str]:
        """The name of each of its shapes: that of the object where it has one."""
        several = len(self.shapes) > 1
        return [f"{self.name}/{k}" if several else self.name for k in range(len(self.shapes))]


def add_planning_scene(
    scene: "Scene", path: Any, packages: Any = None, chord: float | None = None
) -> PlanningScene:
    """Add a planning scene to a scene, as ``Scene.add_planning_scene`` does."""
    chord = checked_chord(chord)
    with reading(path, "a planning scene"):
        held = read_yaml(path)
        placed = list(_placed(held, Path(path), packages, chord))
        start = _start(scene, held)
        made = _Additions(scene, placed, start)
        matrix = _matrix(held)
        padding = dict(_padding(scene, held))
        out = PlanningScene(str(held.get("name") or ""), start=start)
        made.add(out, matrix, padding)
    return out


def read_request(path: Any, kinematics: Kinematics) -> MotionRequest:
    """Read a motion request, as ``Robot.read_request`` does."""
    with reading(path, "a motion request"):
        held = read_yaml(path)
        start = state_values(held.get("start_state"), "start_state", kinematics)
        goals = []
        for goal in entries(held, "goal_constraints"):
            values = {}
            for part in entries(goal, "joint_constraints"):
                name = fields(part, "constraint").get("joint_name")
                joint = known_name(name, kinematics.joints, "joint")
                values[joint] = float(numbers([part.get("position")], 1, f"goal of {joint}")[0])
            if values:
                goals.append(values)
        return MotionRequest(str(held.get("group_name") or ""), start, goals)


def _start(scene: "Scene", held: dict[str, Any]) -> dict[str, float]:
    kinematics = None if scene.robot is None else scene.robot.kinematics
    return state_values(held.get("robot_state"), "robot_state", kinematics)


def _placed(
    held: dict[str, Any], path: Path, packages: Any, chord: float | None
) -> Iterator[_Placed]:
    """The collision objects of the world, and those attached to links."""
    world = fields(held.get("world"), "world")
    if fields(fields(world.get("octomap"), "octomap").get("octomap"), "octomap").get("data"):
        raise FileError("an octomap cannot be read.")
    for found in entries(world, "collision_objects"):
        yield _collision_object(found, path, packages, chord)
    state = fields(held.get("robot_state"), "robot_state")
    for found in entries(state, "attached_collision_objects"):
        about = fields(found, "attached object")
        placed = _collision_object(about.get("object"), path, packages, chord)
        placed.link = str(about.get("link_name"))
        placed.touch_links = [str(link) for link in entries(about, "touch_links")]
        yield placed


def _collision_object(held: Any, path: Path, packages: Any, chord: float | None) -> _Placed:
    about = fields(held, "collision object")
    name = about.get("id")
    if not isinstance(name, str) or not name:
        raise FileError("a collision object has no id.")
    if about.get("operation", 0) not in (0, "add", "ADD", b"\0"):
        raise FileError(f"{name}: only objects to add can be read.")
    frame = fields(about.get("header"), name).get("frame_id") or ""
    above = message_pose(about.get("pose"), name)
    shapes = message_shapes(about, name, path, packages, chord)
    if not shapes:
        raise FileError(f"{name} has no shape.")
    return _Placed(name, str(frame), [(mesh, above @ pose) for mesh, pose in shapes])


class _Additions:
    """Objects to add, checked before the scene changes."""

    def __init__(self, scene: "Scene", placed: list[_Placed], start: dict[str, float]) -> None:
        self.scene, self.placed, self.start = scene, placed, start
        self.links = [] if scene.robot is None else scene.robot.links
        taken = set(scene.names)
        for x in placed:
            names = set(x.part_names())
            if taken & names:
                raise FileError(f"there is an object named {min(taken & names)!r} already.")
            taken |= names
            for link in filter(None, [x.link, *x.touch_links]):
                known_name(link, self.links, "link")
        self.frames = [
            self._frame(x.frame if x.link is None else x.frame or x.link) for x in placed
        ]
        meshes: dict[Any, Mesh] = {}
        for mesh, _ in (shape for x in placed for shape in x.shapes):
            if mesh.key not in meshes:
                meshes[mesh.key] = mesh_of_part(mesh, scene.device, str(mesh.source or "a mesh"))
        self.meshes = meshes

    def _frame(self, name: str) -> np.ndarray:
        """The pose of a frame that objects are given in."""
        name = name.lstrip("/")
        if name in ("", "world") and name not in self.links:
            return np.eye(4)
        if name not in self.links:
            raise FileError(f"there is no frame {name}: it is no link of the robot.")
        assert self.scene.robot is not None
        return self.scene.robot.kinematics.link_poses(self.start)[self.links.index(name)]

    def add(self, out: PlanningScene, matrix: Any, padding: dict[str, float]) -> None:
        """Add the objects, then attach, ignore and pad as the planning scene says."""
        group, mask = OBSTACLES, ALL_GROUPS & ~OBSTACLES
        for x, frame in zip(self.placed, self.frames, strict=True):
            out.objects[x.name] = rows = []
            for name, (mesh, pose) in zip(x.part_names(), x.shapes, strict=True):
                at = frame @ pose
                shared = self.meshes[mesh.key]
                rows.append(self.scene.add(shared, at, name, group=group, mask=mask))
        robot = self.scene.robot
        if robot is None:
            return
        if matrix is not None:
            _apply(self.scene, out, *matrix)
        for x in self.placed:
            if x.link is not None:
                robot.attach(out.objects[x.name], x.link, at=self.start, touch_links=x.touch_links)
                out.attached.append(x.name)
        if padding:
            robot.pad(padding)


def _matrix(held: dict[str, Any]) -> Any:
    """Names and (n, n) bool of an allowed-collision matrix, and its defaults by name; or None."""
    about = fields(held.get("allowed_collision_matrix"), "allowed_collision_matrix")
    listed = [str(x) for x in entries(about, "entry_names")]
    rows = []
    for row in entries(about, "entry_values"):
        values = row.get("enabled") if isinstance(row, Mapping) else row
        if not isinstance(values, list) or len(values) != len(listed):
            raise FileError(f"a row of the allowed-collision matrix has not {len(listed)} entries.")
        rows.append([bool(x) for x in values])
    if len(rows) != len(listed):
        raise FileError(f"an allowed-collision matrix has {len(listed)} names, {len(rows)} rows.")
    others = [str(x) for x in entries(about, "default_entry_names")]
    allowed = [bool(x) for x in entries(about, "default_entry_values")]
    if len(others) != len(allowed):
        raise FileError("an allowed-collision matrix has not one default for each of its names.")
    if not listed and not others:
        return None
    matrix = np.array(rows, bool).reshape(len(listed), len(listed))
    return listed, matrix & matrix.T, dict(zip(others, allowed, strict=True))


def _apply(
    scene: "Scene", out: PlanningScene, names: list[str], matrix: np.ndarray, others: dict
) -> None:
    """Ignore what a matrix allows, and test all other pairs of links and objects."""
    robot = scene.robot
    assert robot is not None
    parts = {link: robot.objects_of(link) for link in robot.links} | out.objects
    known = [name for name in parts if parts[name]]
    at = {name: k for k, name in enumerate(names)}
    for i, a in enumerate(known):
        for b in known[i + 1 :]:
            if a in at and b in at:
                allowed = bool(matrix[at[a], at[b]])
            else:
                allowed = _default(others, a, b)
            change = scene.ignore if allowed else scene.allow
            rows, partners = np.meshgrid(parts[a], parts[b])
            change(rows.ravel(), partners.ravel())


def _default(others: dict[str, bool], a: str, b: str) -> bool:
    """Whether the defaults of an allowed-collision matrix allow a pair without an entry.

    Where both names have a default, both have to allow it.
    """
    values = [others[name] for name in (a, b) if name in others]
    return bool(values) and all(values)


def _padding(scene: "Scene", held: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Padding by link [length unit of the scene]; scaled links cannot be read."""
    links = [] if scene.robot is None else scene.robot.links
    for part in entries(held, "link_padding"):
        link = known_name(fields(part, "link_padding").get("link_name"), links, "link")
        yield link, float(numbers([part.get("padding")], 1, f"padding of {link}")[0])
    for part in entries(held, "link_scale"):
        if fields(part, "link_scale").get("scale", 1) != 1:
            raise FileError(f"link {part.get('link_name')} is scaled, which cannot be read.")
