"""Fragments of all faces of a view, pixel by pixel: counted, given room, filled in.

Only pixels to which several come get any room: at the others nothing hides anything. On CUDA a
thread looks at one pixel of one block of a face, on the CPU at one face.
"""

import warp as wp

from abut.atomics import add_one, claim, gain, reserve, take_one
from abut.pairs import (
    PairQueue,
    pack_pair,
    push_pair,
    queue_stop,
    unpack_pair,
)
from abut.visibility.fragment import (
    FaceView,
    depths_over,
    load_fresh_view,
    load_view,
    map_point,
    sample,
    store_face,
    touches,
)
from abut.visibility.state import BOTH, COLUMNS, FACES, Primitives, primitive_of
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BLOCK = wp.constant(8)  # pixels along each side
AREA = wp.constant(64)
HALF_BLOCK = wp.constant(wp.float32(3.5))  # from the centre of a block to those of its corners
BLOCK_ERROR = wp.constant(wp.float32(2.0**-19))  # of the viewport's width, see the design note
FEW = wp.constant(8)  # blocks that one thread may list
SMALL = wp.constant(wp.int64(16))  # pixels of a face that one thread looks at
TEAM = wp.constant(32)  # threads that list those of a larger face
EVERY = wp.constant(2147483647)
ITEM_BITS = wp.constant(wp.vec2i(31, 31))


@wp.struct
class Canvas:
    """Where fragments go."""

    rows: wp.array[wp.vec4f]
    boxes: wp.array[wp.vec4i]  # first column, first row, last column, last row of each face
    counts: wp.array[wp.int32]  # fragments per pixel that have no place yet
    owners: wp.array[wp.int32]  # who comes to each pixel, see ``claim``
    starts: wp.array[wp.int32]  # of each pixel's fragments
    stops: wp.array[wp.int32]
    fragments: wp.array[wp.vec4f]  # near, far, face, pixel
    band: wp.vec2i  # first row, and the one after the last
    tiles: wp.int32  # blocks of pixels in a row of them: pixels of a block lie together
    within: wp.bool  # faces are told apart, not only objects


@wp.struct
class Items:
    """What threads on CUDA work on: blocks, faces of many blocks yet to be listed, small faces."""

    blocks: PairQueue
    large: PairQueue
    small: PairQueue


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
def blocks_of(box: wp.vec4i):
    """(columns, rows) of blocks that cover a box; (0, 0) for an empty one."""
    wide = wp.max(box[2] - box[0] + BLOCK, 0) / BLOCK
    tall = wp.max(box[3] - box[1] + BLOCK, 0) / BLOCK
    return wp.vec2i(wp.where(tall > 0, wide, 0), wp.where(wide > 0, tall, 0))


@wp.func
def set_up(
    canvas: Canvas,
    view: ViewMap,
    points: wp.array[wp.vec3d],
    corners: wp.vec3i,
    face: wp.int32,
):
    """Write down how a view shows a face; returns its box."""
    p = map_point(view, points[corners[0]])
    q = map_point(view, points[corners[1]])
    r = map_point(view, points[corners[2]])
    store_face(canvas.rows, face, p, q, r)
    box = box_of(p, q, r, view, canvas.band)
    canvas.boxes[face] = box
    return box


@wp.func
def area_of(box: wp.vec4i):
    """Number of pixels of a box."""
    return wp.int64(wp.max(box[2] - box[0] + 1, 0) * wp.max(box[3] - box[1] + 1, 0))


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
    canvas_out: Canvas,
    counters_out: wp.array[wp.int64],
    area_out: wp.array[wp.int64],
):
    """Corners and box of every face that is still there; how many pixels the boxes have."""
    view = views[shown]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] == BOTH:
            canvas_out.boxes[i] = wp.vec4i(0, 0, -1, -1)
        else:
            area += area_of(set_up(canvas_out, view, points, faces[i], i))
            seen += wp.int64(1)
    if canvas_out.band[0] > 0:
        seen = wp.int64(0)
    gain(counters_out, row * COLUMNS + FACES, seen)
    gain(area_out, 0, area)


@wp.func
def centre_of(column: wp.int32, row: wp.int32):
    """Centre of a pixel."""
    return wp.vec2f(wp.float32(column) + wp.float32(0.5), wp.float32(row) + wp.float32(0.5))


@wp.func
def slot_of(canvas: Canvas, column: wp.int32, row: wp.int32):
    """Where a pixel of the band lies in memory."""
    y = row - canvas.band[0]
    tile = (y / BLOCK) * canvas.tiles + column / BLOCK
    return tile * AREA + (y % BLOCK) * BLOCK + column % BLOCK


