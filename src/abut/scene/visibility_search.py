"""Contacts of a scene by visibility culling."""

import numpy as np

from abut.mesh import Mesh
from abut.options import Method
from abut.query.self_collide import self_collide
from abut.query.visible import visible_rows
from abut.scene.objects import ObjectTable


def visibility_rows(
    objects: ObjectTable, meshes: list[Mesh], own: bool, method: Method, pixels: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) objects and (n, 2) faces that meet, in any order.

    Args:
        objects: The objects and their filters.
        meshes: Meshes of all objects, by index.
        own: Also faces of one object.
        method: Culling method.
        pixels: Width of the views.
    """
    poses = objects.poses.numpy().reshape(-1, 4, 4)
    owners, faces = visible_rows(meshes, poses, method, pixels)
    if own:
        inside = _own_rows(meshes, method, pixels)
        owners, faces = (np.concatenate(both) for both in zip((owners, faces), inside, strict=True))
    wanted = objects.tested(owners)
    return owners[wanted], faces[wanted]


def _own_rows(meshes: list[Mesh], method: Method, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """((n, 2) objects, (n, 2) faces) of faces of one object that meet, in its own frame.

    Posed coordinates are rounded, so that other faces might touch there.
    """
    pairs = {
        key: self_collide(mesh, method=method, pixels=pixels).pairs.numpy()
        for key, mesh in {id(mesh): mesh for mesh in meshes}.items()
    }
    found = [np.empty((0, 2), np.int32), *(pairs[id(mesh)] for mesh in meshes)]
    owners = [np.full_like(rows, i - 1) for i, rows in enumerate(found)]
    return np.concatenate(owners), np.concatenate(found)
