"""C++ code for the gaps between boxes of two frames along the axes of both.

The code leaves the gaps, less ``widen``, in ``out_a`` (along the axes of a) and ``out_b`` (along
those of b): arrays of three on CUDA, vectors with an unused fourth component on the CPU. Gaps are
negative where boxes overlap; products that overflow make them infinite or NaN.
"""

LOAD_CPU = """
    typedef float v4 __attribute__((vector_size(16)));
    typedef int i4 __attribute__((vector_size(16)));
    v4 la, ua, lb, ub, s, w;
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    __builtin_memcpy(&s, &shift, 16);
    __builtin_memcpy(&w, &widen, 16);
"""

PARALLEL_CUDA = """
    float out_a[3];
    for (int i = 0; i < 3; ++i) {
        const float before = lower_a.c[i] - (upper_b.c[i] + shift.c[i]);
        const float behind = (lower_b.c[i] + shift.c[i]) - upper_a.c[i];
        out_a[i] = (before > behind ? before : behind) - widen.c[i];
    }
    const float* out_b = out_a;
"""

PARALLEL_CPU = """
    const v4 before = la - (ub + s);
    const v4 behind = (lb + s) - ua;
    const v4 out_a = (before > behind ? before : behind) - w;
    const v4 out_b = out_a;
"""

ROTATED_CUDA = """
    float gap[3], ha[3], hb[3], cb[3], out_a[3], out_b[3];
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
        out_a[i] = fabsf(gap[i]) - reach;
    }
    for (int j = 0; j < 3; ++j) {
        const float along = rows.data[0][j] * gap[0] + rows.data[1][j] * gap[1]
            + rows.data[2][j] * gap[2];
        const float reach = hb[j] + fabsf(rows.data[0][j]) * ha[0]
            + fabsf(rows.data[1][j]) * ha[1] + fabsf(rows.data[2][j]) * ha[2] + widen.c[j];
        out_b[j] = fabsf(along) - reach;
    }
"""

ROTATED_CPU = """
    const i4 no_sign = {0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff};
    v4 c[3], r[3];
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
"""


def parallel_axes_code(cuda: str, cpu: str) -> str:
    """Return code for boxes with parallel axes, followed by code that uses the gaps."""
    return _both_processors(PARALLEL_CUDA + cuda, PARALLEL_CPU + cpu)


def rotated_axes_code(cuda: str, cpu: str) -> str:
    """Return code for boxes with rotated axes, followed by code that uses the gaps."""
    return _both_processors(ROTATED_CUDA + cuda, ROTATED_CPU + cpu)


def _both_processors(cuda: str, cpu: str) -> str:
    return f"#if defined(__CUDA_ARCH__)\n{cuda}\n#else\n{LOAD_CPU}{cpu}\n#endif\n"
