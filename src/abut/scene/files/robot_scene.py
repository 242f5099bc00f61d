"""Make the scene of a robot's file: an object for each piece of its geometry."""

from pathlib import Path
from typing import Any

import numpy as np

from abut.core.progress import tracked
from abut.errors import FileError, MeshError
from abut.mesh import Mesh
from abut.scene.files.mjcf_file import read_mjcf
from abut.scene.files.robot_files import ReadOptions, RobotFile
from abut.scene.files.robot_parts import LinkMesh
from abut.scene.files.urdf_file import read_urdf
from abut.scene.scene import Scene

ROBOT_READERS = {".urdf": read_urdf, ".xml": read_mjcf, ".mjcf": read_mjcf}


def robot_scene(path: Path, device: Any, options: ReadOptions) -> Scene:
    """A scene with the robot of a URDF or MJCF file at rest."""
    held = ROBOT_READERS[path.suffix.lower()](path, options)
    if not held.parts:
        raise FileError(f"{path} has no geometry of this kind.")
    scene = Scene(device)
    kinematics, static = held.kinematics, held.kinematics.static
    kinematics.parts = [(part.link, part.pose) for part in held.parts]
    poses = kinematics.poses({})  # at rest
    meshes: dict[Any, Mesh] = {}
    rows = []
    for part, pose in tracked(zip(held.parts, poses, strict=True), len(held.parts)):
        key = part.mesh.key
        if key not in meshes:
            name = f"{path}: {part.mesh.source or part.name}"
            meshes[key] = mesh_of_part(part.mesh, scene.device, name)
        fixed = bool(static[part.link])
        rows.append(scene.add(meshes[key], pose, part.name, static=fixed))
    scene.ignore(*_ignored(held))
    scene.set_robot(kinematics, rows, held.description)
    return scene


def mesh_of_part(part: LinkMesh, device: Any, name: str) -> Mesh:
    """The mesh of a part, with its deviation; an error names it."""
    mesh = named_mesh(part.vertices, part.faces, device, name)
    mesh.deviation = part.deviation
    return mesh


def named_mesh(vertices: np.ndarray, faces: np.ndarray, device: Any, name: str) -> Mesh:
    """Make a mesh; an error names it."""
    try:
        return Mesh(np.ascontiguousarray(vertices), np.ascontiguousarray(faces), device)
    except MeshError as error:
        raise MeshError(f"{name}: {error}") from None


def _ignored(held: RobotFile) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of parts that are not tested."""
    ignored = np.zeros((len(held.parts), len(held.parts)), bool)
    for k, part in enumerate(held.parts):
        ignored[k, list(part.ignored)] = True
    low, high = np.nonzero(np.triu(ignored | ignored.T, 1))
    return low, high
