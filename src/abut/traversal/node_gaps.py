"""Lower bounds of the distance of two nodes: of their boxes, or the cheapest one that will do."""

import warp as wp

from abut.bounds.gap_boxes import gap_boxes
from abut.bounds.obb import reach_along
from abut.bounds.relative_frame import RelativeFrame, turn_of
from abut.bounds.rows import padded, single_of, vector_of
from abut.bounds.rss import LEAST, distance_rss, reach_rss
from abut.bvh.layout import BvhView, Node, load_node, max_abs_coordinate, root_of
from abut.core.memory_access import load_readonly_vec4f
from abut.traversal.overlap.node_pairs import load_obb, load_rss

SLAB_ROUNDING = wp.constant(wp.float32(2.0**-18))
CLOSE = wp.constant(wp.float32(2.0))  # where the line between centres tells little


@wp.func
def apart(frame: RelativeFrame, a: Node, b: Node):
    """Square of a lower bound of the distance of two nodes."""
    return gap_boxes(frame, a.low, a.high, b.low, b.high)


@wp.func
def middle_of(tree: BvhView, slot: wp.int32, node: Node):
    """Centre of a slot's tightest volume."""
    middle = vector_of(node.low + node.high) * wp.float32(0.5)
    if tree.rss.shape[0] > 0:
        middle = vector_of(load_readonly_vec4f(tree.rss, 3 * slot))
    elif tree.obbs.shape[0] > 0:
        middle = vector_of(load_readonly_vec4f(tree.obbs, 3 * slot))
    return middle


@wp.func
def reach_towards(tree: BvhView, slot: wp.int32, node: Node, way: wp.vec3f):
    """How far a slot's tightest volume reaches from its centre along a direction of length 1."""
    if tree.rss.shape[0] > 0:
        return reach_rss(load_rss(tree, slot), way)
    if tree.obbs.shape[0] > 0:
        return reach_along(load_obb(tree, slot), way)
    return wp.dot(vector_of(node.high - node.low), wp.abs(way)) * wp.float32(0.5)


@wp.struct
class Slab:
    """A direction from a to b, in both frames."""

    in_a: wp.vec3f
    in_b: wp.vec3f
    shift: wp.float32  # of b's frame
    pad: wp.float32  # what roundings along any direction can amount to


@wp.func
def pad_of(frame: RelativeFrame, tree_a: BvhView, tree_b: BvhView):
    """What float32 roundings of positions along a direction can amount to."""
    reach = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    reach += max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    near = wp.float32(reach) + wp.max(wp.abs(vector_of(frame.shift)))
    return SLAB_ROUNDING * near + wp.float32(2.0) * frame.widen[0] + LEAST


@wp.func
def slab_along(frame: RelativeFrame, way: wp.vec3d, pose_a: wp.mat44d, pad: wp.float32):
    """The slab of a direction given in the world.

    How far apart two nodes are along any direction is a lower bound of their distance; along the
    line between the nearest faces it is a tight one for all that is near them.
    """
    out = Slab()
    turned = wp.normalize(wp.transpose(turn_of(pose_a)) * way)
    out.in_a = single_of(turned)
    out.in_b = into_b(frame, out.in_a)
    out.shift = wp.dot(vector_of(frame.shift), out.in_a)
    out.pad = pad
    return out


@wp.func
def into_b(frame: RelativeFrame, way: wp.vec3f):
    """A direction of a's frame in b's."""
    return vector_of(frame.columns * padded(way))


@wp.func
def tightened(squared: wp.float32, gap: wp.float32):
    """The larger of a squared lower bound and another that is not squared."""
    return wp.where(gap > wp.float32(0.0), wp.max(squared, gap * gap), squared)


@wp.func
def apart_within(
    frame: RelativeFrame,
    slab: Slab,
    limit: wp.float32,
    tree_a: BvhView,
    i: wp.int32,
    tree_b: BvhView,
    j: wp.int32,
):
    """Square of a lower bound of the distance of two slots; the cheapest that exceeds ``limit``.

    Tight volumes along the slab, then along the line between their centres, then boxes. Without
    tight volumes boxes come first, and boxes with parallel axes tell all there is to tell.
    """
    a = load_node(tree_a.nodes, i)
    b = load_node(tree_b.nodes, j)
    tight = tree_a.rss.shape[0] > 0 or tree_a.obbs.shape[0] > 0
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
            between = vector_of(frame.rows * padded(centre_b) + frame.shift) - centre_a
            length = wp.length(between)
            way = between * (wp.float32(1.0) / length)  # NaN where they are one: culls nothing
            gap = length - slab.pad - reach_towards(tree_a, i, a, way)
            squared = tightened(squared, gap - reach_towards(tree_b, j, b, into_b(frame, way)))
            if not (squared > limit):
                squared = wp.max(squared, apart(frame, a, b))
            if tree_a.rss.shape[0] > 0 and not (squared > limit):
                from_a = load_rss(tree_a, i)
                to_b = load_rss(tree_b, j)
                if length < CLOSE * (from_a.half[0] + to_b.half[0]):
                    squared = tightened(squared, distance_rss(frame, from_a, to_b))
    return squared


@wp.func
def centre_of(node: Node):
    """The centre of a box, and a zero."""
    return padded(vector_of(node.low + node.high) * wp.float32(0.5))
