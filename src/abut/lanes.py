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
def least_of_lanes(value: wp.float64) -> wp.float64:
    """The smallest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
#endif
    return value;
""")
def sum_of_lanes(value: wp.int64) -> wp.int64:
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
def most_of_lanes(value: wp.int32) -> wp.int32:
    """The largest value of all lanes."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(0xffffffffu, condition);
#else
    return condition;
#endif
""")
def all_lanes(condition: wp.bool) -> wp.bool:
    """Whether a condition holds for all lanes."""
    ...
