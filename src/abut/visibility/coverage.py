"""Coverage: the pixels and blocks of 8 by 8 pixels that a face touches or samples, and its depths.

Proofs are in design/visibility.md.
"""

import warp as wp

from abut.visibility.screen_faces import ScreenFace, edge_side_f64, sign_f64
from abut.visibility.settings import ViewMap

SIDE_ERROR = wp.constant(wp.float32(2.0**-21))  # relative error of products of float32 differences
BLOCK = wp.constant(8)  # pixels along each side
AREA = wp.constant(64)
HALF_BLOCK = wp.constant(wp.float32(3.5))  # from its centre to the centres of its corner pixels
BLOCK_ERROR = wp.constant(wp.float32(2.0**-19))  # of the viewport's width, see design/visibility.md
NEVER = wp.constant(wp.float32(1.0e30))


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
def covers_centre(f: ScreenFace, centre: wp.vec2f):
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
        found = covers_centre(f, centre)
    return found


@wp.func
def edge_depths(x: wp.vec2f, z: wp.vec2f, per_x: wp.float32, low: wp.float32, high: wp.float32):
    """Depth interval of an edge between two lines; (NEVER, -NEVER) where it is empty."""
    out = wp.vec2f(NEVER, -NEVER)
    if wp.max(x[0], x[1]) >= low and wp.min(x[0], x[1]) <= high:
        zero = wp.float32(0.0)
        one = wp.float32(1.0)
        start = wp.float32(0.0)
        stop = wp.float32(1.0)
        if per_x != zero:
            start = wp.clamp((low - x[0]) * per_x, zero, one)
            stop = wp.clamp((high - x[0]) * per_x, zero, one)
        first = z[0] + start * (z[1] - z[0])
        last = z[0] + stop * (z[1] - z[0])
        out = wp.vec2f(wp.min(first, last), wp.max(first, last))
    return out


@wp.func
def slab_depths(x: wp.vec3f, z: wp.vec3f, per_x: wp.vec3f, low: wp.float32, high: wp.float32):
    """Depth interval of a face between two lines across one axis."""
    a = edge_depths(wp.vec2f(x[0], x[1]), wp.vec2f(z[0], z[1]), per_x[0], low, high)
    b = edge_depths(wp.vec2f(x[1], x[2]), wp.vec2f(z[1], z[2]), per_x[1], low, high)
    c = edge_depths(wp.vec2f(x[2], x[0]), wp.vec2f(z[2], z[0]), per_x[2], low, high)
    return wp.vec2f(wp.min(wp.min(a[0], b[0]), c[0]), wp.max(wp.max(a[1], b[1]), c[1]))


@wp.func
def plane_depths(f: ScreenFace, centre: wp.vec2f, reach: wp.vec2f):
    """Depth interval of a face's plane over a rectangle."""
    out = wp.vec2f(-NEVER, NEVER)
    if f.has_plane > wp.float32(0.0):
        rise = f.slope[0] * (centre[0] - f.u[0])
        climb = f.slope[1] * (centre[1] - f.v[0])
        at = f.z[0] + rise + climb
        spread = wp.abs(f.slope[0]) * reach[0] + wp.abs(f.slope[1]) * reach[1]
        out = wp.vec2f(at - spread, at + spread)
    return out


@wp.func
def depths_over(f: ScreenFace, centre: wp.vec2f, reach: wp.vec2f, slack: wp.float32):
    """Depth interval of a face over a rectangle, rounded outwards.

    The reach and slack of a view cover all rounding errors of the plane. An empty interval,
    low > high, proves that the face does not reach the rectangle.
    """
    along = slab_depths(f.u, f.z, f.per_u, centre[0] - reach[0], centre[0] + reach[0])
    across = slab_depths(f.v, f.z, f.per_v, centre[1] - reach[1], centre[1] + reach[1])
    plane = plane_depths(f, centre, reach)
    low = wp.max(wp.max(along[0], across[0]), plane[0]) - slack
    high = wp.min(wp.min(along[1], across[1]), plane[1]) + slack
    return wp.vec2f(low, high)


@wp.func
def depth_at(f: ScreenFace, centre: wp.vec2f):
    """Depth at a point of a face."""
    depth = wp.float32(0.0)
    if f.has_plane > wp.float32(0.0):
        rise = f.slope[0] * (centre[0] - f.u[0]) + f.slope[1] * (centre[1] - f.v[0])
        depth = f.z[0] + rise
    else:  # too steep
        a = edge_side_f64(f.u[1], f.v[1], f.u[2], f.v[2], centre[0], centre[1])
        b = edge_side_f64(f.u[2], f.v[2], f.u[0], f.v[0], centre[0], centre[1])
        c = edge_side_f64(f.u[0], f.v[0], f.u[1], f.v[1], centre[0], centre[1])
        z = a * wp.float64(f.z[0]) + b * wp.float64(f.z[1]) + c * wp.float64(f.z[2])
        depth = wp.float32(z / (a + b + c))
    return depth


@wp.func
def pixel_depths(f: ScreenFace, centre: wp.vec2f, view: ViewMap):
    """Depth interval of a face at a pixel that it covers; near > far where it is empty."""
    out = wp.vec2f(0.0, 0.0)
    if view.reach[0] > wp.float32(0.0):
        out = depths_over(f, centre, view.reach, view.slack)
    else:
        depth = depth_at(f, centre)
        out = wp.vec2f(depth, depth)
    return out
