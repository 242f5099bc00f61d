"""Lower bounds of the distances of two by two boxes of two frames, all four pairs at once.

A bound is the largest gap of two boxes along several lines: the axes of both (whose gaps add up
like the sides of a box), the line between their centres and one given line, of the nearest faces
so far. One text serves both processors: on CUDA a thread takes one pair after the other, on the
CPU the four pairs are the four components of a vector. Products that overflow give infinity or
NaN, which never raise a bound above what a finite gap has given.

A node is known by its *end*: for one to be opened its link, whose children are slots 2 link and
2 link + 1 (see bvh/layout), else the complement of its slot. So a pair is opened without a look at
its own nodes. Of two leaves, ends are the complements of their faces.
"""

import warp as wp

OpenedPairs = wp.types.vector(length=12, dtype=wp.int32)  # ends of a, ends of b, bits of gaps

# T: one number on CUDA, one of each pair on the CPU.
ARITHMETIC = """
#if defined(__CUDA_ARCH__)
    typedef float T;
    typedef int Bits;
    #define ABS(x) fabsf(x)
    #define PER_ROOT(x) rsqrtf(x)
    #define MAD(x, y, z) fmaf(x, y, z)
#else
    typedef float T __attribute__((vector_size(16)));
    typedef int Bits __attribute__((vector_size(16)));
    #define ABS(x) ((T)((Bits)(x) & 0x7fffffff))
    #define PER_ROOT(x) (1.0f / __builtin_elementwise_sqrt(x))
    #ifdef __FMA__
    #define MAD(x, y, z) __builtin_elementwise_fma((T)(x), (T)(y), (T)(z))
    #else
    #define MAD(x, y, z) ((x) * (y) + (z))
    #endif
#endif
    struct Box { T centre[3], half[3], axes[3][3]; Bits link, slot; };
    const int next_a = end_a >= 0, i = next_a ? 2 * end_a : ~end_a;
    const int next_b = end_b >= 0, j = next_b ? 2 * end_b : ~end_b;
    wp::vec_t<12, wp::int32> opened;
    const T zero = {};
    auto dot = [](const T* x, const T* y) {
        return MAD(x[0], y[0], MAD(x[1], y[1], x[2] * y[2]));
    };
    auto larger = [](T x, T y) { return x > y ? x : y; };  // y where x is not a number
    auto third_axis = [](T (*axes)[3]) {
        for (int k = 0; k < 3; ++k) {
            const int m = (k + 1) % 3, n = (k + 2) % 3;
            axes[2][k] = axes[0][m] * axes[1][n] - axes[0][n] * axes[1][m];
        }
    };
    T turn[3][3], shift[3], line_a[3], line_b[3];
    for (int m = 0; m < 3; ++m) {
        for (int n = 0; n < 3; ++n) turn[m][n] = zero + rows.data[m][n];
        shift[m] = zero + at.c[m];
        line_a[m] = zero + in_a.c[m];
        line_b[m] = zero + in_b.c[m];
    }
"""

# Squared bound of boxes with their own axes. The third axis is the product of the others.
ORIENTED = """
    third_axis(a.axes);
    T axes_b[3][3], between[3], along_a[3], along_b[3], reach_a[3], reach_b[3], in_both[3][3];
    for (int k = 0; k < 3; ++k) {
        between[k] = dot(turn[k], b.centre) + shift[k] - a.centre[k];
        for (int n = 0; n < 2; ++n) axes_b[n][k] = dot(turn[k], b.axes[n]);
    }
    third_axis(axes_b);
    for (int m = 0; m < 3; ++m) {
        along_a[m] = ABS(dot(between, a.axes[m]));
        along_b[m] = ABS(dot(between, axes_b[m]));
        reach_a[m] = ABS(dot(line_a, a.axes[m]));
        reach_b[m] = ABS(dot(line_a, axes_b[m]));
        for (int n = 0; n < 3; ++n) in_both[m][n] = ABS(dot(a.axes[m], axes_b[n]));
    }
"""

# The same for boxes along the axes of their frames.
ALIGNED = """
    T between[3], along_a[3], along_b[3], reach_a[3], reach_b[3], in_both[3][3];
    for (int k = 0; k < 3; ++k) {
        between[k] = dot(turn[k], b.centre) + shift[k] - a.centre[k];
        along_a[k] = ABS(between[k]);
        reach_a[k] = ABS(line_a[k]);
        reach_b[k] = ABS(line_b[k]);
        for (int n = 0; n < 3; ++n) in_both[k][n] = ABS(turn[k][n]);
    }
    for (int n = 0; n < 3; ++n) {
        const T column[3] = {turn[0][n], turn[1][n], turn[2][n]};
        along_b[n] = ABS(dot(column, between));
    }
"""

