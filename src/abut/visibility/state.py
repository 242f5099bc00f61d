"""What is known of each primitive (an object, or a face): in which passes it was fully visible.

After Quick-CULLIDE §4.1: NFV in neither pass, FFV in the first only, SFV in the second only, BFV
in both and so pruned.
"""

import warp as wp

from abut.core.atomics import atomic_add_uniform

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NEITHER = wp.constant(0)
FIRST = wp.constant(1)
SECOND = wp.constant(2)
BOTH = wp.constant(3)

# Columns of a row of counters, one row a pass.
QUERIES, FACES, FRAGMENTS, BFV, FFV, SFV, NFV = (wp.constant(i) for i in range(7))
COLUMNS = wp.constant(7)


@wp.struct
class Primitives:
    """States of primitives. ``hidden``: whether something was in front, in pass one and two."""

    state: wp.array[wp.int32]
    hidden_first: wp.array[wp.int32]
    hidden_second: wp.array[wp.int32]
    object_of: wp.array[wp.int32]
    by_object: wp.bool


@wp.func
def primitive_of(primitives: Primitives, face: wp.int32):
    """The primitive that a face is, or belongs to."""
    out = face
    if primitives.by_object:
        out = primitives.object_of[face]
    return out


@wp.func
def tested_in(state: wp.int32, passes: wp.int32):
    """The passes, of these, in which a primitive of this state is still to be tested."""
    return passes & ~state


@wp.func
def drawn_in_first(state: wp.int32):
    """FFV and NFV are drawn in the first pass."""
    return state & SECOND == 0


@wp.func
def drawn_in_second(state: wp.int32):
    """SFV and NFV are drawn in the second pass."""
    return state & FIRST == 0


@wp.kernel
def conclude_kernel(
    # in
    span: wp.vec3i,
    passes: wp.int32,
    keep: wp.bool,
    row: wp.int32,
    # out
    primitives_out: Primitives,
    counters_out: wp.array[wp.int64],
):
    """Take note of what the passes showed; without ``keep`` only of what both together did."""
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
            asked = tested_in(state, passes)
            if asked != 0:
                queries += wp.int64(1)
            seen = asked
            if primitives_out.hidden_first[i] != 0:
                seen = seen & ~FIRST
            if primitives_out.hidden_second[i] != 0:
                seen = seen & ~SECOND
            state = state | seen
            both += wp.int64(state == BOTH)
            first += wp.int64(state == FIRST)
            second += wp.int64(state == SECOND)
            neither += wp.int64(state == NEITHER)
            if state != BOTH and not keep:
                state = NEITHER
            primitives_out.state[i] = state
            primitives_out.hidden_first[i] = 0
            primitives_out.hidden_second[i] = 0
    atomic_add_uniform(counters_out, row * COLUMNS + QUERIES, queries)
    atomic_add_uniform(counters_out, row * COLUMNS + BFV, both)
    atomic_add_uniform(counters_out, row * COLUMNS + FFV, first)
    atomic_add_uniform(counters_out, row * COLUMNS + SFV, second)
    atomic_add_uniform(counters_out, row * COLUMNS + NFV, neither)


@wp.kernel
def spread_kernel(
    # in
    span: wp.vec3i,
    object_state: wp.array[wp.int32],
    object_of: wp.array[wp.int32],
    # out
    face_state_out: wp.array[wp.int32],
):
    """Faces of pruned objects are pruned; of the others nothing is known."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face_state_out[i] = wp.where(object_state[object_of[i]] == BOTH, BOTH, NEITHER)