@wp.func
def count_fragment(canvas: Canvas, pixel: wp.int32, face: wp.int32, owner: wp.int32):
    """A face comes to a pixel."""
    add_one(canvas.counts, pixel)
    who = owner
    if canvas.within:
        who = face
    claim(canvas.owners, pixel, who + 1)


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
                start = wp.int32(wp.min(reserve(total_out, count), capacity))
            else:
                count = 0
                canvas_out.counts[i] = 0
        canvas_out.starts[i] = start
        canvas_out.stops[i] = start + count


@wp.func
def touches_block(f: FaceView, column: wp.int32, row: wp.int32, view: ViewMap):
    """May a face have a fragment in the block that begins at this pixel?"""
    half = HALF_BLOCK + wp.float32(view.pixels + BLOCK) * BLOCK_ERROR
    middle = wp.vec2f(wp.float32(column) + wp.float32(4.0), wp.float32(row) + wp.float32(4.0))
    return touches(f, middle, wp.vec2f(half + view.reach[0], half + view.reach[1]))


@wp.func
def covers(f: FaceView, centre: wp.vec2f, view: ViewMap):
    """Has the face a fragment at this pixel of its box?"""
    found = wp.bool(False)
    if view.reach[0] > wp.float32(0.0):
        found = touches(f, centre, view.reach)
    else:
        found, _depth = sample(f, centre)
    return found


@wp.func
def place_fragment(canvas: Canvas, pixel: wp.int32, face: wp.int32, depths: wp.vec2f):
    """Put a fragment behind those that its pixel has already."""
    slot = canvas.starts[pixel] + take_one(canvas.counts, pixel)
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
def fill_face(canvas: Canvas, view: ViewMap, face: wp.int32):
    """Make the fragments of a face."""
    box = canvas.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_view(canvas.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                fill_pixel(canvas, view, f, face, column, row)


@wp.func
def item_pixel(box: wp.vec4i, block: wp.int32, lane: wp.int32):
    """(column, row) of a pixel of a block; the row is -1 outside the box."""
    wide = blocks_of(box)[0]
    column = box[0] + (block % wide) * BLOCK + lane % BLOCK
    row = box[1] + (block / wide) * BLOCK + lane / BLOCK
    if column > box[2] or row > box[3]:
        row = -1
    return wp.vec2i(column, row)


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
    for i in range((span[0] + wp.tid()) / AREA, queue_stop(items, EVERY), span[2] / AREA):
        item = unpack_pair(items.keys[i], ITEM_BITS)
        at = item_pixel(canvas_out.boxes[item[1]], item[2], lane)
        if at[1] >= 0:
            f = load_view(canvas_out.rows, item[1])
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
    for k in range(span[0] + wp.tid(), queue_stop(lists.small, EVERY), span[2]):
        fill_face(canvas_out, view, wp.int32(lists.small.keys[k]))
    lane = (span[0] + wp.tid()) % AREA
    for i in range((span[0] + wp.tid()) / AREA, queue_stop(lists.blocks, EVERY), span[2] / AREA):
        item = unpack_pair(lists.blocks.keys[i], ITEM_BITS)
        at = item_pixel(canvas_out.boxes[item[1]], item[2], lane)
        if at[1] >= 0:
            f = load_view(canvas_out.rows, item[1])
            fill_pixel(canvas_out, view, f, item[1], at[0], at[1])


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
    stop = wp.min(span[1], queue_stop(large, EVERY / TEAM) * TEAM)
    for worker in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[worker / TEAM])
        box = canvas.boxes[face]
        f = load_view(canvas.rows, face)
        blocks = blocks_of(box)
        for k in range(worker % TEAM, blocks[0] * blocks[1], TEAM):
            list_block(blocks_out, f, view, box, face, k)


@wp.func
def count_face(canvas: Canvas, view: ViewMap, face: wp.int32, owner: wp.int32):
    """Count the fragments of a face."""
    box = canvas.boxes[face]
    if box[2] >= box[0] and box[3] >= box[1]:
        f = load_fresh_view(canvas.rows, face)
        for row in range(box[1], box[3] + 1):
            for column in range(box[0], box[2] + 1):
                if covers(f, centre_of(column, row), view):
                    count_fragment(canvas, slot_of(canvas, column, row), face, owner)


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
    """The same; small faces are counted at once, blocks of others listed."""
    view = views[shown]
    seen = wp.int64(0)
    area = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if primitives.state[primitive_of(primitives, i)] != BOTH:
            box = set_up(canvas_out, view, points, faces[i], i)
            area += area_of(box)
            seen += wp.int64(1)
            if area_of(box) <= SMALL:
                push_pair(lists_out.small, wp.int64(i))
                count_face(canvas_out, view, i, primitives.object_of[i])
            else:
                list_blocks(lists_out, load_fresh_view(canvas_out.rows, i), view, box, i)
    if canvas_out.band[0] > 0:
        seen = wp.int64(0)
    gain(counters_out, row * COLUMNS + FACES, seen)
    gain(area_out, 0, area)


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
