"""abut.distance: the nearest faces of two meshes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of, curve_effort
from abut.core.device import require_same_device
from abut.core.pair_queue import KeyLayout, pose_room
from abut.core.progress import tracked
from abut.core.timing import is_recording
from abut.errors import MeshError
from abut.geometry.poses import batch_size, checked_poses, is_plain_pose, plain_poses
from abut.mesh import Mesh, require_meshes
from abut.narrow.pair_distance import measured
from abut.operands.pose_upload import upload_poses
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.operands.posed_pairs import MeshExtent
from abut.options import (
    DISTANCE_BOUNDS,
    TREE_METHODS,
    Bound,
    Method,
    chosen,
    require_length,
)
from abut.query.collide import collide
from abut.query.contact_stages import Strategy
from abut.query.distance_plan import NearestPlan
from abut.query.distance_stages import FACES_FOR_THREADS
from abut.query.one_distance import OneDistance
from abut.query.shared import plans_of, shared_queues
from abut.query.steady import steady
from abut.results import Distances
from abut.traversal.distance import far_field

FAR_SIZES = float(far_field.FAR_SIZES)
WORTH_FITTING = 256  # poses of one shape, from which swept spheres repay their fitting
SQUARED = 1e18  # beyond, squares are more than float32 holds, in which spheres and boxes are fitted
FEW_CONTACTS = 4  # that are named one by one, which is faster
POSE_NAMES = "pose_a", "pose_b"


@steady
def distance(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    upper_bound: float = np.inf,
    tolerance: float = 0.0,
    method: str = "bvh",
    bound: str | None = None,
) -> Distances:
    """Find how far apart two meshes are, and where they are nearest.

    Args:
        a, b: Meshes on one device, with at least one face each.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
            The answer is about the moved coordinates, rounded to float64.
        upper_bound: Search no farther than this [mesh length unit]: a larger distance is returned
            as infinity. A lower bound makes the search shorter.
        tolerance: The result may exceed the smallest distance by this much [mesh length unit].
            The pair that is found may then depend on the device.
        method: ``bvh``, or ``brute`` for brute force. Both return the same.
        bound: Bounding volume of the hierarchies, ``aabb``, ``obb`` or ``rss``. None is ``rss``,
            which searches on the CPU fit where they need it; on CUDA it is ``aabb`` for a single
            pose with few near faces. All return the same.

    Returns:
        The distance, the nearest faces and, on request, the nearest points; for each pose.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or the batches differ in size.
        MeshError: A mesh has no faces.
        OptionError: The bound or the tolerance is negative or NaN.

    Guarantee:
        The true minimum, rounded: right to some units in the last place of the size of the faces
        involved. 0 exactly when the meshes intersect.
    """
    if method == "bvh" and bound is None and tolerance == 0.0 and not is_recording():
        near = _at_one_pose(a, b, pose_a, pose_b, upper_bound)
        if near is not None:
            return near
    require_meshes(a=a, b=b)
    require_same_device(a, b)
    require_faces(a=a, b=b)
    method = chosen(TREE_METHODS, method, "method")
    require_length(upper_bound=upper_bound, tolerance=tolerance)
    batch = batch_size(pose_a, pose_b)
    take = checked_poses if a.device.is_cpu else plain_poses  # a plan checks them on CUDA
    poses = take(pose_a, "pose_a"), take(pose_b, "pose_b")
    layout = KeyLayout.of(a.face_count, b.face_count)
    count = 1 if batch is None else batch
    asked = min(count_poses(mesh, count) for mesh in (a, b))
    on_demand = bound is None and _fits_on_demand(a, asked)
    bound = chosen(DISTANCE_BOUNDS, bound or Bound.RSS, "bound")
    if largest_coordinate(a, b, poses) > SQUARED:
        bound = Bound.AABB
    value, faces = np.empty(count), np.empty((count, 2), dtype=np.int32)
    trees = ()
    if method is not Method.BRUTE and count:
        effort = count * curve_effort(a, b)
        trees = [bvh_of(mesh, bound, effort, on_demand=on_demand) for mesh in (a, b)]
    about = trees, layout, float(tolerance), bound, upper_bound
    room = pose_room(layout, a.face_count)
    starts = range(0, count, room)
    for start in tracked(starts, len(starts)):
        part = slice(start, min(start + room, count))
        chosen_poses = _picked(poses, part)
        value[part], keys = _searched(a, b, *about, chosen_poses, part.stop - start)
        faces[part] = _faces(value[part], keys, layout)
        _name_contacts(a, b, chosen_poses, value[part], faces[part])
    return _distances(a, b, poses, value, faces, batch)


def _at_one_pose(a: Any, b: Any, pose_a: Any, pose_b: Any, upper_bound: Any) -> Distances | None:
    """Answer a query of one NumPy pose; None for other queries and for invalid input."""
    if not (isinstance(a, Mesh) and isinstance(b, Mesh) and a.device is b.device):
        return None
    if not (is_plain_pose(pose_a) and is_plain_pose(pose_b)):
        return None
    face_count = a.face_count + b.face_count
    if not (a.face_count and b.face_count):
        return None
    if not (isinstance(upper_bound, float) and upper_bound >= 0.0):
        return None
    asked = min(count_poses(mesh, 1) for mesh in (a, b))
    posed = pose_a is not None, pose_b is not None
    poses = [pose for pose in (pose_a, pose_b) if pose is not None]
    if a.device.is_cpu:
        prepared = _prepared(a, b, Strategy.DESCEND, asked, posed)
        if face_count > FACES_FOR_THREADS and prepared.is_for_threads():
            return None
        near = prepared.ask(poses, upper_bound)
    else:
        listing = _prepared(a, b, Strategy.LEAF_WALK, asked, posed)
        near = None if listing.crowded else listing.ask(poses, upper_bound)
        if listing.crowded:
            near = _prepared(a, b, Strategy.DESCEND, 0, posed).ask(poses, upper_bound)
    if near is None or near.value > 0.0:
        return near
    hits = collide(a, b, pose_a=pose_a, pose_b=pose_b, first=True)
    checked = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    return _distances(a, b, checked, np.zeros(1), hits.pairs.numpy(), None)


def _prepared(
    a: Mesh, b: Mesh, strategy: Strategy, asked: int, posed: tuple[bool, bool]
) -> OneDistance:
    """The meshes prepared for a question, the same while their shapes stay."""
    bound, on_demand = Bound.AABB, False
    if strategy is Strategy.DESCEND:
        bound, on_demand = Bound.RSS, _fits_on_demand(a, asked)
    effort = curve_effort(a, b)
    lazy = {"on_demand": on_demand, "lazy": on_demand}
    trees = [bvh_of(mesh, bound, effort, **lazy) for mesh in (a, b)]
    queues = shared_queues(a.device, a.face_count + b.face_count)

    def make() -> OneDistance:
        extents = mesh_extent(a), mesh_extent(b)
        return OneDistance(a, b, trees, bound, extents, posed, queues, strategy)

    volumes = [tree.rss if bound is Bound.RSS else None for tree in trees]
    about = (OneDistance, strategy, queues.generation, *posed, a.points, b.points, *trees, *volumes)
    return plans_of(a, b).get(about, make)


def _fits_on_demand(mesh: Mesh, asked: int) -> bool:
    """Whether the search after so many poses fits swept spheres as it goes."""
    return mesh.device.is_cpu and asked < WORTH_FITTING


def count_poses(mesh: Mesh, count: int) -> int:
    """Add to the number of poses that queries of a mesh in its present shape had; returns it."""
    version, before = mesh.cache.get("asked", (mesh.version, 0))
    total = count + (before if version == mesh.version else 0)
    mesh.cache["asked"] = (mesh.version, total)
    return total


def _picked(poses: Any, rows: Any) -> tuple[np.ndarray | None, ...]:
    return tuple(p if p is None or len(p) == 1 else p[rows] for p in poses)


def _searched(
    a: Mesh,
    b: Mesh,
    trees: Any,
    layout: KeyLayout,
    tolerance: float,
    bound: Bound,
    upper_bound: float,
    poses: Any,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and keys by this thread's plan, the same one while nothing but poses changes."""
    moved = tuple(0 if p is None else len(p) for p in poses)
    far = may_be_far(a, b, poses)

    def make() -> NearestPlan:
        views = tuple(tree.view(bound) for tree in trees)  # first, as in OneDistance
        sides = (
            make_posed_mesh(a.points, a.faces, poses[0]),
            make_posed_mesh(b.points, b.faces, poses[1]),
        )
        extents = (mesh_extent(a), mesh_extent(b)) if far else ()
        return NearestPlan(a.device, *sides, views, layout, count, tolerance, bound, extents)

    arrays = a.points, b.points, *trees, *(tree.rss for tree in trees)
    about = (NearestPlan, bound, tolerance, far, *moved, *arrays)
    plan = plans_of(a, b).get(about, make)
    sent = (upload_poses(p, name, a.device) for p, name in zip(poses, POSE_NAMES, strict=True))
    plan.move(*(poses if a.device.is_cpu else sent))
    return plan.run(float(upper_bound))


