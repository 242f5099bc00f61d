"""Tile bins: the tile fragments of all faces, listed and tested per tile of 8 by 8 pixels.

Masks and depth intervals over the whole tile decide most pairs. For the others, depths are computed
at the pixels that two tile fragments share; none are stored. Tiles serve views whose tiles hold few
faces; fragment_lists serves the others.
"""

import warp as wp

from abut.core.atomics import (
    atomic_add_aggregated,
    atomic_add_uniform,
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
from abut.visibility.coverage import BLOCK, pixel_depths, touches_block
from abut.visibility.screen_faces import ScreenFaces, load_screen_face
from abut.visibility.settings import ViewMap
from abut.visibility.state import (
    COLUMNS,
    FRAGMENTS,
    NONE,
    OcclusionTest,
    Primitives,
    depths_occlude,
    mark_occluded,
    may_occlude,
    occluding_passes,
    open_passes,
    primitive_of,
)
from abut.visibility.tile_fragment import (
    EMPTY,
    LOWEST,
    count_bits,
    lowest_bit_index,
    pixel_centre,
    tile_depths,
    tile_mask,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_PER_TILE = wp.constant(2048)  # tile fragments; beyond, fragment lists are faster
FEW_TILES = wp.constant(8)  # tiles of a face that one thread bins
TEAM = wp.constant(32)  # threads that bin a larger face
ENTRY_BITS = wp.constant(wp.vec2i(31, 31))


@wp.struct
class TileBins:
    """Tile fragments of each tile. ``starts`` has one entry more than there are tiles."""

    screen: ScreenFaces
    counts: wp.array[wp.int32]  # tile fragments that are not stored yet
    owners: wp.array[wp.int32]  # object (or face) that touches each tile, see ``atomic_set_owner``
    starts: wp.array[wp.int32]
    masks: wp.array[wp.uint64]
    depths: wp.array[wp.vec2f]
    places: wp.array[wp.vec2i]  # face and tile
    row_tiles: wp.int32
    within: wp.bool  # faces are distinguished, not only objects


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
def bin_to_tile(
    tiles: TileBins,
    entries: PairQueue,
    view: ViewMap,
    around: wp.vec4i,
    face: wp.int32,
    k: wp.int32,
    owner: wp.int32,
):
    """Add a face to the k-th tile of its box, if it touches it."""
    column = around[0] + k % around[2]
    row = around[1] + k / around[2]
    f = load_screen_face(tiles.screen.rows, face)
    if touches_block(f, column * BLOCK, row * BLOCK, view):
        tile = row * tiles.row_tiles + column
        atomic_increment(tiles.counts, tile)
        atomic_set_owner(tiles.owners, tile, owner + 1)
        push_pair(entries, pack_pair(0, tile, face, ENTRY_BITS))


@wp.kernel
def bin_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    object_of: wp.array[wp.int32],
    # out
    tiles_out: TileBins,
    entries_out: PairQueue,  # (tile, face)
    large_out: PairQueue,
):
    """Bin faces of few tiles; queue the others."""
    view = views[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        around = tile_box(tiles_out.screen.boxes[i])
        count = around[2] * around[3]
        if count > FEW_TILES:
            store_pair(large_out, atomic_add_aggregated(large_out.count, 1), wp.int64(i))
        else:
            owner = wp.where(tiles_out.within, i, object_of[i])
            for k in range(count):
                bin_to_tile(tiles_out, entries_out, view, around, i, k, owner)


@wp.kernel
def bin_large_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    object_of: wp.array[wp.int32],
    large: PairQueue,
    # out
    tiles_out: TileBins,
    entries_out: PairQueue,
):
    """Bin faces of many tiles, one team of threads per face."""
    view = views[0]
    stop = team_stop(large, TEAM, span[1])
    for item in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[item / TEAM])
        around = tile_box(tiles_out.screen.boxes[face])
        owner = wp.where(tiles_out.within, face, object_of[face])
        for k in range(item % TEAM, around[2] * around[3], TEAM):
            bin_to_tile(tiles_out, entries_out, view, around, face, k, owner)


