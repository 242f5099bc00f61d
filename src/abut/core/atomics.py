"""Atomics for both processors.

Warp's own atomics are plain read-modify-write on the CPU and lose updates when slices of a launch
run on several threads. These compile to atomic instructions on both processors. *Aggregated* ones
issue one atomic for all lanes of a warp that execute them together.
"""

import warp as wp


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    // One atomic for all lanes that arrive together.
    const unsigned lanes = __activemask();
    const int leader = __ffs(lanes) - 1;
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    int before = 0, total = 0;
    for (unsigned left = lanes; left; left &= left - 1) {
        const int source = __ffs(left) - 1;
        const int theirs = __shfl_sync(lanes, amount, source);
        before += source < lane ? theirs : 0;
        total += theirs;
    }
    unsigned long long base = 0;
    if (lane == leader)
        base = atomicAdd((unsigned long long*)counter.data, (unsigned long long)total);
    return (int64_t)__shfl_sync(lanes, base, leader) + before;
#else
    return __atomic_fetch_add(counter.data, (int64_t)amount, __ATOMIC_RELAXED);
#endif
""")
def atomic_add_aggregated(counter: wp.array[wp.int64], amount: wp.int32) -> wp.int64:
    """Add ``amount`` to ``counter[0]``, aggregated; returns the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    unsigned long long base = 0;
    if ((threadIdx.x & 31u) == 0)
        base = atomicAdd((unsigned long long*)counter.data, (unsigned long long)amount);
    return (int64_t)__shfl_sync(0xffffffffu, base, 0);
#else
    return __atomic_fetch_add(counter.data, (int64_t)amount, __ATOMIC_RELAXED);
#endif
""")
def warp_atomic_add(counter: wp.array[wp.int64], amount: wp.int32) -> wp.int64:
    """Add ``amount`` to ``counter[0]`` once per warp; all lanes get the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int before = 0;
    if ((threadIdx.x & 31u) == 0) before = atomicAdd(counter.data, amount);
    return __shfl_sync(0xffffffffu, before, 0);
#else
    return __atomic_fetch_add(counter.data, amount, __ATOMIC_RELAXED);
#endif
""")
def warp_atomic_add_int32(counter: wp.array[wp.int32], amount: wp.int32) -> wp.int32:
    """Add ``amount`` to ``counter[0]`` once per warp; all lanes get the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    // One atomic for all lanes that arrive together.
    const unsigned lanes = __activemask();
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
#if __CUDA_ARCH__ >= 800
    const unsigned long long low = __reduce_add_sync(lanes, (unsigned)(amount & 0xfffff));
    const unsigned long long high = __reduce_add_sync(lanes, (unsigned)(amount >> 20));
    const unsigned long long total = (high << 20) + low;
#else
    unsigned long long total = 0;
    for (unsigned left = lanes; left; left &= left - 1)
        total += __shfl_sync(lanes, (unsigned long long)amount, __ffs(left) - 1);
#endif
    if (lane == __ffs(lanes) - 1 && total != 0)
        atomicAdd((unsigned long long*)sums.data + i, total);
#else
    if (amount != 0) __atomic_fetch_add(&sums.data[i], amount, __ATOMIC_RELAXED);
#endif
""")
def atomic_add_uniform(sums: wp.array[wp.int64], i: wp.int32, amount: wp.int64):
    """Add up to 2**46 to ``sums[i]``, aggregated; i must be the same for all threads."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int before;
    asm volatile("atom.acq_rel.gpu.global.exch.b32 %0, [%1], %2;"
                 : "=r"(before) : "l"(slots.data + i), "r"(value) : "memory");
    return before;
#else
    return __atomic_exchange_n(&slots.data[i], value, __ATOMIC_ACQ_REL);
