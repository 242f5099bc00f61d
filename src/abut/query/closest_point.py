"""abut.closest_point: the point of a mesh that is closest to each query point, and its side."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import Bvh
from abut.bvh.morton import morton_order_of_points
from abut.bvh.triangle_frames import triangle_frames_of
from abut.bvh.wide import wide_nodes_of
from abut.core.arrays import wait_for_readers
from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import PairQueue
from abut.core.timing import is_recording, stage
from abut.errors import CapacityError, MeshError
from abut.geometry.poses import FLOATS, batch_size, checked_poses, is_plain_pose
from abut.mesh import Mesh, require_meshes
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import TREE_METHODS, Method, Sign, chosen, require_length
from abut.point.candidates import (
    CANDIDATES,
    candidates_kernel,
    crowded_points_kernel,
    nearest_candidate_kernel,
)
from abut.point.nearest_face import brute_nearest_face_kernel, nearest_face_kernel
from abut.point.signed_distance import closest_points_kernel
from abut.query.one_point import OnePoint
from abut.query.points import (
    checked_points,
    empty_order,
    in_unit,
    needs_no_unit,
    search_bound,
    unit_of,
)
from abut.query.shared import plans_of
from abut.query.signs import chosen_sign, set_signs
from abut.query.steady import steady
from abut.results import ClosestPoints

FEW_POINTS = 512  # not worth sorting
POINTS_PER_EFFORT = 8  # so many searches from points gain as much as one for a pair
MANY_POINTS = 1 << 16  # so many are dense enough for lanes of a warp to search together
AT_ONCE = 1 << 21  # so many search together at once, with 96 bytes each for their candidates
FEW_THREADS = 1 << 13  # for points with more


@steady
def closest_point(
    mesh: Mesh,
    points: Any,
    *,
    signed: bool | str = False,
    pose: Any = None,
    upper_bound: float = float("inf"),
    method: str = "bvh",
) -> ClosestPoints:
    """Find the point of a mesh that is closest to each of many points.

    Args:
        mesh: A mesh with at least one face.
        points: (n, 3) float32 or float64, on the mesh's device or in NumPy.
        signed: Negative distances inside. ``True`` takes pseudonormals where they are provably
            right and winding numbers elsewhere; ``"pseudonormal"`` or ``"winding"`` takes these.
        pose: Rigid motion (4, 4) of the mesh, or a batch (B, 4, 4); None leaves it in place.
        upper_bound: Points farther away get the distance infinity and the face -1.
        method: ``bvh``, or ``brute`` for brute force. All methods return the same rows.

    Returns:
        Distance, point, face and barycentric coordinates of each point; with a batch of poses a
        leading axis.

    Raises:
        DeviceError: The points live on another device than the mesh.
        MeshError: The mesh has no face, or a sign by pseudonormals is asked of an open mesh.
        OptionError: An option has none of the values above.
        PointError: A point is not finite, or the shape is another.

    Guarantee:
        The true minimum in float64, exactly zero on the surface; of faces equally near, the
        lowest. Signs are exact for closed meshes; see docs/closest_point.md for open ones.
    """
    if method == "bvh" and not is_recording():
        near = _of_one_point(mesh, points, signed, pose, upper_bound)
        if near is not None:
            return near
    require_meshes(mesh=mesh)
    method = chosen(TREE_METHODS, method, "method")
    if mesh.face_count == 0:
        raise MeshError("the mesh has no faces, so no point of it is closest.")
    require_length(upper_bound=upper_bound)
    batch = batch_size(pose, None)
    poses = checked_poses(pose, "pose")
    queries, bounds = checked_points(points, mesh.device)
    unit = unit_of(mesh, bounds, poses)
    if unit != 1.0:
        mesh = in_unit(mesh, unit)
        queries = wp.array(queries.numpy() / unit, dtype=wp.vec3d, device=mesh.device)
        bounds, upper_bound = bounds / unit, upper_bound / unit
        poses = poses if poses is None else poses / [[1, 1, 1, unit]]
    sign = chosen_sign(mesh, signed)
    pose_count = 1 if poses is None else len(poses)
    if pose_count * queries.shape[0] >= UNKNOWN_COUNT:
        raise CapacityError(
            f"{pose_count} poses of {queries.shape[0]} points are too many at once."
        )
    rows = ClosestPointRows(pose_count, queries.shape[0], mesh.device)
    if rows.face.size:
        order = empty_order(mesh.device)
        if method is not Method.BRUTE and queries.shape[0] > FEW_POINTS:
            order = morton_order_of_points(queries, bounds)
        find_closest(mesh, queries, order, poses, upper_bound, method, rows)
        if sign is not None:
            answers = rows.face, rows.weights, rows.distance
            set_signs(mesh, queries, order, poses, sign, *answers)
        wait_for_readers(points, mesh.device)
    return rows.result(batch is None, sign, unit)


def _of_one_point(
    mesh: Any, points: Any, signed: bool | str, pose: Any, upper_bound: Any
) -> ClosestPoints | None:
    """Answer a query of one NumPy point; None for other queries and for invalid input."""
    if type(points) is not np.ndarray or points.shape != (1, 3) or points.dtype not in FLOATS:
        return None
    if not (isinstance(mesh, Mesh) and mesh.face_count and is_plain_pose(pose)):
        return None
    if not (isinstance(upper_bound, float) and upper_bound >= 0.0):
        return None
    tree = bvh_of(mesh)
    wide, sign = wide_nodes_of(mesh, tree), chosen_sign(mesh, signed)
    shape = mesh.points if sign is None else mesh.version

    def make() -> OnePoint | None:
        if not mesh.per_shape("needs_no_unit", lambda: needs_no_unit(mesh)):
            return None
        return OnePoint(mesh, tree, wide, pose is not None, upper_bound, sign)

    about = (OnePoint, pose is not None, upper_bound, sign, shape, tree, wide)
    one = plans_of(mesh, mesh).get(about, make)
    return None if one is None else one.ask(points[0], pose)


class ClosestPointRows:
    """Room for the answers of ``pose_count`` times ``point_count`` queries."""

    def __init__(self, pose_count: int, point_count: int, device: wp.Device) -> None:
        shape = pose_count, point_count
        self.face = wp.empty(shape, dtype=wp.int32, device=device)
        self.distance = wp.empty(shape, dtype=wp.float64, device=device)
        self.point = wp.empty(shape, dtype=wp.vec3d, device=device)
        self.weights = wp.empty(shape, dtype=wp.vec3d, device=device)

    def result(self, single: bool, sign: Sign | None, unit: float) -> ClosestPoints:
        """Wrap the rows, without the axis of poses for a single one."""
        distance, point = self.distance, self.point.view(wp.float64)
        if unit != 1.0:
            with np.errstate(over="ignore"):  # a distance may be more than float64 can hold
                distance, point = (
                    wp.array(a.numpy() * unit, dtype=wp.float64, device=a.device)
                    for a in (distance, point)
                )
        arrays = [distance, point, self.face, self.weights.view(wp.float64)]
        if single:
            arrays = [array.reshape(array.shape[1:]) for array in arrays]
        distance, point, face, weights = arrays
        return ClosestPoints(distance, point, face, weights, sign)


def _search_together(
    mesh: Mesh,
    tree: Bvh,
    points: wp.array,
    order: wp.array,
    side: Any,
    bound: Any,
    faces: wp.array,
) -> None:
    """Search with all lanes of a warp together, for points dense enough to be near each other."""
    device = mesh.device
    wide, frames = wide_nodes_of(mesh, tree), triangle_frames_of(mesh, tree.origin)
    origin, poses = wp.vec3d(*tree.origin), side.poses
    if side.pose_count == 0:
        poses = wp.empty(0, dtype=wp.mat44d, device=device)
    room = min(faces.size, AT_ONCE)
    counts = wp.empty(room, dtype=wp.int32, device=device)
    found = wp.empty((CANDIDATES, room), dtype=wp.int32, device=device)
    crowded = PairQueue()
    crowded.keys = wp.empty(room, dtype=wp.int64, device=device)
    crowded.count = wp.zeros(1, dtype=wp.int64, device=device)
    for first in range(0, faces.size, room):
        count = min(room, faces.size - first)
        crowded.count.zero_()
        args = [points, order, poses, origin, wide, frames, bound, counts, found, crowded]
        launch(candidates_kernel, count, args, device, start=first)
        args = [points, order, side, bound, counts, found, faces]
        launch(nearest_candidate_kernel, count, args, device, start=first)
        args = [points, order, side, origin, wide, bound, crowded, found, first, faces]
        Task(crowded_points_kernel, UNKNOWN_COUNT, args, device, threads=FEW_THREADS).run()


def find_closest(
    mesh: Mesh,
    points: wp.array,
    order: wp.array,
    poses: np.ndarray | None,
    upper_bound: float,
    method: Method,
    rows: ClosestPointRows,
) -> None:
    """Fill all rows, with unsigned distances."""
    device = mesh.device
    count = rows.face.size
    side = make_posed_mesh(mesh.points, mesh.faces, poses)
    bound = search_bound(mesh, upper_bound)
    if method is Method.BRUTE:
        with stage("search", device):
            launch(
                brute_nearest_face_kernel, count, [points, side, bound, rows.face], device, grain=1
            )
    else:
        tree = bvh_of(mesh, effort=points.shape[0] // POINTS_PER_EFFORT)
        wide = wide_nodes_of(mesh, tree)
        with stage("search", device):
            if device.is_cuda and points.shape[0] >= MANY_POINTS:
                _search_together(mesh, tree, points, order, side, bound, rows.face)
            else:
                args = [points, order, side, wp.vec3d(*tree.origin), wide, bound, rows.face]
                launch(nearest_face_kernel, count, args, device, grain=256)
    with stage("closest points", device):
        outputs = [rows.face, rows.distance, rows.point, rows.weights]
        launch(
            closest_points_kernel, count, [points, side, wp.float64(upper_bound), *outputs], device
        )
