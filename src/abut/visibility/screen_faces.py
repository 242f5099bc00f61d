"""Screen faces: faces in screen space, their edges' inverse sizes, slopes and boxes of pixels.

A face in screen space is five rows of four float32: its corners in pixels and depth with the
inverse widths of its edges; inverse heights; the slope of its plane, and whether it has one.
"""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.core.memory_access import load_readonly_vec4f
from abut.visibility.settings import ViewMap
from abut.visibility.state import BOTH, COLUMNS, FACES, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROWS = wp.constant(5)
STEEP = wp.constant(wp.float32(2.0**-20))  # pixels; the inverse width of a narrower edge is 0
STEEPEST = wp.constant(wp.float64(1.0e6))  # largest slope of a plane [depth per pixel]
FLAT = wp.constant(wp.float64(2.0**-28))  # least area, relative to the products it is the sum of


@wp.struct
class ScreenFace:
    """A face in screen space."""

    u: wp.vec3f
    v: wp.vec3f
    z: wp.vec3f
    per_u: wp.vec3f  # 1 / width of the edge that starts at each corner, or 0
    per_v: wp.vec3f
    slope: wp.vec2f
    has_plane: wp.float32  # 1, or 0 where the face is too steep or too thin for a slope
    orientation: wp.float32  # 1 counter-clockwise, -1 clockwise, 0 without area


@wp.struct
class ScreenFaces:
    """All faces in screen space, clipped to a band of rows of the view."""

    rows: wp.array[wp.vec4f]
    boxes: wp.array[wp.vec4i]  # first column, first row, last column, last row of each face
    band: wp.vec2i  # first row, and the row after the last


@wp.func
def edge_side_f64(
    iu: wp.float32, iv: wp.float32, ju: wp.float32, jv: wp.float32, u: wp.float32, v: wp.float32
):
    """Twice the area spanned by an edge and a point, in float64."""
    du = wp.float64(ju) - wp.float64(iu)
    dv = wp.float64(jv) - wp.float64(iv)
    return du * (wp.float64(v) - wp.float64(iv)) - dv * (wp.float64(u) - wp.float64(iu))


@wp.func
def sign_f64(x: wp.float64):
    """-1, 0 or 1; ``wp.sign(0)`` is 1."""
    return wp.float32(wp.where(x == wp.float64(0.0), wp.float64(0.0), wp.sign(x)))


@wp.func
def map_axis(view: ViewMap, p: wp.vec3d, slot: wp.int32):
    """One screen coordinate of a point."""
    x = p[view.axes[slot]]
    return wp.float32((x * view.shrink[slot] - view.base[slot]) * view.scale[slot])


@wp.func
def map_point(view: ViewMap, p: wp.vec3d):
    """Map a point to pixels and depth."""
    return wp.vec3f(map_axis(view, p, 0), map_axis(view, p, 1), map_axis(view, p, 2))


@wp.func
def inverse(width: wp.float32):
    """1 / width, or 0 for a width below STEEP."""
    out = wp.float32(0.0)
    if wp.abs(width) >= STEEP:
        out = wp.float32(1.0) / width
    return out


@wp.func
def plane_of(u: wp.vec3f, v: wp.vec3f, z: wp.vec3f):
    """(slope along u, slope along v, 1); zeros where the face is too thin or too steep."""
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
def screen_face_of(p: wp.vec3f, q: wp.vec3f, r: wp.vec3f):
    """Make a ScreenFace of its corners in screen space."""
    out = ScreenFace()
    out.u = wp.vec3f(p[0], q[0], r[0])
    out.v = wp.vec3f(p[1], q[1], r[1])
    out.z = wp.vec3f(p[2], q[2], r[2])
    out.per_u = wp.vec3f(inverse(q[0] - p[0]), inverse(r[0] - q[0]), inverse(p[0] - r[0]))
    out.per_v = wp.vec3f(inverse(q[1] - p[1]), inverse(r[1] - q[1]), inverse(p[1] - r[1]))
    slope = plane_of(out.u, out.v, out.z)
    out.slope = wp.vec2f(slope[0], slope[1])
    out.has_plane = slope[2]
    out.orientation = sign_f64(edge_side_f64(p[0], p[1], q[0], q[1], r[0], r[1]))
    return out


@wp.func
def store_face(rows_out: wp.array[wp.vec4f], face: wp.int32, f: ScreenFace):
    """Write the rows of a face."""
    rows_out[ROWS * face] = wp.vec4f(f.u[0], f.v[0], f.z[0], f.per_u[0])
    rows_out[ROWS * face + 1] = wp.vec4f(f.u[1], f.v[1], f.z[1], f.per_u[1])
    rows_out[ROWS * face + 2] = wp.vec4f(f.u[2], f.v[2], f.z[2], f.per_u[2])
    rows_out[ROWS * face + 3] = wp.vec4f(f.per_v[0], f.per_v[1], f.per_v[2], f.slope[0])
    rows_out[ROWS * face + 4] = wp.vec4f(f.slope[1], f.has_plane, f.orientation, 0.0)


