"""What a face covers: the pixels it touches, and its depths over each of them.

A face of a view is five rows of four float32: its corners in pixels and depth with the inverse
widths of its edges; inverse heights; the slope of its plane, and whether it has one.
Proofs are in design/visibility.md: reach and slack of a view cover all roundings of the plane.
"""

import warp as wp

from abut.core.memory_access import load_readonly_vec4f
from abut.visibility.edge import edge_of, edge_passes, fine_side, fine_sign, holds
from abut.visibility.view import ViewMap

ROWS = wp.constant(5)
STEEP = wp.constant(wp.float32(2.0**-20))  # edges narrower than this, in pixels, stand upright
NEVER = wp.constant(wp.float32(1.0e30))
STEEPEST = wp.constant(wp.float64(1.0e6))  # slopes, in depth a pixel, that are worth having
FLAT = wp.constant(wp.float64(2.0**-28))  # area of a face, relative to the products it comes of


@wp.struct
class FaceView:
    """A face as a view shows it."""

    u: wp.vec3f
    v: wp.vec3f
    z: wp.vec3f
    per_u: wp.vec3f  # 1 / width of the edge that starts at each corner, 0 where it is upright
    per_v: wp.vec3f
    slope: wp.vec2f
    has_plane: wp.float32  # 1, or 0 where the face is too steep or too thin for a slope
    turn: wp.float32  # 1 where the corners run counter-clockwise, -1 clockwise, 0 without area


@wp.func
def map_axis(view: ViewMap, p: wp.vec3d, slot: wp.int32):
    """One coordinate of a point in a view."""
    x = p[view.axes[slot]]
    return wp.float32((x * view.shrink[slot] - view.base[slot]) * view.scale[slot])


@wp.func
def map_point(view: ViewMap, p: wp.vec3d):
    """A point in pixels and depth."""
    return wp.vec3f(map_axis(view, p, 0), map_axis(view, p, 1), map_axis(view, p, 2))


@wp.func
def inverse(width: wp.float32):
    """1 / width, 0 for what is too narrow."""
    out = wp.float32(0.0)
    if wp.abs(width) >= STEEP:
        out = wp.float32(1.0) / width
    return out


@wp.func
def plane_of(u: wp.vec3f, v: wp.vec3f, z: wp.vec3f):
    """(slope across, slope up, 1); zeros where there is no plane to speak of."""
    u1 = wp.float64(u[1]) - wp.float64(u[0])
    u2 = wp.float64(u[2]) - wp.float64(u[0])
    v1 = wp.float64(v[1]) - wp.float64(v[0])
    v2 = wp.float64(v[2]) - wp.float64(v[0])
    z1 = wp.float64(z[1]) - wp.float64(z[0])
    z2 = wp.float64(z[2]) - wp.float64(z[0])
    area = u1 * v2 - u2 * v1
    out = wp.vec3f()
    if wp.abs(area) > FLAT * (wp.abs(u1 * v2) + wp.abs(u2 * v1)):
        across = (z1 * v2 - z2 * v1) / area
        up = (u1 * z2 - u2 * z1) / area
        if wp.abs(across) + wp.abs(up) < STEEPEST:
            out = wp.vec3f(wp.float32(across), wp.float32(up), wp.float32(1.0))
    return out


@wp.func
def store_face(rows_out: wp.array[wp.vec4f], face: wp.int32, p: wp.vec3f, q: wp.vec3f, r: wp.vec3f):
    """Write the rows of a face with these corners."""
    slope = plane_of(
        wp.vec3f(p[0], q[0], r[0]), wp.vec3f(p[1], q[1], r[1]), wp.vec3f(p[2], q[2], r[2])
    )
    rows_out[ROWS * face] = wp.vec4f(p[0], p[1], p[2], inverse(q[0] - p[0]))
    rows_out[ROWS * face + 1] = wp.vec4f(q[0], q[1], q[2], inverse(r[0] - q[0]))
    rows_out[ROWS * face + 2] = wp.vec4f(r[0], r[1], r[2], inverse(p[0] - r[0]))
    heights = wp.vec3f(inverse(q[1] - p[1]), inverse(r[1] - q[1]), inverse(p[1] - r[1]))
    rows_out[ROWS * face + 3] = wp.vec4f(heights[0], heights[1], heights[2], slope[0])
    area = fine_side(p[0], p[1], q[0], q[1], r[0], r[1])
    rows_out[ROWS * face + 4] = wp.vec4f(slope[1], slope[2], fine_sign(area), 0.0)


@wp.func
def face_view(a: wp.vec4f, b: wp.vec4f, c: wp.vec4f, d: wp.vec4f, e: wp.vec4f):
    """The face of five rows."""
    out = FaceView()
    out.u = wp.vec3f(a[0], b[0], c[0])
    out.v = wp.vec3f(a[1], b[1], c[1])
    out.z = wp.vec3f(a[2], b[2], c[2])
    out.per_u = wp.vec3f(a[3], b[3], c[3])
    out.per_v = wp.vec3f(d[0], d[1], d[2])
    out.slope = wp.vec2f(d[3], e[0])
    out.has_plane = e[1]
    out.turn = e[2]
    return out


