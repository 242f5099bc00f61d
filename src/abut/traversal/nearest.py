"""The nearest faces of two meshes, by walking both trees depth first.

A walk starts with a good guess (beam), which bounds the distance. After that the order of the walk
hardly matters, and a pair of nodes is opened only where the answer may lie. Faces are
compared last, and most pairs of them are told apart by their extent along the line between
their centres, or along the line of the best pair so far, which takes a tenth of the time.

What is found does not depend on the order: of all pairs at the smallest distance, as computed, the
one with the lowest key. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.approach import (
    FACE_MARGIN,
    NO_KEY,
    Approach,
    between_centres,
    box_limit,
    clear_along,
    from_bits,
    gap_of,
    to_bits,
)
from abut.atomics import lower_to
from abut.bounds.distance_across import squared_apart
from abut.bounds.obb import reach_along
from abut.bounds.relative import Relative, turn_of
from abut.bounds.rss import LEAST, distance_rss, reach_rss
from abut.faces import load_face, pose_of
from abut.geometry.common_corners import STRANGERS
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.hierarchy.tree import (
    Node,
    TreeView,
    descendant,
    face_of,
    is_leaf,
    load_node,
    reach_of,
    root_of,
    subtree,
)
from abut.loads import load_fresh_integer, load_wide
from abut.pairs import pack_pair, push_pair
from abut.search import Search
from abut.traversal.node_pairs import load_obb, load_rss, opens_first

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(192)  # a tree is at most 30 + 31 deep, and two levels leave three pairs behind
SLAB_ROUNDING = wp.constant(wp.float32(2.0**-18))
CLOSE = wp.constant(wp.float32(2.0))  # where the line between centres tells little


@wp.func
def apart(frame: Relative, a: Node, b: Node):
    """Square of a lower bound of the distance of two nodes."""
    return squared_apart(frame, a.low, a.high, b.low, b.high)


@wp.func
def to_vector(v: wp.vec4f):
    """The first three components."""
    return wp.vec3f(v[0], v[1], v[2])


@wp.func
def middle_of(tree: TreeView, slot: wp.int32, node: Node):
    """Centre of a slot's tightest volume."""
    middle = to_vector(node.low + node.high) * wp.float32(0.5)
    if tree.swept.shape[0] > 0:
        middle = to_vector(load_wide(tree.swept, 3 * slot))
    elif tree.obbs.shape[0] > 0:
        middle = to_vector(load_wide(tree.obbs, 3 * slot))
    return middle


@wp.func
def reach_towards(tree: TreeView, slot: wp.int32, node: Node, way: wp.vec3f):
    """How far a slot's tightest volume reaches from its centre along a direction of length 1."""
    if tree.swept.shape[0] > 0:
        return reach_rss(load_rss(tree, slot), way)
    if tree.obbs.shape[0] > 0:
        return reach_along(load_obb(tree, slot), way)
    return wp.dot(to_vector(node.high - node.low), wp.abs(way)) * wp.float32(0.5)


@wp.struct
class Slab:
    """A direction from a to b, in both frames."""

    in_a: wp.vec3f
    in_b: wp.vec3f
    shift: wp.float32  # of b's frame
    pad: wp.float32  # what roundings along any direction can amount to


@wp.func
def pad_of(frame: Relative, tree_a: TreeView, tree_b: TreeView):
    """What float32 roundings of positions along a direction can amount to."""
    reach = reach_of(load_node(tree_a.nodes, root_of(tree_a)))
    reach += reach_of(load_node(tree_b.nodes, root_of(tree_b)))
    near = wp.float32(reach) + wp.max(wp.abs(to_vector(frame.shift)))
    return SLAB_ROUNDING * near + wp.float32(2.0) * frame.widen[0] + LEAST


@wp.func
def slab_along(frame: Relative, way: wp.vec3d, pose_a: wp.mat44d, pad: wp.float32):
    """The slab of a direction given in the world.

    How far apart two nodes are along any direction is a lower bound of their distance; along the
    line between the nearest faces it is a tight one for all that is near them.
    """
    out = Slab()
    turned = wp.normalize(wp.transpose(turn_of(pose_a)) * way)
    out.in_a = wp.vec3f(wp.float32(turned[0]), wp.float32(turned[1]), wp.float32(turned[2]))
    out.in_b = into_b(frame, out.in_a)
    out.shift = wp.dot(to_vector(frame.shift), out.in_a)
    out.pad = pad
    return out


