"""Threads that walk together: the lanes of a CUDA warp; on the CPU each thread is alone.

Lanes of a warp run the same instructions anyway. Where they also read the same node, one load
serves them all. All lanes must call these functions together.
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
    """How many threads walk together."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
#else
    return 0;
#endif
""")
def lane() -> wp.int32:
    """Which of them this thread is."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __any_sync(0xffffffffu, flag);
#else
    return flag;
#endif
""")
def any_lane(flag: wp.bool) -> wp.bool:
    """Whether the flag is set in any lane."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    int up_to = amount;  // the sum over this lane and those before it
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, up_to, step);
        up_to += lane >= step ? before : 0;
    }
    unsigned long long base = 0;
    if (lane == 31)
        base = atomicAdd((unsigned long long*)counter.data, (unsigned long long)up_to);
    return (int64_t)__shfl_sync(0xffffffffu, base, 31) + up_to - amount;
#else
    return __atomic_fetch_add(counter.data, (int64_t)amount, __ATOMIC_RELAXED);
#endif
""")
def reserve_together(counter: wp.array[wp.int64], amount: wp.int32) -> wp.int64:
    """Add the amounts of all lanes to ``counter[0]``; returns where this lane's part begins."""
    ...
