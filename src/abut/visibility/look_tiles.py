"""Who is in the way of whom, tile by tile: every patch against the others of its tile.

Most are told apart by their masks or by their depths over the whole tile. Where these leave it
open, fragments are made at the pixels that two patches share, by all lanes of a warp together; none
is ever stored.
"""

import warp as wp

from abut.atomics import gain
from abut.lanes import any_lane, lane_count, lanes_where, value_of_lane
from abut.visibility.cover import AREA, BLOCK
from abut.visibility.fragment import load_view
from abut.visibility.patch import (
    EMPTY,
    LOWEST,
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


@wp.struct
class Look:
    """How a patch gets on: who it is, the passes in which it is not known to be hidden, and next.

    ``open``: a patch that may hide it, in the passes ``if_so``, as fragments must tell.
    """

    face: wp.int32
    primitive: wp.int32
    left: wp.int32
    next: wp.int32
    stop: wp.int32
    open: wp.int32
    if_so: wp.int32


@wp.func
def start_look(tiles: Tiles, rule: Rule, primitives: Primitives, slot: wp.int32):
    """A patch before anything is known of it in this look."""
    out = Look()
    place = tiles.places[slot]
    out.face = place[0]
    out.primitive = primitive_of(primitives, place[0])
    out.next = tiles.starts[place[1]]
    out.stop = tiles.starts[place[1] + 1]
    out.open = NOBODY
    out.if_so = NONE
    out.left = NONE
    if out.stop - out.next <= CROWD and tiles.masks[slot] != EMPTY:
        out.left = asked_of(rule, primitives, out.primitive)
    return out


@wp.func
def hide(primitives: Primitives, look: Look):
    """Something is in front of a patch."""
    mark_hidden(primitives, look.primitive, look.if_so)
    look.left = look.left & ~look.if_so
    return look


@wp.func
def go_on(
    tiles: Tiles, rule: Rule, primitives: Primitives, sampled: wp.bool, slot: wp.int32, look: Look
):
    """Pass over patches that are told apart, up to one that is not, or to the end."""
    mask = tiles.masks[slot]
    mine = tiles.depths[slot]
    look.open = NOBODY
    while look.left != NONE and look.next < look.stop and look.open == NOBODY:
        k = look.next
        look.next = k + 1
        if mask & tiles.masks[k] != EMPTY:
            depths = tiles.depths[k]
            if in_the_way(rule, mine, depths):
                other = tiles.places[k][0]
                look.if_so = hides(rule, primitives, look.face, other) & look.left
                if look.if_so != NONE and strangers(rule, primitives.object_of, look.face, other):
                    if sampled and not rule.free and depths[1] < mine[0]:
                        look = hide(primitives, look)
                    else:
                        look.open = k
    return look


@wp.func
def fragments_meet(
    tiles: Tiles, view: ViewMap, rule: Rule, slot: wp.int32, other: wp.int32, lane: wp.int32
):
    """Is a patch in the way of another at a pixel they share? Lanes look at different pixels."""
    place = tiles.places[slot]
    column = (place[1] % tiles.wide) * BLOCK
    row = (place[1] / tiles.wide) * BLOCK
    shared = tiles.masks[slot] & tiles.masks[other]
    f = load_view(tiles.shown.rows, place[0])
    g = load_view(tiles.shown.rows, tiles.places[other][0])
    found = wp.bool(False)
    for k in range(lane, AREA, lane_count()):
        if not found and (shared >> wp.uint64(k)) & LOWEST != EMPTY:
            centre = pixel_centre(column, row, k)
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
        look = start_look(tiles, rule, primitives_out, slot)
        if first + lane < stop:
            seen += wp.int64(count_bits(tiles.masks[slot]))
            crowds += wp.int64(look.stop - look.next > CROWD)
        else:
            look.left = NONE
        while any_lane(look.left != NONE and look.next < look.stop):
            look = go_on(tiles, rule, primitives_out, sampled, slot, look)
            waiting = lanes_where(look.open != NOBODY)
            while waiting != wp.uint32(0):
                who = lowest_bit(wp.uint64(waiting))
                waiting = waiting & (waiting - wp.uint32(1))
                theirs = value_of_lane(slot, who)
                other = value_of_lane(look.open, who)
                met = fragments_meet(tiles, view, rule, theirs, other, lane)
                if met and who == lane:
                    look = hide(primitives_out, look)
    gain(counters_out, row * COLUMNS + FRAGMENTS, seen)
    gain(crowds_out, 0, crowds)