@wp.func
def into_b(frame: Relative, way: wp.vec3f):
    """A direction of a's frame in b's."""
    return to_vector(frame.columns * wp.vec4f(way[0], way[1], way[2], wp.float32(0.0)))


@wp.func
def tightened(squared: wp.float32, gap: wp.float32):
    """The larger of a squared lower bound and another that is not squared."""
    return wp.where(gap > wp.float32(0.0), wp.max(squared, gap * gap), squared)


@wp.func
def apart_within(
    frame: Relative,
    slab: Slab,
    limit: wp.float32,
    tree_a: TreeView,
    i: wp.int32,
    tree_b: TreeView,
    j: wp.int32,
):
    """Square of a lower bound of the distance of two slots; the cheapest that exceeds ``limit``.

    Tight volumes along the slab, then along the line between their centres, then boxes. Without
    tight volumes boxes come first, and boxes with parallel axes tell all there is to tell.
    """
    a = load_node(tree_a.nodes, i)
    b = load_node(tree_b.nodes, j)
    tight = tree_a.swept.shape[0] > 0 or tree_a.obbs.shape[0] > 0
    squared = wp.float32(0.0)
    if not tight:
        squared = apart(frame, a, b)
    if (tight or frame.turned != 0) and not (squared > limit):
        centre_a = middle_of(tree_a, i, a)
        centre_b = middle_of(tree_b, j, b)
        gap = slab.shift + wp.dot(centre_b, slab.in_b) - wp.dot(centre_a, slab.in_a) - slab.pad
        gap -= reach_towards(tree_a, i, a, slab.in_a) + reach_towards(tree_b, j, b, slab.in_b)
        squared = tightened(squared, gap)
        if tight and not (squared > limit):
            p = wp.vec4f(centre_b[0], centre_b[1], centre_b[2], wp.float32(0.0))
            between = to_vector(frame.rows * p + frame.shift) - centre_a
            length = wp.length(between)
            way = between * (wp.float32(1.0) / length)  # NaN where they are one: culls nothing
            gap = length - slab.pad - reach_towards(tree_a, i, a, way)
            squared = tightened(squared, gap - reach_towards(tree_b, j, b, into_b(frame, way)))
            if not (squared > limit):
                squared = wp.max(squared, apart(frame, a, b))
            if tree_a.swept.shape[0] > 0 and not (squared > limit):
                from_a = load_rss(tree_a, i)
                to_b = load_rss(tree_b, j)
                if length < CLOSE * (from_a.half[0] + to_b.half[0]):
                    squared = tightened(squared, distance_rss(frame, from_a, to_b))
    return squared


@wp.func
def centre_of(node: Node):
    """The centre of a box, and a zero."""
    c = (node.low + node.high) * wp.float32(0.5)
    return wp.vec4f(c[0], c[1], c[2], wp.float32(0.0))


@wp.func
def clear_of(a: wp.mat33d, b: wp.mat33d, way: wp.vec3d, reach: wp.float64):
    """Are two faces more than ``reach`` apart along ``way``, or between their centres?"""
    return clear_along(a, b, between_centres(a, b), reach) or clear_along(a, b, way, reach)


@wp.func
def meets(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
):
    """Do two faces meet for certain? Undecided pairs go to their queue."""
    verdict = classify_tri_tri(a, b, STRANGERS, wp.vec3i(), wp.vec3i())
    if verdict != HIT and verdict != MISS:
        push_pair(search.undecided, pack_pair(pose, face_a, face_b, search.bits))
    return verdict == HIT


@wp.struct
class Found:
    """The nearest faces of a walk: bits of their distance, their key, the way between them."""

    bits: wp.int64
    key: wp.int64
    way: wp.vec3d


@wp.func
def limit_of(query: Approach, frame: Relative, bits: wp.int64):
    """The largest squared bound of two nodes that may hold the answer."""
    wanted = wp.max(from_bits(bits) - query.tolerance, wp.float64(0.0))
    return box_limit(wanted, query.slack, frame.stretch)