def may_be_far(a: Mesh, b: Mesh, poses: tuple[np.ndarray | None, ...]) -> bool:
    """Whether meshes may be far apart for their size at some pose; kernels decide for each."""
    size = mesh_extent(a).size + mesh_extent(b).size
    return 2.0 * largest_coordinate(a, b, poses) > FAR_SIZES * size


def largest_coordinate(a: Mesh, b: Mesh, poses: tuple[np.ndarray | None, ...]) -> float:
    """Upper bound of the coordinates of both meshes at all poses."""
    shifts = sum(_largest_shift(p) for p in poses if p is not None)
    return mesh_extent(a).reach + mesh_extent(b).reach + shifts


def mesh_extent(mesh: Mesh) -> Any:
    """MeshExtent of a mesh; infinite where float64 cannot hold it."""

    def make() -> Any:
        extent = MeshExtent()
        extent.centre = wp.vec3d(*(mesh.bounds[0] / 2.0 + mesh.bounds[1] / 2.0))
        with np.errstate(over="ignore"):
            extent.size = float((mesh.bounds[1] - mesh.bounds[0]).sum())
        extent.reach = float(np.abs(mesh.bounds).max())
        return extent

    return mesh.per_shape("extent", make)


def _largest_shift(poses: np.ndarray) -> float:
    if len(poses) == 1:
        return max(map(abs, poses[0, :3, 3].tolist()))  # plain numbers are faster
    return float(np.abs(poses[:, :3, 3]).max(initial=0.0))