@wp.kernel
def drop_uncontested_kernel(
    # in
    span: wp.vec3i,
    # out
    tiles_out: TileBins,
):
    """Set the count of tiles that only one object (or face) touches to zero."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if tiles_out.owners[i] >= 0:
            tiles_out.counts[i] = 0


@wp.kernel
def tile_fragments_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    entries: PairQueue,
    # out
    tiles_out: TileBins,
):
    """Store the tile fragments of tiles that several objects (or faces) touch."""
    view = views[0]
    for i in range(span[0] + wp.tid(), queue_stop(entries, span[1]), span[2]):
        entry = unpack_pair(entries.keys[i], ENTRY_BITS)
        tile = entry[1]
        face = entry[2]
        if tiles_out.owners[tile] < 0:
            slot = tiles_out.starts[tile] + atomic_decrement(tiles_out.counts, tile)
            if slot >= 0 and slot < tiles_out.masks.shape[0]:
                f = load_screen_face(tiles_out.screen.rows, face)
                column = (tile % tiles_out.row_tiles) * BLOCK
                row = (tile / tiles_out.row_tiles) * BLOCK
                box = tiles_out.screen.boxes[face]
                tiles_out.masks[slot] = tile_mask(f, box, column, row, view)
                tiles_out.depths[slot] = tile_depths(f, column, row, view)
                tiles_out.places[slot] = wp.vec2i(face, tile)


@wp.func
def fragments_occlude(
    tiles: TileBins,
    view: ViewMap,
    test: OcclusionTest,
    place: wp.vec2i,
    other: wp.int32,
    shared: wp.uint64,
):
    """Whether another face occludes the face at ``place`` at one of the shared pixels."""
    column = (place[1] % tiles.row_tiles) * BLOCK
    row = (place[1] / tiles.row_tiles) * BLOCK
    f = load_screen_face(tiles.screen.rows, place[0])
    g = load_screen_face(tiles.screen.rows, other)
    found = wp.bool(False)
    left = wp.uint64(shared)
    while left != EMPTY and not found:
        centre = pixel_centre(column, row, lowest_bit_index(left))
        left = left & (left - LOWEST)
        mine = pixel_depths(f, centre, view)
        if mine[0] <= mine[1]:
            found = depths_occlude(test, mine, pixel_depths(g, centre, view))
    return found


@wp.func
def test_tile_fragment(
    tiles: TileBins, view: ViewMap, test: OcclusionTest, primitives: Primitives, slot: wp.int32
):
    """Mark the primitive of a tile fragment where another one of its tile occludes it."""
    place = tiles.places[slot]
    face = place[0]
    primitive = primitive_of(primitives, face)
    mask = tiles.masks[slot]
    mine = tiles.depths[slot]
    left = open_passes(test, primitives, primitive)
    in_order = view.reach[0] == wp.float32(0.0) and not test.free
    k = tiles.starts[place[1]]
    stop = tiles.starts[place[1] + 1]
    while left != NONE and k < stop:
        shared = mask & tiles.masks[k]
        if shared != EMPTY and depths_occlude(test, mine, tiles.depths[k]):
            other = tiles.places[k][0]
            occluded = occluding_passes(test, primitives, face, other) & left
            if occluded != NONE and may_occlude(test, primitives.object_of, face, other):
                met = in_order and tiles.depths[k][1] < mine[0]  # at every shared pixel
                if not met:
                    met = fragments_occlude(tiles, view, test, place, other, shared)
                if met:
                    mark_occluded(primitives, primitive, occluded)
                    left = left & ~occluded
        k += 1


@wp.kernel
def test_tiles_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    tiles: TileBins,
    test: OcclusionTest,
    entries: wp.array[wp.int64],
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
    overfull_out: wp.array[wp.int64],
):
    """Test every tile fragment, one thread each."""
    view = views[0]
    seen = wp.int64(0)
    overfull = wp.int64(0)
    stop = wp.int32(0)
    if entries[0] <= wp.int64(tiles.masks.shape[0]):  # else the host grows the bins and runs again
        stop = wp.min(span[1], tiles.starts[tiles.starts.shape[0] - 1])
    for slot in range(span[0] + wp.tid(), stop, span[2]):
        tile = tiles.places[slot][1]
        if tiles.starts[tile + 1] - tiles.starts[tile] > MOST_PER_TILE:
            overfull += wp.int64(1)
        elif tiles.masks[slot] != EMPTY:
            seen += wp.int64(count_bits(tiles.masks[slot]))
            test_tile_fragment(tiles, view, test, primitives_out, slot)
    atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, seen)
    atomic_add_uniform(overfull_out, 0, overfull)
