"""Axis-aligned boxes in float32, relative to a float64 origin and rounded outwards."""

import warp as wp

from abut.bounds.float32 import difference_lower_bounds


@wp.func
def fit_aabb(p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d, origin: wp.vec3d):
    """Fit the lower and upper corner of a box to three points, relative to ``origin``.

    Guarantee:
        Conservative. The box holds the points exactly as given.
    """
    lower = wp.min(wp.min(p0, p1), p2) - origin
    upper = wp.max(wp.max(p0, p1), p2) - origin
    return difference_lower_bounds(lower), -difference_lower_bounds(-upper)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return lower_a.c[0] <= upper_b.c[0] && lower_b.c[0] <= upper_a.c[0]
        && lower_a.c[1] <= upper_b.c[1] && lower_b.c[1] <= upper_a.c[1]
        && lower_a.c[2] <= upper_b.c[2] && lower_b.c[2] <= upper_a.c[2];
#else
    typedef float v4 __attribute__((vector_size(16)));
    typedef int i4 __attribute__((vector_size(16)));
    v4 la, ua, lb, ub;
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    const i4 inside = (la <= ub) & (lb <= ua) | i4{0, 0, 0, -1};
    return __builtin_reduce_and(inside) != 0;
#endif
""")
def overlap_aabb(
    lower_a: wp.vec4f, upper_a: wp.vec4f, lower_b: wp.vec4f, upper_b: wp.vec4f
) -> wp.bool:
    """Return whether two closed boxes of one frame overlap; fourth components are ignored."""
    ...
