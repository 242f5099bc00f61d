"""Steps of a best-first search through wide nodes: down a node, and back to the stack.

``DESCENT`` is C++ code for functions that keep the stack in registers and local memory of their
own; ``step_down`` and ``step_back`` take stacks in arrays. Lanes of a CUDA warp that search
``together`` open a node when one of them needs it, in the order of their least gaps, so that
control flow is the same for all.
"""

import warp as wp

from abut.bvh.wide import BOX_LINKS, WIDE_ROWS

_BACK = """
#if defined(__CUDA_ARCH__)
    const unsigned lanes = __activemask();
    const auto any = [&](bool mine) { return together ? __any_sync(lanes, mine) != 0 : mine; };
#else
    const auto any = [](bool mine) { return mine; };
#endif
    const auto back = [&](int& to, int& depth, float within, const int* links, const float* gaps) {
        bool found = false;
        while (!found && depth > 0) {
            --depth;
            to = links[depth];
            found = any(gaps[depth] <= within);
        }
        return found;
    };
"""

# ``wide`` is the array of nodes, ``lower`` and ``upper`` the corners of what searches.
DESCENT = (
    _BACK
    + f"""
    const int node_rows = {WIDE_ROWS}, link_row = {BOX_LINKS};
"""
    + """
#if defined(__CUDA_ARCH__)
    const auto gaps_of = [&](int first, float* gap, int* keys, int* below) {
        float4 rows[6];
        #pragma unroll
        for (int i = 0; i < 6; ++i)
            rows[i] = __ldg((const float4*)wide.data + first + i);
        *(int4*)below = __ldg((const int4*)wide.data + first + link_row);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            gap[k] = 0.0f;
            #pragma unroll
            for (int i = 0; i < 3; ++i) {
                const float before = (&rows[i].x)[k] - upper.c[i];
                const float behind = lower.c[i] - (&rows[3 + i].x)[k];
                const float apart = fmaxf(fmaxf(before, behind), 0.0f);
                gap[k] += apart * apart;
            }
            keys[k] = (__float_as_int(gap[k]) & ~3) | k;
            if (together)
                keys[k] = __reduce_min_sync(lanes, keys[k]);
        }
    };
#else
    typedef float v4 __attribute__((vector_size(16)));
    const auto gaps_of = [&](int first, float* gap, int* keys, int* below) {
        const v4 none = {0.0f, 0.0f, 0.0f, 0.0f};
        v4 sum = none;
        for (int i = 0; i < 3; ++i) {
            v4 low, high;
            __builtin_memcpy(&low, &wide.data[first + i], 16);
            __builtin_memcpy(&high, &wide.data[first + 3 + i], 16);
            const v4 before = low - upper.c[i], behind = lower.c[i] - high;
            v4 apart = before > behind ? before : behind;
            apart = apart > none ? apart : none;
            sum += apart * apart;
        }
        __builtin_memcpy(below, &wide.data[first + link_row], 16);
        __builtin_memcpy(gap, &sum, 16);
        __builtin_memcpy(keys, gap, 16);  // no gap is negative, so that bits compare as numbers do
        for (int k = 0; k < 4; ++k)
            keys[k] = (keys[k] & ~3) | k;
    };
#endif
    const auto down = [&](int& link, int& depth, float within, int* links, float* gaps) {
        alignas(16) float gap[4];
        alignas(16) int below[4], keys[4];
        gaps_of(node_rows * link, gap, keys, below);
        const auto exchange = [&](int i, int j) {
            const int a = keys[i], b = keys[j];
            keys[i] = a < b ? a : b;
            keys[j] = a < b ? b : a;
        };
        exchange(0, 1), exchange(2, 3), exchange(0, 2), exchange(1, 3), exchange(1, 2);
        bool found = false;
        #pragma unroll
        for (int n = 3; n >= 0; --n) {  // the farthest first
            const int k = keys[n] & 3;  // picked without going through memory
            const float its = k & 2 ? (k & 1 ? gap[3] : gap[2]) : (k & 1 ? gap[1] : gap[0]);
            link = k & 2 ? (k & 1 ? below[3] : below[2]) : (k & 1 ? below[1] : below[0]);
            found = any(its <= within);
#if defined(__CUDA_ARCH__)
            if (n > 0 && found) {  // a store that is not needed costs more than a branch
                links[depth] = link;
                gaps[depth++] = its;
            }
#else
            links[depth] = link;  // the other way round; one entry more than is used
            gaps[depth] = its;
            depth += n > 0 && found;
#endif
        }
        return found || back(link, depth, within, links, gaps);
    };
"""
)


@wp.func_native(
    DESCENT
    + """
    const bool found = down(link, depth, within, links.data, gaps.data);
    return wp::vec_t<2, wp::int32>(link, found ? depth : -1);
"""
)
def step_down(
    lower: wp.vec4f,
    upper: wp.vec4f,
    within: wp.float32,
    wide: wp.array[wp.vec4f],
    link: wp.int32,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
    depth: wp.int32,
    together: wp.bool,
) -> wp.vec2i:
    """Open a wide node; returns the next link and the depth of the stack, -1 for an empty one.

    The nearest child comes next; others with gaps of at most ``within``, squared, are pushed.
    """
    ...


@wp.func_native(
    _BACK
    + """
    int link = 0;
    const bool found = back(link, depth, within, links.data, gaps.data);
    return wp::vec_t<2, wp::int32>(link, found ? depth : -1);
"""
)
def step_back(
    within: wp.float32,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
    depth: wp.int32,
    together: wp.bool,
) -> wp.vec2i:
    """Pop the last stacked node within the limit: its link and the stack depth, -1 for none."""
    ...
