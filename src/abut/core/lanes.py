"""Warp intrinsics: lanes are the 32 threads of a CUDA warp, or one CPU thread.

All lanes of a warp must call these functions together.
"""

import warp as wp

WARP_SIZE = 32


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 32;
#else
    return 1;
#endif
""")
def lane_count() -> wp.int32:
    """Return the lanes per warp: 32 on CUDA, 1 on the CPU."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return threadIdx.x & 31;
#else
    return 0;
#endif
""")
def lane_index() -> wp.int32:
    """Return the index of this lane in its warp."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, value, step);
        value = other < value ? other : value;
    }
#endif
    return value;
""")
def warp_min(value: wp.float64) -> wp.float64:
    """Return the smallest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2)
        value = fminf(value, __shfl_xor_sync(0xffffffffu, value, step));
#endif
    return value;
""")
def warp_min_float32(value: wp.float32) -> wp.float32:
    """Return the smallest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
#endif
    return value;
""")
def warp_sum(value: wp.int64) -> wp.int64:
    """Return the sum of the values of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    #if __CUDA_ARCH__ >= 800
    value = __reduce_max_sync(0xffffffffu, value);
    #else
    for (int step = 16; step > 0; step /= 2)
        value = max(value, __shfl_xor_sync(0xffffffffu, value, step));
    #endif
#endif
    return value;
""")
def warp_max(value: wp.int32) -> wp.int32:
    """Return the largest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2)
        value |= __shfl_xor_sync(0xffffffffu, value, step);
#endif
    return value;
""")
def warp_or(value: wp.int32) -> wp.int32:
    """Return the bits that are set in any lane."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(0xffffffffu, condition);
#else
    return condition;
#endif
""")
def warp_all(condition: wp.bool) -> wp.bool:
    """Return whether a condition holds for all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned lanes = __ballot_sync(0xffffffffu, condition);
    return lanes ? __ffs(lanes) - 1 : 32;
#else
    return condition ? 0 : 1;
#endif
""")
def warp_first(condition: wp.bool) -> wp.int32:
    """Return the first lane for which a condition holds; ``lane_count()`` if there is none."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __shfl_sync(0xffffffffu, value, lane);
#else
    return value;
#endif
""")
def warp_broadcast(value: wp.int64, lane: wp.int32) -> wp.int64:
    """Return the value of a lane."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int k = 0; k < 3; ++k)
        value.c[k] = __shfl_sync(0xffffffffu, value.c[k], lane);
#endif
    return value;
""")
def warp_broadcast_vec3f(value: wp.vec3f, lane: wp.int32) -> wp.vec3f:
    """Return the vector of a lane."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned before = (1u << (threadIdx.x & 31u)) - 1u;
    return __popc(__ballot_sync(0xffffffffu, condition) & before);
#else
    return 0;
#endif
""")
def warp_rank(condition: wp.bool) -> wp.int32:
    """Count the lanes before this one for which a condition holds."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __popc(__ballot_sync(0xffffffffu, condition));
#else
    return condition;
#endif
""")
def warp_count(condition: wp.bool) -> wp.int32:
    """Count the lanes for which a condition holds."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int lane = threadIdx.x & 31;
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? other : 0;
    }
    return wp::vec_t<2, wp::int32>(sum - value, __shfl_sync(0xffffffffu, sum, 31));
#else
    return wp::vec_t<2, wp::int32>(0, value);
#endif
""")
def warp_scan(value: wp.int32) -> wp.vec2i:
    """Return the exclusive prefix sum of this lane and the sum of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncwarp();
#endif
""")
def warp_sync():
    """Make the writes of each lane visible to all lanes."""
    ...
