"""Lower bounds of the distance of two nodes: of their boxes, or the cheapest one that will do."""

from functools import cache

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec4f
from abut.bounds.gap_boxes import gap_boxes
from abut.bounds.gaps_boxes import gaps_aabb, gaps_obb, gaps_rss
from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.rss import UNDERFLOW_SLACK
from abut.bvh.layout import (
    BvhView,
    Node,
    link_of,
    load_node,
    max_abs_coordinate,
    root_of,
)
from abut.options import Bound

SLAB_ROUNDING = wp.constant(wp.float32(2.0**-18))


@wp.func
def gap_nodes(frame: RelativeFrame, a: Node, b: Node):
    """Square of a lower bound of the distance of two boxes."""
    return gap_boxes(frame, a.low, a.high, b.low, b.high)


@wp.func
def box_centre(node: Node):
    """The centre of a box, and a zero."""
    return to_vec4f(row_xyz(node.low + node.high) * wp.float32(0.5))


@wp.func
def gap_centres(frame: RelativeFrame, a: Node, b: Node):
    """Square of the distance of the centres of two boxes."""
    between = frame.rows * box_centre(b) + frame.shift - box_centre(a)
    return wp.dot(between, between)


@wp.struct
class Slab:
    """A direction from a to b, in both frames."""

    in_a: wp.vec3f
    in_b: wp.vec3f
    shift: wp.float32  # of b's frame
    padding: wp.float32  # bound of roundings along any direction


@wp.func
def slab_padding(frame: RelativeFrame, tree_a: BvhView, tree_b: BvhView):
    """Bound of float32 roundings of positions along a direction."""
    reach = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    reach += max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    near = wp.float32(reach) + wp.max(wp.abs(row_xyz(frame.shift)))
    return SLAB_ROUNDING * near + wp.float32(2.0) * frame.widen[0] + UNDERFLOW_SLACK


@wp.func
def slab_of(frame: RelativeFrame, direction: wp.vec3f, padding: wp.float32):
    """The slab of a direction in the frame of a; none where it is zero or not finite."""
    out = Slab()
    unit = wp.normalize(direction)
    if wp.length_sq(unit) > wp.float32(0.5):
        out.in_a = unit
        out.in_b = direction_in_b(frame, unit)
        out.shift = wp.dot(row_xyz(frame.shift), unit)
    out.padding = padding
    return out


@wp.func
def direction_in_b(frame: RelativeFrame, direction: wp.vec3f):
    """A direction of a's frame in b's."""
    return row_xyz(frame.columns * to_vec4f(direction))


@wp.func
def first_entry(tree_a: BvhView, i: wp.int32, tree_b: BvhView, j: wp.int32):
    """The ends of two slots (see gaps_boxes), and a gap of 0."""
    end_a = link_of(load_node(tree_a.nodes, i))
    end_b = link_of(load_node(tree_b.nodes, j))
    if end_a < 0 and end_b >= 0:
        end_a = -1 - i
    if end_b < 0 and end_a >= 0:
        end_b = -1 - j
    return wp.vec3i(end_a, end_b, 0)


@cache
def open_near_for(bound: Bound) -> wp.Function:
    """The function that opens a pair of nodes of trees with some kind of volume."""
    gaps_volumes = {Bound.AABB: gaps_aabb, Bound.OBB: gaps_obb, Bound.RSS: gaps_rss}[bound]

    @wp.func
    def open_near(
        frame: RelativeFrame,
        slab: Slab,
        tree_a: BvhView,
        end_a: wp.int32,
        tree_b: BvhView,
        end_b: wp.int32,
        limit: wp.float32,
    ):
        """Ends and squared gaps of the pairs below a pair; see gaps_boxes."""
        volumes_a = tree_a.nodes
        volumes_b = tree_b.nodes
        if wp.static(bound is Bound.OBB):
            volumes_a = tree_a.obbs
            volumes_b = tree_b.obbs
        if wp.static(bound is Bound.RSS):
            volumes_a = tree_a.rss
            volumes_b = tree_b.rss
        return gaps_volumes(
            volumes_a,
            end_a,
            volumes_b,
            end_b,
            frame.rows,
            frame.shift,
            slab.in_a,
            slab.in_b,
            slab.shift,
            slab.padding,
            limit,
        )

    return open_near
