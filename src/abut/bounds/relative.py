"""Boxes of two frames: how one frame sits in the other, and whether boxes overlap across them.

The separating-axis test holds for any axis and any linear map, so a pose that is rigid only up
to rounding loses nothing: ``widen`` covers what float32 and the axes' own error can amount to.
"""

import warp as wp

from abut.bounds.aabb import overlap_aabb

ROUNDING = wp.constant(wp.float64(2.0**-18))  # 64 float32 roundings of the largest number met
WORLD_ROUNDING = wp.constant(wp.float64(2.0**-48))  # 32 float64 roundings


@wp.struct
class Relative:
    """b's frame in a's: x_a = turn x_b + shift, for box coordinates (relative to origins)."""

    turn: wp.mat33f
    turn_abs: wp.mat33f
    shift: wp.vec4f
    widen: wp.vec4f
    turned: wp.int32


@wp.func
def xyz(row: wp.vec4f):
    """The first three components."""
    return wp.vec3f(row[0], row[1], row[2])


@wp.func
def largest(v: wp.vec3d):
    """Largest absolute component."""
    return wp.max(wp.abs(v))


@wp.func
def shifted_frame(origin_a: wp.vec3d, origin_b: wp.vec3d, reach_b: wp.float64):
    """Relative frame of two unmoved meshes; ``reach_b`` bounds b's box coordinates."""
    out = Relative()
    shift = origin_b - origin_a
    out.shift = wp.vec4f(wp.float32(shift[0]), wp.float32(shift[1]), wp.float32(shift[2]), 0.0)
    if largest(shift) > wp.float64(0.0):
        world = largest(origin_a) + largest(origin_b)
        out.widen = wp.vec4f(
            wp.float32(ROUNDING * (largest(shift) + reach_b) + WORLD_ROUNDING * world)
        )
    return out


@wp.func
def turned_frame(
    pose_a: wp.mat44d,
    pose_b: wp.mat44d,
    origin_a: wp.vec3d,
    origin_b: wp.vec3d,
    reach_a: wp.float64,
    reach_b: wp.float64,
):
    """Relative frame of two moved meshes; reaches bound the box coordinates of each."""
    turn_a = wp.mat33d(
        pose_a[0, 0], pose_a[0, 1], pose_a[0, 2],
        pose_a[1, 0], pose_a[1, 1], pose_a[1, 2],
        pose_a[2, 0], pose_a[2, 1], pose_a[2, 2],
    )  # fmt: skip
    turn_b = wp.mat33d(
        pose_b[0, 0], pose_b[0, 1], pose_b[0, 2],
        pose_b[1, 0], pose_b[1, 1], pose_b[1, 2],
        pose_b[2, 0], pose_b[2, 1], pose_b[2, 2],
    )  # fmt: skip
    at_a = wp.vec3d(pose_a[0, 3], pose_a[1, 3], pose_a[2, 3])
    at_b = wp.vec3d(pose_b[0, 3], pose_b[1, 3], pose_b[2, 3])
    back = wp.inverse(turn_a)
    turn = back * turn_b
    shift = back * (turn_b * origin_b + (at_b - at_a)) - origin_a

    # how far the columns of ``turn`` are from orthonormal widens the test along them
    gram = wp.transpose(turn) * turn
    skew = wp.float64(0.0)
    out = Relative()
    for i in range(3):
        for j in range(3):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            skew = wp.max(skew, wp.abs(gram[i, j] - unit))
            out.turn[i, j] = wp.float32(turn[i, j])
            out.turn_abs[i, j] = wp.abs(wp.float32(turn[i, j]))
    out.shift = wp.vec4f(wp.float32(shift[0]), wp.float32(shift[1]), wp.float32(shift[2]), 0.0)
    near = largest(shift) + wp.float64(2.0) * (reach_a + reach_b)
    world = largest(at_a) + largest(at_b) + largest(origin_a) + largest(origin_b) + near
    widen = ROUNDING * near + WORLD_ROUNDING * world + wp.float64(4.0) * skew * reach_b
    out.widen = wp.vec4f(wp.float32(widen))
    out.turned = 1
    return out


@wp.func
def overlap_across(
    relative: Relative,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """May closed boxes of two frames overlap? Six axes where they are turned.

    Guarantee:
        Conservative. False only when the boxes, and all they bound, are apart.
    """
    if relative.turned == 0:
        return overlap_aabb(
            lower_a - relative.widen,
            upper_a + relative.widen,
            lower_b + relative.shift,
            upper_b + relative.shift,
        )
    half = wp.float32(0.5)
    half_a = xyz(upper_a - lower_a) * half
    half_b = xyz(upper_b - lower_b) * half
    gap = relative.turn * xyz(lower_b + upper_b) * half
    gap = gap + xyz(relative.shift) - xyz(lower_a + upper_a) * half
    reach = half_a + relative.turn_abs * half_b + xyz(relative.widen)
    if wp.abs(gap[0]) > reach[0] or wp.abs(gap[1]) > reach[1] or wp.abs(gap[2]) > reach[2]:
        return False
    gap = gap * relative.turn
    reach = half_b + half_a * relative.turn_abs + xyz(relative.widen)
    return wp.abs(gap[0]) <= reach[0] and wp.abs(gap[1]) <= reach[1] and wp.abs(gap[2]) <= reach[2]
