"""Who is in the way of whom, tile by tile: every patch against the others of its tile.

Most are told apart by their masks or by their depths over the whole tile. Where these leave it
open, fragments are made at the pixels that two patches share; none is ever stored.
"""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.cover import BLOCK
from abut.visibility.fragment import load_view
from abut.visibility.occlusion import (
    NONE,
    Rule,
    asked_of,
    hides,
    in_the_way,
    mark_hidden,
    strangers,
)
from abut.visibility.patch import (
    EMPTY,
    LOWEST,
    count_bits,
    fragment_depths,
    lowest_bit,
    pixel_centre,
)
from abut.visibility.state import COLUMNS, FRAGMENTS, Primitives, primitive_of
from abut.visibility.tiles import Tiles
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CROWD = wp.constant(2048)  # patches of a tile beyond which lists of fragments are better


@wp.func
def fragments_meet(
    tiles: Tiles, view: ViewMap, rule: Rule, place: wp.vec2i, other: wp.int32, shared: wp.uint64
):
    """Is another face in the way of a patch's face at one of these pixels?"""
    column = (place[1] % tiles.wide) * BLOCK
    row = (place[1] / tiles.wide) * BLOCK
    f = load_view(tiles.shown.rows, place[0])
    g = load_view(tiles.shown.rows, other)
    found = wp.bool(False)
    left = wp.uint64(shared)
    while left != EMPTY and not found:
        centre = pixel_centre(column, row, lowest_bit(left))
        left = left & (left - LOWEST)
        mine = fragment_depths(f, centre, view)
        if mine[0] <= mine[1]:
            found = in_the_way(rule, mine, fragment_depths(g, centre, view))
    return found


@wp.func
def look_patch(tiles: Tiles, view: ViewMap, rule: Rule, primitives: Primitives, slot: wp.int32):
    """Mark the primitive of a patch where others of its tile hide it."""
    place = tiles.places[slot]
    face = place[0]
    primitive = primitive_of(primitives, face)
    mask = tiles.masks[slot]
    mine = tiles.depths[slot]
    left = asked_of(rule, primitives, primitive)
    in_order = view.reach[0] == wp.float32(0.0) and not rule.free
    k = tiles.starts[place[1]]
    stop = tiles.starts[place[1] + 1]
    while left != NONE and k < stop:
        shared = mask & tiles.masks[k]
        if shared != EMPTY and in_the_way(rule, mine, tiles.depths[k]):
            other = tiles.places[k][0]
            hidden = hides(rule, primitives, face, other) & left
            if hidden != NONE and strangers(rule, primitives.object_of, face, other):
                met = in_order and tiles.depths[k][1] < mine[0]  # samples, at every shared pixel
                if not met:
                    met = fragments_meet(tiles, view, rule, place, other, shared)
                if met:
                    mark_hidden(primitives, primitive, hidden)
                    left = left & ~hidden
        k += 1


@wp.kernel
def look_tiles_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    tiles: Tiles,
    rule: Rule,
    visits: wp.array[wp.int64],
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
    crowds_out: wp.array[wp.int64],
):
    """A thread for each patch."""
    view = views[shown]
    seen = wp.int64(0)
    crowds = wp.int64(0)
    stop = wp.int32(0)
    if visits[0] <= wp.int64(tiles.masks.shape[0]):  # else the host makes room and comes again
        stop = wp.min(span[1], tiles.starts[tiles.starts.shape[0] - 1])
    for slot in range(span[0] + wp.tid(), stop, span[2]):
        tile = tiles.places[slot][1]
        if tiles.starts[tile + 1] - tiles.starts[tile] > CROWD:
            crowds += wp.int64(1)
        elif tiles.masks[slot] != EMPTY:
            seen += wp.int64(count_bits(tiles.masks[slot]))
            look_patch(tiles, view, rule, primitives_out, slot)
    atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, seen)
    atomic_add_uniform(crowds_out, 0, crowds)
