"""Relative frames: where points of b lie in the frame of a, within the width that is allowed."""

import numpy as np
import pytest
import warp as wp

from abut.bounds.relative_frame import RelativeFrame, rotated_frame, translated_frame
from shapes import random_poses

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def frames_kernel(
    # in
    poses: wp.array2d[wp.mat44d],
    origins: wp.array2d[wp.vec3d],
    reach: wp.float64,
    # out
    rotated_out: wp.array[RelativeFrame],
    translated_out: wp.array[RelativeFrame],
):
    i = wp.tid()
    rotated_out[i] = rotated_frame(
        poses[i, 0], poses[i, 1], origins[i, 0], origins[i, 1], reach, reach
    )
    translated_out[i] = translated_frame(origins[i, 0], origins[i, 1], reach)


def frames_of(poses, origins, reach, device):
    """Structured arrays of rotated and of translated frames."""
    out = [wp.zeros(len(poses), dtype=RelativeFrame, device=device) for _ in range(2)]
    args = [
        wp.array(poses, dtype=wp.mat44d, device=device),
        wp.array(origins, dtype=wp.vec3d, device=device),
        wp.float64(reach),
    ]
    wp.launch(frames_kernel, len(poses), [*args, *out], device=device)
    return [frames.numpy() for frames in out]


def random_case(far, skew):
    """Poses (n, 2, 4, 4) that are rigid up to ``skew``, origins (n, 2, 3) and points (n, 3)."""
    rng = np.random.default_rng(0)
    poses = np.stack([random_poses(200, far, seed=1), random_poses(200, far, seed=2)], axis=1)
    poses[:, :, :3, :3] += rng.uniform(-skew, skew, size=(200, 2, 3, 3))
    return poses, rng.normal(size=(200, 2, 3)) * far, rng.uniform(-1.0, 1.0, size=(200, 3))


def check_width(poses, origins, points, frames):
    """Require that points of b lie where a frame says, within its width."""
    world = moved(poses[:, 1], points + origins[:, 1])
    back = np.linalg.inv(poses[:, 0, :3, :3])
    truth = np.einsum("nij,nj->ni", back, world - poses[:, 0, :3, 3]) - origins[:, 0]
    found = np.einsum("nij,nj->ni", frames["rows"][:, :3, :3].astype(float), points)
    error = np.abs(found + frames["shift"][:, :3] - truth).max(axis=1)
    assert (error <= frames["widen"][:, 0]).all()
    return truth


def moved(pose, points):
    return np.einsum("nij,nj->ni", pose[:, :3, :3], points) + pose[:, :3, 3]


@pytest.mark.parametrize("skew", [0.0, 1e-6])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e3, 1e8, 1e15])
def test_points_lie_within_the_width(device, far, skew):
    poses, origins, points = random_case(far, skew)
    rotated, translated = frames_of(poses, origins, 1.0, device)
    truth = check_width(poses, origins, points, rotated)
    width = rotated["widen"][:, 0].astype(float)
    size = 1.0 + np.abs(truth).max(axis=1)
    assert (width <= 2.0**-14 * size + 2.0**-40 * far + 20.0 * skew).all()
    assert (rotated["rotated"] == 1).all() and (translated["rotated"] == 0).all()
    shift = origins[:, 1] - origins[:, 0]
    error = np.abs(translated["shift"][:, :3] - shift).max(axis=1)
    width = translated["widen"][:, 0].astype(float)
    assert (error <= width).all()
    assert (width <= 2.0**-14 * (1.0 + np.abs(shift).max(axis=1)) + 2.0**-40 * far).all()


@pytest.mark.parametrize("far", [1e9, 1e12, 1e15])
def test_meshes_together_far_from_the_origin(device, far):
    """Far poses, or far origins that poses bring back, cancel in the shift but not in rounding."""
    poses, origins, points = random_case(1.0, 0.0)
    poses[:, 1, :3, 3] = poses[:, 0, :3, 3] = poses[:, 0, :3, 3] * far
    check_width(poses, 0.0 * origins, points, frames_of(poses, 0.0 * origins, 1.0, device)[0])
    poses, origins, points = random_case(1.0, 0.0)
    origins = np.round(origins * far)
    poses[:, :, :3, 3] = -np.einsum("nsij,nsj->nsi", poses[:, :, :3, :3], origins)
    check_width(poses, origins, points, frames_of(poses, origins, 1.0, device)[0])


def test_axes_are_rows_and_columns_of_the_rotation(device):
    poses, origins, _ = random_case(1.0, 0.0)
    rotated, _ = frames_of(poses, origins, 1.0, device)
    truth = np.swapaxes(poses[:, 0, :3, :3], 1, 2) @ poses[:, 1, :3, :3]
    assert np.abs(rotated["rows"][:, :3, :3] - truth).max() < 2.0**-22
    assert np.array_equal(rotated["columns"], np.swapaxes(rotated["rows"], 1, 2))
    assert ((rotated["stretch"] > 1.0) & (rotated["stretch"] < 1.0 + 2.0**-17)).all()


def test_stretch_covers_skew(device):
    poses, origins, points = random_case(1.0, 1e-5)
    rotated, _ = frames_of(poses, origins, 1.0, device)
    world = np.einsum("nij,nj->ni", poses[:, 1, :3, :3], points)
    local = np.einsum("nij,nj->ni", np.linalg.inv(poses[:, 0, :3, :3]), world)
    ratio = np.linalg.norm(local, axis=1) / np.linalg.norm(world, axis=1)
    assert (ratio <= rotated["stretch"]).all() and (ratio > 1.0 + 1e-6).any()


@pytest.mark.parametrize("reach", [1e35, 1e37, 1e300])
def test_frames_beyond_float32_are_unbounded(device, reach):
    poses, origins, _ = random_case(1.0, 0.0)
    origins *= reach
    rotated, translated = frames_of(poses, origins, reach, device)
    unbounded = reach > 1e36
    assert (np.isinf(rotated["widen"][:, 0]) == unbounded).all()
    far = np.abs(origins[:, 1] - origins[:, 0]).max(axis=1) >= 1e36
    assert (np.isinf(translated["widen"][:, 0]) == far).all()


def test_frames_with_a_common_origin_are_exact(device):
    poses, origins, _ = random_case(1.0, 0.0)
    origins[:, 1] = origins[:, 0]
    _, translated = frames_of(poses, origins, 1.0, device)
    assert (translated["widen"] == 0.0).all() and (translated["shift"] == 0.0).all()