#endif
""")
def atomic_exchange(slots: wp.array[wp.int32], i: wp.int32, value: wp.int32) -> wp.int32:
    """Store ``value`` in slot i; returns the value before. Ordered by acquire and release.

    A thread that gets another thread's value may read all that the other wrote before it, through
    ``load_l2_vec4f``.
    """
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before) : "l"(slots.data + i) : "memory");
    return before;
#else
    return __atomic_fetch_add(&slots.data[i], 1, __ATOMIC_ACQ_REL);
#endif
""")
def atomic_increment_acq_rel(slots: wp.array[wp.int32], i: wp.int32) -> wp.int32:
    """Increment slot i; returns the value before. Ordered like ``atomic_exchange``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return atomicCAS(slots.data + i, expected, value);
#else
    int32_t seen = expected;
    __atomic_compare_exchange_n(&slots.data[i], &seen, value, false,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return seen;
#endif
""")
def atomic_cas(
    slots: wp.array[wp.int32], i: wp.int32, expected: wp.int32, value: wp.int32
) -> wp.int32:
    """Store ``value`` in slot i if it holds ``expected``; returns the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return atomicAdd(slots.data + i, 1);
#else
    return __atomic_fetch_add(&slots.data[i], 1, __ATOMIC_RELAXED);
#endif
""")
def atomic_increment(slots: wp.array[wp.int32], i: wp.int32) -> wp.int32:
    """Increment slot i; returns the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return atomicSub(slots.data + i, 1) - 1;
#else
    return __atomic_fetch_sub(&slots.data[i], 1, __ATOMIC_RELAXED) - 1;
#endif
""")
def atomic_decrement(slots: wp.array[wp.int32], i: wp.int32) -> wp.int32:
    """Decrement slot i; returns the value after."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    atomicAdd((unsigned long long*)values.data + i, (unsigned long long)amount);
#else
    __atomic_fetch_add(&values.data[i], amount, __ATOMIC_RELAXED);
#endif
""")
def atomic_add_int64(values: wp.array[wp.int64], i: wp.int32, amount: wp.int64):
    """Add to ``values[i]``. Integer sums do not depend on the order of addition."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return (int64_t)atomicMin((long long*)values.data + i, (long long)value);
#else
    int64_t seen = __atomic_load_n(&values.data[i], __ATOMIC_RELAXED);
    while (value < seen
           && !__atomic_compare_exchange_n(&values.data[i], &seen, value, true,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return seen;
#endif
""")
def atomic_min_int64(values: wp.array[wp.int64], i: wp.int32, value: wp.int64) -> wp.int64:
    """Set ``values[i]`` to the smaller of itself and ``value``; returns the value before."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    // Lanes that arrive together for the same i send one atomic.
    unsigned waiting = __activemask();
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    while (true) {
        const int leader = __ffs(waiting) - 1;
        const bool ours = __shfl_sync(waiting, i, leader) == i;
        const unsigned peers = __ballot_sync(waiting, ours);
        if (ours) {
            long long least = value;
            for (unsigned left = peers; left; left &= left - 1) {
                const long long other = __shfl_sync(peers, (long long)value, __ffs(left) - 1);
                least = other < least ? other : least;
            }
            if (lane == leader && least < __ldcg((const long long*)values.data + i))
                atomicMin((long long*)values.data + i, least);
            break;
        }
        waiting &= ~peers;
    }
#else
    int64_t seen = __atomic_load_n(&values.data[i], __ATOMIC_RELAXED);
    while (value < seen
           && !__atomic_compare_exchange_n(&values.data[i], &seen, value, true,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
#endif
""")
def warp_atomic_min_int64(values: wp.array[wp.int64], i: wp.int32, value: wp.int64):
    """Set ``values[i]`` to the smaller of itself and ``value``, aggregated by equal i."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    if (__ldcg(values.data + i) < value) atomicMax(values.data + i, value);
#else
    int32_t seen = __atomic_load_n(&values.data[i], __ATOMIC_RELAXED);
    while (value > seen
           && !__atomic_compare_exchange_n(&values.data[i], &seen, value, true,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
#endif
""")
def atomic_max_int32(values: wp.array[wp.int32], i: wp.int32, value: wp.int32):
    """Set ``values[i]`` to the larger of itself and ``value``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int seen = __ldcg(owners.data + i);
    if (seen == owner || seen == -1) return;
    const int before = seen != 0 ? seen : atomicCAS(owners.data + i, 0, owner);
    if (before != 0 && before != owner) owners.data[i] = -1;
#else
    int32_t before = __atomic_load_n(&owners.data[i], __ATOMIC_RELAXED);
    if (before == owner || before == -1) return;
    if (before == 0
        && __atomic_compare_exchange_n(&owners.data[i], &before, owner, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    if (before != owner) __atomic_store_n(&owners.data[i], -1, __ATOMIC_RELAXED);
#endif
""")
def atomic_set_owner(owners: wp.array[wp.int32], i: wp.int32, owner: wp.int32):
    """Record an owner > 0 in slot i: 0 means none so far, -1 several different ones."""
    ...
