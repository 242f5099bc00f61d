"""What hides what, tile by tile: a thread for each pixel, which keeps its fragments to itself.

Faces are binned to tiles of 8 by 8 pixels; no fragment is ever stored. For CUDA, where tiles do not
hold too many faces; see lists for the others.
"""

import warp as wp

from abut.atomics import add_one, claim, gain, reserve, take_one
from abut.pairs import PairQueue, queue_stop, store_pair
from abut.visibility.fragment import depths_over, load_view, sample, touches
from abut.visibility.lists import Rule, hides, in_the_way, strangers
from abut.visibility.raster import AREA, BLOCK, EVERY, TEAM, centre_of, touches_block
from abut.visibility.state import (
    COLUMNS,
    FIRST,
    FRAGMENTS,
    SECOND,
    Primitives,
    primitive_of,
    tested_in,
)
from abut.visibility.view import ViewMap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROOM = wp.constant(16)  # fragments that a thread keeps
FEW_TILES = wp.constant(8)  # of a face, that one thread bins
CROWD = wp.constant(4096)  # faces of a tile beyond which lists are better


@wp.struct
class Tiles:
    """Faces of each tile. ``starts`` has one entry more than there are tiles."""

    rows: wp.array[wp.vec4f]
    boxes: wp.array[wp.vec4i]
    counts: wp.array[wp.int32]
    owners: wp.array[wp.int32]
    starts: wp.array[wp.int32]
    faces: wp.array[wp.int32]
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
def bin_face(
    tiles: Tiles, view: ViewMap, face: wp.int32, who: wp.int32, k: wp.int32, filling: wp.bool
):
    """Count a face in the k-th tile of its box, or put it there."""
    box = tile_box(tiles.boxes[face])
    column = box[0] + k % box[2]
    row = box[1] + k / box[2]
    tile = row * tiles.wide + column
    if not filling or tiles.owners[tile] < 0:
        f = load_view(tiles.rows, face)
        if touches_block(f, column * BLOCK, row * BLOCK, view):
            if filling:
                slot = tiles.starts[tile] + take_one(tiles.counts, tile)
                if slot >= 0 and slot < tiles.faces.shape[0]:
                    tiles.faces[slot] = face
            else:
                add_one(tiles.counts, tile)
                claim(tiles.owners, tile, who + 1)


@wp.kernel
def bin_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    object_of: wp.array[wp.int32],
    filling: wp.bool,
    # out
    tiles_out: Tiles,
    large_out: PairQueue,
):
    """Bin faces of few tiles; note the others, when counting."""
    view = views[shown]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        box = tile_box(tiles_out.boxes[i])
        count = box[2] * box[3]
        if count > FEW_TILES:
            if not filling:
                store_pair(large_out, reserve(large_out.count, 1), wp.int64(i))
        else:
            who = wp.where(tiles_out.within, i, object_of[i])
            for k in range(count):
                bin_face(tiles_out, view, i, who, k, filling)


@wp.kernel
def bin_large_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    object_of: wp.array[wp.int32],
    filling: wp.bool,
    large: PairQueue,
    # out
    tiles_out: Tiles,
):
    """Bin faces of many tiles, each by a team of threads."""
    view = views[shown]
    stop = wp.min(span[1], queue_stop(large, EVERY / TEAM) * TEAM)
    for item in range(span[0] + wp.tid(), stop, span[2]):
        face = wp.int32(large.keys[item / TEAM])
        box = tile_box(tiles_out.boxes[face])
        who = wp.where(tiles_out.within, face, object_of[face])
        for k in range(item % TEAM, box[2] * box[3], TEAM):
            bin_face(tiles_out, view, face, who, k, filling)


@wp.kernel
def crowded_tiles_kernel(
    # in
    span: wp.vec3i,
    # out
    tiles_out: Tiles,
):
    """No room for tiles to which only one comes."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if tiles_out.owners[i] >= 0:
            tiles_out.counts[i] = 0


@wp.func
def fragment_at(tiles: Tiles, view: ViewMap, face: wp.int32, column: wp.int32, row: wp.int32):
    """Depths of a face at a pixel; near > far where it has no fragment there."""
    out = wp.vec2f(1.0, -1.0)
    box = tiles.boxes[face]
    if column >= box[0] and column <= box[2] and row >= box[1] and row <= box[3]:
        f = load_view(tiles.rows, face)
        centre = centre_of(column, row)
        if view.reach[0] > wp.float32(0.0):
            if touches(f, centre, view.reach):
                out = depths_over(f, centre, view.reach, view.slack)
        else:
            inside, depth = sample(f, centre)
            if inside:
                out = wp.vec2f(depth, depth)
    return out


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const char* box = (const char*)(boxes.data + face);
    const char* row = (const char*)(rows.data + 5 * face);
    asm volatile("prefetch.global.L1 [%0];" :: "l"(box));
    for (int k = 0; k < 80; k += 32) asm volatile("prefetch.global.L1 [%0];" :: "l"(row + k));
    asm volatile("prefetch.global.L1 [%0];" :: "l"(row + 79));
#endif
""")
def fetch_ahead(boxes: wp.array[wp.vec4i], rows: wp.array[wp.vec4f], face: wp.int32):
    """Bring a face near, on CUDA: all threads of a warp soon ask for it."""
    ...


