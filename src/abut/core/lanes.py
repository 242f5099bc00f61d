"""Threads that act together: the lanes of a CUDA warp; on the CPU each thread is alone.

All lanes must call these functions together.
"""

import warp as wp

WARP = 32


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 32;
#else
    return 1;
#endif
""")
def lane_count() -> wp.int32:
    """How many threads act together."""
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
    """The smallest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
#endif
    return value;
""")
def warp_sum(value: wp.int64) -> wp.int64:
    """The sum of the values of all lanes."""
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
    """The largest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(0xffffffffu, condition);
#else
    return condition;
#endif
""")
def warp_all(condition: wp.bool) -> wp.bool:
    """Whether a condition holds for all lanes."""
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
    """For how many lanes before this one a condition holds."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __popc(__ballot_sync(0xffffffffu, condition));
#else
    return condition;
#endif
""")
def warp_count(condition: wp.bool) -> wp.int32:
    """For how many lanes a condition holds."""
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
    """The sum of the values of the lanes before this one, and of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncwarp();
#endif
""")
def warp_sync():
    """Let all lanes see what each has written."""
    ...
