"""Occlusion tests between the tile fragments of a tile.

Masks and depth intervals over the whole tile decide most pairs. For the others, depths are computed
at the pixels that two tile fragments share; none are stored.
"""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.coverage import BLOCK
from abut.visibility.depth_interval import pixel_depths
from abut.visibility.occlusion import (
    NONE,
    OcclusionTest,
    depths_occlude,
    mark_occluded,
    may_occlude,
    occluding_passes,
    open_passes,
)
from abut.visibility.screen_faces import load_screen_face
from abut.visibility.state import COLUMNS, FRAGMENTS, Primitives, primitive_of
from abut.visibility.tile_fragment import (
    EMPTY,
    LOWEST,
    count_bits,
    lowest_bit_index,
    pixel_centre,
)
from abut.visibility.tiles import TileBins
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_PER_TILE = wp.constant(2048)  # tile fragments; beyond, fragment lists are faster


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
    view_index: wp.int32,
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
    view = views[view_index]
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
