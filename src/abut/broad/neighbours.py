"""Pairs of objects of which one may be among the nearest of the other, by bounds of distances.

Every object has some candidates, those with the nearest boxes. A greedy descent bounds the distance
of each, and so that of the object to its nearest ones. Pairs of objects within the bound of either
are listed. A bound is the bits of a float64, and NO_BOUND for an object that asks for none.
"""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bounds.gap_boxes import gap_boxes
from abut.broad.boxes import Boxes, Filters, are_asked, in_order, passes_filters
from abut.bvh.layout import face_of, is_leaf, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair, push_pair
from abut.operands.distance_queues import box_limit, from_bits, gap_of, slack_of, to_bits
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import (
    PosedPair,
    ScenePairs,
    environment_at,
    frame_of,
    objects_at,
    pair_at,
    pair_of,
    pair_stop,
)
from abut.traversal.distance.seed import estimate_gap
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BELOW = wp.constant(wp.float64(1.0 - 2.0**-15))  # of squares: covers float32 rounding amply
HUGE = wp.constant(wp.float32(1e38))
TINY = wp.constant(wp.float32(1e-36))  # below, squares of components round upwards by too much
NO_BOUND = wp.constant(wp.float64(-1.0))


@wp.func
def has_box(boxes: Boxes, i: wp.int32):
    """Whether the box of an object is not empty."""
    return boxes.lower[i][0] <= boxes.upper[i][0]


@wp.func
def difference_xyz(lower: wp.vec4f, upper: wp.vec4f):
    """The first three components of a difference, in float64, where they cannot overflow."""
    return wp.vec3d(row_xyz(lower)) - wp.vec3d(row_xyz(upper))


@wp.func
def surely_above(difference: wp.vec4f, limit: wp.float64):
    """Whether three components are longer than the root of a limit, as float32 can tell."""
    xyz = row_xyz(difference)
    squared = wp.dot(xyz, xyz)
    return squared > TINY and squared < HUGE and wp.float64(squared) * BELOW > limit


@wp.func
def farthest_corners(boxes: Boxes, i: wp.int32, j: wp.int32):
    """Squared distance of the farthest corners of two boxes."""
    forth = difference_xyz(boxes.upper[i], boxes.lower[j])
    return wp.length_sq(wp.max(forth, difference_xyz(boxes.upper[j], boxes.lower[i])))


@wp.func
def box_gap(boxes: Boxes, i: wp.int32, j: wp.int32):
    """Square of a lower bound of the distance of two boxes."""
    forth = difference_xyz(boxes.lower[i], boxes.upper[j])
    gap = wp.max(forth, difference_xyz(boxes.lower[j], boxes.upper[i]))
    return wp.length_sq(wp.max(gap, wp.vec3d())) * BELOW


@wp.kernel
def candidates_kernel(
    # in
    span: wp.vec3i,
    boxes: Boxes,
    filters: Filters,
    settled: wp.array[wp.int32],
    each: wp.int32,
    # out
    reach_out: wp.array[wp.float64],
    candidate_out: wp.array[wp.int32],
):
    """List so many objects with the nearest boxes for each that asks and is not settled.

    They are sorted by the reach of their boxes; -1 stands for none.
    """
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        first = at - at % boxes.object_count
        i = at - first
        roles = filters.about[i][3]
        for k in range(each):
            reach_out[at * each + k] = wp.float64(wp.inf)
            candidate_out[at * each + k] = -1
        if has_box(boxes, at) and settled[at] == 0:
            lower = boxes.lower[at]
            upper = boxes.upper[at]
            for j in range(boxes.object_count):
                far = wp.max(upper - boxes.lower[first + j], boxes.upper[first + j] - lower)
                if surely_above(far, reach_out[at * each + each - 1]):
                    continue
                reach = farthest_corners(boxes, at, first + j)
                if reach < reach_out[at * each + each - 1] and has_box(boxes, first + j):
                    asked = j != i and are_asked(roles, filters.about[j][3])
                    if asked and passes_filters(filters, i, j):
                        place = at * each + each - 1
                        while place > at * each and reach_out[wp.max(place, 1) - 1] > reach:
                            reach_out[place] = reach_out[place - 1]
                            candidate_out[place] = candidate_out[place - 1]
                            place -= 1
                        reach_out[place] = reach
                        candidate_out[place] = j


