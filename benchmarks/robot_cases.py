"""Robots among obstacles, from the data folder: Panda in MotionBenchMaker's problems and a shelf.

Obstacles are the same meshes for every library: cylinders have 32 sides.
"""

import json
import tarfile
import tempfile
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import abut
from abut.cases import box
from benchmarks import cases

EDGE = 32  # configurations
SIDES = 32  # of a cylinder
STEP = 0.02  # radians, of an edge


@dataclass
class RobotCase:
    """A robot among obstacles.

    Attributes:
        name: Of the problem.
        urdf: The robot's file, without ``package://``.
        scene: The robot and its obstacles.
        obstacles: (vertices, faces, pose) of each.
        sizes: Of boxes, their edges; of cylinders radius and height; else empty.
        ends: (2, k) start and goal, or random.
    """

    name: str
    urdf: Path
    scene: abut.Scene
    obstacles: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    sizes: list[tuple[float, ...]]
    ends: np.ndarray

    def random(self, count: int) -> np.ndarray:
        """(count, k) values, uniform within the limits."""
        low, high = np.clip(self.scene.robot.limits, -np.pi, np.pi).T
        return np.random.default_rng(0).uniform(low, high, (count, len(low)))

    def edges(self, count: int) -> np.ndarray:
        """(count, EDGE, k) values: straight edges as a planner grows them, from either end."""
        rng, found = np.random.default_rng(1), []
        trees = [self.ends[:1], self.ends[1:]]
        for goal in self.random(20 * count):
            side = len(found) % 2
            nodes = trees[side]
            near = nodes[np.argmin(np.abs(nodes - goal).max(axis=1))]
            way = (goal - near) / np.abs(goal - near).max() * STEP
            rows = near + np.arange(1, EDGE + 1)[:, None] * way
            free = self.scene.robot.valid(rows).numpy()
            stop = EDGE if free.all() else int(np.argmin(free))
            if stop:
                trees[side] = np.concatenate([nodes, rows[stop - 1 : stop]])
            found.append(rows)
            if len(found) == count:
                break
        rng.shuffle(found)
        return np.array(found)


def robot_folder() -> Path | None:
    """The folder of robots, if there is one."""
    folder = cases.data_folder()
    return None if folder is None or not (folder / "robots").is_dir() else folder / "robots"


def problems(
    folder: Path, device: str, each: int, place: Path, left_out: Container[str] = ()
) -> Iterator[RobotCase]:
    """The first problems of every set of MotionBenchMaker; ``place`` receives files.

    Problems with the names ``left_out`` count, but are not made.
    """
    import yaml

    panda = folder / "mbm_panda"
    urdf = place / "panda.urdf"
    text = (panda / "panda.urdf").read_text()
    urdf.write_text(text.replace("package://", f"{panda}/"))
    with tarfile.open(panda / "problems.tar.bz2") as archive:
        texts = {m.name: archive.extractfile(m).read() for m in archive if m.name.endswith("yaml")}  # type: ignore[union-attr]
    count: dict[str, int] = {}
    for name in sorted(texts, key=lambda name: name.split("/")[::-1]):  # one of each set in turn
        kind, file = name.split("/")[-2:]
        if not file.startswith("scene") or count.get(kind, 0) >= each:
            continue
        count[kind] = count.get(kind, 0) + 1
        if f"{kind}/{file[5:9]}" in left_out:
            continue
        world = yaml.load(texts[name], yaml.CSafeLoader)["world"]["collision_objects"]
        request = yaml.load(texts[name.replace("scene", "request")], yaml.CSafeLoader)
        scene = abut.Scene.load(urdf, device)
        _ignore_disabled(scene, panda / "panda.srdf")
        joints = scene.robot.joints
        start = request["start_state"]["joint_state"]
        ends = [dict(zip(start["name"], start["position"], strict=True))]
        goals = request["goal_constraints"][0]["joint_constraints"]
        ends.append({goal["joint_name"]: goal["position"] for goal in goals})
        rows = np.array([[end[joint] for joint in joints] for end in ends])
        yield _case(f"{kind}/{file[5:9]}", urdf, scene, list(_primitives(world)), rows)


def shelf(folder: Path, device: str) -> RobotCase:
    """The shelf of RTCD: 24,000 faces of a Panda, 72,000 of obstacles."""
    place = folder / "rtcd_shelf"
    scene = abut.Scene.load(place / "panda.urdf", device)
    parts = []
    for held in json.loads((place / "scene.json").read_text())["objects"]:
        mesh, pose = abut.Mesh.load(place / held["file"], device="cpu"), np.eye(4)
        pose[:3, 3] = held["translate"]
        parts.append(((), mesh.vertices.numpy(), mesh.faces.numpy(), pose))
    ends = np.zeros((2, len(scene.robot.joints)))
    case = _case("shelf", place / "panda.urdf", scene, parts, ends)
    values = case.random(2000)
    case.ends = values[scene.robot.valid(values).numpy()][:2]
    return case


def _case(name: str, urdf: Path, scene: Any, parts: list[Any], ends: np.ndarray) -> RobotCase:
    for _, vertices, faces, pose in parts:
        scene.add(abut.Mesh(vertices, faces, scene.device), pose)
    obstacles = [part[1:] for part in parts]
    return RobotCase(name, urdf, scene, obstacles, [part[0] for part in parts], ends)


def _primitives(world: list[Any]) -> Iterator[Any]:
    for held in world:
        for shape, pose in zip(held["primitives"], held["primitive_poses"], strict=True):
            sizes = tuple(map(float, shape["dimensions"]))
            if shape["type"] == "box":
                vertices, faces = box(sizes)
            else:
                height, radius = sizes
                sizes = (radius, height)
                vertices, faces = _cylinder(radius, height)
            yield sizes, vertices, faces, _pose(pose["position"], pose["orientation"])


def _cylinder(radius: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    mesh = trimesh.creation.cylinder(radius=radius, height=height, sections=SIDES)
    return np.array(mesh.vertices), np.array(mesh.faces)


def _pose(position: Any, quaternion: Any) -> np.ndarray:
    from abut.cases.placed_shapes import rotations_of_quaternions

    out = np.eye(4)
    turn = np.array(quaternion, float)
    out[:3, :3] = rotations_of_quaternions(turn[None] / np.linalg.norm(turn))[0]
    out[:3, 3] = position
    return out


def _ignore_disabled(scene: abut.Scene, srdf: Path) -> None:
    """Ignore the pairs of links that the SRDF disables."""
    links: dict[str, list[int]] = {}
    for name, row in scene.names.items():
        links.setdefault(name.rsplit("/", 1)[0], []).append(row)
    for pair in ElementTree.parse(srdf).getroot().iter("disable_collisions"):
        for row in links.get(pair.get("link1", ""), []):
            if pair.get("link2") in links:
                scene.ignore(row, links[pair.get("link2", "")])


def temporary_folder() -> Any:
    """A folder for files that are written."""
    return tempfile.TemporaryDirectory()
