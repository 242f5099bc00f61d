"""Relative frames: the frame of one BVH's boxes in that of another.

Separating axes hold for any axis and any linear map, so a pose that is rigid only up to rounding
loses nothing: ``widen`` covers the errors of float32 and of the axes.
"""

import warp as wp

from abut.geometry.poses import rotation_of, translation_of

ROUNDING = wp.constant(wp.float64(2.0**-18))  # 64 float32 roundings of the largest number met
WORLD_ROUNDING = wp.constant(wp.float64(2.0**-48))  # 32 float64 roundings
SUBNORMAL_SLACK = wp.constant(wp.float64(2.0**-140))  # 512 roundings of subnormal float32 numbers
STRETCH = wp.constant(wp.float64(1.0 + 2.0**-19))  # some float32 roundings
FLOAT32_RANGE = wp.constant(wp.float64(1e36))  # beyond, products of boxes may overflow


@wp.struct
class RelativeFrame:
    """b's frame in a's: x_a = rotation x_b + shift, for box coordinates (relative to origins)."""

    columns: wp.mat44f  # of the rotation, one a row, padded with zeros
    rows: wp.mat44f
    shift: wp.vec4f
    widen: wp.vec4f
    rotated: wp.int32
    stretch: wp.float32  # upper bound of distances in the frame over those in the world


@wp.func
def max_abs(v: wp.vec3d):
    """Return the largest absolute component."""
    return wp.max(wp.abs(v))


@wp.func
def round_to_row(v: wp.vec3d):
    """Round three components to float32 and append a zero."""
    return wp.vec4f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]), wp.float32(0.0))


@wp.func
def unbounded_frame():
    """Return a frame in which all boxes overlap, for coordinates that float32 cannot hold."""
    out = RelativeFrame()
    out.widen = wp.vec4f(wp.inf)
    out.stretch = wp.float32(STRETCH)
    return out


@wp.func
def translated_frame(origin_a: wp.vec3d, origin_b: wp.vec3d, reach_b: wp.float64):
    """Return the relative frame of two meshes without poses; ``reach_b`` bounds b's coordinates."""
    out = RelativeFrame()
    shift = origin_b - origin_a
    for i in range(3):
        out.rows[i, i] = wp.float32(1.0)
        out.columns[i, i] = wp.float32(1.0)
    out.shift = round_to_row(shift)
    out.stretch = wp.float32(STRETCH)
    if max_abs(shift) > wp.float64(0.0):
        world = max_abs(origin_a) + max_abs(origin_b)
        widen = ROUNDING * (max_abs(shift) + reach_b) + WORLD_ROUNDING * world + SUBNORMAL_SLACK
        out.widen = wp.vec4f(wp.float32(widen))
        if not (max_abs(shift) < FLOAT32_RANGE):
            return unbounded_frame()
    return out


@wp.func
def rotated_frame(
    pose_a: wp.mat44d,
    pose_b: wp.mat44d,
    origin_a: wp.vec3d,
    origin_b: wp.vec3d,
    reach_a: wp.float64,
    reach_b: wp.float64,
):
    """Return the relative frame of two posed meshes; reaches bound the box coordinates of each."""
    rotation_b = rotation_of(pose_b)
    at_a = translation_of(pose_a)
    at_b = translation_of(pose_b)
    back = wp.inverse(rotation_of(pose_a))
    rotation = back * rotation_b
    shift = back * (rotation_b * origin_b + (at_b - at_a)) - origin_a

    # the deviation of the columns from orthonormality widens the test along them
    gram = wp.transpose(rotation) * rotation
    skew = wp.float64(0.0)
    gram_a = wp.transpose(rotation_of(pose_a)) * rotation_of(pose_a)
    skew_a = wp.float64(0.0)
    out = RelativeFrame()
    for i in range(3):
        for j in range(3):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            skew = wp.max(skew, wp.abs(gram[i, j] - unit))
            skew_a = wp.max(skew_a, wp.abs(gram_a[i, j] - unit))
            out.rows[i, j] = wp.float32(rotation[i, j])
            out.columns[j, i] = wp.float32(rotation[i, j])
    out.shift = round_to_row(shift)
    near = max_abs(shift) + wp.float64(2.0) * (reach_a + reach_b)
    world = max_abs(at_a) + max_abs(at_b) + max_abs(origin_a) + max_abs(origin_b) + near
    widen = ROUNDING * near + WORLD_ROUNDING * world + wp.float64(4.0) * skew * reach_b
    widen += SUBNORMAL_SLACK
    out.widen = wp.vec4f(wp.float32(widen))
    out.rotated = 1
    out.stretch = wp.float32(STRETCH + wp.float64(4.0) * (skew + skew_a))
    if not (near < FLOAT32_RANGE):
        return unbounded_frame()
    return out
