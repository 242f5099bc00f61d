"""Pairs of faces in the views: two faces may meet only where they overlap in depth in every view.

The pixels that both faces may cover are searched as a quadtree, from their common box down to
single pixels. Intervals over a block of pixels are rounded outwards like those of a pixel, see
design/visibility.md.
"""

import warp as wp

from abut.core.pair_queue import PairQueue, pack_pair, push_pair, queue_stop, unpack_pair
from abut.visibility.coverage import BLOCK, BLOCK_ERROR, depths_over, touches
from abut.visibility.screen_faces import ScreenFace, map_point, pixel_box, screen_face_of
from abut.visibility.settings import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_BLOCKS = wp.constant(1024)  # of a pair and view; beyond, the pair counts as overlapping
INDEX_BITS = wp.constant(wp.vec2i(31, 31))  # of keys of survivors' indices


@wp.func
def face_in_view(view: ViewMap, corners: wp.array2d[wp.vec3d], i: wp.int32):
    """(A face in screen space, the pixels of its box)."""
    p = map_point(view, corners[i, 0])
    q = map_point(view, corners[i, 1])
    r = map_point(view, corners[i, 2])
    return screen_face_of(p, q, r), pixel_box(p, q, r, view, wp.vec2i(0, view.pixels))


@wp.func
def common_box(a: wp.vec4i, b: wp.vec4i):
    """Pixels, or tiles, that two boxes (first column, first row, last column, last row) share."""
    return wp.vec4i(wp.max(a[0], b[0]), wp.max(a[1], b[1]), wp.min(a[2], b[2]), wp.min(a[3], b[3]))


@wp.func
def overlap_in_block(f: ScreenFace, g: ScreenFace, block: wp.vec4i, view: ViewMap):
    """Whether two faces may overlap in depth within a block of pixels."""
    half = wp.float32(0.5)
    wide = wp.float32(block[2] - block[0]) * half
    tall = wp.float32(block[3] - block[1]) * half
    centre = wp.vec2f(
        wp.float32(block[0]) + half + wide,
        wp.float32(block[1]) + half + tall,
    )
    reach = view.reach
    if wide + tall > wp.float32(0.0):
        more = wp.float32(view.pixels + BLOCK) * BLOCK_ERROR
        reach = wp.vec2f(reach[0] + wide + more, reach[1] + tall + more)
    met = wp.bool(False)
    if touches(f, centre, reach) and touches(g, centre, reach):
        a = depths_over(f, centre, reach, view.slack)
        b = depths_over(g, centre, reach, view.slack)
        met = a[0] <= a[1] and b[0] <= b[1] and a[0] <= b[1] and b[0] <= a[1]
    return met


@wp.func
def overlap_in_view(f: ScreenFace, g: ScreenFace, box: wp.vec4i, view: ViewMap):
    """Whether two faces may overlap in depth at a pixel of a box; True for too many blocks."""
    wide = box[2] - box[0]
    tall = box[3] - box[1]
    root = wp.int32(1)
    while root <= wp.max(wide, tall):
        root = root * 2
    size = wp.int32(root)
    x = wp.int32(0)
    y = wp.int32(0)
    blocks = wp.int32(0)
    found = wp.bool(False)
    if wide < 0 or tall < 0:
        size = root * 2
    while size <= root and not found:
        block = wp.vec4i(
            box[0] + x,
            box[1] + y,
            wp.min(box[0] + x + size - 1, box[2]),
            wp.min(box[1] + y + size - 1, box[3]),
        )
        blocks += 1
        if x <= wide and y <= tall and overlap_in_block(f, g, block, view):
            single = block[0] == block[2] and block[1] == block[3]
            found = single or blocks >= MOST_BLOCKS
            size = size / 2  # into the first quarter
        else:
            while size < root and (x & size) != 0 and (y & size) != 0:
                x -= size
                y -= size
                size = size * 2
            if size >= root:
                size = root * 2  # done
            elif (x & size) == 0:
                x += size
            else:
                x -= size
                y += size
    return found


@wp.kernel
def pairs_in_views_kernel(
    # in
    span: wp.vec3i,
    near: PairQueue,
    corners: wp.array2d[wp.vec3d],
    boxes: wp.array2d[wp.vec4f],
    views: wp.array[ViewMap],
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Push the keys of faces that overlap in depth in every view, of pairs of survivors."""
    for i in range(span[0] + wp.tid(), queue_stop(near, span[1]), span[2]):
        pair = unpack_pair(near.keys[i], INDEX_BITS)
        seen = wp.int32(0)
        while seen < views.shape[0]:
            view = views[seen]
            f, around_f = face_in_view(view, corners, pair[1])
            g, around_g = face_in_view(view, corners, pair[2])
            if overlap_in_view(f, g, common_box(around_f, around_g), view):
                seen += 1
            else:
                seen = views.shape[0] + 1
        if seen == views.shape[0]:
            a = wp.cast(boxes[pair[1], 0][3], wp.int32)
            b = wp.cast(boxes[pair[2], 0][3], wp.int32)
            push_pair(pairs_out, pack_pair(0, wp.min(a, b), wp.max(a, b), bits))
