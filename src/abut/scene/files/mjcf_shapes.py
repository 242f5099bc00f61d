"""Meshes of the geoms of an MJCF model."""

from typing import Any

import numpy as np

from abut.cases.height_field import height_field
from abut.errors import FileError
from abut.scene.files.robot_files import ReadOptions
from abut.scene.files.robot_parts import LinkMesh, half_space, primitive

PRIMITIVE_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3}  # numbers


def mesh_of_geom(mujoco: Any, model: Any, geom: int, options: ReadOptions) -> LinkMesh:
    """The mesh of a geom; contained in it is the shape that MuJoCo collides."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    types = mujoco.mjtGeom
    if kind == int(types.mjGEOM_MESH):
        return _mesh(model, int(model.geom_dataid[geom]), options.convex)
    if kind == int(types.mjGEOM_HFIELD):
        return _height_field(model, int(model.geom_dataid[geom]))
    if kind == int(types.mjGEOM_PLANE):  # infinite for contacts, whatever its size
        return half_space()
    for name, count in PRIMITIVE_SIZES.items():
        if kind == int(getattr(types, f"mjGEOM_{name.upper()}")):
            full = size[:count] * 2 if name == "box" else size[:count].copy()
            if name in ("cylinder", "capsule"):
                full[1] *= 2  # MuJoCo has half lengths
            return primitive(name, full, options.chord)
    named = model.geom(geom).name or geom
    raise FileError(f"geom {named} is a distance field of a plugin, which has no faces.")


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


def _height_field(model: Any, field: int) -> LinkMesh:
    """The solid below a height field, whose base MuJoCo takes to be solid too."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    first = model.hfield_adr[field]
    x, y, top, depth = model.hfield_size[field].tolist()
    heights = model.hfield_data[first : first + rows * columns].astype(np.float64) * top
    shape = height_field(heights.reshape(rows, columns), (2 * x, 2 * y), depth)
    return LinkMesh(("height field", field), shape.vertices, shape.faces)
