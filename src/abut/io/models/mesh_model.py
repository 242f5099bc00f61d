"""Models from mesh and scene files: PLY, OBJ, STL, OFF, GLB and others."""

from pathlib import Path

import numpy as np

from abut.io.models.affine import split_matrix, stretched
from abut.io.models.mesh_pool import MeshPool, unique_ids
from abut.io.models.part_model import ModelPart, PartModel
from abut.io.read import read_scene

METRES = (".glb", ".gltf")  # formats whose unit is the metre


def read_mesh_model(path: Path, unit: float | None) -> PartModel:
    """Read a mesh file; each placed mesh of a scene is a part, named after its node.

    Objects of an OBJ file, or its groups where it has but one object, are parts.

    Args:
        path: A file that exists.
        unit: Metres per unit, for formats without a unit; None keeps coordinates.
    """
    own = 1.0 if path.suffix.lower() in METRES else unit
    scale = 1.0 if own is None else own
    pool, parts = MeshPool(), []
    placed = read_scene(path, obj_parts=True)
    made: dict[tuple[str, bytes], int] = {}
    for mesh, name in zip(placed, unique_ids(mesh.name for mesh in placed), strict=True):
        pose, stretch = split_matrix(mesh.matrix)
        key = (mesh.geometry, stretch.tobytes())
        if key not in made:
            vertices, faces = stretched(mesh.vertices.astype(np.float64), mesh.faces, stretch)
            made[key] = pool.add(vertices * scale, faces)
        pose[:3, 3] *= scale
        parts.append(ModelPart(name, mesh.name, "", "", "", {}, made[key], pose))
    return PartModel(path, own, 0.0, pool.meshes, parts)
