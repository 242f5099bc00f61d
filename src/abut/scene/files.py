"""Scenes of files: GLB and whatever else trimesh reads, URDF and MJCF robots."""

from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.mesh import Mesh
from abut.scene.robots import Part, read_mjcf, read_urdf
from abut.scene.scene import Scene


def load_scene(path: Any, device: Any = None, *, geometry: str = "collision") -> Scene:
    """A scene of what a file holds; see ``Scene.load``."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    if path.suffix.lower() == ".urdf":
        return _robot_scene(read_urdf(path, geometry), path, device)
    if path.suffix.lower() in (".xml", ".mjcf"):
        return _robot_scene(read_mjcf(path, geometry), path, device)
    return _mesh_scene(path, device)


def _mesh_scene(path: Path, device: Any) -> Scene:
    """An object for every node of a scene graph; nodes that share a geometry share a mesh."""
    import trimesh

    try:
        loaded = trimesh.load(path, process=False)
    except Exception as error:
        raise FileError(f"{path} cannot be read as a scene: {error}") from error
    if not isinstance(loaded, trimesh.Scene):
        loaded = trimesh.Scene({path.stem: loaded})
    scene = Scene(device)
    made: dict[Any, Mesh] = {}
    for node in sorted(loaded.graph.nodes_geometry):
        matrix, name = loaded.graph[node]
        shape = loaded.geometry[name]
        if not isinstance(shape, trimesh.Trimesh):
            continue
        pose, stretch = _split_matrix(np.asarray(matrix, dtype=np.float64))
        key = (name, stretch.tobytes())
        if key not in made:
            vertices = np.asarray(shape.vertices) @ stretch.T
            faces = np.asarray(shape.faces)
            faces = faces[:, ::-1] if np.linalg.det(stretch) < 0 else faces
            made[key] = Mesh(np.ascontiguousarray(vertices), faces, device=scene.device)
        scene.add(made[key], pose, name=str(node))
    if not made:
        raise FileError(f"{path} holds no triangle mesh.")
    return scene


def _split_matrix(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rigid motion, and what to do to the vertices before: nothing, or scale and shear."""
    u, sizes, v = np.linalg.svd(matrix[:3, :3])
    turn = u @ v
    pose = np.eye(4)
    pose[:3, 3] = matrix[:3, 3]
    if np.allclose(sizes, 1.0, rtol=0, atol=1e-6) and np.linalg.det(turn) > 0:
        pose[:3, :3] = turn
        return pose, np.eye(3)
    if np.linalg.det(turn) < 0:
        turn = -turn
    pose[:3, :3] = turn
    return pose, turn.T @ matrix[:3, :3]


def _robot_scene(robot: tuple[Any, list[Part]], path: Path, device: Any) -> Scene:
    kinematics, parts = robot
    if not parts:
        raise FileError(f"{path} has no geometry of this kind.")
    scene = Scene(device)
    still, near = kinematics.static, kinematics.neighbours()
    kinematics.parts = [(part.link, part.place) for part in parts]
    poses = kinematics.poses(np.zeros(len(kinematics.joints)))
    meshes: dict[Any, Mesh] = {}
    for part, pose in zip(parts, poses, strict=True):
        if part.shape not in meshes:
            meshes[part.shape] = Mesh(part.vertices, part.faces, device=scene.device)
        scene.add(meshes[part.shape], pose, part.name, static=bool(still[part.link]))
    links = np.array([part.link for part in parts])
    shunned = near[links[:, None], links]
    for k, part in enumerate(parts):
        shunned[k, [other in part.shunned for other in range(len(parts))]] = True
    low, high = np.nonzero(np.triu(shunned | shunned.T, 1))
    scene.ignore(low, high)
    scene.robot = kinematics
    return scene