@wp.func
def load_view(rows: wp.array[wp.vec4f], face: wp.int32):
    """Read the rows of a face, written by an earlier launch."""
    return face_view(
        load_readonly_vec4f(rows, ROWS * face),
        load_readonly_vec4f(rows, ROWS * face + 1),
        load_readonly_vec4f(rows, ROWS * face + 2),
        load_readonly_vec4f(rows, ROWS * face + 3),
        load_readonly_vec4f(rows, ROWS * face + 4),
    )


@wp.func
def load_fresh_view(rows: wp.array[wp.vec4f], face: wp.int32):
    """Read the rows of a face, written by this thread."""
    return face_view(
        rows[ROWS * face],
        rows[ROWS * face + 1],
        rows[ROWS * face + 2],
        rows[ROWS * face + 3],
        rows[ROWS * face + 4],
    )


@wp.func
def touches(f: FaceView, centre: wp.vec2f, reach: wp.vec2f):
    """May a face within whose box a rectangle lies touch it? By separating axes."""
    return (
        edge_passes(edge_of(f.u, f.v, 0), centre, reach)
        and edge_passes(edge_of(f.u, f.v, 1), centre, reach)
        and edge_passes(edge_of(f.u, f.v, 2), centre, reach)
    )


@wp.func
def edge_depths(x: wp.vec2f, z: wp.vec2f, per_x: wp.float32, low: wp.float32, high: wp.float32):
    """Depths of the part of an edge between two lines; (NEVER, -NEVER) where there is none."""
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
    """Depths of the part of a face between two lines across one axis."""
    a = edge_depths(wp.vec2f(x[0], x[1]), wp.vec2f(z[0], z[1]), per_x[0], low, high)
    b = edge_depths(wp.vec2f(x[1], x[2]), wp.vec2f(z[1], z[2]), per_x[1], low, high)
    c = edge_depths(wp.vec2f(x[2], x[0]), wp.vec2f(z[2], z[0]), per_x[2], low, high)
    return wp.vec2f(wp.min(wp.min(a[0], b[0]), c[0]), wp.max(wp.max(a[1], b[1]), c[1]))


@wp.func
def plane_depths(f: FaceView, centre: wp.vec2f, reach: wp.vec2f):
    """Depths of a face's plane over a rectangle."""
    out = wp.vec2f(-NEVER, NEVER)
    if f.has_plane > wp.float32(0.0):
        rise = f.slope[0] * (centre[0] - f.u[0])
        climb = f.slope[1] * (centre[1] - f.v[0])
        at = f.z[0] + rise + climb
        spread = wp.abs(f.slope[0]) * reach[0] + wp.abs(f.slope[1]) * reach[1]
        out = wp.vec2f(at - spread, at + spread)
    return out


@wp.func
def depths_over(f: FaceView, centre: wp.vec2f, reach: wp.vec2f, slack: wp.float32):
    """Depths of a face over a rectangle, rounded outwards.

    An empty interval, low > high, is sound: the face is not there.
    """
    along = slab_depths(f.u, f.z, f.per_u, centre[0] - reach[0], centre[0] + reach[0])
    across = slab_depths(f.v, f.z, f.per_v, centre[1] - reach[1], centre[1] + reach[1])
    plane = plane_depths(f, centre, reach)
    low = wp.max(wp.max(along[0], across[0]), plane[0]) - slack
    high = wp.min(wp.min(along[1], across[1]), plane[1]) + slack
    return wp.vec2f(low, high)


@wp.func
def depth_between(f: FaceView, centre: wp.vec2f):
    """Depth of a face that is too steep for a plane, at a point in it."""
    a = fine_side(f.u[1], f.v[1], f.u[2], f.v[2], centre[0], centre[1])
    b = fine_side(f.u[2], f.v[2], f.u[0], f.v[0], centre[0], centre[1])
    c = fine_side(f.u[0], f.v[0], f.u[1], f.v[1], centre[0], centre[1])
    z = a * wp.float64(f.z[0]) + b * wp.float64(f.z[1]) + c * wp.float64(f.z[2])
    return wp.float32(z / (a + b + c))


@wp.func
def depth_at(f: FaceView, centre: wp.vec2f):
    """Depth of a face at a point in it."""
    depth = wp.float32(0.0)
    if f.has_plane > wp.float32(0.0):
        rise = f.slope[0] * (centre[0] - f.u[0]) + f.slope[1] * (centre[1] - f.v[0])
        depth = f.z[0] + rise
    else:
        depth = depth_between(f, centre)
    return depth


@wp.func
def sample(f: FaceView, centre: wp.vec2f):
    """(whether the centre of a pixel is in the face, the depth there)."""
    inside = f.turn != wp.float32(0.0)
    inside = inside and holds(edge_of(f.u, f.v, 0), f.turn, centre)
    inside = inside and holds(edge_of(f.u, f.v, 1), f.turn, centre)
    inside = inside and holds(edge_of(f.u, f.v, 2), f.turn, centre)
    depth = wp.float32(0.0)
    if inside:
        depth = depth_at(f, centre)
    return inside, depth
