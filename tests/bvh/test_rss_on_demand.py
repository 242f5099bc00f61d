"""Swept spheres that searches fit: they contain their faces, and answers do not depend on them."""

import threading

import numpy as np
import pytest
import warp as wp
from test_node_rss import SHAPES, check_volumes

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import BvhView
from abut.bvh.rss_on_demand import fit_slot
from abut.query import distance as query
from shapes import moved, random_poses

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

RSS = abut.Bound.RSS
AWAY = random_poses(1, 0.3)[0]
AWAY[0, 3] += 3.0


@wp.kernel
def fit_every_slot_kernel(
    # in
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
):
    fit_slot(points, faces, tree, wp.tid())


def fitted(mesh):
    """Return which slots have a volume."""
    return bvh_of(mesh, RSS, on_demand=True).rss.numpy()[0::4, 3] != 0


def balls(faces):
    return [abut.Mesh(*cases.icosphere(faces), "cpu") for _ in range(2)]


@pytest.fixture
def pair():
    return balls(320)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6, 1e30])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("name", SHAPES)
def test_volumes_contain_their_faces(name, offset, scale):
    shape = SHAPES[name]
    turned = moved(shape.vertices, random_poses(1, 1.0)[0])
    mesh = abut.Mesh((turned + offset) * scale, shape.faces, "cpu")
    tree = bvh_of(mesh, RSS, on_demand=True)
    args = [mesh.points, mesh.faces, tree.view(RSS)]
    wp.launch(fit_every_slot_kernel, 2 * mesh.face_count - 1, args, device="cpu")
    assert fitted(mesh).all()
    check_volumes(mesh, tree)


def test_a_search_fits_few_nodes():
    """Most nodes are never visited, and the next search finds the volumes that are there."""
    pair = balls(5120)
    abut.distance(*pair, pose_b=AWAY)
    first = fitted(pair[0])
    assert 0 < first.mean() < 0.2
    abut.distance(*pair, pose_b=AWAY)
    assert np.array_equal(fitted(pair[0]), first)


def test_a_deformation_takes_volumes_away(pair):
    abut.distance(*pair, pose_b=AWAY)
    for scale in (2.0, 0.5, 1.5):
        pair[0].deform(pair[0].vertices.numpy() * scale)
        assert not fitted(pair[0]).any()
        want = abut.distance(*pair, pose_b=AWAY, method="brute")
        got = abut.distance(*pair, pose_b=AWAY)
        assert got.value == want.value and np.array_equal(got.faces, want.faces)


def test_all_volumes_are_fitted_after_many_poses(pair, monkeypatch):
    """A search in progress keeps the volumes that it fits; others get new ones."""
    monkeypatch.setattr(query, "WORTH_FITTING", 4)
    poses = random_poses(8, 3.0)
    want = abut.distance(*balls(320), pose_b=poses, method="brute").value.numpy()
    arrays = []
    for pose, value in zip(poses, want, strict=True):
        assert abut.distance(*pair, pose_b=pose).value == value
        arrays.append(bvh_of(pair[0]).rss)
    assert arrays[0] is not arrays[-1] and arrays[-2] is arrays[-1]
    assert (arrays[-1].numpy()[0::4, 3] != 0).all() and (arrays[0].numpy()[0::4, 3] == 0).any()


def test_threads_see_the_former_volumes_until_all_are_fitted():
    """A thread that has its trees already reads their volumes while another thread fits all."""
    mesh = balls(81_920)[0]
    tree = bvh_of(mesh, RSS, on_demand=True)
    former = tree.rss
    fitting = threading.Thread(target=bvh_of, args=(mesh, RSS))
    fitting.start()
    while fitting.is_alive():
        present = tree.rss
        assert present is former or (present.numpy()[0::4, 3] != 0).all()
    fitting.join()
    assert tree.rss is not former


def test_other_queries_of_the_same_volumes(pair):
    """A query that needs all volumes fits them; a deformation leaves none of either kind."""
    poses = random_poses(4, 1.5)
    for step in range(6):
        for pose in poses:
            want = abut.distance(*pair, pose_b=pose, method="brute").value
            assert abut.distance(*pair, pose_b=pose).value == want
        hits = [abut.collide(*pair, pose_b=poses[0], bound=bound) for bound in ("rss", "aabb")]
        np.testing.assert_array_equal(*(found.pairs.numpy() for found in hits))
        if step % 2 == 1:
            pair[1].deform(pair[1].vertices.numpy() * [1.0, 1.0, 0.8])


def test_many_threads_fit_together(threads):
    poses, found = random_poses(200, 3.0), set()
    for count in (1, 2, 5, 5):
        threads(count)
        near = abut.distance(*balls(1280), pose_b=poses)
        found.add(near.value.numpy().tobytes() + near.faces.numpy().tobytes())
    assert len(found) == 1