def _faces(value: np.ndarray, keys: np.ndarray, layout: KeyLayout) -> np.ndarray:
    """(B, 2) int32 of keys; -1 where there is no distance, or no faces yet."""
    if len(keys) == 1 and 0 < value[0] < np.inf:  # plain numbers are faster
        return np.array([layout.split(int(keys[0]))], np.int32)
    faces = np.stack(layout.split(keys), axis=1).astype(np.int32)
    faces[(value == 0) | np.isinf(value)] = -1
    return faces


def _name_contacts(a: Mesh, b: Mesh, poses: Any, value: np.ndarray, faces: np.ndarray) -> None:
    """Fill in the faces of rows at distance 0: two that meet, the same on every device."""
    if (value[0] if len(value) == 1 else value.min()) == 0:
        met = np.flatnonzero(value == 0)
        if len(met) <= FEW_CONTACTS:
            for row in met:
                pose_a, pose_b = (p if p is None else p[row if len(p) > 1 else 0] for p in poses)
                hits = collide(a, b, pose_a=pose_a, pose_b=pose_b, first=True)
                faces[row] = hits.pairs.numpy()[0]
            return
        pose_a, pose_b = _picked(poses, met)
        still = np.eye(4)[None] if pose_a is None and pose_b is None else pose_a
        hits = collide(a, b, pose_a=_batch(still, met), pose_b=_batch(pose_b, met), first=True)
        assert hits.pose is not None  # the poses are a batch
        faces[met[hits.pose.numpy()]] = hits.pairs.numpy()


def _batch(poses: np.ndarray | None, met: np.ndarray) -> np.ndarray | None:
    return None if poses is None else np.broadcast_to(poses, (len(met), 4, 4))


def _distances(
    a: Mesh, b: Mesh, poses: Any, value: np.ndarray, faces: np.ndarray, batch: int | None
) -> Distances:
    sides = defer_posed_mesh(a, poses[0]), defer_posed_mesh(b, poses[1])
    points = partial(_points, sides, value, faces, batch is None, a.device)
    if batch is None:
        return Distances(float(value[0]), faces[0], a.device, points)
    values = wp.array(value, dtype=wp.float64, device=a.device)
    return Distances(values, faces, a.device, points)


def _points(
    sides: tuple[Callable[[], Any], Callable[[], Any]],
    value: np.ndarray,
    faces: np.ndarray,
    single: bool,
    device: wp.Device,
) -> wp.array:
    """Nearest points of the faces found."""
    pairs = wp.array(faces, dtype=wp.int32, device=device)
    pose = None if single else wp.array(np.arange(len(faces), dtype=np.int32), device=device)
    _, points = measured(*sides, pairs, pose, value == 0, points=True)
    return points[0] if single else points


def require_faces(**meshes: Mesh) -> None:
    """Raise MeshError for meshes without faces."""
    for name, mesh in meshes.items():
        if mesh.face_count == 0:
            raise MeshError(f"{name} has no faces, so nothing is any distance from it.")
