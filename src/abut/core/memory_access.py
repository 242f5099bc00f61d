"""Memory accesses of a chosen width and cache level on CUDA; plain ones on the CPU."""

import warp as wp


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const float4 v = __ldg((const float4*)values.data + i);
    return wp::vec_t<4, wp::float32>(v.x, v.y, v.z, v.w);
#else
    return values.data[i];
#endif
""")
def load_readonly_vec4f(values: wp.array[wp.vec4f], i: wp.int32) -> wp.vec4f:
    """Read 16 bytes through the read-only cache (``__ldg``); the launch must not write there."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int4 v = __ldg((const int4*)values.data + i);
    return wp::vec_t<4, wp::int32>(v.x, v.y, v.z, v.w);
#else
    return values.data[i];
#endif
""")
def load_readonly_vec4i(values: wp.array[wp.vec4i], i: wp.int32) -> wp.vec4i:
    """Read 16 bytes through the read-only cache; see ``load_readonly_vec4f``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    ((float4*)values.data)[i] = make_float4(value.c[0], value.c[1], value.c[2], value.c[3]);
#else
    values.data[i] = value;
#endif
""")
def store_vec4f(values: wp.array[wp.vec4f], i: wp.int32, value: wp.vec4f):
    """Write 16 bytes at once."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const float4 v = __ldcg((const float4*)values.data + i);
    return wp::vec_t<4, wp::float32>(v.x, v.y, v.z, v.w);
#else
    return values.data[i];
#endif
""")
def load_l2_vec4f(values: wp.array[wp.vec4f], i: wp.int32) -> wp.vec4f:
    """Read from the L2 cache (``__ldcg``): writes of other threads in this launch bypass L1."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int2 v = __ldcg((const int2*)values.data + i);
    return wp::vec_t<2, wp::int32>(v.x, v.y);
#else
    return values.data[i];
#endif
""")
def load_l2_vec2i(values: wp.array[wp.vec2i], i: wp.int32) -> wp.vec2i:
    """Read two integers from the L2 cache; see ``load_l2_vec4f``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ldcg(values.data + i);
#else
    return values.data[i];
#endif
""")
def load_l2_int32(values: wp.array[wp.int32], i: wp.int32) -> wp.int32:
    """Read an integer from the L2 cache; see ``load_l2_vec4f``."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    long long v;
    asm volatile("ld.relaxed.gpu.global.s64 %0, [%1];" : "=l"(v) : "l"(values.data + i));
    return (int64_t)v;
#else
    return __atomic_load_n(&values.data[i], __ATOMIC_RELAXED);
#endif
""")
def load_relaxed_int64(values: wp.array[wp.int64], i: wp.int32) -> wp.int64:
    """Read a value that other threads may be lowering (relaxed order): it may be out of date."""
    ...


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    __builtin_prefetch(rows.data + row);
#endif
""")
def read_ahead(rows: wp.array[wp.vec4f], row: wp.int32):
    """Let a CPU fetch a row that may be read soon; any row will do."""
    ...
