"""Boxes of two frames that hold a common point are never apart, at any scale."""

import numpy as np
import pytest
import warp as wp

from abut.bounds.float32 import difference_lower_bounds, to_vec3f, to_vec4f
from abut.bounds.obb import fit_obb, overlap_obb
from abut.bounds.relative_frame import rotated_frame, translated_frame
from abut.bounds.separation_boxes import separation_boxes, separations_rotated_boxes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def point_obb(p: wp.vec3d, axes: wp.mat33f):
    """The box of one point along axes."""
    at = axes * to_vec3f(p)
    return fit_obb(axes, at, at)


@wp.kernel
def common_point_kernel(
    # in
    pose: wp.mat44d,
    points_a: wp.array[wp.vec3d],
    points_b: wp.array[wp.vec3d],
    axes: wp.mat33f,
    # out
    apart_out: wp.array[wp.vec4i],
):
    i = wp.tid()
    p = points_a[i]
    q = points_b[i]
    zero = wp.vec3d()
    reach_a = wp.max(wp.abs(p))
    reach_b = wp.max(wp.abs(q))
    frame = rotated_frame(wp.identity(4, dtype=wp.float64), pose, zero, zero, reach_a, reach_b)
    shifted = translated_frame(zero, p - q, reach_b)
    lower_a = to_vec4f(difference_lower_bounds(p))
    upper_a = to_vec4f(-difference_lower_bounds(-p))
    lower_b = to_vec4f(difference_lower_bounds(q))
    upper_b = to_vec4f(-difference_lower_bounds(-q))
    four = separations_rotated_boxes(
        frame.columns, frame.rows, frame.shift, frame.widen,
        lower_a, upper_a, lower_a, upper_a, lower_b, upper_b, lower_b, upper_b,
    )  # fmt: skip
    zero32 = wp.float32(0.0)
    apart_out[i] = wp.vec4i(
        wp.int32(separation_boxes(frame, lower_a, upper_a, lower_b, upper_b) > zero32),
        wp.int32(wp.max(four) > zero32),
        wp.int32(separation_boxes(shifted, lower_a, upper_a, lower_b, upper_b) > zero32),
        wp.int32(not overlap_obb(frame, point_obb(p, axes), point_obb(q, axes))),
    )


@pytest.mark.parametrize("exponent", [-160, -150, -149, -148, -145, -140, -131, -100, 0, 100])
def test_boxes_of_a_common_point_overlap(device, exponent):
    rng = np.random.default_rng(exponent + 200)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rotation *= np.linalg.det(rotation)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, rng.normal(size=3) * 2.0**exponent
    a = rng.normal(size=(4000, 3)) * 3.0 * 2.0**exponent
    b = (a - pose[:3, 3]) @ rotation
    points = [wp.array(p, dtype=wp.vec3d, device=device) for p in (a, b)]
    apart = wp.zeros(len(a), dtype=wp.vec4i, device=device)
    axes = wp.mat33f(*np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel())
    wp.launch(
        common_point_kernel, len(a), [wp.mat44d(*pose.ravel()), *points, axes, apart], device=device
    )
    assert apart.numpy().sum(axis=0).tolist() == [0, 0, 0, 0]
