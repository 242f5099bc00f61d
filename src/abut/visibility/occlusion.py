"""OcclusionTest: when one fragment occludes another."""

import warp as wp

from abut.visibility.state import FIRST, SECOND, Primitives, primitive_of

NONE = wp.constant(0)


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
