"""Triangle frames: faces in local float32 frames, for distances from many points at once.

A frame has its origin a at the start of the longest edge, x along that edge, y towards the third
corner c, z along the normal. In it the triangle is (0, 0), (length, 0), (cx, cy) with 0 <= cx <=
length and cy >= 0, so that a face without area is its longest edge. The frame is computed in
float64 and rounded once, which is accurate for slivers too. Six rows a face:

    a, length | x, cx | y, cy | z, 1 / |c - a|^2 | lower corner, 1 / |c - b|^2 | upper corner, 0

Coordinates are relative to the origin of the mesh's BVH; lower and upper corner are those of the
face's box.
"""

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.core.launch import launch
from abut.core.timing import stage
from abut.mesh import Mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TRIANGLE_FRAME_ROWS = wp.constant(6)
TRIANGLE_FRAME_ERROR = 2.0**-16  # of the largest coordinate; see design/distance-field.md
# Squared distance from (px, py, pz) to a triangle frame; numbers are floats or vectors of them.
SQUARED_DISTANCE_CODE = """
    const auto measured = [](const float* r, auto px, auto py, auto pz) {
        const auto qx = px - r[0], qy = py - r[1], qz = pz - r[2];
        const float length = r[3], cx = r[7], cy = r[11], per_ac = r[15], per_bc = r[19];
        const auto u = qx * r[4] + (qy * r[5] + qz * r[6]);  // terms in y and z are shared
        const auto v = qx * r[8] + (qy * r[9] + qz * r[10]);
        const auto h = qx * r[12] + (qy * r[13] + qz * r[14]);
        const auto none = decltype(u + u){};
        const auto less = [](auto a, auto b) { return a < b ? a : b; };
        const auto more = [](auto a, auto b) { return a > b ? a : b; };
        const auto share = [&](auto t) { return more(less(t, none + 1.0f), none); };
        const auto ub = u - length;
        const float bx = cx - length;
        const auto along = less(u, none) + more(ub, none);
        const auto on_ab = along * along + v * v;
        const auto s = share((u * cx + v * cy) * per_ac);
        const auto sx = u - s * cx, sy = v - s * cy;
        const auto on_ac = sx * sx + sy * sy;
        const auto t = share((ub * bx + v * cy) * per_bc);
        const auto tx = ub - t * bx, ty = v - t * cy;
        const auto on_bc = tx * tx + ty * ty;
        const auto inside = (v > none) & (u * cy > v * cx) & (v * bx > ub * cy);
        const auto flat = inside ? none : less(on_ab, less(on_ac, on_bc));
        return h * h + flat;
    };
"""

FLAT = wp.constant(wp.float64(2.0**-45))  # of the length; flatter triangles count as segments
SMALLEST = wp.constant(wp.float64(1e-36))


@wp.func
def any_perpendicular(x: wp.vec3d):
    """Return a unit vector perpendicular to a unit vector."""
    least = wp.argmin(wp.vec3d(wp.abs(x[0]), wp.abs(x[1]), wp.abs(x[2])))
    axis = wp.vec3d(wp.float64(0.0))
    axis[wp.int32(least)] = wp.float64(1.0)
    return wp.normalize(wp.cross(x, axis))


@wp.func
def reciprocal_or_zero(square: wp.float64):
    """Return 1 / square, or 0 if it is too small to matter."""
    out = wp.float32(0.0)
    if square > SMALLEST:
        out = wp.float32(wp.float64(1.0) / square)
    return out


@wp.func
def vec4_from(v: wp.vec3d, w: wp.float64):
    """Round a vector and a fourth component to float32."""
    return wp.vec4f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]), wp.float32(w))


@wp.func
def longest_edge(t: wp.mat33d):
    """Return the corner at which the longest edge begins; the first of equal ones."""
    ab = t[1] - t[0]
    bc = t[2] - t[1]
    ca = t[0] - t[2]
    first = wp.int32(0)
    most = wp.dot(ab, ab)
    if wp.dot(bc, bc) > most:
        first = 1
        most = wp.dot(bc, bc)
    if wp.dot(ca, ca) > most:
        first = 2
    return first


@wp.kernel
def triangle_frame_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Write the rows of each face."""
    for face in range(span[0] + wp.tid(), span[1], span[2]):
        corners = faces[face]
        t = wp.matrix_from_rows(points[corners[0]], points[corners[1]], points[corners[2]])
        first = longest_edge(t)
        a = t[first]
        b = t[(first + 1) % 3]
        c = t[(first + 2) % 3]
        length = wp.length(b - a)
        x = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
        if length > wp.float64(0.0):
            x = (b - a) / length
        up = (c - a) - wp.dot(c - a, x) * x
        up = up - wp.dot(up, x) * x
        height = wp.length(up)
        y = any_perpendicular(x)
        if height > FLAT * length:
            y = up / height
        else:
            height = wp.float64(0.0)  # a smaller one may be a rounding error
        foot = wp.clamp(wp.dot(c - a, x), wp.float64(0.0), length)
        rest = length - foot
        low, high = fit_aabb(t[0], t[1], t[2], origin)
        row = TRIANGLE_FRAME_ROWS * face
        rows_out[row] = vec4_from(a - origin, length)
        rows_out[row + 1] = vec4_from(x, foot)
        rows_out[row + 2] = vec4_from(y, height)
        z = wp.cross(x, y)
        per_ac = reciprocal_or_zero(foot * foot + height * height)
        per_bc = reciprocal_or_zero(rest * rest + height * height)
        rows_out[row + 3] = wp.vec4f(wp.float32(z[0]), wp.float32(z[1]), wp.float32(z[2]), per_ac)
        rows_out[row + 4] = wp.vec4f(low[0], low[1], low[2], per_bc)
        rows_out[row + 5] = wp.vec4f(high[0], high[1], high[2], wp.float32(0.0))


def triangle_frames_of(mesh: Mesh, origin: np.ndarray) -> wp.array:
    """Return the triangle frames of a mesh's present shape relative to an origin, cached.

    A new shape takes the memory of the last one.
    """
    device, shape = mesh.device, (mesh.version, *map(float, origin))
    with mesh.lock:
        kept, rows = mesh.cache.get("triangle_frames", (None, None))
        if kept != shape:
            if rows is None:
                rows = wp.empty(TRIANGLE_FRAME_ROWS * mesh.face_count, wp.vec4f, device)
            with stage("triangle frames", device):
                args = [mesh.points, mesh.faces, wp.vec3d(*origin), rows]
                launch(triangle_frame_kernel, mesh.face_count, args, device)
            mesh.cache["triangle_frames"] = shape, rows
        return rows