@wp.func
def unpack_screen_face(a: wp.vec4f, b: wp.vec4f, c: wp.vec4f, d: wp.vec4f, e: wp.vec4f):
    """Make a ScreenFace of five rows."""
    out = ScreenFace()
    out.u = wp.vec3f(a[0], b[0], c[0])
    out.v = wp.vec3f(a[1], b[1], c[1])
    out.z = wp.vec3f(a[2], b[2], c[2])
    out.per_u = wp.vec3f(a[3], b[3], c[3])
    out.per_v = wp.vec3f(d[0], d[1], d[2])
    out.slope = wp.vec2f(d[3], e[0])
    out.has_plane = e[1]
    out.orientation = e[2]
    return out


@wp.func
def load_screen_face(rows: wp.array[wp.vec4f], face: wp.int32):
    """Read a face that an earlier launch wrote."""
    return unpack_screen_face(
        load_readonly_vec4f(rows, ROWS * face),
        load_readonly_vec4f(rows, ROWS * face + 1),
        load_readonly_vec4f(rows, ROWS * face + 2),
        load_readonly_vec4f(rows, ROWS * face + 3),
        load_readonly_vec4f(rows, ROWS * face + 4),
    )


@wp.func
def load_own_screen_face(rows: wp.array[wp.vec4f], face: wp.int32):
    """Read a face that this thread wrote."""
    return unpack_screen_face(
        rows[ROWS * face],
        rows[ROWS * face + 1],
        rows[ROWS * face + 2],
        rows[ROWS * face + 3],
        rows[ROWS * face + 4],
    )


@wp.func
def first_pixel(x: wp.float32, reach: wp.float32):
    """The first pixel whose rectangle contains or follows x."""
    return wp.int32(wp.ceil(x - reach - wp.float32(0.5)))


@wp.func
def last_pixel(x: wp.float32, reach: wp.float32):
    """The last pixel whose rectangle contains or precedes x."""
    return wp.int32(wp.floor(x + reach - wp.float32(0.5)))


@wp.func
def pixel_box(p: wp.vec3f, q: wp.vec3f, r: wp.vec3f, view: ViewMap, band: wp.vec2i):
    """Pixels whose rectangle overlaps the bounding box of a face, clipped to the band."""
    low = wp.min(wp.min(p, q), r)
    high = wp.max(wp.max(p, q), r)
    return wp.vec4i(
        wp.max(first_pixel(low[0], view.reach[0]), 0),
        wp.max(first_pixel(low[1], view.reach[1]), band[0]),
        wp.min(last_pixel(high[0], view.reach[0]), view.pixels - 1),
        wp.min(last_pixel(high[1], view.reach[1]), band[1] - 1),
    )


@wp.func
def set_up_face(
    screen: ScreenFaces,
    view: ViewMap,
    points: wp.array[wp.vec3d],
    corners: wp.vec3i,
    face: wp.int32,
):
    """Map a face to screen space and store it; returns its box of pixels."""
    p = map_point(view, points[corners[0]])
    q = map_point(view, points[corners[1]])
    r = map_point(view, points[corners[2]])
    store_face(screen.rows, face, screen_face_of(p, q, r))
    box = pixel_box(p, q, r, view, screen.band)
    screen.boxes[face] = box
    return box


@wp.func
def box_area(box: wp.vec4i):
    """Number of pixels of a box."""
    return wp.int64(wp.max(box[2] - box[0] + 1, 0) * wp.max(box[3] - box[1] + 1, 0))


@wp.func
def add_face_counts(
    screen: ScreenFaces,
    row: wp.int32,
    seen: wp.int64,
    area: wp.int64,
    counters: wp.array[wp.int64],
    areas: wp.array[wp.int64],
):
    """Add to the counters of a pass: its faces, in the first band only, and their boxes' area."""
    if screen.band[0] == 0:
        atomic_add_uniform(counters, row * COLUMNS + FACES, seen)
    atomic_add_uniform(areas, 0, area)


@wp.kernel
def setup_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    primitives: Primitives,
    views: wp.array[ViewMap],
    row: wp.int32,
    # out
    faces_out: ScreenFaces,
    counters_out: wp.array[wp.int64],
    area_out: wp.array[wp.int64],
):
    """Set up every face that is not pruned; sum up the area of all boxes."""
    view = views[0]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] == BOTH:
            faces_out.boxes[i] = wp.vec4i(0, 0, -1, -1)
        else:
            area += box_area(set_up_face(faces_out, view, points, faces[i], i))
            seen += wp.int64(1)
    add_face_counts(faces_out, row, seen, area, counters_out, area_out)
