"""Probe: a point in the frame of a tree, as an interval of float32 that holds it.

Box gaps are float32 and need not be exact: ``limit`` turns the best squared distance so far into
one that every box with something as near is sure to pass. It covers the roundings of the gap, of
the distances of faces, and what a pose that is rigid only up to rounding does to distances.
"""

import warp as wp

from abut.bounds.aabb import GUARD, lower_bounds
from abut.bounds.relative import largest, turn_of

RELATIVE_SLACK = wp.constant(wp.float64(2.0**-19))  # float32: eight roundings and a good margin
FACE_SLACK = wp.constant(wp.float64(2.0**-34))  # of the coordinates; squared it is 2**-68
WORLD_ERROR = wp.constant(wp.float64(2.0**-47))  # 32 float64 roundings
SMALLEST = wp.constant(wp.float64(1e-36))  # squares below are subnormal in float32


@wp.struct
class Probe:
    """A point to search from."""

    point: wp.vec3d  # as given
    lower: wp.vec4f  # in the tree's frame
    upper: wp.vec4f
    stretch: wp.float64  # see ``limit``
    slack: wp.float64


@wp.func
def padded(v: wp.vec3f):
    """Three components and a zero."""
    return wp.vec4f(v[0], v[1], v[2], wp.float32(0.0))


@wp.func
def make_probe(p: wp.vec3d, at: wp.vec3d, error: wp.float64, skew: wp.float64, reach: wp.float64):
    """A probe at p, in the tree's frame ``at`` up to ``error`` along each axis.

    ``skew`` is how far the pose's turn is from orthonormal, ``reach`` bounds box coordinates.
    """
    out = Probe()
    off = wp.vec3d(error, error, error)
    out.point = p
    out.lower = padded(lower_bounds(at - off))
    out.upper = padded(-lower_bounds(-(at + off)))
    out.stretch = (wp.float64(1.0) + RELATIVE_SLACK) / (wp.float64(1.0) - wp.float64(3.0) * skew)
    slack = FACE_SLACK * (reach + largest(at)) + wp.float64(1024.0) * error
    out.slack = slack * slack + SMALLEST
    return out


@wp.func
def probe_still(p: wp.vec3d, origin: wp.vec3d, reach: wp.float64):
    """A probe for a mesh that is not moved."""
    at = p - origin
    return make_probe(p, at, GUARD * largest(at), wp.float64(0.0), reach)


@wp.func
def probe_moved(p: wp.vec3d, pose: wp.mat44d, origin: wp.vec3d, reach: wp.float64):
    """A probe for a mesh that ``pose`` moves."""
    turn = turn_of(pose)
    shift = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    at = wp.inverse(turn) * (p - shift) - origin
    gram = wp.transpose(turn) * turn
    skew = wp.float64(0.0)
    for i in range(3):
        for j in range(3):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            skew = wp.max(skew, wp.abs(gram[i, j] - unit))
    world = largest(p) + largest(shift) + largest(origin) + reach
    return make_probe(p, at, WORLD_ERROR * world, skew, reach)


@wp.func
def limit(probe: Probe, squared: wp.float64):
    """Largest gap, squared, of a box that may hold a face at most this far, squared."""
    return squared * probe.stretch + probe.slack


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float sum = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float gap = fmaxf(fmaxf(low.c[i] - upper.c[i], lower.c[i] - high.c[i]), 0.0f);
        sum += gap * gap;
    }
    return sum;
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 l, u, a, b;
    __builtin_memcpy(&l, &lower, 16);
    __builtin_memcpy(&u, &upper, 16);
    __builtin_memcpy(&a, &low, 16);
    __builtin_memcpy(&b, &high, 16);
    const v4 before = a - u, behind = l - b, none = {0.0f, 0.0f, 0.0f, 0.0f};
    v4 gap = before > behind ? before : behind;
    gap = gap > none ? gap : none;
    return gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2];
#endif
""")
def gap_squared(lower: wp.vec4f, upper: wp.vec4f, low: wp.vec4f, high: wp.vec4f) -> wp.float32:
    """Squared distance of the boxes lower-upper and low-high; fourth components are ignored."""
    ...
