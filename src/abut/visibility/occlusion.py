"""Rule: who is in the way of whom."""

import warp as wp

from abut.visibility.state import (
    FIRST,
    SECOND,
    Primitives,
    drawn_in_first,
    drawn_in_second,
    primitive_of,
    tested_in,
)

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
def in_the_way(rule: Rule, mine: wp.vec2f, other: wp.vec2f):
    """Are these depths (near, far) in the way of mine? Not where there are none."""
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
def asked_of(rule: Rule, primitives: Primitives, primitive: wp.int32):
    """The passes in which a primitive is tested and nothing was found in front of it yet."""
    left = tested_in(primitives.state[primitive], rule.passes)
    if primitives.hidden_first[primitive] != 0:
        left = left & ~FIRST
    if primitives.hidden_second[primitive] != 0:
        left = left & ~SECOND
    return left


@wp.func
def mark_hidden(primitives: Primitives, primitive: wp.int32, passes: wp.int32):
    """Something is in front of a primitive in these passes."""
    if passes & FIRST != 0:
        primitives.hidden_first[primitive] = 1
    if passes & SECOND != 0:
        primitives.hidden_second[primitive] = 1
