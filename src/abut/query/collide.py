"""abut.collide: the pairs of faces of two meshes that meet."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.errors import MeshError
from abut.faces import posed_faces
from abut.geometry.common_corners import STRANGERS
from abut.hierarchy.owner import hierarchy_of
from abut.hierarchy.tree import Tree
from abut.mesh import Mesh
from abut.narrow.contain import mark_contained
from abut.narrow.meet import meeting_segments
from abut.options import Bound, Method, chosen
from abut.pairs import KeyLayout, require_room, to_rows
from abut.poses import batch_size, checked_poses
from abut.query.face_pairs import FacePairs
from abut.results import Contacts
from abut.runtime import require_same_device
from abut.topology import topology_of
from abut.traversal.two_trees import list_candidates, relative_frames, test_candidates

ALL_ITEMS = 255  # subtrees of a that a query is cut into, for all its poses together
FIRST_DEPTH = 6  # 2**6 subtrees for each pose; part of the answer, so the same on every device


def collide(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    first: bool = False,
    solid: bool = False,
    method: str = "bvh",
    bound: str = "aabb",
) -> Contacts:
    """Find every pair of faces, one of each mesh, that share a point.

    Args:
        a, b: Meshes on one device.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
            The moved coordinates, rounded to float64, are what the answer is about.
        first: Stop at one pair per pose, a fixed one though not the lowest; the cheapest way to
            know whether there is contact.
        solid: Closed meshes are solids: one inside the other is a collision too (``contained``).
        method: ``bvh``, or ``brute`` for the slow truth. All methods return the same rows.
        bound: Bounding volume of the hierarchies, ``aabb`` or ``obb``.

    Returns:
        Sorted pairs; with a batch also their poses, and ``colliding`` per pose.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or the batches differ in size.
        MeshError: ``solid`` with an open mesh.

    Guarantee:
        Exact and complete. Faces are closed: touching and coplanar overlap count.
    """
    device = require_same_device(a, b)
    method, bound = chosen(Method, method, "method"), chosen(Bound, bound, "bound")
    batch = batch_size(pose_a, pose_b)
    poses_a, poses_b = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    if solid:
        _require_closed(a=a, b=b)
    layout = KeyLayout.of(a.face_count, b.face_count)
    count = 1 if batch is None else batch
    require_room(layout, count, a.face_count)
    faces_a, faces_b = posed_faces(a, poses_a), posed_faces(b, poses_b)
    pairs = FacePairs(faces_a, faces_b, STRANGERS, layout, count, device)
    if a.face_count == 0 or b.face_count == 0 or count == 0:
        keys = wp.empty(0, dtype=wp.int64, device=device)
    elif method is Method.BRUTE:
        keys = pairs.all_pairs(pairs.classify_every_pair)
        keys = pairs.lowest_of_each_pose(keys) if first else keys
    else:
        keys = _search(pairs, hierarchy_of(a, bound), hierarchy_of(b, bound), first)
    pose, rows = to_rows(keys, layout)
    colliding = _colliding(pose, count)
    contained = _contained(a, b, faces_a, faces_b, colliding) if solid else None
    return Contacts(
        rows,
        None if batch is None else pose,
        _shaped(colliding | contained if solid else colliding, batch, device),
        _shaped(contained, batch, device) if solid else None,
        partial(meeting_segments, faces_a, faces_b, rows, pose),
    )


def _search(pairs: FacePairs, tree_a: Tree, tree_b: Tree, first: bool) -> wp.array:
    """Sorted keys of the pairs found by walking two trees."""
    view_a, view_b = tree_a.view(), tree_b.view()
    frames = relative_frames(pairs.a, pairs.b, view_a, view_b, pairs.pose_count)
    if first:
        return pairs.first_pairs(
            lambda best: test_candidates(pairs.search(best), view_a, view_b, frames, FIRST_DEPTH)
        )
    if pairs.device.is_cuda and pairs.pose_count == 1:

        def search() -> None:
            queue = pairs.queues["candidates"]
            list_candidates(view_a, view_b, frames, tree_a.face_count, pairs.layout.bits, queue)
            pairs.classify()

        return pairs.all_pairs(search)
    depth = max(0, ALL_ITEMS.bit_length() - pairs.pose_count.bit_length())
    return pairs.all_pairs(lambda: test_candidates(pairs.search(), view_a, view_b, frames, depth))


def _colliding(pose: wp.array, count: int) -> np.ndarray:
    colliding = np.zeros(count, dtype=bool)
    colliding[pose.numpy()] = True
    return colliding


def _contained(a: Mesh, b: Mesh, faces_a: Any, faces_b: Any, colliding: np.ndarray) -> np.ndarray:
    """Poses without contact in which a component of one mesh lies inside the other."""
    contained = wp.zeros(len(colliding), dtype=wp.int32, device=a.device)
    wanted = wp.array(np.flatnonzero(~colliding).astype(np.int32), device=a.device)
    for inner, outer, of, by in ((a, b, faces_a, faces_b), (b, a, faces_b, faces_a)):
        anchors = wp.array(topology_of(inner).anchors.astype(np.int32), device=a.device)
        oriented = topology_of(outer).oriented
        mark_contained(of, by, hierarchy_of(outer).view(), anchors, wanted, oriented, contained)
    return contained.numpy().astype(bool)


def _require_closed(**meshes: Mesh) -> None:
    for name, mesh in meshes.items():
        if not topology_of(mesh).closed:
            raise MeshError(f"solid=True needs closed meshes, but {name} is open; repair it.")


def _shaped(values: np.ndarray, batch: int | None, device: wp.Device) -> Any:
    """One bool, or a device array for a batch."""
    return bool(values[0]) if batch is None else wp.array(values, dtype=wp.bool, device=device)
