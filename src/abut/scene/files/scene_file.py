"""Load scenes from files: GLB and every other mesh file, URDF and MJCF robots."""

from pathlib import Path
from typing import Any

from abut.core.device import resolve_device
from abut.core.progress import tracked
from abut.errors import FileError
from abut.io import existing, read_scene, reading
from abut.io.models.affine import split_matrix, stretched
from abut.mesh import Mesh
from abut.scene.files.robot_files import ReadOptions
from abut.scene.files.robot_scene import ROBOT_READERS, named_mesh, robot_scene
from abut.scene.scene import Scene


def load_scene(path: Any, device: Any = None, **options: Any) -> Scene:
    """Load a scene from a mesh, URDF or MJCF file, as ``Scene.load`` does."""
    path, chosen = existing(path), ReadOptions(**options)
    device = resolve_device(device)
    kind = path.suffix.lower()
    if kind == ".xacro":
        raise FileError(f"{path} has macros; `xacro FILE > robot.urdf` expands them.")
    chosen.require_for(kind)
    with reading(path, "a scene"):
        return (robot_scene if kind in ROBOT_READERS else _mesh_scene)(path, device, chosen)


def _mesh_scene(path: Path, device: Any, _: ReadOptions) -> Scene:
    """An object for every node of a scene graph; nodes that share a geometry share a mesh."""
    scene = Scene(device)
    made: dict[Any, Mesh] = {}
    parts = read_scene(path)
    for placed in tracked(parts, len(parts)):
        pose, stretch = split_matrix(placed.matrix)
        key = (placed.geometry, stretch.tobytes())
        if key not in made:
            vertices, faces = stretched(placed.vertices, placed.faces, stretch)
            made[key] = named_mesh(vertices, faces, scene.device, f"{path}: {placed.name}")
        scene.add(made[key], pose, name=placed.name)
    return scene
