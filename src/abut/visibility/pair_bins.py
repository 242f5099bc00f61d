"""Pairs of survivors whose boxes overlap and that touch one tile of a view.

Every survivor is listed with the tiles of 8 by 8 pixels that it touches; the list is sorted by
tiles. A pair is pushed by the first tile, row by row, that both touch.
"""

import warp as wp

from abut.core.pair_queue import PairQueue, pack_pair, push_pair, unpack_pair
from abut.visibility.coverage import BLOCK, touches_block
from abut.visibility.pair_filter import PairFilter, may_pair
from abut.visibility.pair_views import INDEX_BITS, common_box, face_in_view
from abut.visibility.screen_faces import ScreenFace
from abut.visibility.settings import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def tiles_of(box: wp.vec4i):
    """Tiles (first column, first row, last column, last row) of a box of pixels."""
    return wp.vec4i(box[0] / BLOCK, box[1] / BLOCK, box[2] / BLOCK, box[3] / BLOCK)


@wp.kernel
def bin_survivors_kernel(
    # in
    span: wp.vec3i,
    corners: wp.array2d[wp.vec3d],
    views: wp.array[ViewMap],
    team: wp.int32,
    # out
    entries_out: PairQueue,
):
    """List (tile, survivor), a team of threads per survivor."""
    view = views[0]
    row_tiles = view.pixels / BLOCK
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        i = item / team
        f, box = face_in_view(view, corners, i)
        if box[2] >= box[0] and box[3] >= box[1]:
            around = tiles_of(box)
            wide = around[2] - around[0] + 1
            for k in range(item % team, wide * (around[3] - around[1] + 1), team):
                column = around[0] + k % wide
                row = around[1] + k / wide
                if touches_block(f, column * BLOCK, row * BLOCK, view):
                    tile = row * row_tiles + column
                    push_pair(entries_out, pack_pair(0, tile, i, INDEX_BITS))


@wp.func
def first_common_tile(f: ScreenFace, g: ScreenFace, around: wp.vec4i, view: ViewMap):
    """The first tile, row by row, that two faces touch."""
    wide = around[2] - around[0] + 1
    found = wp.int32(-1)
    k = wp.int32(0)
    while found < 0 and k < wide * (around[3] - around[1] + 1):
        column = around[0] + k % wide
        row = around[1] + k / wide
        if touches_block(f, column * BLOCK, row * BLOCK, view):
            if touches_block(g, column * BLOCK, row * BLOCK, view):
                found = row * (view.pixels / BLOCK) + column
        k += 1
    return found


@wp.kernel
def pair_tiles_kernel(
    # in
    span: wp.vec3i,
    entries: wp.array[wp.int64],
    corners: wp.array2d[wp.vec3d],
    boxes: wp.array2d[wp.vec4f],
    views: wp.array[ViewMap],
    pairing: PairFilter,
    # out
    near_out: PairQueue,
):
    """Test each entry against the later ones of its tile."""
    view = views[0]
    count = entries.shape[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        mine = unpack_pair(entries[i], INDEX_BITS)
        step = i + 1
        while step < count:
            other = unpack_pair(entries[step], INDEX_BITS)
            if other[1] != mine[1]:
                step = count
            elif may_pair(pairing, boxes, mine[2], other[2]):
                f, box_f = face_in_view(view, corners, mine[2])
                g, box_g = face_in_view(view, corners, other[2])
                around = common_box(tiles_of(box_f), tiles_of(box_g))
                if first_common_tile(f, g, around, view) == mine[1]:
                    push_pair(near_out, pack_pair(0, mine[2], other[2], INDEX_BITS))
            step += 1
