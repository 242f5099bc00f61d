"""abut.signed_distance and abut.contains: points inside and outside a mesh."""

from typing import Any

import warp as wp

from abut.core.unknown_options import explain_options
from abut.errors import MeshError
from abut.mesh import Mesh, require_meshes
from abut.query.closest_point import closest_point


@explain_options
def signed_distance(mesh: Mesh, points: Any, *, pose: Any = None, method: str = "bvh") -> wp.array:
    """Find how far points are from the surface of a mesh, negative inside.

    ``abut.closest_point(mesh, points, signed=True)`` also says where the nearest points are.

    Args:
        mesh: A mesh with at least one face.
        points: (n, 3) float32 or float64, on the mesh's device or in NumPy.
        pose: Rigid motion (4, 4) of the mesh, or a batch (B, 4, 4); None leaves it in place.
        method: ``bvh``, or ``brute`` for brute force. Both return the same.

    Returns:
        (n,) float64; (B, n) for a batch of poses.

    Guarantee:
        That of ``abut.closest_point``: signs are exact for closed meshes.
    """
    return closest_point(mesh, points, signed=True, pose=pose, method=method).distance


@explain_options
def contains(mesh: Mesh, points: Any, *, pose: Any = None, method: str = "bvh") -> wp.array:
    """Find which points lie inside a closed mesh; its surface belongs to it.

    Args:
        mesh: A closed mesh.
        points: (n, 3) float32 or float64, on the mesh's device or in NumPy.
        pose: Rigid motion (4, 4) of the mesh, or a batch (B, 4, 4); None leaves it in place.
        method: ``bvh``, or ``brute`` for brute force. Both return the same.

    Returns:
        (n,) bool; (B, n) for a batch of poses.

    Raises:
        MeshError: The mesh is open.

    Guarantee:
        Exact.
    """
    require_meshes(mesh=mesh)
    if not mesh.watertight:
        raise MeshError("an open mesh has no inside; repair it, or look at abut.signed_distance.")
    inside = signed_distance(mesh, points, pose=pose, method=method).numpy() <= 0.0
    return wp.array(inside, dtype=wp.bool, device=mesh.device)
