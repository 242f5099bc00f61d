"""Occlusion tests between the fragments of a pixel.

Where the drawing order matters, or faces of one object are tested, every fragment is compared with
the others of its pixel. Else the fragments of a pixel are sorted by their near depths: a fragment
overlaps an earlier one of another object when the largest far depth of these reaches it, and a
later one when it reaches the smallest near depth of these. Two such depths, of different objects,
are kept at any time: one of them is of another object.
"""

from functools import cache

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.visibility.fragment_lists import FragmentLists
from abut.visibility.state import (
    BOTH,
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

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NO_DEPTH = wp.constant(wp.float32(3.0e38))
NO_OBJECT = wp.constant(-1)


@wp.func
def interval_of(fragment: wp.vec4f):
    """Depth interval of a fragment."""
    return wp.vec2f(fragment[0], fragment[1])


@wp.func
def test_fragment(
    lists: FragmentLists,
    test: OcclusionTest,
    primitives: Primitives,
    slot: wp.int32,
    start: wp.int32,
    stop: wp.int32,
):
    """Mark the primitive of a fragment where another fragment of its pixel occludes it."""
    fragment = lists.fragments[slot]
    mine = interval_of(fragment)
    face = wp.cast(fragment[2], wp.int32)
    primitive = primitive_of(primitives, face)
    left = open_passes(test, primitives, primitive)
    if mine[0] > mine[1]:
        left = NONE
    k = wp.int32(start)
    while left != 0 and k < stop:
        other = lists.fragments[k]
        if depths_occlude(test, mine, interval_of(other)):
            other_face = wp.cast(other[2], wp.int32)
            if may_occlude(test, primitives.object_of, face, other_face):
                occluded = occluding_passes(test, primitives, face, other_face) & left
                mark_occluded(primitives, primitive, occluded)
                left = left & ~occluded
        k += 1


@wp.kernel
def test_fragments_kernel(
    # in
    span: wp.vec3i,
    test: OcclusionTest,
    total: wp.array[wp.int64],
    row: wp.int32,
    lists: FragmentLists,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """Test every fragment against its pixel's list, one thread per fragment."""
    if span[0] + wp.tid() == 0:
        atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, total[0])
    count = wp.int32(wp.min(total[0], wp.int64(lists.fragments.shape[0])))
    for slot in range(span[0] + wp.tid(), count, span[2]):
        pixel = wp.cast(lists.fragments[slot][3], wp.int32)
        start = lists.starts[pixel]
        stop = lists.stops[pixel]
        if stop - start > 1 and stop <= lists.fragments.shape[0]:
            test_fragment(lists, test, primitives_out, slot, start, stop)


@wp.struct
class NearestDepths:
    """The smallest depth so far, its object, and the smallest depth of any other object."""

    first: wp.float32
    second: wp.float32
    owner: wp.int32


@wp.func
def depth_of_others(depths: NearestDepths, owner: wp.int32):
    """The smallest depth of any object but this one."""
    return wp.where(depths.owner == owner, depths.second, depths.first)


@wp.func
def insert_depth(depths: NearestDepths, depth: wp.float32, owner: wp.int32):
    """Insert a depth of an object."""
    if owner == depths.owner:
        depths.first = wp.min(depths.first, depth)
    elif depth < depths.first:
        depths.second = depths.first
        depths.first = depth
        depths.owner = owner
    else:
        depths.second = wp.min(depths.second, depth)
    return depths


@wp.func
def sort_fragments(fragments: wp.array[wp.vec4f], start: wp.int32, stop: wp.int32):
    """Sort by near depth, in place (Shell sort)."""
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
def test_in_order(
    lists: FragmentLists,
    primitives: Primitives,
    start: wp.int32,
    stop: wp.int32,
    step: wp.int32,
):
    """Mark fragments that overlap one of another object before them.

    ``step``: 1 from front to back, -1 from back to front. Depths are negated from front to back, so
    that the smallest depth of the fragments before is the one to compare with.
    """
    depths = NearestDepths(NO_DEPTH, NO_DEPTH, NO_OBJECT)
    for i in range(stop - start):
        fragment = lists.fragments[wp.where(step > 0, start + i, stop - 1 - i)]
        face = wp.cast(fragment[2], wp.int32)
        owner = primitives.object_of[face]
        if fragment[0] <= fragment[1]:
            near = wp.where(step > 0, -fragment[1], fragment[0])
            far = wp.where(step > 0, -fragment[0], fragment[1])
            if depth_of_others(depths, owner) <= far:
                mark_occluded(primitives, primitive_of(primitives, face), BOTH)
            depths = insert_depth(depths, near, owner)


@cache
def test_pixels_kernel_for(sorts: bool) -> wp.Kernel:
    """Return the kernel with a thread per pixel; it ``sorts`` fragments, or compares all pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def test_pixels_kernel(
        # in
        span: wp.vec3i,
        test: OcclusionTest,
        total: wp.array[wp.int64],
        row: wp.int32,
        # out
        lists_out: FragmentLists,
        primitives_out: Primitives,
        counters_out: wp.array[wp.int64],
    ):
        """Test every fragment against its pixel's list."""
        if span[0] + wp.tid() == 0:
            atomic_add_uniform(counters_out, row * COLUMNS + FRAGMENTS, total[0])
        for i in range(span[0] + wp.tid(), span[1], span[2]):
            start = lists_out.starts[i]
            stop = lists_out.stops[i]
            if stop - start > 1 and stop <= lists_out.fragments.shape[0]:
                if wp.static(sorts):
                    sort_fragments(lists_out.fragments, start, stop)
                    test_in_order(lists_out, primitives_out, start, stop, 1)
                    test_in_order(lists_out, primitives_out, start, stop, -1)
                else:
                    for slot in range(start, stop):
                        test_fragment(lists_out, test, primitives_out, slot, start, stop)

    return test_pixels_kernel
