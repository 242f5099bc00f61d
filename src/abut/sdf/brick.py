"""A brick of 4 x 4 x 4 samples that search together: lanes of a CUDA warp, or one CPU thread.

Both measure a face by the same float32 operations in the same order, so both find the same face,
that of the least (squared distance, index). On CUDA a lane has two samples, neighbours along x, and
keeps their best in registers. On the CPU a thread keeps the best of all samples in a ``store``,
eight samples in a vector register: four along z, two along y.

    store: x, y, z, best squared distance, its face (64 each) | per group of eight: lower corners,
    upper corners, middles (24 each), largest best, its limit, the limit from the middle, radius
"""

import warp as wp

from abut.bvh.triangle_frames import SQUARED_DISTANCE_CODE

BRICK_SIDE = wp.constant(4)  # samples
BRICK_SAMPLES = wp.constant(64)
STORE = wp.constant(5 * 64 + 13 * 8)
NO_FACE = wp.constant(2147483647)  # exceeds every face
EVERY_GROUP = wp.constant(255)

_LIMIT = """
    const auto limit = [](float squared, float error) {
        const float most = sqrtf(squared) + error;
        return most * most * (1.0f + 0x1p-18f);
    };
"""

_CPU_TYPES = """
    typedef float v8 __attribute__((vector_size(32)));
    typedef int i8 __attribute__((vector_size(32)));
    const auto load = [](const float* at) { v8 v; __builtin_memcpy(&v, at, 32); return v; };
"""


@wp.func_native(
    """
#if !defined(__CUDA_ARCH__)
"""
    + _LIMIT
    + """
    float* s = store.data;
    for (int n = 0; n < 64; ++n) {
        s[n] = x.c[n / 16];
        s[64 + n] = y.c[n / 4 % 4];
        s[128 + n] = z.c[n % 4];
        s[192 + n] = start;
        __builtin_memcpy(s + 256 + n, &nothing, 4);
    }
    for (int g = 0; g < 8; ++g) {
        const int n = 8 * g;
        float* box = s + 320 + g;
        box[0] = s[n], box[8] = s[64 + n], box[16] = s[128 + n];
        box[24] = s[n + 7], box[32] = s[64 + n + 7], box[40] = s[128 + n + 7];
        float far = 0.0f;
        for (int i = 0; i < 24; i += 8) {
            box[48 + i] = 0.5f * (box[i] + box[24 + i]);
            const float half = box[24 + i] - box[48 + i];
            far += half * half;
        }
        box[72] = start;
        box[80] = limit(start, error);
        box[88] = limit(start, error + sqrtf(far));
        box[96] = sqrtf(far);
    }
#endif
"""
)
def begin_brick(
    store: wp.array[wp.float32],
    x: wp.vec4f,
    y: wp.vec4f,
    z: wp.vec4f,
    start: wp.float32,
    nothing: wp.int32,
    error: wp.float32,
):
    """Fill the store of a CPU thread: coordinates of its samples, no face within ``start``."""
    ...


@wp.func_native(
    SQUARED_DISTANCE_CODE
    + """
    wp::vec_t<4, wp::float32> out = best;
#if defined(__CUDA_ARCH__)
    float r[20];
    #pragma unroll
    for (int i = 0; i < 5; ++i) {
        const float4 row = __ldg((const float4*)frames.data + first + i);
        r[4 * i] = row.x, r[4 * i + 1] = row.y, r[4 * i + 2] = row.z, r[4 * i + 3] = row.w;
    }
    #pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float squared = measured(r, p.c[n], p.c[2], p.c[3]), held = best.c[2 * n];
        const bool equal = squared == held && face < __float_as_int(best.c[2 * n + 1]);
        if (squared < held || equal) {
            out.c[2 * n] = squared;
            out.c[2 * n + 1] = __int_as_float(face);
        }
    }
#else
"""
    + _LIMIT
    + _CPU_TYPES
    + """
    float* s = store.data;
    const float* r = (const float*)(frames.data + first);
    const v8 none = {0, 0, 0, 0, 0, 0, 0, 0};
    v8 sum = none;
    for (int i = 0; i < 3; ++i) {
        const v8 before = r[16 + i] - load(s + 344 + 8 * i);
        const v8 behind = load(s + 320 + 8 * i) - r[20 + i];
        v8 gap = before > behind ? before : behind;
        gap = gap > none ? gap : none;
        sum += gap * gap;
    }
    const i8 near = sum <= load(s + 400);
    bool changed = false;
    for (int g = 0; g < 8; ++g) {
        if (!near[g] || !(groups >> g & 1))
            continue;
        const int n = 8 * g;
        const v8 squared = measured(r, load(s + n), load(s + 64 + n), load(s + 128 + n));
        const v8 held = load(s + 192 + n);
        i8 faces;
        __builtin_memcpy(&faces, s + 256 + n, 32);
        const i8 better = (squared < held) | ((squared == held) & (face < faces));
        if (!__builtin_reduce_or(better))
            continue;
        const v8 now = better ? squared : held;
        faces = better ? face - (faces & 0) : faces;
        __builtin_memcpy(s + 192 + n, &now, 32);
        __builtin_memcpy(s + 256 + n, &faces, 32);
        const float most = __builtin_reduce_max(now);
        changed = changed || most < s[392 + g];
        s[392 + g] = most;
        s[400 + g] = limit(most, error);
        s[408 + g] = limit(most, error + s[416 + g]);
    }
    if (changed)
        out.c[0] = __builtin_reduce_max(load(s + 400));
#endif
    return out;
"""
)
def scan_triangle(
    frames: wp.array[wp.vec4f],
    first: wp.int32,
    face: wp.int32,
    p: wp.vec4f,
    error: wp.float32,
    best: wp.vec4f,
    groups: wp.int32,
    store: wp.array[wp.float32],
) -> wp.vec4f:
    """Measure the face whose rows begin at ``first``; on the CPU, for some groups of samples.

    ``p`` is x of the lane's two samples, y and z. ``best`` is, for each of them, the least squared
    distance and, as bits, the face; on the CPU its first number is the largest limit of the store.
    """
    ...


