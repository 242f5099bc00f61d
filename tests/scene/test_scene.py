"""Scenes give the rows of pairwise queries, whatever happens to their objects."""

import pickle

import numpy as np
import pytest
import warp as wp

import abut
from abut.cases import box, icosphere, torus
from abut.errors import SceneError
from abut.scene.shape_pool import sort_on_device
from shapes import random_poses


def truth(scene, own=False, ignored=(), apart=lambda i, j: False):
    """Rows (i, j, face, face) by brute force over all pairs of objects."""
    poses, rows = scene.poses.numpy(), []
    for n, i in enumerate(scene.indices.tolist()):
        if own:
            hits = abut.self_collide(scene.mesh(i), method="brute")
            rows += [(i, i, *pair) for pair in hits.pairs.numpy().tolist()]
        for j in scene.indices.tolist()[n + 1 :]:
            if (i, j) in ignored or apart(i, j):
                continue
            sides = scene.mesh(i), scene.mesh(j)
            hits = abut.collide(*sides, pose_a=poses[i], pose_b=poses[j], method="brute")
            rows += [(i, j, *pair) for pair in hits.pairs.numpy().tolist()]
    return np.array(sorted(rows), np.int32).reshape(-1, 4)


def rows_of(hits):
    return np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)


def agree(scene, own=False, **about):
    hits = scene.collide(self_collisions=own)
    rows = rows_of(hits)
    assert np.array_equal(rows, truth(scene, own, **about))
    assert bool(hits) == hits.colliding == (len(rows) > 0)
    return rows


def random_scene(device, count=12, spread=1.4, seed=0):
    """A scene of balls, rings and boxes in a heap."""
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(80), torus(12, 8), box())]
    for k, pose in enumerate(random_poses(count, spread, seed)):
        scene.add(shapes[k % 3], pose)
    return scene


def test_rows_equal_those_of_all_pairs(device):
    scene = random_scene(device)
    rows = agree(scene)
    assert len(rows) > 100
    hits = scene.collide()
    pairs = np.unique(hits.objects.numpy(), axis=0)
    assert np.array_equal(hits.object_pairs.numpy(), pairs)
    assert set(hits.numpy()) == {"objects", "pairs", "colliding"}


def test_objects_move(device):
    scene = random_scene(device)
    for pose in random_poses(3, 1.0, 1):
        scene.move(4, pose)
        agree(scene)
    some = [7, 2, 5]
    poses = random_poses(3, 1.0, 5)
    scene.move(some, poses)
    assert np.array_equal(scene.poses.numpy()[some], poses)
    agree(scene)
    scene.move(np.arange(12), np.broadcast_to(np.eye(4), (12, 4, 4)))
    agree(scene)


def test_names(device):
    scene = abut.Scene(device)
    mesh = abut.Mesh(*icosphere(20), device=device)
    assert scene.add(mesh, name="left") == 0
    assert scene.add(mesh, name="right") == 1
    far = np.eye(4)
    far[0, 3] = 10
    scene.move("right", far)
    assert len(scene.collide()) == 0
    scene.move(["left", "right"], np.stack([far, far]))
    assert scene.collide().object_pairs.numpy().tolist() == [[0, 1]]
    assert scene.names == {"left": 0, "right": 1}
    scene.remove("left")
    assert scene.names == {"right": 1}
    assert len(scene) == 1


def test_deform_leaves_other_instances(device):
    scene = abut.Scene(device)
    ball = icosphere(320)
    mesh = abut.Mesh(*ball, device=device)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = [0, 2.5, 5]
    assert scene.add(mesh, poses).tolist() == [0, 1, 2]
    assert len(agree(scene)) == 0
    scene.deform(1, 1.6 * ball.vertices)
    assert set(map(tuple, agree(scene)[:, :2].tolist())) == {(0, 1), (1, 2)}
    both = np.concatenate([ball.vertices * 0.1, ball.vertices * [1, 1, 3]])
    scene.deform([1, 2], both)
    assert len(agree(scene)) == 0
    scene.deform([0, 2], 2.6 * np.concatenate([ball.vertices, ball.vertices]))
    assert len(agree(scene)) > 0
    scene.deform(0, ball.vertices.astype(np.float32) * np.float32(0.2))
    agree(scene)


