"""Boxes of two frames: how one frame sits in the other, and how far apart boxes are across them.

The separating-axis test holds for any axis and any linear map, so a pose that is rigid only up
to rounding loses nothing: ``widen`` covers what float32 and the axes' own error can amount to.
"""

import warp as wp

from abut.bounds.aabb import overlap_aabb

ROUNDING = wp.constant(wp.float64(2.0**-18))  # 64 float32 roundings of the largest number met
WORLD_ROUNDING = wp.constant(wp.float64(2.0**-48))  # 32 float64 roundings
STRETCH = wp.constant(wp.float64(1.0 + 2.0**-19))  # some float32 roundings
FLOAT32_RANGE = wp.constant(wp.float64(1e36))  # beyond, products of boxes may overflow


@wp.struct
class Relative:
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
    out = Relative()
    out.widen = wp.vec4f(wp.inf)
    out.stretch = wp.float32(STRETCH)
    return out


@wp.func
def shifted_frame(origin_a: wp.vec3d, origin_b: wp.vec3d, reach_b: wp.float64):
    """Relative frame of two unmoved meshes; ``reach_b`` bounds b's box coordinates."""
    out = Relative()
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
    at_a = wp.vec3d(pose_a[0, 3], pose_a[1, 3], pose_a[2, 3])
    at_b = wp.vec3d(pose_b[0, 3], pose_b[1, 3], pose_b[2, 3])
    back = wp.inverse(turn_of(pose_a))
    turn = back * turn_b
    shift = back * (turn_b * origin_b + (at_b - at_a)) - origin_a

    # how far the columns of ``turn`` are from orthonormal widens the test along them
    gram = wp.transpose(turn) * turn
    skew = wp.float64(0.0)
    gram_a = wp.transpose(turn_of(pose_a)) * turn_of(pose_a)
    skew_a = wp.float64(0.0)
    out = Relative()
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


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float apart = -3.0e38f;
    for (int i = 0; i < 3; ++i) {
        apart = max(apart, lower_a.c[i] - (upper_b.c[i] + shift.c[i]) - widen.c[i]);
        apart = max(apart, (lower_b.c[i] + shift.c[i]) - upper_a.c[i] - widen.c[i]);
    }
    return apart;
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 la, ua, lb, ub, s, w;
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    __builtin_memcpy(&s, &shift, 16);
    __builtin_memcpy(&w, &widen, 16);
    const v4 before = la - (ub + s) - w;
    const v4 behind = (lb + s) - ua - w;
    const v4 apart = before > behind ? before : behind;
    const float most = apart[0] > apart[1] ? apart[0] : apart[1];
    return most > apart[2] ? most : apart[2];
#endif
""")
def separation_shifted(
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Largest gap between two boxes along the axes, less ``widen``; negative inside."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float apart = -3.0e38f;
    float gap[3], ha[3], hb[3], cb[3];
    for (int i = 0; i < 3; ++i) {
        ha[i] = (upper_a.c[i] - lower_a.c[i]) * 0.5f;
        hb[i] = (upper_b.c[i] - lower_b.c[i]) * 0.5f;
        cb[i] = (upper_b.c[i] + lower_b.c[i]) * 0.5f;
    }
    for (int i = 0; i < 3; ++i) {
        gap[i] = columns.data[0][i] * cb[0] + columns.data[1][i] * cb[1]
               + columns.data[2][i] * cb[2]
               + shift.c[i] - (upper_a.c[i] + lower_a.c[i]) * 0.5f;
        const float reach = ha[i] + fabsf(columns.data[0][i]) * hb[0]
            + fabsf(columns.data[1][i]) * hb[1] + fabsf(columns.data[2][i]) * hb[2] + widen.c[i];
        apart = max(apart, fabsf(gap[i]) - reach);
    }
    for (int j = 0; j < 3; ++j) {
        const float along = rows.data[0][j] * gap[0] + rows.data[1][j] * gap[1]
            + rows.data[2][j] * gap[2];
        const float reach = hb[j] + fabsf(rows.data[0][j]) * ha[0]
            + fabsf(rows.data[1][j]) * ha[1] + fabsf(rows.data[2][j]) * ha[2] + widen.c[j];
        apart = max(apart, fabsf(along) - reach);
    }
    return apart;
#else
    typedef float v4 __attribute__((vector_size(16)));
    typedef int i4 __attribute__((vector_size(16)));
    const i4 no_sign = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    v4 la, ua, lb, ub, s, w, c[3], r[3];
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    __builtin_memcpy(&s, &shift, 16);
    __builtin_memcpy(&w, &widen, 16);
    for (int i = 0; i < 3; ++i) {
        __builtin_memcpy(&c[i], columns.data[i], 16);
        __builtin_memcpy(&r[i], rows.data[i], 16);
    }
    const v4 ha = (ua - la) * 0.5f, hb = (ub - lb) * 0.5f, cb = (ub + lb) * 0.5f;
    const v4 gap = c[0] * cb[0] + c[1] * cb[1] + c[2] * cb[2] + s - (ua + la) * 0.5f;
    const v4 reach_a = ha + (v4)((i4)c[0] & no_sign) * hb[0] + (v4)((i4)c[1] & no_sign) * hb[1]
                     + (v4)((i4)c[2] & no_sign) * hb[2] + w;
    const v4 along = r[0] * gap[0] + r[1] * gap[1] + r[2] * gap[2];
    const v4 reach_b = hb + (v4)((i4)r[0] & no_sign) * ha[0] + (v4)((i4)r[1] & no_sign) * ha[1]
                     + (v4)((i4)r[2] & no_sign) * ha[2] + w;
    const v4 out_a = (v4)((i4)gap & no_sign) - reach_a;
    const v4 out_b = (v4)((i4)along & no_sign) - reach_b;
    const v4 apart = out_a > out_b ? out_a : out_b;
    const float most = apart[0] > apart[1] ? apart[0] : apart[1];
    return most > apart[2] ? most : apart[2];
#endif
""")
def separation_turned(
    columns: wp.mat44f,
    rows: wp.mat44f,
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Largest gap along the six axes of two boxes turned against each other, less ``widen``."""
    ...


@wp.func
def separation_across(
    relative: Relative,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """How far apart boxes of two frames are along some axis; not above 0 where they may overlap.

    Guarantee:
        Conservative. Positive only when the boxes, and all they bound, are apart.
    """
    if relative.turned == 0:
        return separation_shifted(
            relative.shift, relative.widen, lower_a, upper_a, lower_b, upper_b
        )
    return separation_turned(
        relative.columns,
        relative.rows,
        relative.shift,
        relative.widen,
        lower_a,
        upper_a,
        lower_b,
        upper_b,
    )


@wp.func
def overlap_across(
    relative: Relative,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """May boxes of two frames overlap?

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
    return not (separation_across(relative, lower_a, upper_a, lower_b, upper_b) > wp.float32(0.0))
