"""Depth intervals of faces over pixels. Proofs are in design/visibility.md."""

import warp as wp

from abut.visibility.screen_faces import ScreenFace, edge_side_f64
from abut.visibility.view import ViewMap

NEVER = wp.constant(wp.float32(1.0e30))


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
