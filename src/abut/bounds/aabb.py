"""Axis-aligned boxes in float32, relative to a float64 origin and rounded outwards."""

import warp as wp

GUARD = wp.constant(wp.float64(2.0**-52))  # covers the rounding of ``point - origin``


@wp.func
def step_down(x: wp.float32):
    """The next float32 below x."""
    bits = wp.cast(x, wp.int32)
    if x > wp.float32(0.0):
        bits = bits - 1
    elif x < wp.float32(0.0):
        bits = bits + 1
    else:
        bits = wp.int32(-2147483647)  # the smallest negative number
    return wp.cast(bits, wp.float32)


@wp.func
def round_down(x: wp.float64):
    """The largest float32 not above x."""
    nearest = wp.float32(x)
    if wp.float64(nearest) > x:
        nearest = step_down(nearest)
    return nearest


@wp.func
def lower_bound(x: wp.float64):
    """A float32 not above the exact difference that was rounded to x."""
    return round_down(x - GUARD * wp.abs(x))


@wp.func
def lower_bounds(p: wp.vec3d):
    """``lower_bound`` of each component."""
    return wp.vec3f(lower_bound(p[0]), lower_bound(p[1]), lower_bound(p[2]))


@wp.func
def fit_aabb(p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d, origin: wp.vec3d):
    """Lower and upper corner of the box of three points, relative to ``origin``.

    Guarantee:
        Conservative. The box holds the points exactly as given.
    """
    lower = wp.min(wp.min(p0, p1), p2) - origin
    upper = wp.max(wp.max(p0, p1), p2) - origin
    return lower_bounds(lower), -lower_bounds(-upper)


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
    """Do two closed boxes of one frame overlap? Fourth components are ignored."""
    ...
