"""Oriented boxes around moving features, which abut measured and does not use.

gProximity finds them faster than axis-aligned ones in continuous queries. ``ObbPlan`` asks for the
overlap of both, from each leaf of one tree through the other; ``AabbPlan`` walks the same way
without them.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.obb import Obb, area_of, fit_obb, merge_obb, overlap_obb, with_axes
from abut.bounds.relative_frame import shifted_frame
from abut.bvh.layout import Bvh, BvhView, escape_of, face_of, link_of, load_node, root_of
from abut.bvh.node_obbs import (
    MOMENT_ROWS,
    OBB_ROWS,
    Moments,
    add_moments,
    fresh_moments,
    fresh_obb,
    moments_of,
    principal_axes,
    store_moments,
    store_obb,
    to_single,
)
from abut.core.atomics import arrive, reserve
from abut.core.pair_queue import PairQueue, PairQueues, pack_pair, store_pair
from abut.core.runtime import launch, stage
from abut.operands.ccd_operands import EDGE_EDGE
from abut.options import Bound
from abut.query.sweep_buffers import corners_of
from abut.query.sweep_listings import Listing
from abut.query.sweep_plan import SweepPlan
from abut.traversal.overlap.node_pairs import load_obb

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

LISTED = wp.constant(16)


@wp.func
def with_point(box: Obb, p: wp.vec3f):
    """A box with the same axes that holds one more point."""
    other = Obb()
    other.centre = p
    other.axes = box.axes
    return with_axes(box, other, box.axes)


@wp.func
def fit_swept_obb(
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.vec3i,
    origin: wp.vec3d,
    moments: Moments,
):
    """The smaller of the box along the principal axes and that around both triangles' boxes."""
    axes = principal_axes(moments)
    p0 = to_single(points_t0[corners[0]] - origin)
    p1 = to_single(points_t0[corners[1]] - origin)
    p2 = to_single(points_t0[corners[2]] - origin)
    q0 = to_single(points_t1[corners[0]] - origin)
    q1 = to_single(points_t1[corners[1]] - origin)
    q2 = to_single(points_t1[corners[2]] - origin)
    around = Obb()
    around.centre = p0
    around.axes = axes
    around = with_point(with_point(around, p1), p2)
    around = with_point(with_point(with_point(around, q0), q1), q2)
    both = merge_obb(fit_obb(p0, p1, p2), fit_obb(q0, q1, q2), axes)
    if area_of(both) < area_of(around):
        around = both
    return around


@wp.func
def swept_moments(
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.vec3i,
    origin: wp.vec3d,
):
    """Moments of the corners at both ends of the step."""
    out = Moments()
    for i in range(3):
        out = add_moments(out, moments_of(to_single(points_t0[corners[i]] - origin)))
        out = add_moments(out, moments_of(to_single(points_t1[corners[i]] - origin)))
    return out


@wp.kernel
def swept_obb_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.array[wp.vec3i],
    pad: wp.float32,
    tree: BvhView,
    # out
    arrivals_out: wp.array[wp.int32],
    moments_out: wp.array[wp.vec4f],
    obbs_out: wp.array[wp.vec4f],
):
    """Climb from every leaf; the second of two siblings to arrive goes on with the parent."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        c = corners[face_of(load_node(tree.nodes, slot))]
        moments = swept_moments(points_t0, points_t1, c, tree.origin)
        box = fit_swept_obb(points_t0, points_t1, c, tree.origin, moments)
        box.half += wp.vec3f(pad)
        climbing = wp.bool(True)
        while climbing:
            store_obb(obbs_out, slot, box)
            store_moments(moments_out, slot, moments)
            climbing = False
            if slot != root_of(tree):
                if arrive(arrivals_out, slot >> 1) % 2 == 1:
                    climbing = True
                    moments = add_moments(moments, fresh_moments(moments_out, slot ^ 1))
                    axes = principal_axes(moments)
                    box = merge_obb(box, fresh_obb(obbs_out, slot ^ 1), axes)
                    slot = tree.split_slots[slot >> 1]


@wp.func
def list_found(
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    within: wp.bool,
    bits: wp.vec2i,
    queue: PairQueue,
):
    """Put the pairs of a feature and those found into a queue."""
    place = reserve(queue.count, count)
    for i in range(count):
        key = pack_pair(0, face, found[i], bits)
        if within:
            key = pack_pair(0, wp.min(face, found[i]), wp.max(face, found[i]), bits)
        store_pair(queue, place + wp.int64(i), key)


@wp.kernel
def walk_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    within: wp.bool,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """Walk b's tree for each leaf of a, or what follows it in its own; oriented boxes if any."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        own = tree_a.leaf_slots[k]
        leaf = load_node(tree_a.nodes, own)
        frame = shifted_frame(tree_a.origin, tree_b.origin, wp.float64(0.0))
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = root_of(tree_b)
        if within:
            slot = escape_of(leaf)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            hit = overlap_aabb(leaf.low, leaf.high, node.low, node.high)
            if hit and tree_a.obbs.shape[0] > 0:
                hit = overlap_obb(frame, load_obb(tree_a, own), load_obb(tree_b, slot))
            link = link_of(node)
            slot = wp.where(hit and link >= 0, 2 * link, escape_of(node))
            if hit and link < 0:
                found[count] = -1 - link
                count += 1
                if count == LISTED:
                    list_found(face_of(leaf), found, count, within, bits, candidates_out)
                    count = 0
        list_found(face_of(leaf), found, count, within, bits, candidates_out)


class AabbPlan(SweepPlan):
    """A continuous query whose candidates each leaf finds by a walk of its own."""

    bound = Bound.AABB

    def _between(self, kind: int, one: Any, other: Any, until: float) -> Listing:
        sides = self._views[one[0]], self._views[other[0]]
        trees = [self._bounded(*which, until) for which in (one, other)]
        return Listing(kind, trees[0].face_count, sides, self._walk(trees, False))

    def _within(self, until: float) -> Listing:
        tree = self._bounded(0, "edge", until)
        sides = self._views[0], self._views[0]
        return Listing(EDGE_EDGE, tree.face_count, sides, self._walk([tree, tree], True))

    def _bounded(self, side: int, feature: str, until: float) -> Bvh:
        tree = self._tree(side, feature, until)
        if self.bound is Bound.OBB:
            with stage("boxes", self.device):
                self._orient(tree, side, feature)
        return tree

    def _orient(self, tree: Bvh, side: int, feature: str) -> None:
        slots, device = 2 * tree.face_count - 1, self.device
        moments = wp.empty(MOMENT_ROWS * slots, dtype=wp.vec4f, device=device)
        if tree.obbs is None:
            tree.obbs = wp.empty(OBB_ROWS * slots, dtype=wp.vec4f, device=device)
        piece = self.pieces[side]
        points = [piece.points_t0, piece.points_t1, corners_of(self.meshes[side], feature)]
        pad = wp.float32(self.gap / 2.0 * (1.0 + 2.0**-20))
        args = [*points, pad, tree.view(), tree.arrivals, moments, tree.obbs]
        launch(swept_obb_kernel, tree.face_count, args, device, grain=512)

    def _walk(self, trees: list[Bvh], within: bool) -> Callable[[int, int, PairQueues], None]:
        views = [tree.view(self.bound) for tree in trees]
        return self._lister(walk_kernel, [*views, within, self.layout.bits])


class ObbPlan(AabbPlan):
    """The same with oriented boxes beside the others."""

    bound = Bound.OBB