@wp.func
def greedy_distance(pair: PosedPair):
    """Distance of two faces that are near each other: the ends of a descent without return."""
    frame = frame_of(pair)
    i = root_of(pair.tree_a)
    j = root_of(pair.tree_b)
    a = load_node(pair.tree_a.nodes, i)
    b = load_node(pair.tree_b.nodes, j)
    while not (is_leaf(a) and is_leaf(b)):
        left = pair_below(i, a, j, b, 0)
        right = pair_below(i, a, j, b, 1)
        left_a = load_node(pair.tree_a.nodes, left[0])
        left_b = load_node(pair.tree_b.nodes, left[1])
        right_a = load_node(pair.tree_a.nodes, right[0])
        right_b = load_node(pair.tree_b.nodes, right[1])
        i = right[0]
        j = right[1]
        a = right_a
        b = right_b
        if estimate_gap(frame, left_a, left_b) <= estimate_gap(frame, right_a, right_b):
            i = left[0]
            j = left[1]
            a = left_a
            b = left_b
    corners_a = load_face(pair.a, face_of(a), pair.pose)
    return gap_of(corners_a, load_face(pair.b, face_of(b), pair.pose)).distance


@wp.kernel
def candidate_bounds_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    filters: Filters,
    candidates: wp.array[wp.int32],
    each: wp.int32,
    # out
    distance_out: wp.array[wp.float64],
):
    """An upper bound of the distance of each object and candidate; infinite for none."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        distance = wp.float64(wp.inf)
        if candidates[work] >= 0:
            at = work / each
            environment = at / pairs.object_count
            pair = in_order(filters, at - environment * pairs.object_count, candidates[work])
            row = wp.vec3i(environment, pair[0], pair[1])
            distance = greedy_distance(pair_of(pairs, row))
        distance_out[work] = distance


@wp.kernel
def object_bounds_kernel(
    # in
    span: wp.vec3i,
    candidates: wp.array[wp.int32],
    each: wp.int32,
    nearest: wp.int32,
    # out
    distance_out: wp.array[wp.float64],
    bound_out: wp.array[wp.int64],
):
    """The bound of each object: the distance of the last of its nearest candidates.

    It is infinite where candidates are fewer. Distances are sorted as far as needed.
    """
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        bound = NO_BOUND
        if candidates[at * each] >= 0:
            for k in range(at * each, at * each + nearest):
                for place in range(k + 1, at * each + each):
                    if distance_out[place] < distance_out[k]:
                        held = distance_out[k]
                        distance_out[k] = distance_out[place]
                        distance_out[place] = held
                bound = distance_out[k]
        bound_out[at] = to_bits(bound)


@wp.kernel
def least_bound_kernel(
    # in
    span: wp.vec3i,
    bounds: wp.array[wp.int64],
    object_count: wp.int32,
    # out
    least_out: wp.array[wp.int64],
):
    """The least bound of the objects of each environment."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        if bounds[at] >= wp.int64(0):
            atomic_min_int64(least_out, at / object_count, bounds[at])


@wp.kernel
def row_bound_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    # out
    least_out: wp.array[wp.int64],
):
    """Lower the least bound of each environment by those of its pairs of objects."""
    for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
        distance = greedy_distance(pair_at(pairs, rank))
        atomic_min_int64(least_out, environment_at(pairs, rank), to_bits(distance))


