"""Fragment lists: the fragments of all faces of a view, listed per pixel.

The fragments are counted, allocated and filled in. Pixels that only one object (or face) covers
get no list: nothing is occluded there.
"""

import warp as wp

from abut.core.atomics import (
    atomic_add_aggregated,
    atomic_decrement,
    atomic_increment,
    atomic_set_owner,
)
from abut.visibility.coverage import AREA, BLOCK, centre_of, covers, pixel_depths
from abut.visibility.screen_faces import (
    ScreenFace,
    ScreenFaces,
    load_own_screen_face,
    load_screen_face,
)
from abut.visibility.settings import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class FragmentLists:
    """Fragments of the pixels of a band."""

    screen: ScreenFaces
    counts: wp.array[wp.int32]  # fragments per pixel that are not stored yet
    owners: wp.array[wp.int32]  # object (or face) that covers each pixel, see ``atomic_set_owner``
    starts: wp.array[wp.int32]  # first fragment of each pixel
    stops: wp.array[wp.int32]
    fragments: wp.array[wp.vec4f]  # near, far, face, pixel
    tiles: wp.int32  # blocks in a row of blocks; pixels of a block are contiguous
    within: wp.bool  # faces are distinguished, not only objects


@wp.func
def pixel_slot(lists: FragmentLists, column: wp.int32, row: wp.int32):
    """Index of a pixel of the band."""
    y = row - lists.screen.band[0]
    tile = (y / BLOCK) * lists.tiles + column / BLOCK
    return tile * AREA + (y % BLOCK) * BLOCK + column % BLOCK


@wp.func
def count_fragment(lists: FragmentLists, pixel: wp.int32, face: wp.int32, owner: wp.int32):
    """Count a fragment of a face at a pixel."""
    atomic_increment(lists.counts, pixel)
    atomic_set_owner(lists.owners, pixel, wp.where(lists.within, face, owner) + 1)


@wp.kernel
def allocate_fragments_kernel(
    # in
    span: wp.vec3i,
    # out
    lists_out: FragmentLists,
    total_out: wp.array[wp.int64],
):
    """Allocate the lists of pixels that several objects (or faces) cover."""
    capacity = wp.int64(lists_out.fragments.shape[0])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = lists_out.counts[i]
        start = wp.int32(0)
        if count > 0:
            if lists_out.owners[i] < 0:
                start = wp.int32(wp.min(atomic_add_aggregated(total_out, count), capacity))
            else:
                count = 0
                lists_out.counts[i] = 0
        lists_out.starts[i] = start
        lists_out.stops[i] = start + count


@wp.func
def store_fragment(lists: FragmentLists, pixel: wp.int32, face: wp.int32, depths: wp.vec2f):
    """Append a fragment to the list of its pixel."""
    slot = lists.starts[pixel] + atomic_decrement(lists.counts, pixel)
    if slot >= 0 and slot < lists.fragments.shape[0]:
        lists.fragments[slot] = wp.vec4f(
            depths[0], depths[1], wp.cast(face, wp.float32), wp.cast(pixel, wp.float32)
        )


@wp.func
def fill_pixel(
    lists: FragmentLists,
    view: ViewMap,
    f: ScreenFace,
    face: wp.int32,
    column: wp.int32,
    row: wp.int32,
):
    """Store the fragment of a face at a pixel, if it covers a pixel that has a list."""
    pixel = pixel_slot(lists, column, row)
    if lists.owners[pixel] < 0:
        centre = centre_of(column, row)
        if covers(f, centre, view):
            store_fragment(lists, pixel, face, pixel_depths(f, centre, view))


@wp.func
def count_face(lists: FragmentLists, view: ViewMap, face: wp.int32, owner: wp.int32):
    """Count the fragments of a face."""
    box = lists.screen.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_own_screen_face(lists.screen.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                if covers(f, centre_of(column, row), view):
                    count_fragment(lists, pixel_slot(lists, column, row), face, owner)


@wp.func
def fill_face(lists: FragmentLists, view: ViewMap, face: wp.int32):
    """Store the fragments of a face."""
    box = lists.screen.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_screen_face(lists.screen.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                fill_pixel(lists, view, f, face, column, row)


@wp.kernel
def draw_faces_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    object_of: wp.array[wp.int32],
    counting: wp.bool,
    # out
    lists_out: FragmentLists,
):
    """Count or store fragments, one thread per face."""
    view = views[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if counting:
            count_face(lists_out, view, i, object_of[i])
        else:
            fill_face(lists_out, view, i)
