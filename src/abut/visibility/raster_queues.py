"""Rasterisation on CUDA: one thread per small face, and per pixel of larger faces.

Larger faces are divided into blocks; a team of threads lists the blocks of a face that has many.
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
from abut.visibility.coverage import AREA, BLOCK, centre_of, covers, touches_block
from abut.visibility.fragment_lists import (
    FragmentLists,
    count_face,
    count_fragment,
    fill_face,
    fill_pixel,
    pixel_slot,
)
from abut.visibility.screen_faces import (
    ScreenFace,
    add_face_counts,
    box_area,
    load_own_screen_face,
    load_screen_face,
    set_up_face,
)
from abut.visibility.settings import ViewMap
from abut.visibility.state import BOTH, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FEW = wp.constant(8)  # blocks of a face that one thread lists
SMALL = wp.constant(wp.int64(16))  # pixels of the box of a face that one thread rasterises
TEAM = wp.constant(32)  # threads that list the blocks of a larger face
BLOCK_BITS = wp.constant(wp.vec2i(31, 31))


@wp.struct
class RasterQueues:
    """Work of the raster kernels: (face, block) pairs, faces of many blocks, small faces."""

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
def block_pixel(box: wp.vec4i, block: wp.int32, lane: wp.int32):
    """(column, row) of a pixel of a block; the row is -1 outside the box."""
    wide = blocks_of(box)[0]
    column = box[0] + (block % wide) * BLOCK + lane % BLOCK
    row = box[1] + (block / wide) * BLOCK + lane / BLOCK
    if column > box[2] or row > box[3]:
        row = -1
    return wp.vec2i(column, row)


@wp.func
def list_block(
    blocks: PairQueue, f: ScreenFace, view: ViewMap, box: wp.vec4i, face: wp.int32, k: wp.int32
):
    """List the k-th block of a face's box, if the face touches it."""
    wide = blocks_of(box)[0]
    column = box[0] + (k % wide) * BLOCK
    row = box[1] + (k / wide) * BLOCK
    if touches_block(f, column, row, view):
        push_pair(blocks, pack_pair(0, face, k, BLOCK_BITS))


@wp.func
def list_blocks(queues: RasterQueues, f: ScreenFace, view: ViewMap, box: wp.vec4i, face: wp.int32):
    """List the blocks of a face, or queue a face of many blocks for a team of threads."""
    blocks = blocks_of(box)
    count = blocks[0] * blocks[1]
    if count > FEW:
        push_pair(queues.large, wp.int64(face))
    else:
        for k in range(count):
            list_block(queues.blocks, f, view, box, face, k)


@wp.kernel
def setup_queues_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    primitives: Primitives,
    views: wp.array[ViewMap],
    row: wp.int32,
    # out
    lists_out: FragmentLists,
    counters_out: wp.array[wp.int64],
    area_out: wp.array[wp.int64],
    queues_out: RasterQueues,
):
    """Set up every face that is not pruned; count small faces, list the blocks of others."""
    view = views[0]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] != BOTH:
            box = set_up_face(lists_out.screen, view, points, faces[i], i)
            area += box_area(box)
            seen += wp.int64(1)
            if box_area(box) <= SMALL:
                push_pair(queues_out.small, wp.int64(i))
                count_face(lists_out, view, i, primitives.object_of[i])
            else:
                list_blocks(
                    queues_out, load_own_screen_face(lists_out.screen.rows, i), view, box, i
                )
    add_face_counts(lists_out.screen, row, seen, area, counters_out, area_out)


@wp.kernel
def list_large_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    lists: FragmentLists,
    large: PairQueue,
    # out
    blocks_out: PairQueue,
):
    """List the blocks of large faces, one team of threads per face."""
    view = views[0]
    stop = team_stop(large, TEAM, span[1])
    for worker in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[worker / TEAM])
        box = lists.screen.boxes[face]
        f = load_screen_face(lists.screen.rows, face)
        blocks = blocks_of(box)
        for k in range(worker % TEAM, blocks[0] * blocks[1], TEAM):
            list_block(blocks_out, f, view, box, face, k)


@wp.kernel
def count_blocks_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    blocks: PairQueue,
    object_of: wp.array[wp.int32],
    # out
    lists_out: FragmentLists,
):
    """Count fragments, one thread per pixel of each block."""
    view = views[0]
    lane = (span[0] + wp.tid()) % AREA
    for i in range((span[0] + wp.tid()) / AREA, queue_size(blocks), span[2] / AREA):
        block = unpack_pair(blocks.keys[i], BLOCK_BITS)
        at = block_pixel(lists_out.screen.boxes[block[1]], block[2], lane)
        if at[1] >= 0:
            f = load_screen_face(lists_out.screen.rows, block[1])
            if covers(f, centre_of(at[0], at[1]), view):
                pixel = pixel_slot(lists_out, at[0], at[1])
                count_fragment(lists_out, pixel, block[1], object_of[block[1]])


@wp.kernel
def fill_queues_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    queues: RasterQueues,
    # out
    lists_out: FragmentLists,
):
    """Store fragments, one thread per small face and per pixel of each block."""
    view = views[0]
    for k in range(span[0] + wp.tid(), queue_size(queues.small), span[2]):
        fill_face(lists_out, view, wp.int32(queues.small.keys[k]))
    lane = (span[0] + wp.tid()) % AREA
    for i in range((span[0] + wp.tid()) / AREA, queue_size(queues.blocks), span[2] / AREA):
        block = unpack_pair(queues.blocks.keys[i], BLOCK_BITS)
        at = block_pixel(lists_out.screen.boxes[block[1]], block[2], lane)
        if at[1] >= 0:
            f = load_screen_face(lists_out.screen.rows, block[1])
            fill_pixel(lists_out, view, f, block[1], at[0], at[1])
