"""Probe: a query point in the frame of a BVH, as a float32 interval that holds it.

Box gaps are rounded float32 numbers. ``probe_limit`` turns the best squared distance so far into a
limit that no box with a face as near exceeds. It covers the rounding of gaps and of the distances
of faces, and the change of distances by a pose that is rigid only up to rounding.
"""

import warp as wp

from abut.bounds.float32 import DIFFERENCE_ERROR, difference_lower_bounds, to_vec4f
from abut.bounds.relative_frame import max_abs
from abut.geometry.poses import rotation_of, translation_of

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
    """A query point."""

    point: wp.vec3d  # as given
    lower: wp.vec4f  # in the BVH's frame
    upper: wp.vec4f
    stretch: wp.float64  # see ``probe_limit``
    slack: wp.float64
    blur: wp.float32  # squared error of float32 differences in the frame, with a margin
    frame_error: wp.float32  # of the distance from a triangle frame to the middle of the interval


@wp.func
def make_probe(p: wp.vec3d, at: wp.vec3d, error: wp.float64, skew: wp.float64, reach: wp.float64):
    """Make a probe at p, in the BVH's frame ``at`` up to ``error`` along each axis.

    ``skew`` is the deviation of the rotation from orthonormality, ``reach`` bounds box coordinates.
    """
    out = Probe()
    off = wp.vec3d(error, error, error)
    out.point = p
    out.lower = to_vec4f(difference_lower_bounds(at - off))
    out.upper = to_vec4f(-difference_lower_bounds(-(at + off)))
    out.stretch = (wp.float64(1.0) + RELATIVE_SLACK) / (wp.float64(1.0) - wp.float64(3.0) * skew)
    slack = FACE_SLACK * (reach + max_abs(at)) + wp.float64(1024.0) * error
    out.slack = slack * slack + SMALLEST
    blur = FLOAT32_BLUR * (reach + max_abs(at)) + wp.float64(512.0) * error
    out.blur = wp.float32(blur * blur + SMALLEST)
    frame = PROBE_ERROR * wp.max(reach, max_abs(at)) + wp.float64(16.0) * error
    out.frame_error = wp.float32(frame * ROUND_UP)
    return out


@wp.func
def probe_unposed(p: wp.vec3d, origin: wp.vec3d, reach: wp.float64):
    """Make a probe for a mesh without a pose."""
    at = p - origin
    return make_probe(p, at, DIFFERENCE_ERROR * max_abs(at), wp.float64(0.0), reach)


@wp.func
def probe_posed(p: wp.vec3d, pose: wp.mat44d, origin: wp.vec3d, reach: wp.float64):
    """Make a probe for a mesh at a pose."""
    rotation = rotation_of(pose)
    shift = translation_of(pose)
    at = wp.inverse(rotation) * (p - shift) - origin
    gram = wp.transpose(rotation) * rotation
    skew = wp.float64(0.0)
    for i in range(3):
        for j in range(3):
            unit = wp.where(i == j, wp.float64(1.0), wp.float64(0.0))
            skew = wp.max(skew, wp.abs(gram[i, j] - unit))
    world = max_abs(p) + max_abs(shift) + max_abs(origin) + reach
    return make_probe(p, at, WORLD_ERROR * world, skew, reach)


@wp.func
def probe_limit(probe: Probe, squared: wp.float64):
    """Return the largest squared gap of a box that may hold a face within a squared distance."""
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
    """Return a bit for each of the four faces of a block that may be within a squared distance.

    Guarantee:
        Conservative. No face within is left out; ``within`` is a ``probe_limit``.
    """
    ...
