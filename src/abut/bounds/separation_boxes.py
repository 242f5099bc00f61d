"""Separating axis tests for boxes of two frames."""

import warp as wp

from abut.bounds.aabb import overlap_aabb
from abut.bounds.axis_gaps import parallel_axes_code, rotated_axes_code
from abut.bounds.relative_frame import RelativeFrame

GREATEST_CUDA = """
    float apart = -3.0e38f;
    for (int i = 0; i < 3; ++i)
        apart = max(apart, max(out_a[i], out_b[i]));
    return apart;
"""
GREATEST_CPU = """
    const v4 apart = out_a > out_b ? out_a : out_b;
    const float most = apart[0] > apart[1] ? apart[0] : apart[1];
    return most > apart[2] ? most : apart[2];
"""


@wp.func_native(parallel_axes_code(GREATEST_CUDA, GREATEST_CPU))
def separation_parallel_boxes(
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Return the largest gap of two boxes along the axes, less ``widen``; negative on overlap."""
    ...


@wp.func_native(rotated_axes_code(GREATEST_CUDA, GREATEST_CPU))
def separation_rotated_boxes(
    columns: wp.mat44f,
    rows: wp.mat44f,
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Return the largest gap along the six axes of two rotated boxes, less ``widen``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const wp::vec_t<4, wp::float32>* boxes[8] = {&lower_a0, &upper_a0, &lower_a1, &upper_a1,
                                                 &lower_b0, &upper_b0, &lower_b1, &upper_b1};
    float center[4][3], half[4][3], at[2][3], reach[4][3];  // of a0, a1, b0, b1
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 3; ++i) {
            center[k][i] = (boxes[2 * k + 1]->c[i] + boxes[2 * k]->c[i]) * 0.5f;
            half[k][i] = (boxes[2 * k + 1]->c[i] - boxes[2 * k]->c[i]) * 0.5f;
        }
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 3; ++i) {
            const float *c = center[2 + k], *h = half[2 + k], *g = half[k];
            at[k][i] = columns.data[0][i] * c[0] + columns.data[1][i] * c[1]
                     + columns.data[2][i] * c[2] + shift.c[i];
            reach[2 + k][i] = fabsf(columns.data[0][i]) * h[0] + fabsf(columns.data[1][i]) * h[1]
                            + fabsf(columns.data[2][i]) * h[2] + widen.c[i];
            reach[k][i] = fabsf(rows.data[0][i]) * g[0] + fabsf(rows.data[1][i]) * g[1]
                        + fabsf(rows.data[2][i]) * g[2] + widen.c[i];
        }
    wp::vec_t<4, wp::float32> out;
    for (int k = 0; k < 4; ++k) {
        const int a = k >> 1, b = k & 1;
        float gap[3], apart = -3.0e38f;
        for (int i = 0; i < 3; ++i) {
            gap[i] = at[b][i] - center[a][i];
            apart = max(apart, fabsf(gap[i]) - (half[a][i] + reach[2 + b][i]));
        }
        for (int j = 0; j < 3; ++j) {
            const float along = rows.data[0][j] * gap[0] + rows.data[1][j] * gap[1]
                              + rows.data[2][j] * gap[2];
            apart = max(apart, fabsf(along) - (half[2 + b][j] + reach[a][j]));
        }
        out.c[k] = apart;
    }
    return out;
#else
    typedef float v4 __attribute__((vector_size(16)));
    typedef float v8 __attribute__((vector_size(32)));
    typedef float v16 __attribute__((vector_size(64)));
    typedef int i4 __attribute__((vector_size(16)));
    typedef int i16 __attribute__((vector_size(64)));
#define JOIN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7)
#define TWICE(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3)
#define ALL(x, i) __builtin_shufflevector(x, x, i, i, i, i, 4 + i, 4 + i, 4 + i, 4 + i)
#define OF_A(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7)
#define OF_B(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7)
#define EACH(x, i) __builtin_shufflevector(x, x, i, i, i, i, 4 + i, 4 + i, 4 + i, 4 + i, \\
    8 + i, 8 + i, 8 + i, 8 + i, 12 + i, 12 + i, 12 + i, 12 + i)
#define QUAD(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3)
    v4 box[8], s, w, c[3], r[3], size_c[3], size_r[3];
    const i4 no_sign = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    const wp::vec_t<4, wp::float32>* boxes[8] = {&lower_a0, &upper_a0, &lower_a1, &upper_a1,
                                                 &lower_b0, &upper_b0, &lower_b1, &upper_b1};
    for (int k = 0; k < 8; ++k)
        __builtin_memcpy(&box[k], boxes[k], 16);
    __builtin_memcpy(&s, &shift, 16);
    __builtin_memcpy(&w, &widen, 16);
    for (int i = 0; i < 3; ++i) {
        __builtin_memcpy(&c[i], columns.data[i], 16);
        __builtin_memcpy(&r[i], rows.data[i], 16);
        size_c[i] = (v4)((i4)c[i] & no_sign);
        size_r[i] = (v4)((i4)r[i] & no_sign);
    }
    const v8 lower_a = JOIN(box[0], box[2]), upper_a = JOIN(box[1], box[3]);
    const v8 lower_b = JOIN(box[4], box[6]), upper_b = JOIN(box[5], box[7]);
    const v8 ca = (upper_a + lower_a) * 0.5f, ha = (upper_a - lower_a) * 0.5f;
    const v8 cb = (upper_b + lower_b) * 0.5f, hb = (upper_b - lower_b) * 0.5f;
    const v8 at = TWICE(c[0]) * ALL(cb, 0) + TWICE(c[1]) * ALL(cb, 1) + TWICE(c[2]) * ALL(cb, 2)
                + TWICE(s);
    const v8 reach_b = TWICE(size_c[0]) * ALL(hb, 0) + TWICE(size_c[1]) * ALL(hb, 1)
                     + TWICE(size_c[2]) * ALL(hb, 2) + TWICE(w);
    const v8 reach_a = TWICE(size_r[0]) * ALL(ha, 0) + TWICE(size_r[1]) * ALL(ha, 1)
                     + TWICE(size_r[2]) * ALL(ha, 2) + TWICE(w);
    const v16 gap = OF_B(at) - OF_A(ca);
    const v16 along = QUAD(r[0]) * EACH(gap, 0) + QUAD(r[1]) * EACH(gap, 1)
                    + QUAD(r[2]) * EACH(gap, 2);
    const i16 no_signs = QUAD(no_sign);
    const v16 out_a = (v16)((i16)gap & no_signs) - (OF_A(ha) + OF_B(reach_b));
    const v16 out_b = (v16)((i16)along & no_signs) - (OF_B(hb) + OF_A(reach_a));
    const v16 apart = out_a > out_b ? out_a : out_b;
    const v16 y = EACH(apart, 1), z = EACH(apart, 2);
    const v16 most = y > apart ? y : apart;
    const v16 all = z > most ? z : most;
#undef JOIN
#undef TWICE
#undef ALL
#undef OF_A
#undef OF_B
#undef EACH
#undef QUAD
    return wp::vec_t<4, wp::float32>(all[0], all[4], all[8], all[12]);
#endif
""")
def separations_rotated_boxes(
    columns: wp.mat44f,
    rows: wp.mat44f,
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a0: wp.vec4f,
    upper_a0: wp.vec4f,
    lower_a1: wp.vec4f,
    upper_a1: wp.vec4f,
    lower_b0: wp.vec4f,
    upper_b0: wp.vec4f,
    lower_b1: wp.vec4f,
    upper_b1: wp.vec4f,
) -> wp.vec4f:
    """Return the separations of the pairs (a0, b0), (a0, b1), (a1, b0), (a1, b1) at once."""
    ...


