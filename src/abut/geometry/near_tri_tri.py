"""Two triangles as searches see them: near points in float32, and whether they surely cross.

The points are on the triangles, up to rounding, so their distance is an upper bound of that of the
triangles. They are the nearest ones, but for roundings that matter where triangles are slivers or
edges almost parallel; so the distance itself is no lower bound. The gap along the line between the
points is one, along any line, and a tight one along a good guess.
"""

import warp as wp

# One text: T is a number on CUDA, for a corner or an edge after the other, and a vector on the
# CPU, with a component for each corner or edge.
CODE = """
#if defined(__CUDA_ARCH__)
    typedef float T;
    #define EACH for (int lane = 0; lane < 3; ++lane)
    #define CORNER(t, k, axis) t[(lane + (k)) % 3][axis]
    #define DIVIDE(x, y) __fdividef(x, y)
    #define MAD(x, y, z) fmaf(x, y, z)
#else
    typedef float T __attribute__((vector_size(16)));
    #define EACH
    #define CORNER(t, k, axis) \\
        T{t[k][axis], t[(1 + k) % 3][axis], t[(2 + k) % 3][axis], t[k][axis]}
    #define DIVIDE(x, y) ((x) / (y))
    #ifdef __FMA__
    #define MAD(x, y, z) __builtin_elementwise_fma((T)(x), (T)(y), (T)(z))
    #else
    #define MAD(x, y, z) ((x) * (y) + (z))
    #endif
#endif
    float a[3][3], b[3][3], size = 0.0f;  // relative to a corner, so that no coordinate exceeds 1
    for (int n = 0; n < 3; ++n)
        for (int k = 0; k < 3; ++k) {
            a[n][k] = triangle_a.data[n][k] - triangle_a.data[0][k];
            b[n][k] = triangle_b.data[n][k] - triangle_a.data[0][k];
            size = wp::max(size, wp::max(fabsf(a[n][k]), fabsf(b[n][k])));
        }
    const float scale = 1.0f / size;
    for (int n = 0; n < 3; ++n)
        for (int k = 0; k < 3; ++k) {
            a[n][k] *= scale;
            b[n][k] *= scale;
        }
    const T zero = {}, one = zero + 1.0f;
    auto dot = [](const T* x, const T* y) {
        return MAD(x[0], y[0], MAD(x[1], y[1], x[2] * y[2]));
    };
    auto share = [&](T x, T y) {  // the quotient, from 0 to 1; 0 where it is not a number
        const T z = DIVIDE(x, y), low = z > zero ? z : zero;
        return low < one ? low : one;
    };
    T least = zero + 3.0e38f, way[3] = {zero, zero, zero};

    auto edges = [&](const T* p, const T* u, const T* q, const T* v) {
        const T r[3] = {p[0] - q[0], p[1] - q[1], p[2] - q[2]};
        const T a = dot(u, u), b = dot(u, v), c = dot(u, r), e = dot(v, v), f = dot(v, r);
        T s = share(MAD(b, f, -c * e), MAD(a, e, -b * b));
        const T t = share(MAD(b, s, f), e);
        s = share(MAD(b, t, -c), a);
        T w[3];
        for (int k = 0; k < 3; ++k) w[k] = MAD(t, v[k], MAD(-s, u[k], -r[k]));
        const T squared = dot(w, w);
        for (int k = 0; k < 3; ++k) way[k] = squared < least ? w[k] : way[k];
        least = squared < least ? squared : least;
    };
    auto corners = [&](const T* p, const T* q, const T* u, const T* v, float sign) {
        const T r[3] = {p[0] - q[0], p[1] - q[1], p[2] - q[2]};
        const T a = dot(u, u), b = dot(u, v), c = dot(u, r), e = dot(v, v), f = dot(v, r);
        const T whole = DIVIDE(one, MAD(a, e, -b * b));
        const T x = MAD(c, e, -b * f) * whole, y = MAD(a, f, -b * c) * whole;
        T w[3];
        for (int k = 0; k < 3; ++k) w[k] = MAD(x, u[k], MAD(y, v[k], -r[k])) * sign;
        T squared = dot(w, w);
        squared = x >= zero ? squared : zero + 3.0e38f;  // also where x is not a number
        squared = y >= zero ? squared : zero + 3.0e38f;
        squared = x + y <= one ? squared : zero + 3.0e38f;
        for (int k = 0; k < 3; ++k) way[k] = squared < least ? w[k] : way[k];
        least = squared < least ? squared : least;
    };

    EACH {
        T p[3], u[3], r[3];
        for (int k = 0; k < 3; ++k) {
            p[k] = CORNER(a, 0, k);
            u[k] = CORNER(a, 1, k) - p[k];
            r[k] = CORNER(b, 0, k);
        }
        T starts[2][3], first[2][3], second[2][3];
        for (int k = 0; k < 3; ++k) {
            starts[0][k] = zero + a[0][k];
            first[0][k] = zero + (a[1][k] - a[0][k]);
            second[0][k] = zero + (a[2][k] - a[0][k]);
            starts[1][k] = zero + b[0][k];
            first[1][k] = zero + (b[1][k] - b[0][k]);
            second[1][k] = zero + (b[2][k] - b[0][k]);
        }
        corners(p, starts[1], first[1], second[1], 1.0f);
        corners(r, starts[0], first[0], second[0], -1.0f);
        for (int n = 0; n < 3; ++n) {
            T q[3], v[3];
            for (int k = 0; k < 3; ++k) {
                q[k] = zero + b[n][k];
                v[k] = zero + (b[(n + 1) % 3][k] - b[n][k]);
            }
            edges(p, u, q, v);
        }
    }
#if defined(__CUDA_ARCH__)
    const wp::vec_t<3, wp::float32> out(way[0] * size, way[1] * size, way[2] * size);
#else
    int best = least[1] < least[0] ? 1 : 0;
    best = least[2] < least[best] ? 2 : best;
    const wp::vec_t<3, wp::float32> out(
        way[0][best] * size, way[1][best] * size, way[2][best] * size
    );
#endif
    #undef EACH
    #undef CORNER
    #undef DIVIDE
    #undef MAD
    return out;
"""


