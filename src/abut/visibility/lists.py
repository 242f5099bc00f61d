"""Who is in the way of whom: every fragment against the others of its pixel."""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.fragment_lists import Canvas
from abut.visibility.occlusion import (
    NONE,
    Rule,
    asked_of,
    hides,
    in_the_way,
    mark_hidden,
    strangers,
)
from abut.visibility.state import COLUMNS, FRAGMENTS, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def ends_of(fragment: wp.vec4f):
    """Depths of a fragment."""
    return wp.vec2f(fragment[0], fragment[1])


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
    fragment = canvas.fragments[slot]
    mine = ends_of(fragment)
    face = wp.cast(fragment[2], wp.int32)
    primitive = primitive_of(primitives, face)
    left = asked_of(rule, primitives, primitive)
    if mine[0] > mine[1]:
        left = NONE
    k = wp.int32(start)
    while left != 0 and k < stop:
        other = canvas.fragments[k]
        if in_the_way(rule, mine, ends_of(other)):
            other_face = wp.cast(other[2], wp.int32)
            if strangers(rule, primitives.object_of, face, other_face):
                hidden = hides(rule, primitives, face, other_face) & left
                mark_hidden(primitives, primitive, hidden)
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
        atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, total[0])
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
        atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, total[0])
    count = wp.int32(wp.min(total[0], wp.int64(canvas.fragments.shape[0])))
    for slot in range(span[0] + wp.tid(), count, span[2]):
        pixel = wp.cast(canvas.fragments[slot][3], wp.int32)
        start = canvas.starts[pixel]
        stop = canvas.stops[pixel]
        if stop - start > 1 and stop <= canvas.fragments.shape[0]:
            look(canvas, rule, primitives_out, slot, start, stop)
