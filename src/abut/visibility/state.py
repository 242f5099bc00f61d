"""Visibility state of primitives (objects or faces): the passes in which each is fully visible.

After Quick-CULLIDE §4.1: NFV in neither pass, FFV in the first only, SFV in the second only, BFV
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
