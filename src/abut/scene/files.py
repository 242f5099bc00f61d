"""Load scenes from files: GLB and every other mesh file, URDF and MJCF robots."""

from pathlib import Path
from typing import Any

import numpy as np

from abut.core.device import resolve_device
from abut.core.progress import tracked
from abut.errors import FileError, MeshError, OptionError
from abut.io import existing, read_scene, reading
from abut.io.affine import split_matrix, stretched
from abut.mesh import Mesh
from abut.scene.robots import read_mjcf, read_urdf
from abut.scene.scene import Scene

GEOMETRIES = ("collision", "visual")
ROBOT_READERS = {".urdf": read_urdf, ".xml": read_mjcf, ".mjcf": read_mjcf}


def load_scene(path: Any, device: Any = None, *, geometry: str = "collision") -> Scene:
    """Load a scene from a mesh, URDF or MJCF file, as ``Scene.load`` does."""
    path = existing(path)
    if geometry not in GEOMETRIES:
        raise OptionError(f"geometry must be one of {GEOMETRIES}, not {geometry!r}.")
    device = resolve_device(device)
    read = ROBOT_READERS.get(path.suffix.lower())
    with reading(path, "a scene"):
        if read is None:
            return _mesh_scene(path, device)
        return _robot_scene(read, path, device, geometry)


def _mesh_scene(path: Path, device: Any) -> Scene:
    """An object for every node of a scene graph; nodes that share a geometry share a mesh."""
    scene = Scene(device)
    made: dict[Any, Mesh] = {}
    parts = read_scene(path)
    for placed in tracked(parts, len(parts)):
        pose, stretch = split_matrix(placed.matrix)
        key = (placed.geometry, stretch.tobytes())
        if key not in made:
            vertices, faces = stretched(placed.vertices, placed.faces, stretch)
            made[key] = _make_mesh(vertices, faces, scene.device, f"{path}: {placed.name}")
        scene.add(made[key], pose, name=placed.name)
    return scene


def _make_mesh(vertices: np.ndarray, faces: np.ndarray, device: Any, name: str) -> Mesh:
    """Make a mesh; an error names it."""
    try:
        return Mesh(np.ascontiguousarray(vertices), np.ascontiguousarray(faces), device)
    except MeshError as error:
        raise MeshError(f"{name}: {error}") from None


def _robot_scene(read: Any, path: Path, device: Any, geometry: str) -> Scene:
    """A scene with an object for each part of a robot."""
    kinematics, parts = read(path, geometry)
    if not parts:
        raise FileError(f"{path} has no geometry of this kind.")
    scene = Scene(device)
    static, near = kinematics.static, kinematics.neighbours()
    kinematics.parts = [(part.link, part.pose) for part in parts]
    poses = kinematics.poses(np.zeros(len(kinematics.joints)))
    meshes: dict[Any, Mesh] = {}
    rows = []
    for part, pose in tracked(zip(parts, poses, strict=True), len(parts)):
        if part.shape not in meshes:
            name = f"{path}: {part.source or part.name}"
            meshes[part.shape] = _make_mesh(part.vertices, part.faces, scene.device, name)
        fixed = bool(static[part.link])
        rows.append(scene.add(meshes[part.shape], pose, part.name, static=fixed))
    links = np.array([part.link for part in parts])
    ignored = near[links[:, None], links]
    for k, part in enumerate(parts):
        ignored[k, list(part.ignored)] = True
    low, high = np.nonzero(np.triu(ignored | ignored.T, 1))
    scene.ignore(low, high)
    scene.set_robot(kinematics, rows)
    return scene
