"""Scenes of any size, and impacts that do not depend on how pairs of objects are found."""

import numpy as np
import pytest

import abut
from abut import cases


def random_poses(rng, count, spread):
    poses = np.tile(np.eye(4), (count, 1, 1))
    for pose in poses:
        pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        pose[:3, :3] *= np.linalg.det(pose[:3, :3])
    poses[:, :3, 3] = rng.uniform(-spread, spread, size=(count, 3))
    return poses


def scene_of(scale, device, poses):
    scene = abut.Scene(device=device)
    vertices, faces = cases.icosphere(80)
    for pose in poses:
        scaled = pose.copy()
        scaled[:3, 3] *= scale
        scene.add(abut.Mesh(vertices.astype(np.float64) * scale, faces, device), pose=scaled)
    return scene


@pytest.mark.parametrize("method", ["bvh", "brute"])
@pytest.mark.parametrize("exponent", [-900, -330, -160, -149, 127, 128, 330, 900])
def test_contacts_and_distances_at_any_scale(device, exponent, method):
    poses = random_poses(np.random.default_rng(0), 5, 1.5)
    scale = 2.0**exponent
    unit, scaled = scene_of(1.0, device, poses), scene_of(scale, device, poses)
    for one, other in (
        (unit.collide(method="brute"), scaled.collide(method=method)),
        (unit.within(0.25, method="brute"), scaled.within(0.25 * scale, method=method)),
    ):
        assert len(one) > 20
        assert np.array_equal(one.objects.numpy(), other.objects.numpy())
        assert np.array_equal(one.pairs.numpy(), other.pairs.numpy())
    for options, most in (({}, None), ({"upper_bound": 1.0}, scale)):
        one = unit.distance(method="brute", **options)
        other = scaled.distance(method=method, upper_bound=most)
        assert np.array_equal(one.objects.numpy(), other.objects.numpy())
        assert np.allclose(one.value.numpy(), other.value.numpy() / scale, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("exponent", range(-80, -66))
def test_distances_whose_squares_are_subnormal(device, exponent):
    """Regression: their squares were rounded upwards in float32, and nearest objects lost."""
    scale, gaps = 2.0**exponent, np.arange(1.0, 2.0, 0.05)
    for gap in gaps.tolist():
        scene = abut.Scene(device=device)
        cube = cases.box((0.5, 0.5, 0.5)).vertices * scale, cases.box().faces
        for place in ((0.0, 0.0, 0.0), (0.5 + gap, 0.1, 0.0), (0.5 + gap, 2.0 + gap, 0.2)):
            scene.add(abut.Mesh(cube[0] + np.array(place) * scale, cube[1], device))
        near, least = scene.distance(), scene.least_distance(which=0)
        assert near.objects.numpy().tolist() == [[0, 1], [1, 0], [2, 1]]
        assert near.value.numpy()[:2] / scale == pytest.approx(gap)
        assert least.value / scale == pytest.approx(gap)


@pytest.mark.parametrize("exponent", [-900, -330, -160, 128, 900])
def test_impacts_of_rotating_objects_at_any_scale(device, exponent):
    rng = np.random.default_rng(1)
    starts, ends = random_poses(rng, 4, 3.0), random_poses(rng, 4, 3.0)
    scale = 2.0**exponent
    scaled_ends = ends.copy()
    scaled_ends[:, :3, 3] *= scale
    one = scene_of(1.0, device, starts).ccd(ends)
    other = scene_of(scale, device, starts).ccd(scaled_ends)
    assert 0.0 < one.first < 1.0
    assert np.array_equal(one.features.numpy(), other.features.numpy())
    assert np.allclose(one.time.numpy(), other.time.numpy(), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_times_do_not_depend_on_objects_out_of_reach(device, seed):
    """Objects that rotate far away take part only by brute force."""
    rng = np.random.default_rng(seed)
    starts, ends = random_poses(rng, 6, 2.0), random_poses(rng, 6, 2.0)
    ends[:3, :3, :3] = starts[:3, :3, :3]
    for poses in (starts, ends):
        poses[4:, :3, 3] += [[40.0, 0.0, 0.0], [80.0, 0.0, 0.0]]
    scene = scene_of(1.0, device, starts)
    found, truth = scene.ccd(ends), scene.ccd(ends, method="brute")
    assert len(found) > 50
    for name in ("objects", "features", "time"):
        assert np.array_equal(getattr(found, name).numpy(), getattr(truth, name).numpy())


def test_rigid_motions_that_are_too_small_are_refused(device):
    poses = random_poses(np.random.default_rng(2), 2, 1.0)
    scene = scene_of(1e-295, device, poses)
    ends = random_poses(np.random.default_rng(3), 2, 1e-295)
    with pytest.raises(abut.MeshError, match="from 1e-290 up"):
        scene.ccd(ends)
    with pytest.raises(abut.MeshError, match="from 1e-290 up"):
        abut.Motion(scene.mesh(0), start_pose=np.eye(4), end_pose=ends[0])
    abut.Motion(scene.mesh(0), end=scene.mesh(0).vertices)  # straight paths have no such limit