def test_trees_are_rebuilt_periodically(device):
    """Shapes that deform far from their start, through refits and rebuilds."""
    scene = abut.Scene(device)
    ring = torus(12, 8)
    for k in range(4):
        scene.add(abut.Mesh(*ring, device=device), random_poses(1, 0.8, seed=k)[0])
    rng = np.random.default_rng(0)
    shapes = np.stack([ring.vertices] * 4)
    met = 0
    for _ in range(70):
        shapes = shapes + rng.normal(0, 0.05, shapes.shape)
        scene.deform(np.arange(4), shapes.reshape(-1, 3))
        hits, slow = (scene.collide(self_collisions=True, method=m) for m in ("bvh", "brute"))
        assert np.array_equal(rows_of(hits), rows_of(slow))
        met += len(hits)
    assert met > 10_000


def test_changes_before_a_query(device):
    scene = abut.Scene(device)
    ball = icosphere(80)
    meshes = [abut.Mesh(*ball, device=device) for _ in range(3)]
    for mesh in meshes:
        scene.add(mesh)
    scene.deform(0, 2 * ball.vertices)
    scene.deform(1, 3 * ball.vertices)
    scene.remove(1)
    scene.split(2, np.arange(80) % 2)
    assert len(agree(scene)) > 0
    meshes[0].deform(9 * ball.vertices)  # the object has gone its own way
    agree(scene)
    scene.add(meshes[1])
    agree(scene)
    meshes[1].deform(1.9 * ball.vertices)  # while this one is still that mesh
    assert np.array_equal(scene.mesh(3).vertices.numpy(), 1.9 * ball.vertices)
    agree(scene)


def test_split(device):
    scene = abut.Scene(device)
    ball = icosphere(320)
    shift = np.eye(4)
    shift[0, 3] = 3
    scene.add(abut.Mesh(*box((8, 8, 1)), device=device), static=True)
    scene.add(abut.Mesh(*ball, device=device), shift, name="ball")
    whole = agree(scene)
    middles = ball.vertices[ball.faces].mean(axis=1)
    labels = (middles[:, 0] > 0) * 2 + (middles[:, 1] > 0) * 5
    pieces = scene.split("ball", labels)
    assert len(pieces) == 4
    assert len(scene) == 5
    rows = agree(scene)
    with_floor = rows[rows[:, 0] == 0]
    assert len(with_floor) == len(whole)
    for piece, label in zip(pieces, np.unique(labels), strict=True):
        faces = np.flatnonzero(labels == label)
        mesh = scene.mesh(piece)
        assert np.array_equal(
            mesh.vertices.numpy()[mesh.faces.numpy()], ball.vertices[ball.faces[faces]]
        )
        mine = with_floor[with_floor[:, 1] == piece]
        assert np.isin(np.stack([mine[:, 2], faces[mine[:, 3]]], 1), whole[:, 2:]).all()
    scene.move(pieces, random_poses(4, 1.0, 2))
    agree(scene)
    again = scene.split(int(pieces[0]), np.arange(len(scene.mesh(pieces[0]).faces)) % 3)
    assert len(again) == 3
    agree(scene)


