"""Fragments as CUDA makes them: a thread for each small face, and for each pixel of larger ones.

Larger faces are listed by blocks; those of many blocks by a team of threads.
"""

import warp as wp

from abut.core.pair_queue import (
    PairQueue,
    pack_pair,
    push_pair,
    queue_size,
    team_stop,
    unpack_pair,
)
from abut.visibility.cover import AREA, BLOCK, centre_of, covers, touches_block
from abut.visibility.fragment import FaceView, load_fresh_view, load_view
from abut.visibility.fragment_lists import (
    Canvas,
    count_face,
    count_fragment,
    fill_face,
    fill_pixel,
    slot_of,
)
from abut.visibility.setup import area_of, count_shown, set_up
from abut.visibility.state import BOTH, Primitives, primitive_of
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FEW = wp.constant(8)  # blocks that one thread may list
SMALL = wp.constant(wp.int64(16))  # pixels of a face that one thread looks at
TEAM = wp.constant(32)  # threads that list those of a larger face
ITEM_BITS = wp.constant(wp.vec2i(31, 31))


@wp.struct
class Items:
    """What threads on CUDA work on: blocks, faces of many blocks yet to be listed, small faces."""

    blocks: PairQueue
    large: PairQueue
    small: PairQueue


@wp.func
def blocks_of(box: wp.vec4i):
    """(columns, rows) of blocks that cover a box; (0, 0) for an empty one."""
    wide = wp.max(box[2] - box[0] + BLOCK, 0) / BLOCK
    tall = wp.max(box[3] - box[1] + BLOCK, 0) / BLOCK
    return wp.vec2i(wp.where(tall > 0, wide, 0), wp.where(wide > 0, tall, 0))


@wp.func
def item_pixel(box: wp.vec4i, block: wp.int32, lane: wp.int32):
    """(column, row) of a pixel of a block; the row is -1 outside the box."""
    wide = blocks_of(box)[0]
    column = box[0] + (block % wide) * BLOCK + lane % BLOCK
    row = box[1] + (block / wide) * BLOCK + lane / BLOCK
    if column > box[2] or row > box[3]:
        row = -1
    return wp.vec2i(column, row)


@wp.func
def list_block(
    blocks: PairQueue, f: FaceView, view: ViewMap, box: wp.vec4i, face: wp.int32, k: wp.int32
):
    """List the k-th block of a face's box, if the face comes to it."""
    wide = blocks_of(box)[0]
    column = box[0] + (k % wide) * BLOCK
    row = box[1] + (k / wide) * BLOCK
    if touches_block(f, column, row, view):
        push_pair(blocks, pack_pair(0, face, k, ITEM_BITS))


@wp.func
def list_blocks(lists: Items, f: FaceView, view: ViewMap, box: wp.vec4i, face: wp.int32):
    """List the blocks of a face; where there are many, leave it to a team of threads."""
    blocks = blocks_of(box)
    count = blocks[0] * blocks[1]
    if count > FEW:
        push_pair(lists.large, wp.int64(face))
    else:
        for k in range(count):
            list_block(lists.blocks, f, view, box, face, k)


@wp.kernel
def setup_items_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    primitives: Primitives,
    views: wp.array[ViewMap],
    shown: wp.int32,
    row: wp.int32,
    # out
    canvas_out: Canvas,
    counters_out: wp.array[wp.int64],
    area_out: wp.array[wp.int64],
    lists_out: Items,
):
    """Map every face that is still there; count small ones at once, list blocks of others."""
    view = views[shown]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] != BOTH:
            box = set_up(canvas_out.shown, view, points, faces[i], i)
            area += area_of(box)
            seen += wp.int64(1)
            if area_of(box) <= SMALL:
                push_pair(lists_out.small, wp.int64(i))
                count_face(canvas_out, view, i, primitives.object_of[i])
            else:
                list_blocks(lists_out, load_fresh_view(canvas_out.shown.rows, i), view, box, i)
    count_shown(canvas_out.shown, row, seen, area, counters_out, area_out)


@wp.kernel
def list_large_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    canvas: Canvas,
    large: PairQueue,
    # out
    blocks_out: PairQueue,
):
    """The blocks of large faces, each listed by a team of threads."""
    view = views[shown]
    stop = team_stop(large, TEAM, span[1])
    for worker in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[worker / TEAM])
        box = canvas.shown.boxes[face]
        f = load_view(canvas.shown.rows, face)
        blocks = blocks_of(box)
        for k in range(worker % TEAM, blocks[0] * blocks[1], TEAM):
            list_block(blocks_out, f, view, box, face, k)


@wp.kernel
def count_items_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    items: PairQueue,
    object_of: wp.array[wp.int32],
    # out
    canvas_out: Canvas,
):
    """Count fragments; a thread for each pixel of each block."""
    view = views[shown]
    lane = (span[0] + wp.tid()) % AREA
    for i in range((span[0] + wp.tid()) / AREA, queue_size(items), span[2] / AREA):
        item = unpack_pair(items.keys[i], ITEM_BITS)
        at = item_pixel(canvas_out.shown.boxes[item[1]], item[2], lane)
        if at[1] >= 0:
            f = load_view(canvas_out.shown.rows, item[1])
            if covers(f, centre_of(at[0], at[1]), view):
                pixel = slot_of(canvas_out, at[0], at[1])
                count_fragment(canvas_out, pixel, item[1], object_of[item[1]])


@wp.kernel
def fill_items_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    lists: Items,
    # out
    canvas_out: Canvas,
):
    """Make fragments; a thread for each small face, and for each pixel of each block."""
    view = views[shown]
    for k in range(span[0] + wp.tid(), queue_size(lists.small), span[2]):
        fill_face(canvas_out, view, wp.int32(lists.small.keys[k]))
    lane = (span[0] + wp.tid()) % AREA
    for i in range((span[0] + wp.tid()) / AREA, queue_size(lists.blocks), span[2] / AREA):
        item = unpack_pair(lists.blocks.keys[i], ITEM_BITS)
        at = item_pixel(canvas_out.shown.boxes[item[1]], item[2], lane)
        if at[1] >= 0:
            f = load_view(canvas_out.shown.rows, item[1])
            fill_pixel(canvas_out, view, f, item[1], at[0], at[1])
