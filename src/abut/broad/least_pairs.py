"""Pairs of objects that may be the nearest two of a scene, listed by one thread.

Some objects look for a partner whose box is near; the distance of two faces of each such pair
bounds the least distance. A sweep along x lists the pairs whose boxes are within that bound, those
in the world and then the root boxes, each in the frame of the other. Greedy descents of the most
promising ones lower the bound once more.
"""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.float32 import to_sortable
from abut.bounds.gap_boxes import gap_boxes
from abut.broad.boxes import WHICH, Boxes, Filters, in_order, passes_filters
from abut.broad.neighbours import BELOW, farthest_corners, greedy_distance, has_box, surely_above
from abut.bvh.layout import load_node, root_of
from abut.core.pair_queue import NO_KEY, PairQueue, pack_pair
from abut.core.serial_sort import sort_serially
from abut.operands.distance_queues import box_limit, slack_of, to_bits
from abut.operands.posed_mesh import pose_of
from abut.operands.posed_pairs import ScenePairs, frame_of, pair_at, pair_of
from abut.traversal.distance.far_field import NEAR_FIELD, field_of, root_extent
from abut.traversal.distance.least_nearest import LEAST_BITS, LeastPairs
from abut.traversal.distance.node_gaps import gap_centres
from abut.traversal.distance.seed import CENTRES

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SAMPLES = wp.constant(8)  # objects that look for a first bound; pairs that do not lower it
PROBED_PAIRS = wp.constant(16)  # the lowest whose boxes overlap
PROBED_OBJECTS = wp.constant(16)  # that look for such pairs
# Entries of a list of the objects on the smaller side of a part: their number, 0 for no list;
# whether they are those of ``against``; then their rows, ascending.
FEW_COUNT = wp.constant(0)
FEW_LAST = wp.constant(1)
FEW = wp.constant(2)


@wp.func
def nearest_partner(boxes: Boxes, filters: Filters, i: wp.int32):
    """The object, of those that may be asked about with i, whose farthest corner is nearest; -1."""
    lower = boxes.lower[i]
    upper = boxes.upper[i]
    partner = wp.int32(-1)
    least = wp.float64(wp.inf)
    for j in range(boxes.object_count):
        far = wp.max(upper - boxes.lower[j], boxes.upper[j] - lower)
        if j == i or surely_above(far, least):
            continue
        reach = farthest_corners(boxes, i, j)
        if reach < least and has_box(boxes, j) and passes_filters(filters, i, j):
            least = reach
            partner = j
    return partner


@wp.func
def first_bound(
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    order: wp.array[wp.int32],
    first: wp.int32,
    count: wp.int32,
):
    """An upper bound of the least distance, by objects spread over a range of ``order``."""
    bound = wp.float64(wp.inf)
    samples = wp.min(SAMPLES, count)
    for k in range(samples):
        i = order[first + wp.int32(wp.int64(k) * wp.int64(count) / wp.int64(samples))]
        if has_box(boxes, i):
            j = nearest_partner(boxes, filters, i)
            if j >= 0:
                row = in_order(filters, i, j)
                distance = greedy_distance(pair_of(pairs, wp.vec3i(0, row[0], row[1])))
                bound = wp.min(bound, distance)
    return bound


@wp.func
def list_near(
    pairs: ScenePairs, row: wp.vec3i, bound: wp.float64, listed: LeastPairs, queue: PairQueue
):
    """Append a pair of objects whose root boxes are within a bound."""
    pair = pair_of(pairs, row)
    frame = frame_of(pair)
    slack = slack_of(pair)
    a = load_node(pair.tree_a.nodes, root_of(pair.tree_a))
    b = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
    gap = gap_boxes(frame, a.low, a.high, b.low, b.high)
    if gap > box_limit(bound, slack, frame.stretch):
        return
    slot = wp.int32(queue.count[0])
    queue.count[0] = queue.count[0] + wp.int64(1)
    if slot < queue.keys.shape[0]:
        queue.keys[slot] = pack_pair(row[0], row[1], row[2], pairs.object_bits)
        listed.frames[slot] = frame
        listed.gaps[slot] = gap
        listed.slacks[slot] = slack
        promise = wp.abs(gap + CENTRES * gap_centres(frame, a, b))
        listed.ranking[slot] = wp.int64(wp.cast(promise, wp.int32))
        listed.order[slot] = slot
        listed.bounds[slot] = NO_KEY
        listed.keys[slot] = NO_KEY
        pose_a = pose_of(pair.a, pair.pose)
        pose_b = pose_of(pair.b, pair.pose)
        field = field_of(root_extent(pair.tree_a), pose_a, root_extent(pair.tree_b), pose_b)
        if field != NEAR_FIELD:
            listed.numbers[1] = listed.numbers[1] + 1


