"""Lazy hierarchies: the same trees as built at once, in whatever order searches come to them."""

import threading

import numpy as np
import pytest

import abut
from abut import cases
from abut.bvh import lazy_lbvh
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.deferred_subtrees import build_deferred, build_subtrees_kernel
from abut.bvh.lazy_lbvh import build_lazy_lbvh
from abut.bvh.lbvh import build_lbvh
from abut.core.launch import Task
from shapes import moved, random_poses, soup, strips

BALL = cases.icosphere(5120)
AWAY = random_poses(1, 0.3)[0]
AWAY[0, 3] += 3.0
SHAPES = {
    "ball": BALL,
    "soup": soup(BALL),
    "far ball": cases.icosphere(20_480).moved((1e6, -3e7, 5e8)),
    "plane": cases.plane(50, 50),
    "pairs of equal faces": cases.Shape(BALL.vertices, np.repeat(BALL.faces, 2, axis=0)),
}
CROWDED = {
    "strips": strips(5000),
    "equal faces": cases.Shape(BALL.vertices, np.tile(BALL.faces[:1], (5000, 1))),
    "one face far away": cases.joined(cases.plane(1, 1), BALL.moved((1e9, 0, 0))),
}


def new(shape):
    return abut.Mesh(*shape, "cpu")


def arrays_of(tree):
    """Return boxes, links and escapes, leaves and splits."""
    nodes = tree.nodes.numpy()
    links = nodes[:, 3].view(np.int32)
    return nodes[:, :3], links, tree.leaf_slots.numpy(), tree.split_slots.numpy()


def assert_built(mesh, tree):
    """Compare a tree with one that was built at once."""
    want = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
    for one, other in zip(arrays_of(tree), arrays_of(want), strict=True):
        np.testing.assert_array_equal(one, other)


def deferred_share(mesh):
    """Return the share of leaves in deferred subtrees."""
    return (mesh.cache["tree"][1].leaf_slots.numpy() < 0).mean()


@pytest.mark.parametrize("name", SHAPES)
def test_completed_trees_are_those_built_at_once(name, threads):
    mesh = new(SHAPES[name])
    for count in (1, 2, 5):
        threads(count)
        tree = build_lazy_lbvh(mesh.points, mesh.faces, mesh.bounds)
        assert tree.deferred is not None
        build_deferred(tree, mesh.points, mesh.faces)
        assert tree.deferred is None
        assert_built(mesh, tree)


@pytest.mark.parametrize("name", CROWDED)
def test_badly_spread_faces_are_built_at_once(name):
    mesh = new(CROWDED[name])
    tree = build_lazy_lbvh(mesh.points, mesh.faces, mesh.bounds)
    assert tree.deferred is None
    assert_built(mesh, tree)


def whole(mesh):
    """Return the same mesh with all of its tree."""
    out = abut.Mesh(mesh.vertices, mesh.faces, "cpu")
    bvh_of(out)
    return out


def check_questions(a, b, pose=AWAY):
    """Compare answers about one pose with those of whole trees."""
    others = whole(a), whole(b)
    near, want = abut.distance(a, b, pose_b=pose), abut.distance(*others, pose_b=pose, bound="aabb")
    assert near.value == want.value and np.array_equal(near.faces, want.faces)
    for turned in random_poses(6, 1.2):
        found = [abut.collide(*pair, pose_b=turned, first=True) for pair in ((a, b), others)]
        np.testing.assert_array_equal(*(hits.pairs.numpy() for hits in found))


def test_first_questions_leave_most_subtrees_deferred():
    a, b = new(BALL), new(BALL)
    abut.distance(a, b, pose_b=AWAY)
    assert all(0.5 < deferred_share(mesh) < 1.0 for mesh in (a, b))
    before = deferred_share(b)
    turned = AWAY @ np.diag([-1.0, -1.0, 1.0, 1.0])
    hits = abut.collide(a, b, pose_b=random_poses(1, 0.5)[0], first=True)
    assert len(hits) == 1 and deferred_share(a) > 0.3
    abut.distance(a, b, pose_b=turned)
    assert 0.0 < deferred_share(b) < before
    for mesh in (a, b):
        tree = bvh_of(mesh)
        assert deferred_share(mesh) == 0.0
        assert_built(mesh, tree)


def test_answers_are_those_of_whole_trees():
    check_questions(new(BALL), new(soup(BALL)))


def test_a_deformation_between_two_questions():
    """It refits the whole tree."""
    a, b = new(BALL), new(soup(BALL))
    for scale in (1.0, 1.1, 0.9):
        a.deform(BALL.vertices * [1.0, scale, 1.0])
        abut.distance(a, b, pose_b=AWAY)
        check_questions(new(cases.Shape(a.vertices.numpy(), BALL.faces)), b)
        assert deferred_share(a) == 0.0 or scale == 1.0


def test_meshes_that_are_far_apart():
    far = AWAY.copy()
    far[0, 3] = 1e6
    check_questions(new(BALL), new(BALL), far)


@pytest.mark.parametrize("verb", [abut.collide, lambda *pair: abut.within(*pair, 0.01)])
def test_another_verb_after_a_lazy_question(verb):
    other = cases.Shape(moved(BALL.vertices, random_poses(1, 0.2)[0]), BALL.faces)
    a, b = new(BALL), new(other)
    abut.distance(a, b, pose_b=AWAY)
    rows = [verb(*pair).pairs.numpy() for pair in ((a, b), (whole(a), whole(b)))]
    np.testing.assert_array_equal(*rows)
    assert deferred_share(a) == deferred_share(b) == 0.0


def test_threads_share_subtrees():
    """Threads that come to the same subtrees at once leave the tree of one."""
    for _ in range(5):
        meshes = [new(cases.icosphere(20_480)) for _ in range(2)]
        poses, found = random_poses(8, 2.5), {}

        def ask(number, meshes=meshes, poses=poses, found=found):
            found[number] = [abut.distance(*meshes, pose_b=pose).value for pose in poses]

        workers = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
        for worker in workers:
            worker.start()
        for mesh in meshes:
            build_deferred(bvh_of(mesh, lazy=True), mesh.points, mesh.faces)
        for worker in workers:
            worker.join()
        assert len({tuple(values) for values in found.values()}) == 1
        for mesh in meshes:
            assert_built(mesh, bvh_of(mesh))


def test_threads_wait_for_a_subtree_that_another_one_builds():
    mesh = new(cases.icosphere(81_920))
    for _ in range(10):
        tree = build_lazy_lbvh(mesh.points, mesh.faces, mesh.bounds)
        args = [mesh.points, mesh.faces, tree.deferred, tree.view()]
        task = Task(build_subtrees_kernel, len(tree.deferred), args, mesh.device, grain=2**30)
        workers = [threading.Thread(target=task.run) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert_built(mesh, tree)


def test_subtrees_hold_what_swept_spheres_are_fitted_to():
    """Nodes above deferred subtrees are larger than those whose leaves are read for a fit."""
    from abut.bvh.rss_on_demand import EXACT

    assert int(EXACT) <= lazy_lbvh.SUBTREE