def test_deform_of_an_unsplit_instance(device):
    """Pieces of one instance share points with the other instances, until one of these changes."""
    for act in ("scene", "mesh"):
        scene = abut.Scene(device)
        ball = icosphere(80)
        mesh = abut.Mesh(*ball, device=device)
        scene.add(mesh, random_poses(3, 0.5))
        pieces = scene.split(1, np.arange(80) // 30)
        before = [scene.mesh(piece).vertices.numpy().copy() for piece in pieces]
        if act == "scene":
            scene.deform(0, 1.3 * ball.vertices)
            scene.deform(2, 0.7 * ball.vertices)
        else:
            mesh.deform(1.3 * ball.vertices)
        agree(scene)
        scene._pool.meshes[:] = [None] * len(scene._pool.meshes)  # made anew from what is held
        for piece, vertices in zip(pieces, before, strict=True):
            assert np.array_equal(scene.mesh(piece).vertices.numpy(), vertices)
        agree(scene)


def test_filters(device):
    scene = random_scene(device, count=8, spread=0.8)
    everything = agree(scene)
    pairs = sorted(set(map(tuple, everything[:, :2].tolist())))
    scene.ignore(*pairs[0])
    scene.ignore(pairs[-1][1], pairs[-1][0])
    agree(scene, ignored={pairs[0], pairs[-1]})
    mesh = abut.Mesh(*icosphere(80), device=device)
    walls = [scene.add(mesh, static=True) for _ in range(2)]
    ghost = scene.add(mesh, group=0b100, mask=0b1000)
    friend = scene.add(mesh, group=0b1000)

    def apart(i, j):
        return (ghost in (i, j) and friend not in (i, j)) or [i, j] == walls

    agree(scene, ignored={pairs[0], pairs[-1]}, apart=apart)


def test_filters_change(device):
    """Groups, static objects and ignored pairs after ``add``; a search is kept where it can be."""
    scene = random_scene(device)
    every = agree(scene)
    pairs = {tuple(row[:2]) for row in every.tolist()}
    a, b = min(pairs)
    scene.ignore([a, b], [b, b])
    assert scene.ignored_pairs.tolist() == [[a, b]]
    assert len(agree(scene, ignored={(a, b)})) < len(every)
    scene.allow(b, a)
    scene.allow(a, b)
    assert np.array_equal(agree(scene), every)
    scene.set(np.arange(12), static=True)
    assert len(scene.collide()) == 0
    scene.set(a, static=False)
    assert len(agree(scene, apart=lambda i, j: a not in (i, j))) > 0
    scene.set(range(12), static=False, group=2)
    assert np.array_equal(agree(scene), every)
    scene.set([a], mask=1)
    assert len(agree(scene, apart=lambda i, j: a in (i, j))) < len(every)
    scene.set(a, mask=-1)
    assert np.array_equal(agree(scene), every)
    for bad in ({"group": 1.5}, {"mask": 2**31}):
        with pytest.raises(SceneError, match="32 bits"):
            scene.set(a, static=True, **bad)
    with pytest.raises(SceneError, match="no object"):
        scene.set([a, 99], group=0)
    assert np.array_equal(agree(scene), every)


def test_names_of_indices(device):
    scene = random_scene(device, 4)
    scene.rename(2, "two")
    scene.rename("two", "second")
    scene.rename("second", "second")
    assert scene.names == {"second": 2}
    assert scene.name_of(2) == "second" and scene.name_of(1) is None
    assert scene.name_of([[2, 1], [0, 2]]).tolist() == [["second", None], [None, "second"]]
    hits = scene.collide()
    assert scene.name_of(hits.objects).shape == hits.objects.shape
    with pytest.raises(SceneError, match="'second' already"):
        scene.rename(0, "second")
    with pytest.raises(SceneError, match="a name is a string"):
        scene.rename(0, 7)
    assert scene.names == {"second": 2}
    scene.rename(2, None)
    assert scene.names == {} and scene.name_of(2) is None
    scene.remove(2)
    with pytest.raises(SceneError, match="no object 2"):
        scene.name_of(2)
    assert scene.add(scene.mesh(0), name="second") == 2


def test_allowed_collisions(device):
    scene = random_scene(device, 5)
    scene.rename(1, "base")
    scene.remove(3)
    scene.ignore([0, 4], ["base", 0])
    names, matrix = scene.allowed_collisions()
    assert names == [0, "base", 2, 4]
    expected = np.zeros((4, 4), bool)
    expected[[0, 1, 0, 3], [1, 0, 3, 0]] = True
    assert np.array_equal(matrix, expected)
    restored = pickle.loads(pickle.dumps(scene))
    assert np.array_equal(restored.allowed_collisions()[1], matrix)
    scene.set_allowed_collisions(["base", 0], np.array([[True, False], [False, False]]))
    assert scene.ignored_pairs.tolist() == [[0, 4]]
    scene.set_allowed_collisions(names[::-1], matrix[::-1, ::-1])
    assert scene.ignored_pairs.tolist() == [[0, 1], [0, 4]]
    for bad in (matrix[:3], matrix.astype(int), np.triu(matrix)):
        with pytest.raises(SceneError, match="matrix"):
            scene.set_allowed_collisions(names, bad)
    with pytest.raises(SceneError, match="each object once"):
        scene.set_allowed_collisions([0, 0, 2, 4], matrix)
    assert np.array_equal(scene.allowed_collisions()[1], matrix)


def test_objects_against_themselves(device):
    scene = abut.Scene(device)
    knot = abut.Mesh(*torus(24, 12, thick=1.3), device=device)
    scene.add(knot)
    scene.add(knot, random_poses(1, 3.0)[0])
    scene.add(abut.Mesh(*icosphere(80), device=device))
    rows = agree(scene, own=True)
    assert {(0, 0), (1, 1)} <= set(map(tuple, rows[:, :2].tolist()))


def test_indices_are_reused(device):
    scene = random_scene(device, count=6)
    scene.remove([4, 1])
    assert scene.indices.tolist() == [0, 2, 3, 5]
    assert [m.face_count > 0 for m in scene.meshes] == [True, False, True, True, False, True]
    agree(scene)
    mesh = abut.Mesh(*icosphere(80), device=device)
    assert [scene.add(mesh) for _ in range(3)] == [1, 4, 6]
    agree(scene)


def test_small_scenes(device):
    scene = abut.Scene(device)
    assert len(scene.collide()) == 0
    assert not scene.collide().colliding
    scene.add(abut.Mesh(*icosphere(20), device=device))
    assert len(agree(scene, own=True)) == 0
    scene.add(abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device=device))
    scene.add(abut.Mesh([[0.0, 0, -9], [0, 0, 9], [0, 0, 9]], [[0, 1, 2]], device=device))
    assert len(agree(scene, own=True)) > 0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s, m: s.move(3, np.eye(4)), "no object 3"),
        (lambda s, m: s.move(-1, np.eye(4)), "no object -1"),
        (lambda s, m: s.move("lid", np.eye(4)), "no object named 'lid'"),
        (lambda s, m: s.move([0, 1], np.eye(4)), "1 poses were given for 2 objects"),
        (lambda s, m: s.add(m, name="pot"), "object named 'pot' already"),
        (lambda s, m: s.split(0, [1, 2]), "20 faces, so labels must be as many"),
        (lambda s, m: s.deform(0, np.zeros((5, 3))), "12 vertices, so theirs must have shape"),
    ],
)
def test_refusals(device, act, message):
    scene = abut.Scene(device)
    mesh = abut.Mesh(*icosphere(20), device=device)
    scene.add(mesh, name="pot")
    scene.add(mesh)
    with pytest.raises(abut.SceneError, match=message):
        act(scene, mesh)


