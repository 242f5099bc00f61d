"""Lower bounds of the distance of boxes of two frames.

Bounds are squared float32 numbers. They hold up to the ``stretch`` of the frame, which callers
allow for when they compare: it covers float32 arithmetic on gaps that were widened before, and
poses that are rigid up to 1e-5 only. Products that overflow give infinity or NaN, by which no
comparison culls.
"""

import warp as wp

from abut.bounds.axis_gaps import parallel_axes_code, rotated_axes_code
from abut.bounds.relative_frame import RelativeFrame

SQUARED_CUDA = """
    float in_a = 0.0f, in_b = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float clear_a = out_a[i] > 0.0f ? out_a[i] : 0.0f;
        const float clear_b = out_b[i] > 0.0f ? out_b[i] : 0.0f;
        in_a += clear_a * clear_a;
        in_b += clear_b * clear_b;
    }
    return in_a > in_b ? in_a : in_b;
"""
SQUARED_CPU = """
    const v4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    const v4 clear_a = out_a > 0.0f ? out_a : zero;
    const v4 clear_b = out_b > 0.0f ? out_b : zero;
    const v4 squares_a = clear_a * clear_a, squares_b = clear_b * clear_b;
    const float in_a = squares_a[0] + squares_a[1] + squares_a[2];
    const float in_b = squares_b[0] + squares_b[1] + squares_b[2];
    return in_a > in_b ? in_a : in_b;
"""


@wp.func_native(parallel_axes_code(SQUARED_CUDA, SQUARED_CPU))
def gap_parallel_boxes(
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Return the squared distance of two boxes with parallel axes, each gap less ``widen``."""
    ...


@wp.func_native(rotated_axes_code(SQUARED_CUDA, SQUARED_CPU))
def gap_rotated_boxes(
    columns: wp.mat44f,
    rows: wp.mat44f,
    shift: wp.vec4f,
    widen: wp.vec4f,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
) -> wp.float32:
    """Return the larger squared distance of one box and the box around the other in its frame."""
    ...


@wp.func
def gap_boxes(
    relative: RelativeFrame,
    lower_a: wp.vec4f,
    upper_a: wp.vec4f,
    lower_b: wp.vec4f,
    upper_b: wp.vec4f,
):
    """Return the square of a lower bound of the distance of boxes of two frames.

    Guarantee:
        Conservative, up to the stretch of the frame. Positive only when all that the boxes
        bound is apart.
    """
    if relative.rotated == 0:
        return gap_parallel_boxes(
            relative.shift, relative.widen, lower_a, upper_a, lower_b, upper_b
        )
    return gap_rotated_boxes(
        relative.columns,
        relative.rows,
        relative.shift,
        relative.widen,
        lower_a,
        upper_a,
        lower_b,
        upper_b,
    )