@wp.func
def compare_faces(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
    gap: wp.float32,
    found: Found,
):
    """The nearest of those found and two faces whose boxes are ``gap`` apart, squared."""
    out = Found()
    out.bits = found.bits
    out.key = found.key
    out.way = found.way
    met = wp.bool(False)
    if not (gap > wp.float32(0.0)):
        met = meets(search, pose, face_a, face_b, a, b)
    near = gap_of(a, b)
    best = from_bits(found.bits)
    if met:
        out.bits = wp.int64(0)
    elif near.distance <= best:
        key = pack_pair(0, face_a, face_b, search.bits)
        out.bits = to_bits(near.distance)
        out.key = wp.where(near.distance < best, key, wp.min(found.key, key))
        out.way = near.q - near.p
    return out


@wp.func
def push_sorted(stack: wp.array[wp.vec3i], low: wp.int32, held: wp.int32, pair: wp.vec3i):
    """Put a pair on the stack, below those from ``low`` up that are nearer."""
    gap = wp.cast(pair[2], wp.float32)
    at = wp.int32(held)
    while at > low and wp.cast(stack[wp.max(at, 1) - 1][2], wp.float32) < gap:
        stack[at] = stack[at - 1]
        at -= 1
    stack[at] = pair


@cache
def nearest_walk(levels: int) -> wp.Kernel:
    """The walk that opens a node ``levels`` levels down at once, two at most: trees as wide."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def nearest_kernel(
        # in
        span: wp.vec3i,
        query: Approach,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
        ways: wp.array[wp.vec3d],
        depth: wp.int32,
        # out
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (pose, subtree of a), where they are as near as any.

        Threads of one pose share a bound. Distances are written as bits; the key is NO_KEY where
        other threads have found nearer faces. Faces that meet end the walk.
        """
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work >> depth
            frame = frames[pose]
            pad = pad_of(frame, tree_a, tree_b)
            found = Found()
            found.bits = load_fresh_integer(query.bound, pose)
            found.key = NO_KEY
            found.way = ways[pose]
            limit = limit_of(query, frame, found.bits)
            slab = slab_along(frame, found.way, pose_of(query.search.a, pose), pad)
            start = subtree(tree_a, work & ((1 << depth) - 1), depth)
            stack[0] = wp.vec3i(start, root_of(tree_b), 0)
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                gap = wp.cast(stack[held][2], wp.float32)
                known = load_fresh_integer(query.bound, pose)
                if known < found.bits:  # another thread has found nearer faces
                    found.bits = known
                    found.key = NO_KEY
                    limit = limit_of(query, frame, known)
                if gap > limit:
                    continue
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if is_leaf(a) and is_leaf(b):
                    p = load_face(query.search.a, face_of(a), pose)
                    q = load_face(query.search.b, face_of(b), pose)
                    if clear_of(p, q, found.way, from_bits(found.bits) * FACE_MARGIN + query.slack):
                        continue
                    found = compare_faces(
                        query.search, pose, face_of(a), face_of(b), p, q, gap, found
                    )
                    if found.bits < known:
                        lower_to(query.bound, pose, found.bits)
                        limit = limit_of(query, frame, found.bits)
                        slab = slab_along(frame, found.way, pose_of(query.search.a, pose), pad)
                else:
                    in_a = opens_first(a, b)
                    low = wp.int32(held)
                    k = wp.int32(0)
                    while k < wp.static(1 << levels):  # a loop that stays one
                        below = wp.int32(-1)
                        if in_a:
                            below = descendant(tree_a.nodes, i, k, wp.static(levels))
                        else:
                            below = descendant(tree_b.nodes, j, k, wp.static(levels))
                        if below >= 0:
                            m = wp.where(in_a, below, i)
                            n = wp.where(in_a, j, below)
                            squared = apart_within(frame, slab, limit, tree_a, m, tree_b, n)
                            if not (squared > limit):
                                pair = wp.vec3i(m, n, wp.cast(squared, wp.int32))
                                push_sorted(stack, low, held, pair)
                                held += 1
                        k += 1
                if found.bits == wp.int64(0):  # they meet
                    held = 0
            distance_out[work] = found.bits
            key_out[work] = found.key

    return nearest_kernel


@wp.kernel
def elect_kernel(
    # in
    span: wp.vec3i,
    bound: wp.array[wp.int64],
    distances: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    per_pose: wp.int32,
    # out
    key_out: wp.array[wp.int64],
):
    """The lowest key of each pose among those at its smallest distance."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / per_pose
        if keys[work] != NO_KEY and distances[work] == bound[pose]:
            lower_to(key_out, pose, keys[work])