@wp.func
def fetch_some(tiles: Tiles, e: wp.int32, start: wp.int32, stop: wp.int32, lane: wp.int32):
    """At every 32nd face of a list, each thread of a warp fetches one of the next 32."""
    if (e - start) % 32 == 0:
        ahead = wp.min(e + lane % 32, stop - 1)
        fetch_ahead(tiles.boxes, tiles.rows, tiles.faces[ahead])


@wp.func
def meet_other(rule: Rule, primitives: Primitives, mine: wp.vec4f, other: wp.vec4f):
    """Mark the primitive of my fragment where the other hides it."""
    if in_the_way(rule, mine, other):
        face = wp.cast(mine[2], wp.int32)
        other_face = wp.cast(other[2], wp.int32)
        if strangers(rule, primitives.object_of, face, other_face):
            primitive = primitive_of(primitives, face)
            hidden = hides(rule, primitives, face, other_face)
            hidden = hidden & tested_in(primitives.state[primitive], rule.passes)
            if hidden & FIRST != 0:
                primitives.hidden_first[primitive] = 1
            if hidden & SECOND != 0:
                primitives.hidden_second[primitive] = 1


@wp.func
def look_pixel(
    tiles: Tiles,
    view: ViewMap,
    rule: Rule,
    primitives: Primitives,
    tile: wp.int32,
    lane: wp.int32,
    kept: wp.array[wp.vec4f],
):
    """Look at a pixel, some of its fragments at a time; returns how many there are."""
    column = (tile % tiles.wide) * BLOCK + lane % BLOCK
    row = (tile / tiles.wide) * BLOCK + lane / BLOCK
    start = tiles.starts[tile]
    stop = tiles.starts[tile + 1]
    first = wp.int32(0)
    seen = wp.int32(1)
    while first < seen:
        seen = wp.int32(0)
        for e in range(start, stop):
            fetch_some(tiles, e, start, stop, lane)
            face = tiles.faces[e]
            depths = fragment_at(tiles, view, face, column, row)
            if depths[0] <= depths[1]:
                if seen >= first and seen < first + ROOM:
                    name = wp.cast(face, wp.float32)
                    kept[seen - first] = wp.vec4f(depths[0], depths[1], name, 0.0)
                seen += 1
        count = wp.min(seen - first, ROOM)
        if seen <= ROOM:
            for i in range(1, count):
                mine = kept[i]
                for j in range(i):
                    meet_other(rule, primitives, mine, kept[j])
                    meet_other(rule, primitives, kept[j], mine)
        else:
            for e in range(start, stop):
                face = tiles.faces[e]
                depths = fragment_at(tiles, view, face, column, row)
                if depths[0] <= depths[1]:
                    name = wp.cast(face, wp.float32)
                    other = wp.vec4f(depths[0], depths[1], name, 0.0)
                    for i in range(count):
                        meet_other(rule, primitives, kept[i], other)
        first += ROOM
    return seen


@wp.kernel
def look_tiles_kernel(
    # in
    span: wp.vec3i,
    views: wp.array[ViewMap],
    shown: wp.int32,
    tiles: Tiles,
    rule: Rule,
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
    crowds_out: wp.array[wp.int64],
    total_out: wp.array[wp.int64],
):
    """A thread for each pixel of each tile."""
    view = views[shown]
    kept = wp.zeros(shape=(ROOM,), dtype=wp.vec4f)
    seen = wp.int64(0)
    crowds = wp.int64(0)
    for item in range(
        span[0] + wp.tid(), wp.min(span[1], (tiles.starts.shape[0] - 1) * AREA), span[2]
    ):
        tile = item / AREA
        start = tiles.starts[tile]
        stop = tiles.starts[tile + 1]
        if start >= 0 and stop - start > 1 and stop <= tiles.faces.shape[0]:
            if stop - start > CROWD:
                crowds += wp.int64(1)
            else:
                lane = item % AREA
                found = look_pixel(tiles, view, rule, primitives_out, tile, lane, kept)
                seen += wp.int64(found)
    gain(counters_out, row * COLUMNS + FRAGMENTS, seen)
    gain(crowds_out, 0, crowds)
    if span[0] + wp.tid() == 0:
        total_out[0] = wp.int64(tiles.starts[tiles.starts.shape[0] - 1])