SQUARED = """
    T square_a = zero, square_b = zero;
    for (int m = 0; m < 3; ++m) {
        const T column[3] = {in_both[0][m], in_both[1][m], in_both[2][m]};
        const T gap_a = larger(along_a[m] - a.half[m] - dot(in_both[m], b.half) - padding, zero);
        const T gap_b = larger(along_b[m] - b.half[m] - dot(column, a.half) - padding, zero);
        square_a = MAD(gap_a, gap_a, square_a);
        square_b = MAD(gap_b, gap_b, square_b);
    }
    const T squared = dot(between, between), per_length = PER_ROOT(squared);
    const T reach = dot(along_a, a.half) + dot(along_b, b.half);
    T gap = larger((squared - reach) * per_length - padding, zero);
    const T apart = dot(line_b, b.centre) - dot(line_a, a.centre) + line_shift;
    gap = larger(apart - dot(reach_a, a.half) - dot(reach_b, b.half) - padding, gap);
    const T out = larger(gap * gap, larger(square_a, square_b));
    // Open the much larger of two nodes, or both.
    const T size_a = MAD(a.half[0], a.half[1] + a.half[2], a.half[1] * a.half[2]);
    const T size_b = MAD(b.half[0], b.half[1] + b.half[2], b.half[1] * b.half[2]);
    const Bits shut_a = (4.0f * size_a < size_b) & (b.link >= 0);
    const Bits shut_b = (4.0f * size_b < size_a) & (a.link >= 0);
    const Bits leaves = (a.link < 0) & (b.link < 0);
    const Bits to_a = ((a.link < 0) | shut_a) & ~leaves ? ~a.slot : a.link;
    const Bits to_b = ((b.link < 0) | shut_b) & ~leaves ? ~b.slot : b.link;
"""


def _gaps_code(rows: int, bound: str, unpack_cuda: str, unpack_cpu: str) -> str:
    """Return code that compares boxes of so many rows in ``boxes_a`` and ``boxes_b``."""
    return f"""{ARITHMETIC}
#if defined(__CUDA_ARCH__)
    float4 sides[4][{rows}];  // of both boxes of a, then of b
    for (int k = 0; k < {rows}; ++k) {{
        sides[0][k] = __ldg((const float4*)boxes_a.data + {rows} * i + k);
        sides[1][k] = __ldg((const float4*)boxes_a.data + {rows} * (i + next_a) + k);
        sides[2][k] = __ldg((const float4*)boxes_b.data + {rows} * j + k);
        sides[3][k] = __ldg((const float4*)boxes_b.data + {rows} * (j + next_b) + k);
    }}
    auto unpack = [](const float4* r, int slot) {{
        Box box;
        box.slot = slot;
        {unpack_cuda}
        return box;
    }};
    #pragma unroll
    for (int pair = 0; pair < 4; ++pair) {{
        const int second_a = pair >> 1, second_b = pair & 1;
        Box a = unpack(sides[second_a], i + second_a);
        const Box b = unpack(sides[2 + second_b], j + second_b);
        {bound} {SQUARED}
        const bool there = second_a <= next_a && second_b <= next_b;
        opened.c[pair] = to_a;
        opened.c[4 + pair] = to_b;
        opened.c[8 + pair] = __float_as_int(there ? out : -1.0f);
    }}
#else
    #define OF_A(x, y, k) __builtin_shufflevector(x, y, k, k, 4 + k, 4 + k)
    #define OF_B(x, y, k) __builtin_shufflevector(x, y, k, 4 + k, k, 4 + k)
    #define EACH(of, out, x, y) out[0] = of(x, y, 0); out[1] = of(x, y, 1); out[2] = of(x, y, 2)
    Box a, b;
    {{
        const T* r = (const T*)boxes_a.data + {rows} * i;
        const T* s = r + {rows} * next_a;
        a.slot = Bits{{i, i, i + 1, i + 1}};
        {unpack_cpu.replace("OF", "OF_A").replace("box", "a")}
    }}
    {{
        const T* r = (const T*)boxes_b.data + {rows} * j;
        const T* s = r + {rows} * next_b;
        b.slot = Bits{{j, j + 1, j, j + 1}};
        {unpack_cpu.replace("OF", "OF_B").replace("box", "b")}
    }}
    {bound} {SQUARED}
    const Bits there = {{-1, -next_b, -next_a, -(next_a & next_b)}};
    const Bits gaps = (Bits)(there ? out : zero - 1.0f);
    for (int pair = 0; pair < 4; ++pair) {{
        opened.c[pair] = to_a[pair];
        opened.c[4 + pair] = to_b[pair];
        opened.c[8 + pair] = gaps[pair];
        if (there[pair] && out[pair] <= limit) {{  // read ahead
            if (to_a[pair] >= 0) __builtin_prefetch(boxes_a.data + {2 * rows} * to_a[pair]);
            if (to_b[pair] >= 0) __builtin_prefetch(boxes_b.data + {2 * rows} * to_b[pair]);
        }}
    }}
    #undef OF_A
    #undef OF_B
    #undef EACH
#endif
    #undef ABS
    #undef PER_ROOT
    #undef MAD
    return opened;
"""


