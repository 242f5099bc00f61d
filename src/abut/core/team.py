"""Teams: a work item for each warp on CUDA, and for each thread on the CPU, in one text.

A team takes the next item from a counter and keeps pairs of integers on a stack: in shared memory
on CUDA, in a local array on the CPU. All lanes of a team must call these functions together,
except for ``load_entry`` and ``store_entry``.
"""

import warp as wp

TEAMS_PER_BLOCK = 4
TEAM_BLOCK = 32 * TEAMS_PER_BLOCK  # threads
TEAM_GRID = 1 << 18  # CUDA threads, enough to fill any current GPU with teams
TEAM_STACK = wp.constant(1024)  # entries in shared memory


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int item = 0;
    if ((threadIdx.x & 31) == 0) item = atomicAdd(counter.data, 1);
    return __shfl_sync(0xffffffffu, item, 0);
#else
    return before + 1;
#endif
""")
def next_item(counter: wp.array[wp.int32], before: wp.int32) -> wp.int32:
    """Return the next item of a team: from a cleared counter on CUDA, else the one after."""
    ...


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    __shared__ int2 stacks[{TEAMS_PER_BLOCK}][{int(TEAM_STACK)}];
    return (uint64_t)__cvta_generic_to_shared(stacks[threadIdx.x >> 5]);
#else
    return 0;
#endif
""")
def shared_stack() -> wp.uint64:
    """Return the stack of this team in shared memory; CUDA only."""
    ...


@wp.func_native("return (uint64_t)entries.data;")
def local_stack(entries: wp.array[wp.vec2i]) -> wp.uint64:
    """Return a local array as a stack; CPU only."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int x, y;
    const unsigned at = (unsigned)stack + 8u * (unsigned)slot;
    asm volatile("ld.shared.v2.s32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
    return wp::vec_t<2, wp::int32>(x, y);
#else
    return ((const wp::vec_t<2, wp::int32>*)stack)[slot];
#endif
""")
def load_entry(stack: wp.uint64, slot: wp.int32) -> wp.vec2i:
    """Read an entry of a stack."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned at = (unsigned)stack + 8u * (unsigned)slot;
    asm volatile("st.shared.v2.s32 [%0], {%1, %2};"
                 :: "r"(at), "r"(value.c[0]), "r"(value.c[1]) : "memory");
#else
    ((wp::vec_t<2, wp::int32>*)stack)[slot] = value;
#endif
""")
def store_entry(stack: wp.uint64, slot: wp.int32, value: wp.vec2i):
    """Write an entry of a stack."""
    ...


# Three words an entry, for searches that keep a bound beside each pair.
TRIPLE_TEAMS = 1  # of a block
TRIPLE_BLOCK = 32 * TRIPLE_TEAMS  # threads
TRIPLES = wp.constant(2300)  # entries of a team; eight teams fill the memory of a multiprocessor


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    __shared__ int triples[{TRIPLE_TEAMS}][3 * {int(TRIPLES)}];
    return (uint64_t)__cvta_generic_to_shared(triples[threadIdx.x >> 5]);
#else
    return 0;
#endif
""")
def shared_triples() -> wp.uint64:
    """Return the triples of this team in shared memory; CUDA only."""
    ...


@wp.func_native("return (uint64_t)entries.data;")
def local_triples(entries: wp.array[wp.vec3i]) -> wp.uint64:
    """Return a local array of TRIPLES entries; CPU only."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int x, y, z;
    const unsigned at = (unsigned)triples + 12u * (unsigned)slot;
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    asm volatile("ld.shared.s32 %0, [%1 + 4];" : "=r"(y) : "r"(at) : "memory");
    asm volatile("ld.shared.s32 %0, [%1 + 8];" : "=r"(z) : "r"(at) : "memory");
    return wp::vec_t<3, wp::int32>(x, y, z);
#else
    return ((const wp::vec_t<3, wp::int32>*)triples)[slot];
#endif
""")
def load_triple(triples: wp.uint64, slot: wp.int32) -> wp.vec3i:
    """Read an entry."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned at = (unsigned)triples + 12u * (unsigned)slot;
    asm volatile("st.shared.s32 [%0], %1;" :: "r"(at), "r"(value.c[0]) : "memory");
    asm volatile("st.shared.s32 [%0 + 4], %1;" :: "r"(at), "r"(value.c[1]) : "memory");
    asm volatile("st.shared.s32 [%0 + 8], %1;" :: "r"(at), "r"(value.c[2]) : "memory");
#else
    ((wp::vec_t<3, wp::int32>*)triples)[slot] = value;
#endif
""")
def store_triple(triples: wp.uint64, slot: wp.int32, value: wp.vec3i):
    """Write an entry."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    asm volatile("st.shared.f32 [%0], %1;" :: "r"((unsigned)triples + 4u * word), "f"(value)
                 : "memory");
#else
    ((float*)triples)[word] = value;
#endif
""")
def store_word(triples: wp.uint64, word: wp.int32, value: wp.float32):
    """Write one of the words of all entries."""
    ...
