"""How one frame of boxes sits in another.

Separating axes hold for any axis and any linear map, so a pose that is rigid only up to rounding
loses nothing: ``widen`` covers what float32 and the axes' own error can amount to.
"""

import warp as wp

ROUNDING = wp.constant(wp.float64(2.0**-18))  # 64 float32 roundings of the largest number met
WORLD_ROUNDING = wp.constant(wp.float64(2.0**-48))  # 32 float64 roundings
STRETCH = wp.constant(wp.float64(1.0 + 2.0**-19))  # some float32 roundings
FLOAT32_RANGE = wp.constant(wp.float64(1e36))  # beyond, products of boxes may overflow


@wp.struct
class RelativeFrame:
    """b's frame in a's: x_a = turn x_b + shift, for box coordinates (relative to origins)."""

    columns: wp.mat44f  # of the turn, one a row, padded with zeros
    rows: wp.mat44f
    shift: wp.vec4f
    widen: wp.vec4f
    turned: wp.int32
    stretch: wp.float32  # distances in the frame over those in the world, at most


@wp.func
def largest(v: wp.vec3d):
    """Largest absolute component."""
    return wp.max(wp.abs(v))


@wp.func
def to_row(v: wp.vec3d):
    """Three components rounded to float32, and a zero."""
    return wp.vec4f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]), wp.float32(0.0))


@wp.func
def boundless_frame():
    """A frame in which all boxes overlap, for coordinates that float32 cannot hold."""
    out = RelativeFrame()
    out.widen = wp.vec4f(wp.inf)
    out.stretch = wp.float32(STRETCH)
    return out


@wp.func
def shifted_frame(origin_a: wp.vec3d, origin_b: wp.vec3d, reach_b: wp.float64):
    """Relative frame of two unmoved meshes; ``reach_b`` bounds b's box coordinates."""
    out = RelativeFrame()
    shift = origin_b - origin_a
    for i in range(3):
        out.rows[i, i] = wp.float32(1.0)
        out.columns[i, i] = wp.float32(1.0)
    out.shift = to_row(shift)
    out.stretch = wp.float32(STRETCH)
    if largest(shift) > wp.float64(0.0):
        world = largest(origin_a) + largest(origin_b)
        widen = ROUNDING * (largest(shift) + reach_b) + WORLD_ROUNDING * world
        out.widen = wp.vec4f(wp.float32(widen))
        if not (largest(shift) < FLOAT32_RANGE):
            return boundless_frame()
    return out


@wp.func
def turn_of(pose: wp.mat44d):
    """The rotation of a pose."""
    return wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2],
        pose[1, 0], pose[1, 1], pose[1, 2],
        pose[2, 0], pose[2, 1], pose[2, 2],
    )  # fmt: skip


@wp.func
def shift_of(pose: wp.mat44d):
    """Where a pose puts the origin."""
    return wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])


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
    turn_b = turn_of(pose_b)
    at_a = shift_of(pose_a)
    at_b = shift_of(pose_b)
    back = wp.inverse(turn_of(pose_a))
    turn = back * turn_b
    shift = back * (turn_b * origin_b + (at_b - at_a)) - origin_a

    # how far the columns of ``turn`` are from orthonormal widens the test along them
    gram = wp.transpose(turn) * turn
    skew = wp.float64(0.0)
    gram_a = wp.transpose(turn_of(pose_a)) * turn_of(pose_a)
    skew_a = wp.float64(0.0)
    out = RelativeFrame()
    for i in range(3):
        for j in range(3):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            skew = wp.max(skew, wp.abs(gram[i, j] - unit))
            skew_a = wp.max(skew_a, wp.abs(gram_a[i, j] - unit))
            out.rows[i, j] = wp.float32(turn[i, j])
            out.columns[j, i] = wp.float32(turn[i, j])
    out.shift = to_row(shift)
    near = largest(shift) + wp.float64(2.0) * (reach_a + reach_b)
    world = largest(at_a) + largest(at_b) + largest(origin_a) + largest(origin_b) + near
    widen = ROUNDING * near + WORLD_ROUNDING * world + wp.float64(4.0) * skew * reach_b
    out.widen = wp.vec4f(wp.float32(widen))
    out.turned = 1
    out.stretch = wp.float32(STRETCH + wp.float64(4.0) * (skew + skew_a))
    if not (near < FLOAT32_RANGE):
        return boundless_frame()
    return out
