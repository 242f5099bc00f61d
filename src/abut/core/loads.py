"""Reads and writes that CUDA is told more about: wide ones, and of what others have just written.

On the CPU they are plain, except where another thread may write meanwhile.
"""

import warp as wp


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const float4 v = __ldg((const float4*)values.data + i);
    return wp::vec_t<4, wp::float32>(v.x, v.y, v.z, v.w);
#else
    return values.data[i];
#endif
""")
def load_vec4f(values: wp.array[wp.vec4f], i: wp.int32) -> wp.vec4f:
    """Read 16 bytes at once; for arrays that the running launch does not write."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int4 v = __ldg((const int4*)values.data + i);
    return wp::vec_t<4, wp::int32>(v.x, v.y, v.z, v.w);
#else
    return values.data[i];
#endif
""")
def load_vec4i(values: wp.array[wp.vec4i], i: wp.int32) -> wp.vec4i:
    """``load_vec4f`` for integers."""
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
def load_uncached(values: wp.array[wp.vec4f], i: wp.int32) -> wp.vec4f:
    """Read past the first-level cache, which other threads' writes of this launch do not reach."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int2 v = __ldcg((const int2*)values.data + i);
    return wp::vec_t<2, wp::int32>(v.x, v.y);
#else
    return values.data[i];
#endif
""")
def load_uncached_pair(values: wp.array[wp.vec2i], i: wp.int32) -> wp.vec2i:
    """``load_uncached`` for two integers."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ldcg(values.data + i);
#else
    return values.data[i];
#endif
""")
def load_uncached_int32(values: wp.array[wp.int32], i: wp.int32) -> wp.int32:
    """``load_uncached`` for integers."""
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
def load_uncached_int64(values: wp.array[wp.int64], i: wp.int32) -> wp.int64:
    """Read what other threads of this launch may have lowered; late news does no harm."""
    ...
