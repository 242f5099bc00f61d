"""Faces that may be nearest, put off: measured in float32 at once, in float64 at the end.

A lane of a warp keeps those of its own point. Were they measured in float64 when they are met, all
lanes would wait for each face that one of them needs; at the end each has a handful left.
"""

import warp as wp

from abut.bounds.probe import Probe
from abut.hierarchy.plates import MEASURE

PENDING = wp.constant(12)  # as many fit
BLUR_ERROR = wp.constant(wp.float32(2.0**-5))  # the root of ``Probe.blur`` is 2**5 plate errors
ROUND_UP = wp.constant(wp.float32(1.0 + 2.0**-18))
MOST = wp.constant(wp.float32(3e38))


@wp.func_native(
    MEASURE
    + """
#if defined(__CUDA_ARCH__)
    float r[20];
    #pragma unroll
    for (int i = 0; i < 5; ++i) {
        const float4 row = __ldg((const float4*)plates.data + first + i);
        r[4 * i] = row.x, r[4 * i + 1] = row.y, r[4 * i + 2] = row.z, r[4 * i + 3] = row.w;
    }
#else
    const float* r = (const float*)(plates.data + first);
#endif
    return measured(r, at.c[0], at.c[1], at.c[2]);
"""
)
def plate_squared(plates: wp.array[wp.vec4f], first: wp.int32, at: wp.vec4f) -> wp.float32:
    """Squared distance of a point and the plate whose rows begin at ``first``."""
    ...


@wp.struct
class Margin:
    """What float32 distances of plates must be allowed, see ``Probe``."""

    error: wp.float32
    stretch: wp.float32
    slack: wp.float32


@wp.func
def margin_of(probe: Probe):
    """Rounded up: from a plate to its face, and from there to the limit that it sets."""
    out = Margin()
    out.error = BLUR_ERROR * wp.sqrt(probe.blur)
    out.stretch = wp.float32(probe.stretch * probe.stretch) * ROUND_UP
    out.slack = wp.float32(wp.float64(2.0) * probe.slack) * ROUND_UP
    return out


@wp.func
def reach_past(within: wp.float32, margin: Margin):
    """The largest squared distance of a plate whose face may be within a ``limit``."""
    far = wp.sqrt(within) + margin.error
    return wp.min(far * far * ROUND_UP, MOST)


@wp.func
def limit_from(squared: wp.float32, margin: Margin):
    """The ``limit`` that a plate at some distance, squared, sets for all others."""
    far = wp.sqrt(squared) + margin.error
    return wp.min((far * far * margin.stretch + margin.slack) * ROUND_UP, MOST)


@wp.func
def still_pending(
    faces: wp.array[wp.int32],
    squares: wp.array[wp.float32],
    count: wp.int32,
    most: wp.float32,
):
    """Drop what is farther than ``most``; returns how many are left."""
    kept = wp.int32(0)
    for k in range(count):
        if squares[k] <= most:
            faces[kept] = faces[k]
            squares[kept] = squares[k]
            kept += 1
    return kept