def _oriented_code(half: tuple[int, int, int]) -> str:
    """Return code for rows of a centre and two axes, whose last numbers are these half sides."""
    cuda = "box.centre[0] = r[0].x; box.centre[1] = r[0].y; box.centre[2] = r[0].z;"
    cuda += "box.link = __float_as_int(r[3].w);"
    cpu = "EACH(OF, box.centre, r[0], s[0]); box.link = (Bits)OF(r[3], s[3], 3);"
    for row, side in enumerate(half):
        cuda += f"box.half[{side}] = r[{row}].w;"
        cpu += f"box.half[{side}] = OF(r[{row}], s[{row}], 3);"
    for axis in range(2):
        for k, name in enumerate("xyz"):
            cuda += f"box.axes[{axis}][{k}] = r[{axis + 1}].{name};"
        cpu += f"EACH(OF, box.axes[{axis}], r[{axis + 1}], s[{axis + 1}]);"
    return _gaps_code(4, ORIENTED, cuda, cpu)


def _aligned_code() -> str:
    """Return code for rows of a lower and an upper corner."""
    cuda = "box.link = __float_as_int(r[0].w);"
    for k, name in enumerate("xyz"):
        cuda += f"box.centre[{k}] = (r[1].{name} + r[0].{name}) * 0.5f;"
        cuda += f"box.half[{k}] = (r[1].{name} - r[0].{name}) * 0.5f;"
    cpu = """
        const T centre_r = (r[1] + r[0]) * 0.5f, centre_s = (s[1] + s[0]) * 0.5f;
        const T half_r = (r[1] - r[0]) * 0.5f, half_s = (s[1] - s[0]) * 0.5f;
        EACH(OF, box.centre, centre_r, centre_s);
        EACH(OF, box.half, half_r, half_s);
        box.link = (Bits)OF(r[0], s[0], 3);
    """
    return _gaps_code(2, ALIGNED, cuda, cpu)


# Arguments of all three:
#   boxes_a, boxes_b: rows of the boxes, with the links of their nodes
#   end_a, end_b: the pair to open
#   rows, at: rotation and shift of the relative frame
#   in_a, in_b, line_shift: the line, in both frames, and how far along it the frame of b is shifted
#   padding: bound of roundings along any line, of the frame, of centres and half sides
#   limit: squared gap up to which pairs are of interest
# A gap of -1 is that of no pair: the children of a node that is not opened.


@wp.func_native(_aligned_code())
def gaps_aabb(
    boxes_a: wp.array[wp.vec4f],
    end_a: wp.int32,
    boxes_b: wp.array[wp.vec4f],
    end_b: wp.int32,
    rows: wp.mat44f,
    at: wp.vec4f,
    in_a: wp.vec3f,
    in_b: wp.vec3f,
    line_shift: wp.float32,
    padding: wp.float32,
    limit: wp.float32,
) -> OpenedPairs:
    """Open a pair of nodes with boxes along the axes; return ends and squared lower bounds."""
    ...


@wp.func_native(_oriented_code((0, 1, 2)))
def gaps_obb(
    boxes_a: wp.array[wp.vec4f],
    end_a: wp.int32,
    boxes_b: wp.array[wp.vec4f],
    end_b: wp.int32,
    rows: wp.mat44f,
    at: wp.vec4f,
    in_a: wp.vec3f,
    in_b: wp.vec3f,
    line_shift: wp.float32,
    padding: wp.float32,
    limit: wp.float32,
) -> OpenedPairs:
    """Open a pair of nodes with oriented boxes in the rows of ``Obb``; see ``gaps_aabb``."""
    ...


@wp.func_native(_oriented_code((2, 0, 1)))
def gaps_rss(
    boxes_a: wp.array[wp.vec4f],
    end_a: wp.int32,
    boxes_b: wp.array[wp.vec4f],
    end_b: wp.int32,
    rows: wp.mat44f,
    at: wp.vec4f,
    in_a: wp.vec3f,
    in_b: wp.vec3f,
    line_shift: wp.float32,
    padding: wp.float32,
    limit: wp.float32,
) -> OpenedPairs:
    """Open a pair of nodes with the oriented boxes in the rows of ``Rss``; see ``gaps_aabb``.

    A swept sphere is fitted to extents along its axes: the points that it bounds are in the box
    with the sides of its rectangle, twice the radius thick.
    """
    ...
