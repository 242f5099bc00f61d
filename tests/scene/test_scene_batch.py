"""Batches of environments, steady scenes, large offsets and tiny scales."""

import gc
import tracemalloc

import numpy as np
import pytest
import warp as wp

import abut
from abut.cases import box, icosphere, torus
from shapes import random_poses


def random_scene(device, count=8, spread=1.4):
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(80), torus(12, 8), box())]
    for k, pose in enumerate(random_poses(count, spread)):
        scene.add(shapes[k % 3], pose, static=k == 2)
    return scene


def rows_of(hits):
    return np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)


@pytest.mark.parametrize("own", [False, True])
def test_a_batch_equals_single_scenes(device, own):
    scene = random_scene(device)
    scene.ignore(0, 1)
    poses = random_poses(40, 2.5, seed=7).reshape(5, 8, 4, 4)
    hits = scene.collide(poses=poses, self_collisions=own)
    flags = scene.colliding(poses=poses)
    first = scene.collide(poses=poses, first=True)
    for copy in range(5):
        scene.move(np.arange(8), poses[copy])
        alone = scene.collide(self_collisions=own)
        mine = hits.pose.numpy() == copy
        assert np.array_equal(rows_of(hits)[mine], rows_of(alone))
        assert hits.colliding.numpy()[copy] == bool(alone)
        assert flags.numpy()[copy] == bool(scene.collide()) == scene.colliding()
        one = first.objects.numpy()[first.pose.numpy() == copy]
        assert np.array_equal(one, scene.collide().object_pairs.numpy())
    assert np.array_equal(first.object_pairs.numpy(), first.objects.numpy())
    assert np.array_equal(hits.pose.numpy(), np.sort(hits.pose.numpy()))


def test_one_pair_of_faces_for_each_pair_of_objects(device):
    scene = random_scene(device)
    every = {tuple(row) for row in rows_of(scene.collide()).tolist()}
    first = rows_of(scene.collide(first=True))
    assert {tuple(row) for row in first.tolist()} <= every
    assert np.array_equal(first[:, :2], scene.collide().object_pairs.numpy())
    assert np.array_equal(first, rows_of(scene.collide(first=True)))
    lowest = rows_of(scene.collide(first=True, method="brute"))
    assert np.array_equal(lowest[:, :2], first[:, :2])


def test_device_poses_and_bad_poses(device):
    scene = random_scene(device)
    poses = random_poses(24, 2.5).reshape(3, 8, 4, 4)
    there = wp.array(poses, dtype=wp.float64, device=device)
    assert np.array_equal(rows_of(scene.collide(poses=there)), rows_of(scene.collide(poses=poses)))
    assert scene.collide(poses=poses[:0]).colliding.shape == (0,)
    bad = poses.copy()
    bad[1, 4] *= 1.5
    with pytest.raises(abut.PoseError, match="object 4 in copy 1"):
        scene.collide(poses=bad)
    with pytest.raises(abut.PoseError, match="shape"):
        scene.collide(poses=poses[:, :5])
    held = scene.poses.numpy()
    held[3, 0, 0] = np.nan
    scene.poses.assign(held)
    with pytest.raises(abut.PoseError, match="object 3 is not"):
        scene.collide()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1e6), (1e-9, 0.0), (1e-3, 1e6), (1e6, -1e9)])
def test_far_and_tiny_scenes(device, scale, shift):
    scene = abut.Scene(device)
    shapes = [icosphere(80), torus(12, 8), box()]
    poses = random_poses(8, 1.4 * scale)
    poses[:, :3, 3] += shift
    for k, pose in enumerate(poses):
        shape = shapes[k % 3]
        scene.add(abut.Mesh(shape.vertices * scale, shape.faces, device=device), pose)
    rows = rows_of(scene.collide())
    assert np.array_equal(rows, rows_of(scene.collide(method="brute")))
    assert len(rows) > 0


def test_segments_equal_those_of_two_meshes(device):
    scene = random_scene(device)
    hits = scene.collide()
    poses = scene.poses.numpy().copy()
    scene.move(0, np.eye(4))  # answers keep the poses they were found at
    i, j = hits.object_pairs.numpy()[0]
    mine = (hits.objects.numpy() == [i, j]).all(axis=1)
    alone = abut.collide(scene.mesh(i), scene.mesh(j), pose_a=poses[i], pose_b=poses[j])
    assert np.array_equal(hits.segments.numpy()[mine], alone.segments.numpy())
    assert np.array_equal(hits.coplanar.numpy()[mine], alone.coplanar.numpy())
    assert len(hits.curves()) > 0
    other = scene.collide()
    scene.deform(0, 2 * scene.mesh(0).vertices.numpy())
    with pytest.raises(abut.SceneError, match="deformed"):
        other.segments.numpy()


def test_rows_do_not_depend_on_capacity(device):
    """Queues that are too small grow until all rows fit."""
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(320), device=device)
    poses = np.tile(np.eye(4), (60, 1, 1))
    poses[:, :3, 3] = np.random.default_rng(0).uniform(-0.3, 0.3, (60, 3))
    scene.add(ball, poses)
    hits = scene.collide()
    assert len(hits.object_pairs) == 60 * 59 // 2
    assert np.array_equal(rows_of(hits), rows_of(scene.collide()))
    assert len(hits) > 1 << 15


def held(scene):
    """Capacities of the buffers of a scene."""
    pool = scene._pool.arrays
    arrays = (pool.points, pool.faces, pool.nodes, scene.poses)
    for queues in (scene._searches.queues, scene._searches.fronts.queues):
        arrays += tuple(queue.keys for queue in queues.queues.values())
    return [a.shape[0] for a in arrays], len(pool.table), len(pool._point_users)


def traced():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("method", ["bvh", "front"])
def test_a_steady_scene_does_not_grow(device, method):
    scene = abut.Scene(device)
    ball = icosphere(20)
    poses = random_poses(12, 1.5)
    scene.add(abut.Mesh(*ball, device=device), poses)

    def frames(count):
        for k in range(count):
            scene.move(np.arange(12), poses)
            scene.deform([1, 2], np.tile(ball.vertices * (1 + 0.1 * np.sin(k)), (2, 1)))
            scene.collide(self_collisions=True, method=method)

    tracemalloc.start()
    frames(200)
    before, size = held(scene), traced()
    frames(800)
    after = traced()
    tracemalloc.stop()
    assert held(scene) == before
    assert after < size + 80_000  # 100 bytes a frame: names that Warp and NumPy remember


def test_adding_and_removing_does_not_grow_a_scene(device):
    scene = abut.Scene(device)
    scene.add(abut.Mesh(*icosphere(20), device=device), random_poses(12, 1.5))
    other = abut.Mesh(*icosphere(20, 0.5), device=device)

    def frames(count):
        for _ in range(count):
            pieces = scene.split(scene.add(other), np.arange(20) % 3)
            scene.collide()
            scene.deform(pieces[1], scene.mesh(pieces[1]).vertices.numpy() * 2)
            scene.collide()
            scene.remove(pieces)

    tracemalloc.start()
    frames(60)
    before, size = held(scene), traced()
    frames(100)
    after = traced()
    tracemalloc.stop()
    assert held(scene) == before
    assert after < size + 80_000  # a row of poses alone would be 150,000