@wp.func_native(
    _LIMIT
    + """
    float c[12];
#if defined(__CUDA_ARCH__)
    #pragma unroll
    for (int i = 0; i < 3; ++i) {
        const float4 row = __ldg((const float4*)obbs.data + first + i);
        c[4 * i] = row.x, c[4 * i + 1] = row.y, c[4 * i + 2] = row.z, c[4 * i + 3] = row.w;
    }
#else
    __builtin_memcpy(c, obbs.data + first, 48);
#endif
    const float wx = c[5] * c[10] - c[6] * c[9], wy = c[6] * c[8] - c[4] * c[10],
                wz = c[4] * c[9] - c[5] * c[8];
    const auto apart = [&](auto px, auto py, auto pz) {
        const auto qx = px - c[0], qy = py - c[1], qz = pz - c[2];
        const auto u = qx * c[4] + (qy * c[5] + qz * c[6]);
        const auto v = qx * c[8] + (qy * c[9] + qz * c[10]);
        const auto w = qx * wx + (qy * wy + qz * wz);
        const auto none = decltype(u + u){};
        const auto beyond = [&](auto x, float half) {
            const auto out = (x > none ? x : none - x) - half;
            const auto gap = out > none ? out : none;
            return gap * gap;
        };
        return beyond(u, c[3]) + beyond(v, c[7]) + beyond(w, c[11]);
    };
#if defined(__CUDA_ARCH__)
    const bool near = apart(p.c[0], p.c[2], p.c[3]) <= limit(best.c[0], error)
                   || apart(p.c[1], p.c[2], p.c[3]) <= limit(best.c[2], error);
    return __any_sync(__activemask(), near);
#else
"""
    + _CPU_TYPES
    + """
    const float* s = store.data;
    const i8 near = apart(load(s + 368), load(s + 376), load(s + 384)) <= load(s + 408);
    const i8 bits = {1, 2, 4, 8, 16, 32, 64, 128};
    return __builtin_reduce_or(near & bits);
#endif
"""
)
def groups_within(
    obbs: wp.array[wp.vec4f],
    first: wp.int32,
    p: wp.vec4f,
    error: wp.float32,
    best: wp.vec4f,
    store: wp.array[wp.float32],
) -> wp.int32:
    """Return the groups of samples, as bits, whose best may be improved in an oriented box.

    On CUDA 1 where any lane's may. The box's rows begin at ``first``, see bounds.obb.
    """
    ...


@wp.func_native(
    _LIMIT
    + """
#if defined(__CUDA_ARCH__)
    return limit(fmaxf(best.c[0], best.c[2]), error);
#else
    return best.c[0];
#endif
"""
)
def box_gap_limit(best: wp.vec4f, error: wp.float32) -> wp.float32:
    """Return the largest squared gap of a box that may hold a face as near as the best."""
    ...


@wp.func_native(
    _LIMIT
    + """
    wp::vec_t<4, wp::float32> best;
    best.c[2] = start;
#if defined(__CUDA_ARCH__)
    best.c[0] = start;
#else
    best.c[0] = limit(start, error);
#endif
    memcpy(&best.c[1], &nothing, 4);
    memcpy(&best.c[3], &nothing, 4);
    return best;
"""
)
def initial_best(start: wp.float32, nothing: wp.int32, error: wp.float32) -> wp.vec4f:
    """Return the ``best`` of a search that has found nothing."""
    ...


@wp.func_native("""
    int face;
#if defined(__CUDA_ARCH__)
    face = __float_as_int(sample / 16 % 2 ? best.c[3] : best.c[1]);
#else
    __builtin_memcpy(&face, store.data + 256 + sample, 4);
#endif
    return face;
""")
def found_face(best: wp.vec4f, store: wp.array[wp.float32], sample: wp.int32) -> wp.int32:
    """Return the face nearest to a sample of the brick, on CUDA one of the lane's own."""
    ...
