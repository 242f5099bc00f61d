"""Coverage: the pixels, and the blocks of 8 by 8 pixels, that a face touches or samples."""

import warp as wp

from abut.visibility.screen_faces import ScreenFace, edge_side_f64, sign_f64
from abut.visibility.view import ViewMap

SIDE_ERROR = wp.constant(wp.float32(2.0**-21))  # relative error of products of float32 differences
BLOCK = wp.constant(8)  # pixels along each side
AREA = wp.constant(64)
HALF_BLOCK = wp.constant(wp.float32(3.5))  # from its centre to the centres of its corner pixels
BLOCK_ERROR = wp.constant(wp.float32(2.0**-19))  # of the viewport's width, see design/visibility.md


@wp.struct
class Edge:
    """A directed edge in screen space, and the corner opposite to it."""

    u: wp.float32
    v: wp.float32
    to_u: wp.float32
    to_v: wp.float32
    across_u: wp.float32
    across_v: wp.float32


@wp.func
def component(values: wp.vec3f, i: wp.int32):
    """Component i of a vector, selected without indexing, which would spill to memory."""
    return wp.where(i == 0, values[0], wp.where(i == 1, values[1], values[2]))


@wp.func
def edge_of(u: wp.vec3f, v: wp.vec3f, i: wp.int32):
    """The edge that starts at the i-th corner."""
    j = wp.where(i == 2, 0, i + 1)
    k = wp.where(i == 0, 2, i - 1)
    out = Edge()
    out.u = component(u, i)
    out.v = component(v, i)
    out.to_u = component(u, j)
    out.to_v = component(v, j)
    out.across_u = component(u, k)
    out.across_v = component(v, k)
    return out


@wp.func
def edge_passes(e: Edge, centre: wp.vec2f, reach: wp.vec2f):
    """False when a rectangle lies beside the strip between an edge and the corner across it."""
    du = e.to_u - e.u
    dv = e.to_v - e.v
    at = (centre[0] - e.u) * dv - (centre[1] - e.v) * du
    corner = (e.across_u - e.u) * dv - (e.across_v - e.v) * du
    around = reach[0] * wp.abs(dv) + reach[1] * wp.abs(du)
    zero = wp.float32(0.0)
    return at + around >= wp.min(zero, corner) and at - around <= wp.max(zero, corner)


@wp.func
def inside_edge(e: Edge, orientation: wp.float32, centre: wp.vec2f):
    """Whether a point is inside an edge, or on an edge that belongs to this face.

    float64 decides uncertain cases. An edge belongs to the face that it bounds on the left or below
    (fill rule).
    """
    du = e.to_u - e.u
    dv = e.to_v - e.v
    first = du * (centre[1] - e.v)
    second = dv * (centre[0] - e.u)
    side = first - second
    if wp.abs(side) <= SIDE_ERROR * (wp.abs(first) + wp.abs(second)):
        side = sign_f64(edge_side_f64(e.u, e.v, e.to_u, e.to_v, centre[0], centre[1]))
    side = side * orientation
    zero = wp.float32(0.0)
    owned = dv * orientation < zero or (dv == zero and du * orientation > zero)
    return side > zero or (side == zero and owned)


@wp.func
def touches(f: ScreenFace, centre: wp.vec2f, reach: wp.vec2f):
    """Whether a face may touch a rectangle that overlaps its box, by separating axes.

    ``reach`` is half the size of the rectangle.
    """
    return (
        edge_passes(edge_of(f.u, f.v, 0), centre, reach)
        and edge_passes(edge_of(f.u, f.v, 1), centre, reach)
        and edge_passes(edge_of(f.u, f.v, 2), centre, reach)
    )


@wp.func
def contains(f: ScreenFace, centre: wp.vec2f):
    """Whether a face contains the centre of a pixel."""
    inside = f.orientation != wp.float32(0.0)
    inside = inside and inside_edge(edge_of(f.u, f.v, 0), f.orientation, centre)
    inside = inside and inside_edge(edge_of(f.u, f.v, 1), f.orientation, centre)
    inside = inside and inside_edge(edge_of(f.u, f.v, 2), f.orientation, centre)
    return inside


@wp.func
def centre_of(column: wp.int32, row: wp.int32):
    """Centre of a pixel."""
    return wp.vec2f(wp.float32(column) + wp.float32(0.5), wp.float32(row) + wp.float32(0.5))


@wp.func
def touches_block(f: ScreenFace, column: wp.int32, row: wp.int32, view: ViewMap):
    """Whether a face may have a fragment in the block that begins at this pixel."""
    half = HALF_BLOCK + wp.float32(view.pixels + BLOCK) * BLOCK_ERROR
    middle = wp.vec2f(wp.float32(column) + wp.float32(4.0), wp.float32(row) + wp.float32(4.0))
    return touches(f, middle, wp.vec2f(half + view.reach[0], half + view.reach[1]))


@wp.func
def covers(f: ScreenFace, centre: wp.vec2f, view: ViewMap):
    """Whether a face has a fragment at this pixel of its box."""
    found = wp.bool(False)
    if view.reach[0] > wp.float32(0.0):
        found = touches(f, centre, view.reach)
    else:
        found = contains(f, centre)
    return found
