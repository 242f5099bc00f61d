"""Every query of a scene returns the rows of brute force."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, torus
from shapes import random_poses


def random_scene(device, spread, seed=0):
    """Objects that share meshes, deform or were split; filters, and a removed object."""
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(80), torus(8, 6), box())]
    for k, pose in enumerate(random_poses(10, spread, seed)):
        scene.add(shapes[k % 3], pose, static=k in (2, 5), group=1 + k % 2, mask=3 - (k == 7))
    scene.remove(4)
    scene.deform(6, shapes[0].vertices.numpy() * [1.5, 0.6, 0.4])
    scene.split(1, np.arange(shapes[1].face_count) // 40)
    scene.ignore(0, 3)
    return scene


def same(got, want):
    got, want = got.numpy(), want.numpy()
    assert got.keys() == want.keys()
    for name in want:
        if name in ("points", "time"):  # times are within the tolerance of true ones
            close = {"points": 1e-12, "time": 1e-6}[name]
            np.testing.assert_allclose(got[name], want[name], rtol=0, atol=close)
        else:
            np.testing.assert_array_equal(got[name], want[name])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0])
def test_within(distance, own, device):
    scene = random_scene(device, 1.5)
    truth = scene.within(distance, self_collisions=own, method="brute")
    assert len(truth) > 0
    same(scene.within(distance, self_collisions=own), truth)


@pytest.mark.parametrize("spread", [1.2, 4.0])
@pytest.mark.parametrize("bound", [None, 0.0, 0.5, 100.0])
def test_distance(bound, spread, device):
    scene = random_scene(device, spread)
    truth = scene.distance(upper_bound=bound, method="brute")
    assert len(truth) > 0 or (bound == 0.0 and spread > 2)
    got = scene.distance(upper_bound=bound)
    apart = truth.value.numpy() > 0  # of faces that meet, one is named
    np.testing.assert_array_equal(got.objects.numpy(), truth.objects.numpy())
    np.testing.assert_array_equal(got.value.numpy(), truth.value.numpy())
    np.testing.assert_array_equal(got.faces.numpy()[apart], truth.faces.numpy()[apart])
    np.testing.assert_allclose(got.points.numpy()[apart], truth.points.numpy()[apart], atol=1e-12)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_ccd(gap, own, device):
    scene = random_scene(device, 3.0)
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.4
    ends[::2] = ends[::2] @ random_poses(1, 0.0, 3)[0]
    bent = {6: scene.mesh(6).vertices.numpy() * 1.4}
    how = {"vertices": bent, "min_distance": gap, "self_collisions": own}
    truth = scene.ccd(ends, method="brute", **how)
    assert len(truth) > 0
    same(scene.ccd(ends, **how), truth)
    assert abs(scene.ccd(ends, first=True, **how).first - truth.first) <= 1e-6


def test_small_scenes(device):
    scene = abut.Scene(device)
    for _ in range(2):
        assert len(scene.within(1.0, method="brute")) == 0
        assert len(scene.distance(method="brute")) == 0
        assert len(scene.ccd(method="brute")) == 0
        scene.add(abut.Mesh(*icosphere(20), device=device))
    for ask in (lambda m: scene.within(1.0, method=m), lambda m: scene.ccd(method=m)):
        with pytest.raises(abut.OptionError, match="method"):
            ask("kdop")