@wp.kernel
def lower_bounds_kernel(
    # in
    span: wp.vec3i,
    least: wp.array[wp.int64],
    object_count: wp.int32,
    # out
    bound_out: wp.array[wp.int64],
):
    """Lower the bounds of all objects to the least of their environment."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        bound_out[at] = wp.min(bound_out[at], least[at / object_count])


@wp.func
def bound_of(
    filters: Filters, bounds: wp.array[wp.int64], first: wp.int32, i: wp.int32, j: wp.int32
):
    """The larger bound of two objects of which each may ask about the other, as bits."""
    bound = to_bits(NO_BOUND)
    if are_asked(filters.about[i][3], filters.about[j][3]):
        bound = bounds[first + i]
    if are_asked(filters.about[j][3], filters.about[i][3]):
        bound = wp.max(bound, bounds[first + j])
    return bound


@wp.func
def are_near(pairs: ScenePairs, row: wp.vec3i, bound: wp.float64):
    """Whether the boxes of two objects, each along the axes of its mesh, are within a bound."""
    pair = pair_of(pairs, row)
    frame = frame_of(pair)
    root_a = load_node(pair.tree_a.nodes, root_of(pair.tree_a))
    root_b = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
    squared = gap_boxes(frame, root_a.low, root_a.high, root_b.low, root_b.high)
    return not (squared > box_limit(bound, slack_of(pair), frame.stretch))


@wp.func
def is_wanted(
    boxes: Boxes,
    filters: Filters,
    bounds: wp.array[wp.int64],
    most: wp.float64,
    at: wp.int32,
    j: wp.int32,
):
    """Whether an object asks about another one of its environment that is within its bound."""
    first = at - at % boxes.object_count
    i = at - first
    bound = wp.min(from_bits(bounds[at]), most)
    if i == j or not (bound >= wp.float64(0.0)) or not has_box(boxes, first + j):
        return False
    if not are_asked(filters.about[i][3], filters.about[j][3]):
        return False
    return box_gap(boxes, at, first + j) <= bound * bound and passes_filters(filters, i, j)


@wp.kernel
def neighbour_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    bounds: wp.array[wp.int64],
    most: wp.float64,
    # out
    pairs_out: PairQueue,
):
    """List the pairs of objects that are within the bound of either, and within ``most``."""
    for at in range(span[0] + wp.tid(), span[1], span[2]):
        first = at - at % boxes.object_count
        i = at - first
        bound = wp.min(from_bits(bounds[at]), most)
        if bound >= wp.float64(0.0):  # else nothing is asked, or there is no box
            lower = boxes.lower[at]
            upper = boxes.upper[at]
            for j in range(boxes.object_count):
                gap = wp.max(lower - boxes.upper[first + j], boxes.lower[first + j] - upper)
                if surely_above(wp.max(gap, wp.vec4f()), bound * bound):
                    continue
                if is_wanted(boxes, filters, bounds, most, at, j):
                    if i < j or not is_wanted(boxes, filters, bounds, most, first + j, i):
                        pair = in_order(filters, i, j)
                        row = wp.vec3i(at / boxes.object_count, pair[0], pair[1])
                        larger = bound_of(filters, bounds, first, i, j)
                        if are_near(pairs, row, wp.min(from_bits(larger), most)):
                            key = pack_pair(row[0], row[1], row[2], pairs.object_bits)
                            push_pair(pairs_out, key)


@wp.kernel
def row_bounds_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    filters: Filters,
    bounds: wp.array[wp.int64],
    most: wp.float64,
    # out
    bound_out: wp.array[wp.int64],
    key_out: wp.array[wp.int64],
):
    """The bound of each row: ``most``, or less where its two objects have bounds; no key yet.

    A bound is not 0, which is for objects that meet.
    """
    for rank in range(span[0] + wp.tid(), pair_stop(pairs, span[1]), span[2]):
        bound = to_bits(most)
        if bounds.shape[0] > 0:
            row = objects_at(pairs, rank)
            first = row[0] * pairs.object_count
            bound = wp.min(bound, bound_of(filters, bounds, first, row[1], row[2]))
        bound_out[rank] = wp.max(bound, wp.int64(1))
        key_out[rank] = NO_KEY
