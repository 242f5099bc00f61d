"""Who is in the way of whom, whatever the order of drawing: fragments of a pixel sorted by depth.

Sorted by their near ends, a fragment overlaps an earlier one of another object when the largest far
end of these reaches it, and a later one when it reaches the smallest near end of these. Two such
ends, of different objects, are at hand at any time: one of them is of another object.
"""

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.fragment_lists import Canvas
from abut.visibility.occlusion import mark_hidden
from abut.visibility.state import BOTH, COLUMNS, FRAGMENTS, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NOWHERE = wp.constant(wp.float32(3.0e38))
NOBODY = wp.constant(-1)


@wp.struct
class Ends:
    """The first end on the way, and the first of another object than that."""

    first: wp.float32
    second: wp.float32
    owner: wp.int32


@wp.func
def end_of_others(ends: Ends, owner: wp.int32):
    """The first end that is not of this object."""
    return wp.where(ends.owner == owner, ends.second, ends.first)


@wp.func
def with_end(ends: Ends, end: wp.float32, owner: wp.int32):
    """The ends with one more among them; the smallest come first."""
    if owner == ends.owner:
        ends.first = wp.min(ends.first, end)
    elif end < ends.first:
        ends.second = ends.first
        ends.first = end
        ends.owner = owner
    else:
        ends.second = wp.min(ends.second, end)
    return ends


@wp.func
def no_ends():
    """No ends at all."""
    out = Ends()
    out.first = NOWHERE
    out.second = NOWHERE
    out.owner = NOBODY
    return out


@wp.func
def sort_fragments(fragments: wp.array[wp.vec4f], start: wp.int32, stop: wp.int32):
    """Sort by near ends, in place, in ever smaller steps."""
    gap = wp.int32(1)
    while gap < (stop - start) / 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            moving = fragments[i]
            place = wp.int32(i)
            while place >= start + gap and fragments[place - gap][0] > moving[0]:
                fragments[place] = fragments[place - gap]
                place -= gap
            fragments[place] = moving
        gap = gap / 3


@wp.func
def look_back(canvas: Canvas, primitives: Primitives, start: wp.int32, stop: wp.int32):
    """Mark what earlier fragments of others reach."""
    ends = no_ends()
    for k in range(start, stop):
        fragment = canvas.fragments[k]
        face = wp.cast(fragment[2], wp.int32)
        owner = primitives.object_of[face]
        if -end_of_others(ends, owner) >= fragment[0] and fragment[0] <= fragment[1]:
            mark_hidden(primitives, primitive_of(primitives, face), BOTH)
        if fragment[0] <= fragment[1]:
            ends = with_end(ends, -fragment[1], owner)


@wp.func
def look_ahead(canvas: Canvas, primitives: Primitives, start: wp.int32, stop: wp.int32):
    """Mark what reaches later fragments of others."""
    ends = no_ends()
    for back in range(stop - start):
        fragment = canvas.fragments[stop - 1 - back]
        face = wp.cast(fragment[2], wp.int32)
        owner = primitives.object_of[face]
        if end_of_others(ends, owner) <= fragment[1] and fragment[0] <= fragment[1]:
            mark_hidden(primitives, primitive_of(primitives, face), BOTH)
        if fragment[0] <= fragment[1]:
            ends = with_end(ends, fragment[0], owner)


@wp.kernel
def look_sorted_kernel(
    # in
    span: wp.vec3i,
    total: wp.array[wp.int64],
    row: wp.int32,
    # out
    canvas_out: Canvas,
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """A thread for each pixel."""
    if span[0] + wp.tid() == 0:
        atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, total[0])
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        start = canvas_out.starts[i]
        stop = canvas_out.stops[i]
        if stop - start > 1 and stop <= canvas_out.fragments.shape[0]:
            sort_fragments(canvas_out.fragments, start, stop)
            look_back(canvas_out, primitives_out, start, stop)
            look_ahead(canvas_out, primitives_out, start, stop)
