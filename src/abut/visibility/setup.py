"""Faces as a view shows them: corners in pixels and depth, and a box of pixels for each."""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.fragment import map_point, store_face
from abut.visibility.state import BOTH, COLUMNS, FACES, Primitives, primitive_of
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Shown:
    """Faces as a view shows them, in a band of it."""

    rows: wp.array[wp.vec4f]
    boxes: wp.array[wp.vec4i]  # first column, first row, last column, last row of each face
    band: wp.vec2i  # first row, and the one after the last


@wp.func
def first_pixel(x: wp.float32, reach: wp.float32):
    """The first pixel whose reach comes up to x."""
    return wp.int32(wp.ceil(x - reach - wp.float32(0.5)))


@wp.func
def last_pixel(x: wp.float32, reach: wp.float32):
    """The last pixel whose reach comes down to x."""
    return wp.int32(wp.floor(x + reach - wp.float32(0.5)))


@wp.func
def box_of(p: wp.vec3f, q: wp.vec3f, r: wp.vec3f, view: ViewMap, band: wp.vec2i):
    """Pixels whose reach meets the box of a face, within the band."""
    low = wp.min(wp.min(p, q), r)
    high = wp.max(wp.max(p, q), r)
    return wp.vec4i(
        wp.max(first_pixel(low[0], view.reach[0]), 0),
        wp.max(first_pixel(low[1], view.reach[1]), band[0]),
        wp.min(last_pixel(high[0], view.reach[0]), view.pixels - 1),
        wp.min(last_pixel(high[1], view.reach[1]), band[1] - 1),
    )


@wp.func
def set_up(
    shown: Shown,
    view: ViewMap,
    points: wp.array[wp.vec3d],
    corners: wp.vec3i,
    face: wp.int32,
):
    """Write down how a view shows a face; returns its box."""
    p = map_point(view, points[corners[0]])
    q = map_point(view, points[corners[1]])
    r = map_point(view, points[corners[2]])
    store_face(shown.rows, face, p, q, r)
    box = box_of(p, q, r, view, shown.band)
    shown.boxes[face] = box
    return box


@wp.func
def area_of(box: wp.vec4i):
    """Number of pixels of a box."""
    return wp.int64(wp.max(box[2] - box[0] + 1, 0) * wp.max(box[3] - box[1] + 1, 0))


@wp.func
def count_shown(
    shown: Shown,
    row: wp.int32,
    seen: wp.int64,
    area: wp.int64,
    counters: wp.array[wp.int64],
    areas: wp.array[wp.int64],
):
    """Count the faces of a pass, once for all its bands, and the pixels of their boxes."""
    if shown.band[0] == 0:
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
    shown: wp.int32,
    row: wp.int32,
    # out
    faces_out: Shown,
    counters_out: wp.array[wp.int64],
    area_out: wp.array[wp.int64],
):
    """Corners and box of every face that is still there; how many pixels the boxes have."""
    view = views[shown]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] == BOTH:
            faces_out.boxes[i] = wp.vec4i(0, 0, -1, -1)
        else:
            area += area_of(set_up(faces_out, view, points, faces[i], i))
            seen += wp.int64(1)
    count_shown(faces_out, row, seen, area, counters_out, area_out)
