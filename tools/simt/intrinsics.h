// CUDA's intrinsics for kernels that warps.c runs on the CPU.
namespace simt {
template <int k, typename F> inline F* entry() { return (F*)((void**)0x510000000000)[k]; }
inline int inside() { return entry<0, int()>()(); }
inline int lane() { return entry<1, int()>()(); }
inline unsigned thread_of_block() { return entry<2, unsigned()>()(); }
inline size_t first_task() { return entry<3, size_t()>()(); }
inline size_t last_task(size_t size) { return entry<4, size_t(size_t)>()(size); }
inline const uint64_t* gather(const char* site, unsigned mask, uint64_t value) {
    return entry<5, const uint64_t*(const char*, unsigned, uint64_t)>()(site, mask, value);
}
inline void yield() { entry<6, void()>()(); }
inline void* shared(const void* key, size_t bytes) {
    return entry<7, void*(const void*, size_t)>()(key, bytes);
}
inline void bad_index(const char* where, long index, long size) {
    entry<8, void(const char*, long, long)>()(where, index, size);
}
struct Index { unsigned x; };
template <typename T> inline uint64_t bits(T value) {
    uint64_t all = 0;
    __builtin_memcpy(&all, &value, sizeof(T));
    return all;
}
template <typename T> inline T from_bits(uint64_t all) {
    T value;
    __builtin_memcpy(&value, &all, sizeof(T));
    return value;
}
template <typename T> inline T pick(const char* s, unsigned mask, T value, int source) {
    const uint64_t* seen = gather(s, mask, bits(value));
    return source >= 0 && source < 32 ? from_bits<T>(seen[source]) : value;
}
inline unsigned ballot(const char* s, unsigned mask, bool condition) {
    const uint64_t* seen = gather(s, mask, condition);
    unsigned lanes = 0;
    for (int k = 0; k < 32; ++k)
        if ((mask >> k & 1) && seen[k]) lanes |= 1u << k;
    return lanes;
}
template <typename T, typename F> inline T reduce(const char* s, unsigned mask, T value, F join) {
    const uint64_t* seen = gather(s, mask, bits(value));
    for (int k = 0; k < 32; ++k)
        if (mask >> k & 1) value = k == lane() ? value : join(value, from_bits<T>(seen[k]));
    return value;
}
template <typename T, typename U, typename F> inline T update(T* at, U other, F join) {
    yield();
    const T before = *at;
    *at = join(before, (T)other);
    return before;
}
template <typename T> inline T load(const T* at) {
    yield();
    return *at;
}
template <typename A, typename... I> inline bool within(const char* where, const A& buf, I... at) {
    if (!inside()) return true;
    const int all[] = {(int)at...};
    for (unsigned k = 0; k < sizeof...(at); ++k)
        if ((unsigned)all[k] >= (unsigned)buf.shape[k]) {
            bad_index(where, all[k], buf.shape[k]);
            return false;
        }
    return true;
}
}  // namespace simt

// Arrays are accessed within their bounds; other threads may run before an element is written.
namespace wp {
template <template <typename> class A, typename T, typename... I>
inline T* checked_address(const char* where, const A<T>& buf, I... at) {
    alignas(16) static char zeros[sizeof(T)];
    return simt::within(where, buf, at...) ? address(buf, at...) : (T*)zeros;
}
template <template <typename> class A, typename T>
inline void checked_store(const char* where, const A<T>& buf, int i, T value) {
    if (!simt::within(where, buf, i)) return;
    simt::yield();
    array_store(buf, i, value);
}
template <template <typename> class A, typename T>
inline void checked_store(const char* where, const A<T>& buf, int i, int j, T value) {
    if (!simt::within(where, buf, i, j)) return;
    simt::yield();
    array_store(buf, i, j, value);
}
template <template <typename> class A, typename T>
inline void checked_store(const char* where, const A<T>& buf, int i, int j, int k, T value) {
    if (!simt::within(where, buf, i, j, k)) return;
    simt::yield();
    array_store(buf, i, j, k, value);
}
}  // namespace wp
#define address(...) checked_address(__FUNCTION__, __VA_ARGS__)
#define array_store(...) checked_store(__FUNCTION__, __VA_ARGS__)

struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
struct float2 { float x, y; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }

#define SIMT_TEXT(x) #x
#define SIMT_LINE(x) SIMT_TEXT(x)
#define SIMT_SITE (__FUNCTION__)
#define threadIdx (simt::Index{simt::thread_of_block()})
#define __shfl_sync(m, v, k) simt::pick(SIMT_SITE, m, v, (k) & 31)
#define __shfl_xor_sync(m, v, k) simt::pick(SIMT_SITE, m, v, simt::lane() ^ (k))
#define __shfl_up_sync(m, v, k) simt::pick(SIMT_SITE, m, v, simt::lane() - (int)(k))
#define __shfl_down_sync(m, v, k) simt::pick(SIMT_SITE, m, v, simt::lane() + (int)(k))
#define __ballot_sync(m, c) simt::ballot(SIMT_SITE, m, c)
#define __any_sync(m, c) (simt::ballot(SIMT_SITE, m, c) != 0)
#define __all_sync(m, c) (simt::ballot(SIMT_SITE, m, !(c)) == 0)
#define __syncwarp() ((void)simt::gather(SIMT_SITE, 0xffffffffu, 0))
#define __activemask() (1u << simt::lane())
#define __reduce_add_sync(m, v) simt::reduce(SIMT_SITE, m, v, [](auto x, auto y) { return x + y; })
#define __reduce_or_sync(m, v) simt::reduce(SIMT_SITE, m, v, [](auto x, auto y) { return x | y; })
#define __reduce_max_sync(m, v) \
    simt::reduce(SIMT_SITE, m, v, [](auto x, auto y) { return x > y ? x : y; })
#define __reduce_min_sync(m, v) \
    simt::reduce(SIMT_SITE, m, v, [](auto x, auto y) { return x < y ? x : y; })
#define atomicAdd(p, v) simt::update(p, v, [](auto x, auto y) { return x + y; })
#define atomicSub(p, v) simt::update(p, v, [](auto x, auto y) { return x - y; })
#define atomicMin(p, v) simt::update(p, v, [](auto x, auto y) { return x < y ? x : y; })
#define atomicMax(p, v) simt::update(p, v, [](auto x, auto y) { return x > y ? x : y; })
#define atomicOr(p, v) simt::update(p, v, [](auto x, auto y) { return x | y; })
#define atomicAnd(p, v) simt::update(p, v, [](auto x, auto y) { return x & y; })
#define atomicExch(p, v) simt::update(p, v, [](auto x, auto y) { return y; })
#define atomicCAS(p, e, v) \
    simt::update(p, v, [&](auto x, auto y) { return x == (decltype(x))(e) ? y : x; })
#define __ldg(p) (*(p))
#define __ldcg(p) simt::load(p)
#define __popc(x) __builtin_popcount(x)
#define __popcll(x) __builtin_popcountll(x)
#define __ffs(x) __builtin_ffs((int)(x))
#define __ffsll(x) __builtin_ffsll((long long)(x))
#define __fdividef(x, y) ((x) / (y))
#define __int_as_float(x) simt::from_bits<float>(simt::bits((int)(x)))
#define __float_as_int(x) simt::from_bits<int>(simt::bits((float)(x)))
#define __cvta_generic_to_shared(p) ((uint64_t)(p))
#define rsqrtf(x) (1.0f / __builtin_sqrtf(x))
inline float simt_min(float x, float y) { return x < y || y != y ? x : y; }
inline float simt_max(float x, float y) { return x > y || y != y ? x : y; }
#define fminf simt_min
#define fmaxf simt_max
