"""abut.cull: nothing that collides is lost."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import abut
from abut import cases
from shapes import random_poses, shift, soup


def left_over(culled):
    return {tuple(row) for row in culled.faces.numpy().tolist()}


def touched(a, b, **poses):
    """Faces (object, face) of two meshes that meet."""
    pairs = abut.collide(a, b, **poses).pairs.numpy()
    return {(side, face) for side in (0, 1) for face in pairs[:, side].tolist()}


@pytest.mark.parametrize("order", ["free", "drawn"])
@pytest.mark.parametrize("pixels", [1, 16, 100])
@pytest.mark.parametrize("name", cases.PAIRS)
def test_far_is_conservative(name, pixels, order, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 300))
    culled = abut.cull([a, b], pixels=pixels, order=order)
    assert touched(a, b) <= left_over(culled)
    assert set(culled.objects.numpy()) == {side for side, _ in left_over(culled)}


def test_far_culls_distant_objects(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("apart", 1000))
    assert len(abut.cull([a, b], pixels=512)) == 0
    assert abut.cull([a, b], pixels=512, level="object").objects.shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_posed(seed, device):
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 400)]
    poses = random_poses(2, 1.0, seed)
    kept = left_over(abut.cull(meshes, poses=poses, pixels=128))
    assert touched(*meshes, pose_a=poses[0], pose_b=poses[1]) <= kept
    one = abut.cull(meshes, poses=[None, shift(50, 0, 0)], pixels=128)
    assert len(one) == 0


@pytest.mark.parametrize("method", ["cullide", "quick_cullide", "far"])
def test_candidate_pairs_include_contacts(method, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("knot", 2000))
    culled = abut.cull([a, b], method=method, pixels=1024)
    found = {tuple(row) for row in culled.pairs.numpy().tolist()}
    met = {tuple(row) for row in abut.collide(a, b).pairs.numpy().tolist()}
    lost = met - found
    assert (not lost) if method == "far" else len(lost) < 0.4 * len(met)
    assert np.array_equal(culled.object_pairs.numpy(), [[0, 1]])
    assert set(map(tuple, culled.pair_objects.numpy().tolist())) == {(0, 1)}


def test_statistics_add_up(device):
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 400)]
    faces = sum(mesh.face_count for mesh in meshes)
    culled = abut.cull(meshes, method="quick_cullide", pixels=64)
    assert [(row.level, row.view, row.passes) for row in culled.statistics] == [
        (level, view, number) for level in ("object", "face") for view in "xyz" for number in "12"
    ]
    for row in culled.statistics:
        assert row.bfv + row.ffv + row.sfv + row.nfv == (2 if row.level == "object" else faces)
    last = culled.statistics[-1]
    assert len(culled) == last.ffv + last.sfv + last.nfv


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"method": "near"}, "method"),
        ({"views": "xw"}, "views"),
        ({"views": ""}, "views"),
        ({"pixels": 0}, "pixels"),
        ({"distance": -1}, "distance"),
        ({"distance": 1, "method": "cullide"}, "distance"),
        ({"level": "object", "self_collisions": True}, "face"),
        ({"order": "any"}, "order"),
        ({"backend": "metal"}, "backend"),
    ],
)
def test_options_are_checked(options, word, device):
    with pytest.raises(abut.OptionError, match=word):
        abut.cull([abut.Mesh(*cases.box(), device)], **options)


def test_nothing_to_cull(device):
    empty = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device)
    culled = abut.cull([empty, abut.Mesh(*cases.box(), device)])
    assert len(culled) == 0 and not culled and len(culled.pairs) == 0
    assert len(abut.cull([])) == 0 and len(abut.cull([empty])) == 0


def leafy(device):
    """A few leaves, a knot that cuts itself, and pairs that are not to be tested."""
    crowd = cases.leaves(25)
    scene = abut.Scene(device)
    for shape, pose in zip(crowd.shapes, crowd.poses, strict=True):
        scene.add(abut.Mesh(*shape, device), pose)
    scene.add(abut.Mesh(*cases.single("thick_knot", 300), device), shift(0, 0, 0.5))
    return scene


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_scenes(own, first, device):
    scene = leafy(device)
    met = scene.collide(self_collisions=own).object_pairs.numpy()
    scene.ignore(*met[0].tolist())
    want = scene.collide(self_collisions=own, first=first)
    found = scene.collide(self_collisions=own, first=first, method="far", pixels=200)
    assert np.array_equal(want.object_pairs.numpy(), found.object_pairs.numpy()) and len(found)
    if not first:
        assert np.array_equal(want.objects.numpy(), found.objects.numpy())
        assert np.array_equal(want.pairs.numpy(), found.pairs.numpy())
    culled = abut.cull(scene, self_collisions=own, pixels=200)
    rows = np.concatenate([found.objects.numpy(), found.pairs.numpy()], axis=1).tolist()
    assert {(row[k], row[2 + k]) for row in rows for k in (0, 1)} <= left_over(culled)


def test_scenes_take_no_batches_by_visibility(device):
    scene = leafy(device)
    with pytest.raises(abut.OptionError, match="batches"):
        scene.collide(method="far", poses=np.tile(np.eye(4), (2, 27, 1, 1)))
    with pytest.raises(abut.OptionError, match="poses of its own"):
        abut.cull(scene, poses=np.tile(np.eye(4), (27, 1, 1)))


def test_follows_motion_and_deformation(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 500))
    start, away = left_over(abut.cull([a, b], pixels=64)), b.vertices.numpy() + 5.0
    assert start
    b.deform(away)
    assert not abut.cull([a, b], pixels=64)
    assert left_over(abut.cull([a, b], poses=[None, shift(-5, -5, -5)], pixels=64)) == start


def test_answers_are_copies(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 500))
    first = abut.cull([a, b], pixels=64)
    faces = first.faces.numpy().copy()
    abut.cull([a, b], poses=[None, shift(9, 0, 0)], pixels=64)
    assert np.array_equal(first.faces.numpy(), faces)
    met = {tuple(row) for row in abut.collide(a, b).pairs.numpy().tolist()}
    assert met <= {tuple(row) for row in first.pairs.numpy().tolist()}


def test_batches_and_first(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 300))
    poses = random_poses(4, 1.0)
    want = abut.collide(a, b, pose_b=poses)
    found = abut.collide(a, b, pose_b=poses, method="far", pixels=64)
    assert np.array_equal(want.pairs.numpy(), found.pairs.numpy())
    assert np.array_equal(want.pose.numpy(), found.pose.numpy())
    assert np.array_equal(want.colliding.numpy(), found.colliding.numpy())
    one = abut.collide(a, b, pose_b=poses, method="far", pixels=64, first=True)
    assert np.array_equal(one.pose.numpy(), np.unique(want.pose.numpy()))


def test_high_valence_vertices(device):
    """A vertex of many faces makes no neighbours, and nothing is lost by that."""
    count = 200
    turn = np.linspace(0, 2 * np.pi, count, endpoint=False)
    rim = np.stack([np.cos(turn), np.sin(turn), 0.3 * np.cos(9 * turn)], axis=1)
    faces = [(0, 1 + k, 1 + (k + 3) % count) for k in range(count)]
    mesh = abut.Mesh(np.concatenate([np.zeros((1, 3)), rim]), faces, device)
    want = abut.self_collide(mesh).pairs.numpy()
    assert len(want)
    for pixels in (8, 100):
        found = abut.self_collide(mesh, method="far", pixels=pixels).pairs.numpy()
        assert np.array_equal(found, want)


def test_second_pass_reuses_fragments(device):
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 400)]
    rows = abut.cull(meshes, method="quick_cullide", pixels=100, level="object").statistics
    assert [row.fragments for row in rows[::2]] == [row.fragments for row in rows[1::2]]
    assert rows[0].fragments > 1000


def test_adjacency_is_updated(device):
    """Unmerged faces meet their neighbours by index, not by position; in whatever order asked."""
    mesh = abut.Mesh(*soup(cases.icosphere(80)), device)
    for _ in range(3):
        assert len(abut.self_collide(mesh, method="far", weld=False, pixels=64)) > 80
        assert len(abut.self_collide(mesh, method="far", pixels=64)) == 0
        assert len(abut.cull([mesh], self_collisions=True, pixels=64)) == 0


def test_threads_do_not_disturb_each_other(device):
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 600)]
    poses = random_poses(6, 0.5)
    want = [left_over(abut.cull(meshes, poses=[None, pose], pixels=100)) for pose in poses]
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(abut.cull, meshes, poses=[None, p], pixels=100) for p in poses]
        assert [left_over(one.result()) for one in asked] == want


def test_answers_copied_ahead(device):
    """Copies begun before it is known how much is left, as on CUDA, are the answers."""
    ball = cases.icosphere(320)
    meshes, others = ([abut.Mesh(*ball, device) for _ in range(2)] for _ in range(2))
    kept = []
    for aside in (1.9, 1.5, 0.3, 0.31, 1.99, 9.0, 1.2):
        for ours in (meshes, others):
            ours[1].deform(ball.vertices + np.array([aside, 0.0, 0.0]))
        found, expected = abut.cull(meshes), abut.cull(others)
        for culler in meshes[0].cache["soups"][0].__dict__["cullers"].values():
            culler.survivors._ahead = True
        kept.append((found, expected))
    sizes = [len(expected) for _, expected in kept]
    assert sizes[2] > 2 * sizes[0] > sizes[5] == 0
    for found, expected in kept:  # answers outlive those after them
        np.testing.assert_array_equal(found.faces.numpy(), expected.faces.numpy())
        np.testing.assert_array_equal(found.pairs.numpy(), expected.pairs.numpy())