@wp.func_native(CODE)
def near_tri_tri(triangle_a: wp.mat33f, triangle_b: wp.mat33f) -> wp.vec3f:
    """Return the vector from a point of one triangle to a near point of another.

    It is NaN where coordinates are not finite, or where all corners coincide.
    """
    ...


@wp.func
def gap_along(a: wp.mat33f, b: wp.mat33f, direction: wp.vec3f):
    """Return the gap of two triangles along a direction, a towards b, times its length."""
    in_a = a * direction
    in_b = b * direction
    return wp.min(in_b) - wp.max(in_a)


@wp.func
def between_corners(a: wp.mat33f, b: wp.mat33f):
    """Return three times the vector from the centre of one triangle to that of another."""
    return (b[0] - a[0]) + (b[1] - a[1]) + (b[2] - a[2])


@wp.func_native("""
    double size = 0.0;
    for (int n = 0; n < 3; ++n)
        for (int k = 0; k < 3; ++k) {
            size = wp::max(size, fabs(a.data[n][k] - a.data[0][k]));
            size = wp::max(size, fabs(b.data[n][k] - a.data[0][k]));
        }
    const double error = size * size * size * 0x1p-43;
    auto volume = [](const double* p, const double* q, const double* r, const double* s) {
        double u[3], v[3], w[3];
        for (int k = 0; k < 3; ++k) {
            u[k] = q[k] - p[k];
            v[k] = r[k] - p[k];
            w[k] = s[k] - p[k];
        }
        return u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2])
             + u[2] * (v[0] * w[1] - v[1] * w[0]);
    };
    #pragma unroll 1
    for (int edge = 0; edge < 6; ++edge) {
        const double (*t)[3] = edge < 3 ? a.data : b.data, (*o)[3] = edge < 3 ? b.data : a.data;
        const double *p = t[edge % 3], *q = t[(edge + 1) % 3];
        const double before = volume(o[0], o[1], o[2], p), behind = volume(o[0], o[1], o[2], q);
        const bool crosses = (before > error && behind < -error)
                          || (before < -error && behind > error);
        if (!crosses) continue;
        const double x = volume(p, q, o[0], o[1]), y = volume(p, q, o[1], o[2]),
                     z = volume(p, q, o[2], o[0]);
        if ((x > error && y > error && z > error) || (x < -error && y < -error && z < -error))
            return true;
    }
    return false;
""")
def surely_cross(a: wp.mat33d, b: wp.mat33d) -> wp.bool:
    """Return whether an edge of one triangle goes through the inside of the other, for certain.

    Guarantee:
        True only when they do. A volume is a sum of six products of differences, each at most twice
        ``size``, and wrong by at most 288 roundings (2**-53) of its cube.
    """
    ...
