"""Probe: a point in the frame of a tree, as an interval of float32 that holds it.

Box gaps are float32 and need not be exact: ``limit`` turns the best squared distance so far into
one that every box with something as near is sure to pass. It covers the roundings of the gap, of
the distances of faces, and what a pose that is rigid only up to rounding does to distances.
"""

import warp as wp

from abut.bounds.aabb import GUARD, lower_bounds
from abut.bounds.relative_frame import largest, shift_of, turn_of
from abut.bounds.rows import padded

RELATIVE_SLACK = wp.constant(wp.float64(2.0**-19))  # float32: eight roundings and a good margin
FACE_SLACK = wp.constant(wp.float64(2.0**-34))  # of the coordinates; squared it is 2**-68
FLOAT32_BLUR = wp.constant(wp.float64(2.0**-11))  # 2**-20 by 2**9, see ``faces_within``
PROBE_ERROR = wp.constant(wp.float64(160.0 * 2.0**-24))  # of the coordinates: 113 and a margin
ROUND_UP = wp.constant(wp.float64(1.0 + 2.0**-20))
WORLD_ERROR = wp.constant(wp.float64(2.0**-47))  # 32 float64 roundings
LARGEST = wp.constant(wp.float64(3e38))  # less than the gap of a box that is not there
SMALLEST = wp.constant(wp.float64(1e-36))  # squares below are subnormal in float32


@wp.struct
class Probe:
    """A point to search from."""

    point: wp.vec3d  # as given
    lower: wp.vec4f  # in the tree's frame
    upper: wp.vec4f
    stretch: wp.float64  # see ``limit``
    slack: wp.float64
    blur: wp.float32  # squared error of float32 differences in the frame, with a margin
    plate_error: wp.float32  # of the distance of a plate to the middle of the interval


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
    blur = FLOAT32_BLUR * (reach + largest(at)) + wp.float64(512.0) * error
    out.blur = wp.float32(blur * blur + SMALLEST)
    plate = PROBE_ERROR * wp.max(reach, largest(at)) + wp.float64(16.0) * error
    out.plate_error = wp.float32(plate * ROUND_UP)
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
    shift = shift_of(pose)
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
    return wp.min(squared * probe.stretch + probe.slack, LARGEST)


@wp.func_native("""
    // Beyond means: all corners are beyond a plane that faces their middle, at the distance asked
    // for and a little more. By (d + e)^2 <= d^2 (1 + n) + e^2 (1 + 1/n) with n = 2^-17, an error e
    // in coordinates is covered if the root of ``blur`` is 2^9 times as large.
    const float most = within * (1.0f + 0x1p-17f) + blur;
#if defined(__CUDA_ARCH__)
    float4 c[9];
    #pragma unroll
    for (int i = 0; i < 9; ++i)
        c[i] = __ldg((const float4*)rows.data + first + i);
    const int4 links = __ldg((const int4*)rows.data + first + 9);
    int found = 0;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        float d[9], way[3];
        #pragma unroll
        for (int i = 0; i < 9; ++i)
            d[i] = (&c[i].x)[k] - at.c[i % 3];
        #pragma unroll
        for (int i = 0; i < 3; ++i)
            way[i] = d[i] + d[3 + i] + d[6 + i];
        const float least = fminf(fminf(d[0] * way[0] + d[1] * way[1] + d[2] * way[2],
                                        d[3] * way[0] + d[4] * way[1] + d[5] * way[2]),
                                  d[6] * way[0] + d[7] * way[1] + d[8] * way[2]);
        const float square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        const bool beyond = least > 0.0f && least * least > most * square;
        found |= (!beyond && (&links.x)[k] != nothing) << k;
    }
    return found;
#else
    typedef float v4 __attribute__((vector_size(16)));
    typedef int i4 __attribute__((vector_size(16)));
    v4 d[9], way[3];
    i4 links;
    for (int i = 0; i < 9; ++i) {
        __builtin_memcpy(&d[i], &rows.data[first + i], 16);
        d[i] -= at.c[i % 3];
    }
    __builtin_memcpy(&links, &rows.data[first + 9], 16);
    for (int i = 0; i < 3; ++i)
        way[i] = d[i] + d[3 + i] + d[6 + i];
    const v4 a = d[0] * way[0] + d[1] * way[1] + d[2] * way[2];
    const v4 b = d[3] * way[0] + d[4] * way[1] + d[5] * way[2];
    const v4 c = d[6] * way[0] + d[7] * way[1] + d[8] * way[2];
    v4 least = a < b ? a : b;
    least = least < c ? least : c;
    const v4 square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2], none = {0, 0, 0, 0};
    const i4 beyond = (least > none) & (least * least > most * square);
    const i4 here = ~beyond & (links != nothing);
    return (here[0] & 1) | (here[1] & 2) | (here[2] & 4) | (here[3] & 8);
#endif
""")
def faces_within(
    at: wp.vec4f,
    within: wp.float32,
    blur: wp.float32,
    rows: wp.array[wp.vec4f],
    first: wp.int32,
    nothing: wp.int32,
) -> wp.int32:
    """Which of the four faces of a block may be within a distance, squared: a bit each.

    Guarantee:
        Conservative: no face within is left out, ``within`` being a ``limit``.
    """
    ...
