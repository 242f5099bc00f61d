"""Plane filter: faces that the plane of either separates, in float32.

A corner is a row of four float32: its position relative to some origin, and the bits of its
vertex, or of the complement of its vertex if the position is not exact. If all corners of one face
that are not vertices of the other lie strictly on one side of the other's plane, the faces meet
only in shared vertices.

Error: let w = 2**-24, U, V, X the largest components of two sides of a face and of the differences
between corners and it. Differences are within w U of those of the given numbers. Their determinant
sums products up to 6 U V X, of three rounded factors and with five roundings each: it is within
48.1 w U V X, and the margin has 64. Given numbers that are each off by a slack s move it by at most
12 s (V X + U X + U V), with 2 s added to U, V and X. Lengths outside 2**-40 and 2**40 are left
alone: within, underflow adds less than 2**-146 where the margin leaves 2**-141.
"""

import warp as wp


@wp.func_native("""
    const wp::vec_t<4, wp::float32> a[3] = {a0, a1, a2}, b[3] = {b0, b1, b2};
    const auto bits = [](const wp::vec_t<4, wp::float32>& row) {
        int i;
        memcpy(&i, &row.c[3], 4);
        return i;
    };
#if defined(__CUDA_ARCH__)
    const auto more = [](float x, float y) { return fmaxf(x, y); };
    const auto size = [](float x) { return fabsf(x); };
#else
    const auto more = [](float x, float y) { return x > y ? x : y; };
    const auto size = [](float x) { return x < 0.0f ? -x : x; };
#endif
    const auto largest = [&](float x, float y, float z) {
        return more(size(x), more(size(y), size(z)));
    };
    const int ia[3] = {bits(a0), bits(a1), bits(a2)}, ib[3] = {bits(b0), bits(b1), bits(b2)};
    float slack = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float w = 0x1.00001p-24f;  // half a unit in the last place, and what rounds it
        if (ia[i] < 0)
            slack = more(slack, w * largest(a[i].c[0], a[i].c[1], a[i].c[2]) + 0x1p-80f);
        if (ib[i] < 0)
            slack = more(slack, w * largest(b[i].c[0], b[i].c[1], b[i].c[2]) + 0x1p-80f);
    }
    bool shared_a[3], shared_b[3];
    for (int i = 0; i < 3; ++i) {
        shared_a[i] = related && (ia[i] == ib[0] || ia[i] == ib[1] || ia[i] == ib[2]);
        shared_b[i] = related && (ib[i] == ia[0] || ib[i] == ia[1] || ib[i] == ia[2]);
    }
    const auto beyond = [&](const wp::vec_t<4, wp::float32>* p, const bool* shared,
                            const wp::vec_t<4, wp::float32>* q) {
        float u[3], v[3], x[3][3], far = 0.0f;
        for (int k = 0; k < 3; ++k) {
            u[k] = q[1].c[k] - q[0].c[k];
            v[k] = q[2].c[k] - q[0].c[k];
            for (int i = 0; i < 3; ++i) x[i][k] = p[i].c[k] - q[0].c[k];
        }
        for (int i = 0; i < 3; ++i) far = more(far, largest(x[i][0], x[i][1], x[i][2]));
        const float n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                            u[0] * v[1] - u[1] * v[0]};
        const float U = largest(u[0], u[1], u[2]) + 2.0f * slack;
        const float V = largest(v[0], v[1], v[2]) + 2.0f * slack;
        const float X = far + 2.0f * slack;
        const float need = 0x1p-18f * U * V * X + 12.01f * slack * (V * X + U * X + U * V);
        bool above = true, below = true;
        for (int i = 0; i < 3; ++i) {
            const float height = n[0] * x[i][0] + n[1] * x[i][1] + n[2] * x[i][2];
            above = above && (shared[i] || height > need);
            below = below && (shared[i] || -height > need);
        }
        const bool large = U >= 0x1p-40f && V >= 0x1p-40f && X >= 0x1p-40f;
        const bool known = large && more(U, more(V, X)) <= 0x1p40f;
        const bool loose = !(shared[0] && shared[1] && shared[2]);
        return known && loose && (above || below);
    };
    return beyond(a, shared_a, b) || beyond(b, shared_b, a);
""")
def planes_apart(
    related: wp.bool,
    a0: wp.vec4f,
    a1: wp.vec4f,
    a2: wp.vec4f,
    b0: wp.vec4f,
    b1: wp.vec4f,
    b2: wp.vec4f,
) -> wp.bool:
    """Return whether the plane of either face separates it from the other, but for shared vertices.

    ``related``: the faces belong to one mesh. Corners at equal positions do not count as shared.

    Guarantee:
        True only when the faces do not meet beyond common vertices.
    """
    ...
