"""Faces binned to tiles of 8 by 8 pixels: a patch of each in every tile that it comes to.

For views where tiles do not hold too many faces; see canvas for the others.
"""

import warp as wp

from abut.core.atomics import (
    atomic_add_aggregated,
    atomic_decrement,
    atomic_increment,
    atomic_set_owner,
)
from abut.core.pair_queue import (
    PairQueue,
    pack_pair,
    push_pair,
    queue_stop,
    store_pair,
    team_stop,
    unpack_pair,
)
from abut.visibility.cover import BLOCK, touches_block
from abut.visibility.fragment import load_view
from abut.visibility.patch import patch_depths, patch_mask
from abut.visibility.setup import Shown
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FEW_TILES = wp.constant(8)  # of a face, that one thread bins
TEAM = wp.constant(32)  # threads that bin a larger face
VISIT_BITS = wp.constant(wp.vec2i(31, 31))


@wp.struct
class Tiles:
    """Patches of each tile. ``starts`` has one entry more than there are tiles."""

    shown: Shown
    counts: wp.array[wp.int32]  # patches that have no place yet
    owners: wp.array[wp.int32]  # who comes to each tile, see ``atomic_set_owner``
    starts: wp.array[wp.int32]
    masks: wp.array[wp.uint64]
    depths: wp.array[wp.vec2f]
    places: wp.array[wp.vec2i]  # face and tile
    wide: wp.int32  # tiles in a row
    within: wp.bool  # faces are told apart, not only objects


@wp.func
def tile_box(box: wp.vec4i):
    """(first column, first row, columns, rows) of the tiles of a box; none for an empty one."""
    out = wp.vec4i(0, 0, 0, 0)
    if box[2] >= box[0] and box[3] >= box[1]:
        column = box[0] / BLOCK
        row = box[1] / BLOCK
        out = wp.vec4i(column, row, box[2] / BLOCK - column + 1, box[3] / BLOCK - row + 1)
    return out


@wp.func
def visit_tile(
    tiles: Tiles,
    visits: PairQueue,
    view: ViewMap,
    around: wp.vec4i,
    face: wp.int32,
    k: wp.int32,
    who: wp.int32,
):
    """Note that a face comes to the k-th tile of its box, if it does."""
    column = around[0] + k % around[2]
    row = around[1] + k / around[2]
    f = load_view(tiles.shown.rows, face)
    if touches_block(f, column * BLOCK, row * BLOCK, view):
        tile = row * tiles.wide + column
        atomic_increment(tiles.counts, tile)
        atomic_set_owner(tiles.owners, tile, who + 1)
        push_pair(visits, pack_pair(0, tile, face, VISIT_BITS))


@wp.kernel
def bin_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    object_of: wp.array[wp.int32],
    # out
    tiles_out: Tiles,
    visits_out: PairQueue,  # (tile, face)
    large_out: PairQueue,
):
    """Bin faces of few tiles; note the others."""
    view = views[shown]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        around = tile_box(tiles_out.shown.boxes[i])
        count = around[2] * around[3]
        if count > FEW_TILES:
            store_pair(large_out, atomic_add_aggregated(large_out.count, 1), wp.int64(i))
        else:
            who = wp.where(tiles_out.within, i, object_of[i])
            for k in range(count):
                visit_tile(tiles_out, visits_out, view, around, i, k, who)


@wp.kernel
def bin_large_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    object_of: wp.array[wp.int32],
    large: PairQueue,
    # out
    tiles_out: Tiles,
    visits_out: PairQueue,
):
    """Bin faces of many tiles, each by a team of threads."""
    view = views[shown]
    stop = team_stop(large, TEAM, span[1])
    for item in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[item / TEAM])
        around = tile_box(tiles_out.shown.boxes[face])
        who = wp.where(tiles_out.within, face, object_of[face])
        for k in range(item % TEAM, around[2] * around[3], TEAM):
            visit_tile(tiles_out, visits_out, view, around, face, k, who)


@wp.kernel
def contested_kernel(
    # in
    span: wp.vec3i,
    # out
    tiles_out: Tiles,
):
    """No room for tiles to which only one comes."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if tiles_out.owners[i] >= 0:
            tiles_out.counts[i] = 0


@wp.kernel
def patch_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    visits: PairQueue,
    # out
    tiles_out: Tiles,
):
    """Make the patches of tiles to which several come."""
    view = views[shown]
    for i in range(span[0] + wp.tid(), queue_stop(visits, span[1]), span[2]):
        visit = unpack_pair(visits.keys[i], VISIT_BITS)
        tile = visit[1]
        face = visit[2]
        if tiles_out.owners[tile] < 0:
            slot = tiles_out.starts[tile] + atomic_decrement(tiles_out.counts, tile)
            if slot >= 0 and slot < tiles_out.masks.shape[0]:
                f = load_view(tiles_out.shown.rows, face)
                column = (tile % tiles_out.wide) * BLOCK
                row = (tile / tiles_out.wide) * BLOCK
                box = tiles_out.shown.boxes[face]
                tiles_out.masks[slot] = patch_mask(f, box, column, row, view)
                tiles_out.depths[slot] = patch_depths(f, column, row, view)
                tiles_out.places[slot] = wp.vec2i(face, tile)
