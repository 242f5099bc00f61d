"""Who is in the way of whom: every fragment against the others of its pixel."""

import warp as wp

from abut.atomics import gain
from abut.visibility.raster import Canvas
from abut.visibility.state import (
    COLUMNS,
    FIRST,
    FRAGMENTS,
    SECOND,
    Primitives,
    drawn_in_first,
    drawn_in_second,
    primitive_of,
    tested_in,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NONE = wp.constant(0)


@wp.struct
class Rule:
    """What counts as being in the way.

    ``passes``: FIRST, SECOND or both. ``free``: order does not matter, overlap in depth does.
    ``within``: faces of one object count too, unless they share a corner. ``touching``: what is
    at the same depth is not in the way.
    """

    passes: wp.int32
    free: wp.bool
    within: wp.bool
    touching: wp.bool
    corner_ids: wp.array[wp.vec3i]


@wp.func
def share_corner(a: wp.vec3i, b: wp.vec3i):
    """Have two faces a vertex in common?"""
    found = wp.bool(False)
    for i in range(3):
        found = found or a[i] == b[0] or a[i] == b[1] or a[i] == b[2]
    return found


@wp.func
def strangers(rule: Rule, object_of: wp.array[wp.int32], a: wp.int32, b: wp.int32):
    """Are two faces to be kept apart? Faces of one object only where asked, never neighbours."""
    if not rule.within:
        return object_of[a] != object_of[b]
    return a != b and not share_corner(rule.corner_ids[a], rule.corner_ids[b])


@wp.func
def in_the_way(rule: Rule, mine: wp.vec4f, other: wp.vec4f):
    """Is the other fragment, by its depths alone, in the way of mine? Not where it is empty."""
    if other[0] > other[1]:
        return False
    if rule.free:
        return other[0] <= mine[1] and mine[0] <= other[1]
    if rule.touching:
        return other[0] < mine[1]
    return other[0] <= mine[1]


@wp.func
def hides(rule: Rule, primitives: Primitives, mine: wp.int32, other: wp.int32):
    """The passes in which face ``other`` hides face ``mine``, when it is in the way."""
    passes = rule.passes
    if not rule.free:
        state = primitives.state[primitive_of(primitives, other)]
        if other < mine:
            passes = wp.where(drawn_in_first(state), rule.passes & FIRST, NONE)
        else:
            passes = wp.where(drawn_in_second(state), rule.passes & SECOND, NONE)
    return passes


@wp.func
def look(
    canvas: Canvas,
    rule: Rule,
    primitives: Primitives,
    slot: wp.int32,
    start: wp.int32,
    stop: wp.int32,
):
    """Mark the primitive of a fragment where others of its pixel hide it."""
    mine = canvas.fragments[slot]
    face = wp.cast(mine[2], wp.int32)
    primitive = primitive_of(primitives, face)
    left = tested_in(primitives.state[primitive], rule.passes)
    if primitives.hidden_first[primitive] != 0:
        left = left & ~FIRST
    if primitives.hidden_second[primitive] != 0:
        left = left & ~SECOND
    if mine[0] > mine[1]:
        left = NONE
    k = wp.int32(start)
    while left != 0 and k < stop:
        other = canvas.fragments[k]
        if in_the_way(rule, mine, other):
            other_face = wp.cast(other[2], wp.int32)
            if strangers(rule, primitives.object_of, face, other_face):
                hidden = hides(rule, primitives, face, other_face) & left
                if hidden & FIRST != 0:
                    primitives.hidden_first[primitive] = 1
                if hidden & SECOND != 0:
                    primitives.hidden_second[primitive] = 1
                left = left & ~hidden
        k += 1


@wp.kernel
def look_pixels_kernel(
    # in
    span: wp.vec3i,
    canvas: Canvas,
    rule: Rule,
    total: wp.array[wp.int64],
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """A thread for each pixel."""
    if span[0] + wp.tid() == 0:
        gain(counters_out, row * COLUMNS + FRAGMENTS, total[0])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        start = canvas.starts[i]
        stop = canvas.stops[i]
        if stop - start > 1 and stop <= canvas.fragments.shape[0]:
            for slot in range(start, stop):
                look(canvas, rule, primitives_out, slot, start, stop)


@wp.kernel
def look_fragments_kernel(
    # in
    span: wp.vec3i,
    canvas: Canvas,
    rule: Rule,
    total: wp.array[wp.int64],
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """A thread for each fragment."""
    if span[0] + wp.tid() == 0:
        gain(counters_out, row * COLUMNS + FRAGMENTS, total[0])
    count = wp.int32(wp.min(total[0], wp.int64(canvas.fragments.shape[0])))
    for slot in range(span[0] + wp.tid(), count, span[2]):
        pixel = wp.cast(canvas.fragments[slot][3], wp.int32)
        start = canvas.starts[pixel]
        stop = canvas.stops[pixel]
        if stop - start > 1 and stop <= canvas.fragments.shape[0]:
            look(canvas, rule, primitives_out, slot, start, stop)
