"""Fronts of scenes give the rows of a fresh search, hold no pair twice and stay within bounds."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, torus
from abut.errors import OptionError
from abut.query.bvtt_front import CLIMB_EVERY, MOST_PAIRS
from abut.scene.fronts import PAUSE
from shapes import random_poses


def rows_of(hits):
    return np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)


def front_of(scene):
    """Keys of all fronts, and keys of their object pairs."""
    held = scene._searches.fronts
    queues, name = held.queues, held.names[0]
    counts = queues.read()
    met = queues[f"{name}_objects"].keys.numpy()[: counts[f"{name}_objects"]]
    assert counts[name] == held.size
    return queues[name].keys.numpy()[: held.size], met


def agree(scene, own=True):
    """Rows by fronts equal those of a fresh search; each object pair has one front."""
    rows = rows_of(scene.collide(method="front", self_collisions=own))
    assert np.array_equal(rows, rows_of(scene.collide(self_collisions=own)))
    keys, met = front_of(scene)
    assert len(np.unique(keys)) == len(keys)
    assert np.array_equal(
        np.unique(keys >> scene._searches.fronts.layout.width), np.arange(len(met))
    )
    assert (np.diff(met) > 0).all()
    return rows


def heap(device, count=14, spread=1.3, faces=80):
    scene = abut.Scene(device)
    shapes = (icosphere(faces), torus(16, 8), box())
    meshes = [abut.Mesh(*shape, device=device) for shape in shapes]
    for k, pose in enumerate(random_poses(count, spread, 0)):
        scene.add(meshes[k % 3], pose)
    return scene


def drift(scene, rng, size=0.05):
    """Rotate and translate all objects a little."""
    poses = scene.poses.numpy().copy()
    turns = random_poses(len(poses), 0.0, int(rng.integers(2**31)))[:, :3, :3]
    small = np.eye(3) + size * (turns - np.eye(3))
    u, _, v = np.linalg.svd(small)
    poses[:, :3, :3] = (u @ v) @ poses[:, :3, :3]
    poses[:, :3, 3] += rng.normal(0, size, (len(poses), 3))
    scene.move(scene.indices, poses[scene.indices])


@pytest.mark.parametrize("own", [False, True])
def test_objects_that_drift(device, own):
    scene, rng = heap(device), np.random.default_rng(0)
    met = 0
    for _ in range(2 * CLIMB_EVERY + 2):
        drift(scene, rng)
        met += len(agree(scene, own))
    assert met > 1000


def test_objects_that_leap(device):
    """Object pairs appear and vanish in every frame."""
    scene = heap(device)
    for seed in range(12):
        scene.move(scene.indices, random_poses(len(scene), 1.8, seed))
        agree(scene)


def test_contacts_vanish_and_return(device):
    scene = heap(device, 6)
    near, far = random_poses(6, 0.5, 0), random_poses(6, 0.5, 0)
    far[:, 0, 3] += 100.0 * np.arange(6)
    for poses in (near, far, far, near, far, near):
        scene.move(scene.indices, poses)
        agree(scene, own=False)
    empty = abut.Scene(device)
    assert len(empty.collide(method="front")) == 0


def test_deforming_objects(device):
    scene, rng = heap(device, 6, 0.8, faces=320), np.random.default_rng(1)
    handles = scene.indices
    shapes = [scene.mesh(int(i)).vertices.numpy().astype(np.float64) for i in handles]
    for k in range(40):  # hierarchies are built anew on the way
        bent = [s * (1 + 0.2 * np.sin(0.3 * k + s[:, :1])) for s in shapes]
        scene.deform(handles, np.concatenate(bent) + rng.normal(0, 0.01, 3))
        agree(scene)


def test_add_split_and_remove(device):
    scene, rng = heap(device), np.random.default_rng(2)
    agree(scene)
    pieces = scene.split(0, np.arange(scene.mesh(0).face_count) % 3)
    agree(scene)
    scene.remove(pieces[:2])
    agree(scene)
    scene.add(abut.Mesh(*icosphere(320), device=device), random_poses(3, 1.0, 3))  # larger keys
    agree(scene)
    scene.add(abut.Mesh(np.eye(3), [[0, 1, 2]], device=device))
    scene.ignore(1, scene.indices[scene.indices != 1])
    agree(scene)
    for _ in range(3):
        drift(scene, rng)
        agree(scene, own=bool(rng.integers(2)))


def test_replaced_tree(device):
    """New objects with other trees take the indices and ranges of removed ones."""
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(80), device=device)
    ring = abut.Mesh(*torus(10, 4), device=device)  # as many faces
    scene.add(ball)
    for mesh in (ball, ring, ball, ring):
        other = scene.add(mesh, random_poses(1, 0.3, 5)[0])
        assert other == 1
        assert len(agree(scene)) > 0
        scene.remove(other)


def test_a_front_moves_up_again(device):
    scene = abut.Scene(device)
    scene.add(abut.Mesh(*icosphere(1280), device=device), random_poses(2, 0.0, 0))
    poses = scene.poses.numpy().copy()
    apart, together = poses.copy(), poses.copy()
    apart[1, 0, 3] += 1.99
    scene.move([0, 1], apart)
    scene.collide(method="front")
    calm = scene._searches.fronts.size
    scene.move([0, 1], together)
    scene.collide(method="front")
    wild = scene._searches.fronts.size
    scene.move([0, 1], apart)
    for _ in range(CLIMB_EVERY + 1):
        agree(scene, own=False)
    assert scene._searches.fronts.size < 1.2 * calm < wild


def faces_tested(scene):
    """Pairs of faces that the last search by fronts has tested."""
    return scene._searches.fronts.queues.read()["faces"]


def test_unchanged_pairs_are_not_searched(device):
    scene, rng = heap(device), np.random.default_rng(5)
    agree(scene)
    whole = faces_tested(scene)
    for k in range(3 * CLIMB_EVERY):
        agree(scene)
        assert faces_tested(scene) == 0
        one = int(rng.choice(scene.indices))  # alone moves or bends
        if k % 3 == 0:
            scene.move(one, random_poses(1, 1.0, k)[0])
        elif k % 3 == 1:
            scene.deform(one, scene.mesh(one).vertices.numpy() * 1.02)
        agree(scene)
        assert (0 if k % 3 == 2 else 1) <= faces_tested(scene) < (1 if k % 3 == 2 else whole / 3)
    for own in (False, True, False, True):  # meetings with themselves go and come
        agree(scene, own)


def test_fronts_that_grow_too_long_are_given_up(device):
    scene = heap(device)
    agree(scene)
    scene._searches.fronts.most_pairs = 500
    for _ in range(3):
        rows = rows_of(scene.collide(method="front"))
        assert np.array_equal(rows, rows_of(scene.collide()))
        assert scene._searches.fronts.size == 0
    scene._searches.fronts.most_pairs = MOST_PAIRS
    for _ in range(PAUSE):
        scene.collide(method="front")
    assert scene._searches.fronts.size > 0
    agree(scene)


def test_memory_of_a_steady_scene_does_not_grow(device):
    scene = heap(device, 8)
    start = scene.poses.numpy().copy()

    def play():
        rng = np.random.default_rng(4)
        scene.move(scene.indices, start)
        for _ in range(5 * CLIMB_EVERY):
            drift(scene, rng, 0.02)
            scene.collide(method="front")
        return {
            name: queue.keys.shape[0]
            for name, queue in scene._searches.fronts.queues.queues.items()
        }

    play()
    room = play()
    for _ in range(4):
        assert play() == room


def test_refusals(device):
    scene = heap(device, 4)
    with pytest.raises(OptionError, match="batches"):
        scene.collide(method="front", poses=scene.poses.numpy()[None])
    first = scene.collide(method="front", first=True)
    assert np.array_equal(rows_of(first), rows_of(scene.collide(first=True)))
