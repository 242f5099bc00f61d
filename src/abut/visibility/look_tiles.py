"""Who is in the way of whom, tile by tile: every patch against the others of its tile.

Most are told apart by their masks or by their depths over the whole tile. Where these leave it
open, fragments are made at the pixels that two patches share, by all lanes of a warp together; none
is ever stored.
"""

import warp as wp

from abut.atomics import gain
from abut.lanes import any_lane, lane_count, lanes_where, value_of_lane
from abut.visibility.cover import BLOCK
from abut.visibility.fragment import load_view
from abut.visibility.patch import (
    EMPTY,
    LOWEST,
    bits_of_lane,
    count_bits,
    fragment_depths,
    lowest_bit,
    pixel_centre,
)
from abut.visibility.rule import (
    NONE,
    Rule,
    asked_of,
    hides,
    in_the_way,
    mark_hidden,
    strangers,
)
from abut.visibility.state import COLUMNS, FRAGMENTS, Primitives, primitive_of
from abut.visibility.tiles import Tiles
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CROWD = wp.constant(2048)  # patches of a tile beyond which lists of fragments are better
NOBODY = wp.constant(-1)


@wp.func
def next_open(
    tiles: Tiles,
    rule: Rule,
    primitives: Primitives,
    sampled: wp.bool,
    slot: wp.int32,
    start: wp.int32,
    stop: wp.int32,
    asked: wp.int32,
):
    """Pass over patches that are told apart from one, up to another that is not, or to the end.

    Returns that other, the passes in which it hides the one if fragments say so, and those in which
    nothing has hidden it yet.
    """
    face = tiles.places[slot][0]
    mask = tiles.masks[slot]
    mine = tiles.depths[slot]
    left = wp.int32(asked)
    hidden = wp.int32(NONE)
    k = wp.int32(start)
    going = wp.bool(True)
    while going and left != NONE and k < stop:
        if mask & tiles.masks[k] != EMPTY:
            depths = tiles.depths[k]
            if in_the_way(rule, mine, depths):
                other = tiles.places[k][0]
                hidden = hides(rule, primitives, face, other) & left
                if hidden != NONE and strangers(rule, primitives.object_of, face, other):
                    if sampled and not rule.free and depths[1] < mine[0]:
                        mark_hidden(primitives, primitive_of(primitives, face), hidden)
                        left = left & ~hidden
                    else:
                        going = False
        if going:
            k += 1
    if left == NONE:
        k = stop
    return k, hidden, left


@wp.func
def fragments_meet(
    tiles: Tiles, view: ViewMap, rule: Rule, slot: wp.int32, other: wp.int32, lane: wp.int32
):
    """Is a patch in the way of another at a pixel they share? Lanes look at different pixels."""
    place = tiles.places[slot]
    column = (place[1] % tiles.wide) * BLOCK
    row = (place[1] / tiles.wide) * BLOCK
    left = tiles.masks[slot] & tiles.masks[other] & bits_of_lane(lane)
    f = load_view(tiles.shown.rows, place[0])
    g = load_view(tiles.shown.rows, tiles.places[other][0])
    found = wp.bool(False)
    while left != EMPTY and not found:
        centre = pixel_centre(column, row, lowest_bit(left))
        left = left & (left - LOWEST)
        mine = fragment_depths(f, centre, view)
        if mine[0] <= mine[1]:
            found = in_the_way(rule, mine, fragment_depths(g, centre, view))
    return any_lane(found)


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
    """Lanes have a patch each, and settle together what is open."""
    view = views[shown]
    sampled = view.reach[0] == wp.float32(0.0)
    lane = wp.tid() % lane_count()
    seen = wp.int64(0)
    crowds = wp.int64(0)
    stop = wp.int32(0)
    if visits[0] <= wp.int64(tiles.masks.shape[0]):  # else the host makes room and comes again
        stop = wp.min(span[1], tiles.starts[tiles.starts.shape[0] - 1])
    for first in range(span[0] + wp.tid() - lane, stop, span[2]):
        slot = wp.min(first + lane, stop - 1)
        place = tiles.places[slot]
        k = tiles.starts[place[1]]
        last = tiles.starts[place[1] + 1]
        primitive = primitive_of(primitives_out, place[0])
        left = asked_of(rule, primitives_out, primitive)
        if first + lane < stop:
            seen += wp.int64(count_bits(tiles.masks[slot]))
            crowds += wp.int64(last - k > CROWD)
        else:
            left = NONE
        if last - k > CROWD or tiles.masks[slot] == EMPTY:
            left = NONE
        while any_lane(left != NONE and k < last):
            k, hidden, left = next_open(tiles, rule, primitives_out, sampled, slot, k, last, left)
            waiting = lanes_where(k < last)
            while waiting != wp.uint32(0):
                who = lowest_bit(wp.uint64(waiting))
                waiting = waiting & (waiting - wp.uint32(1))
                theirs = value_of_lane(slot, who)
                other = value_of_lane(k, who)
                met = fragments_meet(tiles, view, rule, theirs, other, lane)
                if met and who == lane:
                    mark_hidden(primitives_out, primitive, hidden)
                    left = left & ~hidden
            k += 1
    gain(counters_out, row * COLUMNS + FRAGMENTS, seen)
    gain(crowds_out, 0, crowds)