@wp.func
def separation_boxes(
    relative: RelativeFrame,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """Return the largest gap of boxes of two frames along an axis; not above 0 if they may overlap.

    Guarantee:
        Conservative. Positive only when the boxes, and all they bound, are apart.
    """
    if relative.rotated == 0:
        return separation_parallel_boxes(
            relative.shift, relative.widen, lower_a, upper_a, lower_b, upper_b
        )
    return separation_rotated_boxes(
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
def separations_boxes(
    relative: RelativeFrame,
    lower_a0: wp.vec4f,
    upper_a0: wp.vec4f,
    lower_a1: wp.vec4f,
    upper_a1: wp.vec4f,
    lower_b0: wp.vec4f,
    upper_b0: wp.vec4f,
    lower_b1: wp.vec4f,
    upper_b1: wp.vec4f,
):
    """Return the separations of the pairs (a0, b0), (a0, b1), (a1, b0), (a1, b1)."""
    shift = relative.shift
    widen = relative.widen
    if relative.rotated == 0:
        return wp.vec4f(
            separation_parallel_boxes(shift, widen, lower_a0, upper_a0, lower_b0, upper_b0),
            separation_parallel_boxes(shift, widen, lower_a0, upper_a0, lower_b1, upper_b1),
            separation_parallel_boxes(shift, widen, lower_a1, upper_a1, lower_b0, upper_b0),
            separation_parallel_boxes(shift, widen, lower_a1, upper_a1, lower_b1, upper_b1),
        )
    return separations_rotated_boxes(
        relative.columns,
        relative.rows,
        shift,
        widen,
        lower_a0,
        upper_a0,
        lower_a1,
        upper_a1,
        lower_b0,
        upper_b0,
        lower_b1,
        upper_b1,
    )


@wp.func
def overlap_boxes(
    relative: RelativeFrame,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """Return whether boxes of two frames may overlap.

    Guarantee:
        Conservative. False only when the boxes, and all they bound, are apart.
    """
    if relative.rotated == 0:
        return overlap_aabb(
            lower_a - relative.widen,
            upper_a + relative.widen,
            lower_b + relative.shift,
            upper_b + relative.shift,
        )
    return not (separation_boxes(relative, lower_a, upper_a, lower_b, upper_b) > wp.float32(0.0))
