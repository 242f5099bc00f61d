"""Lower bounds of the distance of two nodes: of their boxes, or the cheapest one that will do."""

from functools import cache

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
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
from abut.geometry.poses import rotation_of
from abut.operands.posed_mesh import pose_of
from abut.operands.posed_pairs import PosedPair
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
    known: wp.bool  # there is a direction


@wp.func
def slab_padding(frame: RelativeFrame, tree_a: BvhView, tree_b: BvhView):
    """Bound of float32 roundings of positions along a direction."""
    reach = max_abs_coordinate(load_node(tree_a.nodes, root_of(tree_a)))
    reach += max_abs_coordinate(load_node(tree_b.nodes, root_of(tree_b)))
    near = wp.float32(reach) + wp.max(wp.abs(row_xyz(frame.shift)))
    return SLAB_ROUNDING * near + wp.float32(2.0) * frame.widen[0] + UNDERFLOW_SLACK


@wp.func
def slab_along(frame: RelativeFrame, pair: PosedPair, direction: wp.vec3d, padding: wp.float32):
    """The slab of a direction given in the world.

    The gap of two nodes along any direction is a lower bound of their distance; along the line
    between the nearest faces it is a tight one for all that is near them.
    """
    out = Slab()
    rotation = rotation_of(pose_of(pair.a, pair.pose))
    out.in_a = to_vec3f(wp.normalize(wp.transpose(rotation) * direction))
    out.in_b = direction_in_b(frame, out.in_a)
    out.shift = wp.dot(row_xyz(frame.shift), out.in_a)
    out.padding = padding
    out.known = wp.length_sq(direction) > wp.float64(0.0)
    return out


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
def half_extent(node: Node, direction: wp.vec3f):
    """Return the extent of a box from its centre along a unit direction."""
    return wp.dot(row_xyz(node.high - node.low), wp.abs(direction)) * wp.float32(0.5)


@wp.func
def gap_along_slab(frame: RelativeFrame, slab: Slab, limit: wp.float32, a: Node, b: Node):
    """Square of a lower bound of the distance of two boxes.

    Where the boxes are no farther apart than ``limit`` in either frame, also their gap along the
    slab; for boxes with parallel axes it is no tighter.
    """
    squared = gap_nodes(frame, a, b)
    if frame.rotated != 0 and slab.known and not (squared > limit):
        centre_a = row_xyz(box_centre(a))
        centre_b = row_xyz(box_centre(b))
        gap = slab.shift + wp.dot(centre_b, slab.in_b) - wp.dot(centre_a, slab.in_a) - slab.padding
        gap -= half_extent(a, slab.in_a) + half_extent(b, slab.in_b)
        squared = wp.where(gap > wp.float32(0.0), wp.max(squared, gap * gap), squared)
    return squared


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
