"""Visibility state of primitives (objects or faces), and the occlusion test that decides it.

The state is the set of passes in which a primitive is fully visible. After Quick-CULLIDE §4.1: NFV
in neither pass, FFV in the first only, SFV in the second only, BFV
in both and so pruned.
"""

from collections.abc import Sequence
from typing import Any

import warp as wp

from abut.core.atomics import atomic_add_uniform
from abut.operands.soup import Soup
from abut.options import Level

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NEITHER = wp.constant(0)
FIRST = wp.constant(1)
SECOND = wp.constant(2)
BOTH = wp.constant(3)

# Columns of the counters; each pass has a row.
QUERIES, FACES, FRAGMENTS, BFV, FFV, SFV, NFV = (wp.constant(i) for i in range(7))
COLUMNS = wp.constant(7)
NONE = wp.constant(0)


@wp.struct
class Primitives:
    """States of primitives, and whether each was found occluded in pass one and two."""

    state: wp.array[wp.int32]
    occluded_first: wp.array[wp.int32]
    occluded_second: wp.array[wp.int32]
    object_of: wp.array[wp.int32]
    by_object: wp.bool


@wp.func
def primitive_of(primitives: Primitives, face: wp.int32):
    """The primitive of a face: itself, or its object."""
    out = face
    if primitives.by_object:
        out = primitives.object_of[face]
    return out


@wp.kernel
def update_state_kernel(
    # in
    span: wp.vec3i,
    passes: wp.int32,
    keep: wp.bool,
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """Update the states after a pass; without ``keep``, reset primitives that are not pruned."""
    queries = wp.int64(0)
    both = wp.int64(0)
    first = wp.int64(0)
    second = wp.int64(0)
    neither = wp.int64(0)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        state = primitives_out.state[i]
        if state == BOTH:
            both += wp.int64(1)
        else:
            visible = passes & ~state  # tested in these passes
            if visible != 0:
                queries += wp.int64(1)
            if primitives_out.occluded_first[i] != 0:
                visible = visible & ~FIRST
            if primitives_out.occluded_second[i] != 0:
                visible = visible & ~SECOND
            state = state | visible
            both += wp.int64(state == BOTH)
            first += wp.int64(state == FIRST)
            second += wp.int64(state == SECOND)
            neither += wp.int64(state == NEITHER)
            if state != BOTH and not keep:
                state = NEITHER
            primitives_out.state[i] = state
            primitives_out.occluded_first[i] = 0
            primitives_out.occluded_second[i] = 0
    atomic_add_uniform(counters_out, row * COLUMNS + QUERIES, queries)
    atomic_add_uniform(counters_out, row * COLUMNS + BFV, both)
    atomic_add_uniform(counters_out, row * COLUMNS + FFV, first)
    atomic_add_uniform(counters_out, row * COLUMNS + SFV, second)
    atomic_add_uniform(counters_out, row * COLUMNS + NFV, neither)


@wp.kernel
def inherit_state_kernel(
    # in
    span: wp.vec3i,
    object_state: wp.array[wp.int32],
    object_of: wp.array[wp.int32],
    # out
    face_state_out: wp.array[wp.int32],
):
    """Prune the faces of pruned objects; reset all others."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face_state_out[i] = wp.where(object_state[object_of[i]] == BOTH, BOTH, NEITHER)


def make_primitives(soup: Soup, level: Level, states: Sequence[Any], occluded: Any) -> Any:
    """The struct for kernels; ``states`` are those of objects and of faces."""
    out = Primitives()
    out.by_object = level is Level.OBJECT
    out.state = states[0] if out.by_object else states[1]
    out.occluded_first, out.occluded_second = occluded
    out.object_of = soup.object_of
    return out


@wp.struct
class OcclusionTest:
    """Options of the occlusion test.

    ``passes``: FIRST, SECOND or both. ``free``: intervals that overlap in depth occlude each
    other, whatever the drawing order. ``within``: faces of one object are tested against each
    other, unless they share a corner. ``strict``: equal depths do not occlude.
    """

    passes: wp.int32
    free: wp.bool
    within: wp.bool
    strict: wp.bool
    corner_ids: wp.array[wp.vec3i]


@wp.func
def share_corner(a: wp.vec3i, b: wp.vec3i):
    """Whether two faces have a vertex in common."""
    found = wp.bool(False)
    for i in range(3):
        found = found or a[i] == b[0] or a[i] == b[1] or a[i] == b[2]
    return found


@wp.func
def may_occlude(test: OcclusionTest, object_of: wp.array[wp.int32], a: wp.int32, b: wp.int32):
    """Whether two faces are tested against each other."""
    if not test.within:
        return object_of[a] != object_of[b]
    return a != b and not share_corner(test.corner_ids[a], test.corner_ids[b])


@wp.func
def depths_occlude(test: OcclusionTest, mine: wp.vec2f, other: wp.vec2f):
    """Whether the depth interval ``other`` occludes ``mine``; an empty one occludes nothing."""
    if other[0] > other[1]:
        return False
    if test.free:
        return other[0] <= mine[1] and mine[0] <= other[1]
    if test.strict:
        return other[0] < mine[1]
    return other[0] <= mine[1]


@wp.func
def occluding_passes(test: OcclusionTest, primitives: Primitives, mine: wp.int32, other: wp.int32):
    """The passes in which face ``other`` is drawn before ``mine`` and can occlude it.

    FFV and NFV are drawn in the first pass, SFV and NFV in the second.
    """
    passes = test.passes
    if not test.free:
        state = primitives.state[primitive_of(primitives, other)]
        if other < mine:
            passes = wp.where(state & SECOND == 0, test.passes & FIRST, NONE)
        else:
            passes = wp.where(state & FIRST == 0, test.passes & SECOND, NONE)
    return passes


@wp.func
def open_passes(test: OcclusionTest, primitives: Primitives, primitive: wp.int32):
    """The passes in which a primitive is tested and not yet known to be occluded."""
    left = test.passes & ~primitives.state[primitive]
    if primitives.occluded_first[primitive] != 0:
        left = left & ~FIRST
    if primitives.occluded_second[primitive] != 0:
        left = left & ~SECOND
    return left


@wp.func
def mark_occluded(primitives: Primitives, primitive: wp.int32, passes: wp.int32):
    """Mark a primitive as occluded in these passes."""
    if passes & FIRST != 0:
        primitives.occluded_first[primitive] = 1
    if passes & SECOND != 0:
        primitives.occluded_second[primitive] = 1
