"""Fragments of all faces of a view, pixel by pixel: counted, given room, filled in.

Only pixels to which several come get any room: at the others nothing hides anything.
"""

import warp as wp

from abut.core.atomics import (
    atomic_add_aggregated,
    atomic_decrement,
    atomic_increment,
    atomic_set_owner,
)
from abut.visibility.cover import AREA, BLOCK, centre_of, covers
from abut.visibility.fragment import (
    FaceView,
    depths_over,
    load_fresh_view,
    load_view,
    sample,
    touches,
)
from abut.visibility.setup import Shown
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Canvas:
    """Where fragments go."""

    shown: Shown
    counts: wp.array[wp.int32]  # fragments per pixel that have no place yet
    owners: wp.array[wp.int32]  # who comes to each pixel, see ``atomic_set_owner``
    starts: wp.array[wp.int32]  # of each pixel's fragments
    stops: wp.array[wp.int32]
    fragments: wp.array[wp.vec4f]  # near, far, face, pixel
    tiles: wp.int32  # blocks of pixels in a row of them: pixels of a block lie together
    within: wp.bool  # faces are told apart, not only objects


@wp.func
def slot_of(canvas: Canvas, column: wp.int32, row: wp.int32):
    """Where a pixel of the band lies in memory."""
    y = row - canvas.shown.band[0]
    tile = (y / BLOCK) * canvas.tiles + column / BLOCK
    return tile * AREA + (y % BLOCK) * BLOCK + column % BLOCK


@wp.func
def count_fragment(canvas: Canvas, pixel: wp.int32, face: wp.int32, owner: wp.int32):
    """A face comes to a pixel."""
    atomic_increment(canvas.counts, pixel)
    who = owner
    if canvas.within:
        who = face
    atomic_set_owner(canvas.owners, pixel, who + 1)


@wp.kernel
def room_kernel(
    # in
    span: wp.vec3i,
    # out
    canvas_out: Canvas,
    total_out: wp.array[wp.int64],
):
    """Room for the fragments of pixels to which several come; none for the others."""
    capacity = wp.int64(canvas_out.fragments.shape[0])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = canvas_out.counts[i]
        start = wp.int32(0)
        if count > 0:
            if canvas_out.owners[i] < 0:
                start = wp.int32(wp.min(atomic_add_aggregated(total_out, count), capacity))
            else:
                count = 0
                canvas_out.counts[i] = 0
        canvas_out.starts[i] = start
        canvas_out.stops[i] = start + count


@wp.func
def place_fragment(canvas: Canvas, pixel: wp.int32, face: wp.int32, depths: wp.vec2f):
    """Put a fragment behind those that its pixel has already."""
    slot = canvas.starts[pixel] + atomic_decrement(canvas.counts, pixel)
    if slot >= 0 and slot < canvas.fragments.shape[0]:
        canvas.fragments[slot] = wp.vec4f(
            depths[0], depths[1], wp.cast(face, wp.float32), wp.cast(pixel, wp.float32)
        )


@wp.func
def fill_pixel(
    canvas: Canvas, view: ViewMap, f: FaceView, face: wp.int32, column: wp.int32, row: wp.int32
):
    """Make the fragment of a face at a pixel, if there is one and anything it may hide."""
    pixel = slot_of(canvas, column, row)
    if canvas.owners[pixel] < 0:
        centre = centre_of(column, row)
        if view.reach[0] > wp.float32(0.0):
            if touches(f, centre, view.reach):
                depths = depths_over(f, centre, view.reach, view.slack)
                place_fragment(canvas, pixel, face, depths)
        else:
            inside, depth = sample(f, centre)
            if inside:
                place_fragment(canvas, pixel, face, wp.vec2f(depth, depth))


@wp.func
def count_face(canvas: Canvas, view: ViewMap, face: wp.int32, owner: wp.int32):
    """Count the fragments of a face."""
    box = canvas.shown.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_fresh_view(canvas.shown.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                if covers(f, centre_of(column, row), view):
                    count_fragment(canvas, slot_of(canvas, column, row), face, owner)


@wp.func
def fill_face(canvas: Canvas, view: ViewMap, face: wp.int32):
    """Make the fragments of a face."""
    box = canvas.shown.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_view(canvas.shown.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                fill_pixel(canvas, view, f, face, column, row)


@wp.kernel
def count_faces_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    object_of: wp.array[wp.int32],
    # out
    canvas_out: Canvas,
):
    """Count fragments; a thread for each face."""
    view = views[shown]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count_face(canvas_out, view, i, object_of[i])


@wp.kernel
def fill_faces_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    # out
    canvas_out: Canvas,
):
    """Make fragments; a thread for each face."""
    view = views[shown]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        fill_face(canvas_out, view, i)
