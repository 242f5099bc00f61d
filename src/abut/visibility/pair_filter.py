"""PairFilter: which pairs of survivors may collide, by their boxes, objects and sets."""

import warp as wp

from abut.visibility.state import NEITHER, share_corner

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class PairFilter:
    """Excludes pairs of one object or, ``within`` objects, neighbours.

    ``object_state``: the sets of objects after the passes over objects; empty without such.
    """

    within: wp.bool
    object_of: wp.array[wp.int32]
    object_state: wp.array[wp.int32]
    corner_ids: wp.array[wp.vec3i]


@wp.func
def is_candidate(
    pairing: PairFilter, a: wp.int32, b: wp.int32, state_a: wp.int32, state_b: wp.int32
):
    """Whether two faces may collide: no pair inside FFV, nor inside SFV, does (lemma 2).

    The same holds of two objects.
    """
    if state_a != NEITHER and state_a == state_b:
        return False
    if pairing.within:
        return not share_corner(pairing.corner_ids[a], pairing.corner_ids[b])
    object_a = pairing.object_of[a]
    object_b = pairing.object_of[b]
    if pairing.object_state.shape[0] > 0:
        state = pairing.object_state[object_a]
        if state != NEITHER and state == pairing.object_state[object_b]:
            return False
    return object_a != object_b


@wp.func
def may_pair(pairing: PairFilter, boxes: wp.array2d[wp.vec4f], i: wp.int32, k: wp.int32):
    """Whether two survivors may collide: their boxes overlap, and they are a candidate."""
    low = boxes[i, 0]
    other = boxes[k, 0]
    high = boxes[i, 1]
    end = boxes[k, 1]
    found = wp.bool(False)
    if other[0] <= high[0] and other[1] <= high[1] and other[2] <= high[2]:
        if low[0] <= end[0] and low[1] <= end[1] and low[2] <= end[2]:
            a = wp.cast(low[3], wp.int32)
            b = wp.cast(other[3], wp.int32)
            state = wp.cast(high[3], wp.int32)
            found = is_candidate(pairing, a, b, state, wp.cast(end[3], wp.int32))
    return found
