"""PosedMesh: the vertices, faces and poses of an operand in kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.geometry.poses import move_point
from abut.mesh import Lease, Mesh


@wp.struct
class PosedMesh:
    """Vertices, faces and poses of one operand. ``pose_count`` 0: no pose; 1: one for all."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    poses: wp.array[wp.mat44d]
    pose_count: wp.int32


@wp.func
def pose_of(side: PosedMesh, pose: wp.int32):
    """Return a pose of an operand, the identity if it has none."""
    out = wp.identity(n=4, dtype=wp.float64)
    if side.pose_count > 0:
        out = side.poses[wp.min(pose, side.pose_count - 1)]
    return out


@wp.func
def load_face(side: PosedMesh, face: wp.int32, pose: wp.int32):
    """Return the corners of a posed face, one a row."""
    corners = side.faces[face]
    p0 = side.points[corners[0]]
    p1 = side.points[corners[1]]
    p2 = side.points[corners[2]]
    if side.pose_count > 0:
        motion = pose_of(side, pose)
        p0 = move_point(motion, p0)
        p1 = move_point(motion, p1)
        p2 = move_point(motion, p2)
    return wp.matrix_from_rows(p0, p1, p2)


def make_posed_mesh(points: wp.array, faces: wp.array, poses: Any = None) -> Any:
    """Make the struct to pass to kernels, with a copy of the poses.

    Args:
        points, faces: Arrays of the mesh.
        poses: (B, 4, 4) float64 on the host, (B,) mat44d on the device, or None.
    """
    view = PosedMesh()
    view.points = points
    view.faces = faces
    if poses is not None:
        if isinstance(poses, np.ndarray):
            view.poses = wp.array(poses, dtype=wp.mat44d, device=points.device)
        else:
            view.poses = wp.clone(poses)
        view.pose_count = len(poses)
    return view


def defer_posed_mesh(mesh: Mesh, poses: Any = None) -> Callable[[], Any]:
    """Return a function that makes the posed mesh of the present shape, even after a ``deform``."""
    points, faces = mesh.points, mesh.faces

    def make(_lease: Lease = mesh.lease) -> Any:  # keeps the points from being overwritten
        return make_posed_mesh(points, faces, poses)

    return make
