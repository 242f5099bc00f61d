"""Boxes of two frames: a lower bound of the distance between what they bound.

Bounds are squared, in float32, and hold but for the ``stretch`` of the frame, which callers allow
for when they compare (see approach): float32 arithmetic on gaps that were widened before, and
poses that are rigid up to 1e-5 only. Products that overflow give infinity or NaN, which no
comparison culls by.
"""

import warp as wp

from abut.bounds.relative import Relative


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float squared = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float before = lower_a.c[i] - (upper_b.c[i] + shift.c[i]);
        const float behind = (lower_b.c[i] + shift.c[i]) - upper_a.c[i];
        const float apart = (before > behind ? before : behind) - widen.c[i];
        const float gap = apart > 0.0f ? apart : 0.0f;
        squared += gap * gap;
    }
    return squared;
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 la, ua, lb, ub, s, w;
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    __builtin_memcpy(&s, &shift, 16);
    __builtin_memcpy(&w, &widen, 16);
    const v4 before = la - (ub + s);
    const v4 behind = (lb + s) - ua;
    const v4 apart = (before > behind ? before : behind) - w;
    const v4 gap = apart > 0.0f ? apart : (v4){0.0f, 0.0f, 0.0f, 0.0f};
    const v4 squares = gap * gap;
    return squares[0] + squares[1] + squares[2];
#endif
""")
def squared_apart_shifted(
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Square of the distance of two boxes with parallel axes, each gap less ``widen``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float gap[3], ha[3], hb[3], cb[3];
    for (int i = 0; i < 3; ++i) {
        ha[i] = (upper_a.c[i] - lower_a.c[i]) * 0.5f;
        hb[i] = (upper_b.c[i] - lower_b.c[i]) * 0.5f;
        cb[i] = (upper_b.c[i] + lower_b.c[i]) * 0.5f;
    }
    float in_a = 0.0f, in_b = 0.0f;
    for (int i = 0; i < 3; ++i) {
        gap[i] = columns.data[0][i] * cb[0] + columns.data[1][i] * cb[1]
               + columns.data[2][i] * cb[2]
               + shift.c[i] - (upper_a.c[i] + lower_a.c[i]) * 0.5f;
        const float reach = ha[i] + fabsf(columns.data[0][i]) * hb[0]
            + fabsf(columns.data[1][i]) * hb[1] + fabsf(columns.data[2][i]) * hb[2] + widen.c[i];
        const float apart = fabsf(gap[i]) - reach;
        const float clear = apart > 0.0f ? apart : 0.0f;
        in_a += clear * clear;
    }
    for (int j = 0; j < 3; ++j) {
        const float along = rows.data[0][j] * gap[0] + rows.data[1][j] * gap[1]
            + rows.data[2][j] * gap[2];
        const float reach = hb[j] + fabsf(rows.data[0][j]) * ha[0]
            + fabsf(rows.data[1][j]) * ha[1] + fabsf(rows.data[2][j]) * ha[2] + widen.c[j];
        const float apart = fabsf(along) - reach;
        const float clear = apart > 0.0f ? apart : 0.0f;
        in_b += clear * clear;
    }
    return in_a > in_b ? in_a : in_b;
#else
    typedef float v4 __attribute__((vector_size(16)));
    typedef int i4 __attribute__((vector_size(16)));
    const i4 no_sign = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    const v4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
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
    const v4 clear_a = out_a > 0.0f ? out_a : zero;
    const v4 clear_b = out_b > 0.0f ? out_b : zero;
    const v4 squares_a = clear_a * clear_a, squares_b = clear_b * clear_b;
    const float in_a = squares_a[0] + squares_a[1] + squares_a[2];
    const float in_b = squares_b[0] + squares_b[1] + squares_b[2];
    return in_a > in_b ? in_a : in_b;
#endif
""")
def squared_apart_turned(
    columns: wp.mat44f,
    rows: wp.mat44f,
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Square of the larger distance of one box and the box around the other in its frame."""
    ...


@wp.func
def squared_apart(
    relative: Relative,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """Square of a lower bound of the distance of boxes of two frames.

    Guarantee:
        Conservative, up to the relative error said above. Positive only when all that the boxes
        bound is apart.
    """
    if relative.turned == 0:
        return squared_apart_shifted(
            relative.shift, relative.widen, lower_a, upper_a, lower_b, upper_b
        )
    return squared_apart_turned(
        relative.columns,
        relative.rows,
        relative.shift,
        relative.widen,
        lower_a,
        upper_a,
        lower_b,
        upper_b,
    )
