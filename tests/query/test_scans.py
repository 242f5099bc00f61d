"""Every verb and every method on meshes with the flaws of real ones: the rows of brute force."""

import os
from pathlib import Path

import numpy as np
import pytest

import abut
from scans import models_of, scan, two_scans
from shapes import random_poses

FEW, MANY = range(6), range(100, 300)


@pytest.fixture(scope="module")
def models():
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ABUT_DATA", beside))
    return models_of(folder if folder.is_dir() else None)


def each_seed(check):
    """Some seeds always, many when there is time."""

    @pytest.mark.parametrize(
        "seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
    )
    def test(seeds, models, device):
        for seed in seeds:
            try:
                check(seed, models, device)
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise

    return test


def pair(seed, models, device, most=90):
    """Two meshes, what they are scaled by, and poses that leave them near each other."""
    rng = np.random.default_rng(seed)
    sides, scale, at = two_scans(rng, models, most)
    poses = random_poses(3, 0.0, seed)
    shifts = rng.normal(size=(3, 3)) * scale * 10.0 ** rng.uniform(-3, 0.3, (3, 1))
    poses[:, :3, 3] = at - poses[:, :3, :3] @ at + shifts
    return rng, [abut.Mesh(*side, device) for side in sides], float(scale), poses


def same(got, want, *names):
    got, want = got.numpy(), want.numpy()
    for name in names or want:
        np.testing.assert_array_equal(got[name], want[name])


@each_seed
def test_contacts(seed, models, device):
    rng, (a, b), _, poses = pair(seed, models, device)
    for where in ({}, {"pose_b": poses}):
        truth = abut.collide(a, b, method="brute", **where)
        for bound in abut.Bound:
            same(abut.collide(a, b, bound=bound, **where), truth)
            same(abut.collide(a, b, bound=bound, first=True, **where), truth, "colliding")
        same(abut.collide(a, b, method="kdop", width=int(rng.integers(10, 36)), **where), truth)
        same(abut.collide(a, b, method="far", pixels=int(rng.integers(1, 200)), **where), truth)
    for weld in (True, False):
        truth = abut.self_collide(a, weld=weld, method="brute")
        same(abut.self_collide(a, weld=weld), truth)
        same(abut.self_collide(a, weld=weld, method="far", pixels=64), truth)


@each_seed
def test_distances(seed, models, device):
    _, (a, b), scale, poses = pair(seed, models, device, 60)
    for where in ({}, {"pose_a": poses}):
        truth = abut.distance(a, b, method="brute", **where)
        values = np.atleast_1d(truth.numpy()["value"])
        met = np.atleast_1d(abut.collide(a, b, method="brute", **where).numpy()["colliding"])
        np.testing.assert_array_equal(values == 0, met)
        for bound in ("aabb", "obb", "rss"):
            got = abut.distance(a, b, bound=bound, **where)
            same(got, truth, "value")
            near = np.reshape(got.numpy()["faces"], (-1, 2))[~met]
            np.testing.assert_array_equal(near, np.reshape(truth.numpy()["faces"], (-1, 2))[~met])
        for far in (0.0, 1e-3 * scale, 0.2 * scale):
            want = abut.within(a, b, far, method="brute", **where)
            same(abut.within(a, b, far, **where), want, "pairs", "distance")
    want = abut.within(a, None, 0.05 * scale, method="brute")
    same(abut.within(a, None, 0.05 * scale), want, "pairs", "distance")


@each_seed
def test_closest_points(seed, models, device):
    rng, (mesh, _), _, poses = pair(seed, models, device)
    low, high = mesh.bounds
    points = low + (high - low) * rng.uniform(-0.5, 1.5, (700, 3))
    corners = mesh.points.numpy()[mesh.faces.numpy()[rng.integers(mesh.face_count, size=200)]]
    points[:200] = np.einsum("nk,nkx->nx", rng.dirichlet([0.5] * 3, 200), corners)
    for where in ({}, {"pose": poses}):
        for signed in (False, "winding", *([True] if mesh.oriented else [])):
            want = abut.closest_point(mesh, points, signed=signed, method="brute", **where)
            same(abut.closest_point(mesh, points, signed=signed, **where), want)
        far = float(np.median(want.distance.numpy()))
        want = abut.closest_point(mesh, points, upper_bound=abs(far), method="brute", **where)
        same(abut.closest_point(mesh, points, upper_bound=abs(far), **where), want)


@each_seed
def test_impacts(seed, models, device):
    rng, (a, b), scale, poses = pair(seed, models, device, 30)
    shaken = rng.normal(size=(a.vertex_count, 3)) * 10.0 ** rng.uniform(-6, -0.5)
    moves = [abut.Motion(a, end=a.points.numpy() + (shaken + rng.normal(size=3)) * scale)]
    still = abut.Motion(b, end=b.vertices)
    turn = still
    if np.abs(b.bounds).max() < 30 * scale:
        turn = abut.Motion(b, start_pose=poses[0], end_pose=poses[1])
    for motions in (moves, [*moves, still], [*moves, turn]):
        for gap in (0.0, 1e-2 * scale):
            truth = abut.ccd(*motions, min_distance=gap, method="brute")
            same(abut.ccd(*motions, min_distance=gap), truth)
            first = abut.ccd(*motions, min_distance=gap, first=True).first
            assert first == truth.first or abs(first - truth.first) <= 2e-6


@each_seed
def test_what_is_left_by_culling(seed, models, device):
    _, (a, b), scale, _ = pair(seed, models, device)
    for far in (0.0, 0.01 * scale):
        near = abut.within(a, b, far, method="brute").pairs.numpy().tolist()
        for pixels in (1, 16, 129):
            for order in abut.Order:
                left = abut.cull([a, b], pixels=pixels, order=order, distance=far)
                assert {tuple(row) for row in near} <= set(map(tuple, left.pairs.numpy().tolist()))


@each_seed
def test_fields(seed, models, device):
    rng, (a, b), scale, _ = pair(seed, models, device, 60)
    how = {"resolution": int(rng.integers(2, 14)), "margin": 0.1 * scale}
    field, truth = abut.DistanceField(a, **how), abut.DistanceField(a, method="brute", **how)
    np.testing.assert_array_equal(field.distance.numpy(), truth.distance.numpy())
    np.testing.assert_array_equal(field.grid.gradient.numpy(), truth.grid.gradient.numpy())
    assert np.isfinite(field.distance.numpy()).all()
    assert all(np.isfinite(x).all() for x in field.response(b, pixels=32).numpy().values())


@each_seed
def test_scenes(seed, models, device):
    rng = np.random.default_rng(seed)
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*scan(rng, models, 30), device) for _ in range(3)]
    for k, pose in enumerate(random_poses(7, 0.8, seed)):
        scene.add(shapes[k % 3], pose, static=k == 5)
    scene.split(1, rng.integers(0, 3, scene.mesh(1).face_count))
    scene.deform(2, scene.mesh(2).points.numpy() * rng.uniform(0.7, 1.3, 3))
    truth = scene.collide(self_collisions=True, method="brute")
    for how in ({"broad": "sweep"}, {"broad": "tree"}, {"method": "front"}, {"method": "far"}):
        same(scene.collide(self_collisions=True, **how), truth)
    same(scene.collide(method="kdop"), scene.collide(method="brute"))
    names = ("objects", "pairs", "distance")
    same(scene.within(0.02), scene.within(0.02, method="brute"), *names)
    same(scene.distance(), scene.distance(method="brute"), "objects", "value")
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.5
    names = ("objects", "kind", "features")
    same(scene.ccd(ends), scene.ccd(ends, method="brute"), *names)