def test_bad_coordinates_are_refused(device):
    scene = abut.Scene(device)
    scene.add(abut.Mesh(*icosphere(20), device=device))
    with pytest.raises(abut.PoseError):
        scene.move(0, 2 * np.eye(4))
    bad = icosphere(20).vertices.copy()
    bad[7, 1] = np.nan
    with pytest.raises(abut.MeshError, match=r"vertices\[7\]"):
        scene.deform(0, bad)
    with pytest.raises(abut.OptionError):
        scene.collide(method="magic")


def test_repeated_deform_of_the_same_objects(device):
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(80), device=device)
    rows = scene.add(ball, random_poses(3, 1.5))
    shapes = [icosphere(80, scale).vertices for scale in (1.0, 1.3, 0.7, 1.1)]

    def check(who, shape):
        scene.deform(who, np.concatenate([shape] * len(who)))
        for k in who:
            np.testing.assert_array_equal(scene.mesh(k).vertices.numpy(), shape)
        found, brute = scene.collide(), scene.collide(method="brute")
        np.testing.assert_array_equal(found.pairs.numpy(), brute.pairs.numpy())

    check(rows[:2], shapes[0])
    check(rows[:2], shapes[1])
    twin = scene.add(scene.mesh(0), np.eye(4))  # a shape of its own
    check(rows[:2], shapes[2])
    np.testing.assert_array_equal(scene.mesh(twin).vertices.numpy(), shapes[1])
    pieces = scene.split(int(rows[2]), np.arange(80) % 2)
    check(rows[:2], shapes[3])
    assert len(pieces) == 2
    with pytest.raises(SceneError, match="twice"):
        scene.deform(np.array([0, 0]), np.concatenate([shapes[0]] * 2))


@pytest.mark.parametrize("kinds", [1, 7, 9000])
def test_label_sort_on_every_device(kinds, device):
    """Labels sorted on the device, of which only their numbers reach the host."""
    labels = np.random.default_rng(0).integers(kinds, size=20_000).astype(np.int32)
    expected = np.argsort(labels, kind="stable")
    _, counts = np.unique(labels, return_counts=True)
    order, found = sort_on_device(wp.array(labels, device=device), wp.get_device(device))
    np.testing.assert_array_equal(order.numpy(), expected)
    np.testing.assert_array_equal(found, counts)