@wp.func
def list_with_few(
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    few: wp.array[wp.int32],
    bound: wp.float64,
    listed: LeastPairs,
    queue: PairQueue,
):
    """List the pairs of one of the few objects and any other within a bound, each once."""
    limit = bound * bound
    for at in range(FEW, FEW + few[FEW_COUNT]):
        i = few[at]
        lower = boxes.lower[i]
        upper = boxes.upper[i]
        for j in range(boxes.object_count):
            gap = wp.max(lower - boxes.upper[j], boxes.lower[j] - upper)
            if j == i or surely_above(wp.max(gap, wp.vec4f()), limit):
                continue
            if has_box(boxes, i) and has_box(boxes, j) and passes_filters(filters, i, j):
                known = wp.bool(False)
                for before in range(FEW, at):
                    known = known or few[before] == j
                if not known:
                    row = in_order(filters, i, j)
                    list_near(pairs, wp.vec3i(0, row[0], row[1]), bound, listed, queue)


@wp.func
def sweep_pairs(
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    order: wp.array[wp.int32],
    bound: wp.float64,
    listed: LeastPairs,
    queue: PairQueue,
):
    """List the pairs of all objects within a bound; ``order`` is that of their boxes along x."""
    limit = bound * bound
    count = boxes.object_count
    for k in range(count):
        i = order[k]
        lower = boxes.lower[i]
        upper = boxes.upper[i]
        stop = wp.where(has_box(boxes, i), count, 0)
        for at in range(k + 1, stop):
            j = order[at]
            ahead = wp.float64(boxes.lower[j][0]) - wp.float64(upper[0])
            if ahead > wp.float64(0.0) and ahead * ahead * BELOW > limit:
                break
            gap = wp.max(lower - boxes.upper[j], boxes.lower[j] - upper)
            if surely_above(wp.max(gap, wp.vec4f()), limit):
                continue
            if has_box(boxes, j) and passes_filters(filters, i, j):
                row = in_order(filters, i, j)
                list_near(pairs, wp.vec3i(0, row[0], row[1]), bound, listed, queue)


@wp.kernel
def least_pairs_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    few: wp.array[wp.int32],
    # out
    places_out: wp.array[wp.int64],
    order_out: wp.array[wp.int32],
    listed_out: LeastPairs,
    pairs_out: PairQueue,
):
    """List the pairs of objects that may be the nearest two; one thread, one environment."""
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        listed_out.numbers[1] = 0
        bound = wp.float64(wp.inf)
        if few[FEW_COUNT] > 0:
            bound = first_bound(pairs, boxes, filters, few, FEW, few[FEW_COUNT])
            list_with_few(pairs, boxes, filters, few, bound, listed_out, pairs_out)
        else:
            count = boxes.object_count
            for k in range(count):
                places_out[k] = wp.int64(to_sortable(boxes.lower[k][0]))
                order_out[k] = k
            sort_serially(places_out, order_out, count)
            bound = first_bound(pairs, boxes, filters, order_out, 0, count)
            sweep_pairs(pairs, boxes, filters, order_out, bound, listed_out, pairs_out)
        listed = wp.min(wp.int32(pairs_out.count[0]), pairs_out.keys.shape[0])
        sort_serially(listed_out.ranking, listed_out.order, listed)
        listed_out.numbers[0] = listed
        k = wp.int32(0)
        stop = wp.min(listed, SAMPLES)
        while k < stop:
            distance = greedy_distance(pair_at(pairs, listed_out.order[k]))
            k += 1
            if distance < bound:
                bound = distance
                stop = wp.min(listed, k + SAMPLES)
        listed_out.least[0] = to_bits(bound)


@wp.func
def probe_pair(
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    i: wp.int32,
    j: wp.int32,
    listed: LeastPairs,
    queue: PairQueue,
):
    """List a pair of objects in this order, if they may meet and too few are listed."""
    if j == i or queue.count[0] >= wp.int64(PROBED_PAIRS):
        return
    if overlap_aabb(boxes.lower[i], boxes.upper[i], boxes.lower[j], boxes.upper[j]):
        row = in_order(filters, i, j)
        if row[0] == i and passes_filters(filters, i, j):
            list_near(pairs, wp.vec3i(0, i, j), wp.float64(0.0), listed, queue)


@wp.kernel
def probed_pairs_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    boxes: Boxes,
    filters: Filters,
    few: wp.array[wp.int32],
    # out
    listed_out: LeastPairs,
    pairs_out: PairQueue,
):
    """List the lowest pairs of objects that may meet, ascending; one thread, one environment."""
    for _ in range(span[0] + wp.tid(), span[1], span[2]):
        left = wp.where(few[FEW_COUNT] > 0, boxes.object_count, PROBED_OBJECTS)
        for i in range(boxes.object_count):
            if left == 0 or pairs_out.count[0] >= wp.int64(PROBED_PAIRS):
                break
            if has_box(boxes, i) and (filters.about[i][3] & WHICH) != 0:
                left -= 1
                if few[FEW_LAST] != 0:
                    for at in range(FEW, FEW + few[FEW_COUNT]):
                        probe_pair(pairs, boxes, filters, i, few[at], listed_out, pairs_out)
                else:
                    for j in range(boxes.object_count):
                        probe_pair(pairs, boxes, filters, i, j, listed_out, pairs_out)
        count = wp.int32(pairs_out.count[0])
        for rank in range(count):
            listed_out.order[rank] = rank
        listed_out.numbers[0] = count
        listed_out.least[0] = LEAST_BITS
