"""abut.distance at one pose: one call of a kernel gives what brute force does."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.core.pair_queue import PairQueues
from abut.query.contact_stages import Strategy
from abut.query.distance import mesh_extent
from abut.query.one_distance import FOR_THREADS, OneDistance
from shapes import random_poses, shift


def check_same(near, truth):
    """Two results that are equal to the last bit; faces that meet may be any."""
    assert near.value == truth.value
    if near.value > 0:
        np.testing.assert_array_equal(near.faces.numpy(), truth.faces.numpy())
        np.testing.assert_array_equal(near.points.numpy(), truth.points.numpy())


def prepared(a, b, *, posed=(False, True), strategy=Strategy.DESCEND, room=1 << 14):
    """The call for two meshes, with queues of its own."""
    queues = PairQueues(a.device, hits=room, undecided=room, candidates=room, skipped=1)
    trees, extents = ([make(mesh) for mesh in (a, b)] for make in (bvh_of, mesh_extent))
    return OneDistance(a, b, trees, abut.Bound.AABB, extents, posed, queues, strategy)


@pytest.fixture(scope="module", params=["tori", "apart", "stacked_boxes"])
def pair(request, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(request.param, 700)]


@pytest.mark.parametrize("strategy", [Strategy.DESCEND, Strategy.LEAF_WALK])
def test_every_strategy_against_brute_force(strategy, pair):
    a, b = pair
    one = prepared(a, b, strategy=strategy)
    answered = 0
    for pose in random_poses(30, 2.5):
        near = one.ask([pose], np.inf)
        if near is not None:
            check_same(near, abut.distance(a, b, pose_b=pose, method="brute"))
            answered += near.value > 0
    assert answered > 5


@pytest.mark.parametrize("which", [(), ("pose_a",), ("pose_b",), ("pose_a", "pose_b")])
def test_either_mesh_may_have_a_pose(which, pair):
    for k in range(3):
        poses = dict(zip(which, random_poses(len(which), 2.0, seed=k), strict=True))
        near = abut.distance(*pair, **poses)
        check_same(near, abut.distance(*pair, method="brute", **poses))
        if near.value == 0:
            hits = abut.collide(*pair, first=True, **poses)
            np.testing.assert_array_equal(near.faces.numpy(), hits.pairs.numpy()[0])


@given(
    st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3), st.floats(0.0, 3.0), st.integers(0, 99)
)
def test_bounds_against_brute_force(device, by, upper_bound, seed):
    gem = abut.Mesh(*cases.gem(40), device)
    pose = random_poses(1, 0.0, seed=seed)[0]
    pose[:3, 3] = by
    options = {"pose_b": pose, "upper_bound": upper_bound}
    check_same(
        abut.distance(gem, gem, **options), abut.distance(gem, gem, method="brute", **options)
    )


def test_faces_that_only_touch_meet(device):
    """The filter leaves them undecided, so that a plan answers."""
    flat = abut.Mesh(np.array([[0, 0, 0], [3, 0, 6], [0, 3, 9.0]]), [[0, 1, 2]], device)
    above = np.array([[1, 1, 5], [1, 1, 8], [2, 1, 12], [1, 2, 12.0]])
    tip = abut.Mesh(above, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], device)
    one = prepared(flat, tip)
    assert one.ask([np.eye(4)], np.inf) is None
    assert abut.distance(flat, tip, pose_b=np.eye(4)).value == 0
    apart = one.ask([shift(0.0, 0.0, 14.0)], np.inf)
    assert apart is not None
    check_same(apart, abut.distance(flat, tip, pose_b=shift(0.0, 0.0, 14.0), method="brute"))


@pytest.mark.parametrize("by", [1e2, 1e3, 1e9, 1e15])
def test_far_meshes_against_brute_force(by, pair):
    for pose in random_poses(5, 0.0):
        pose[:3, 3] = by, 0.3 * by, 0.1 * by
        near = abut.distance(*pair, pose_b=pose)
        check_same(near, abut.distance(*pair, pose_b=pose, method="brute"))


def test_few_questions_are_left_to_a_plan(pair):
    """Those of meshes with parallel sides that are far apart, and of huge coordinates."""
    one = prepared(*pair)
    poses = random_poses(20, 0.0)
    poses[:, :3, 3] = 1e4
    answers = [one.ask([pose], np.inf) for pose in poses]
    assert sum(near is not None for near in answers) > 10
    poses[:, :3, 3] = 1e20
    assert [one.ask([pose], np.inf) for pose in poses] == [None] * 20


@pytest.mark.parametrize("by", [40.0, 1e5])
def test_far_and_near_in_turn(by, pair):
    for pose in random_poses(6, 2.5):
        for shifted in (0.0, by):
            pose[0, 3] += shifted
            near = abut.distance(*pair, pose_b=pose, upper_bound=0.9 * by)
            truth = abut.distance(*pair, pose_b=pose, upper_bound=0.9 * by, method="brute")
            check_same(near, truth)


def test_a_queue_that_is_too_short_leaves_the_answer_to_others(pair):
    one = prepared(*pair, strategy=Strategy.LEAF_WALK, room=1)
    assert not one.crowded
    found = [one.ask([pose], np.inf) for pose in random_poses(10, 3.0)]
    assert None in found
    assert one.crowded


def test_a_crowd_of_near_faces(device):
    """Two plates that face each other: leaf walks give up, and others answer from then on."""
    side = np.linspace(0.0, 1.0, 40)
    vertices = np.stack([*np.meshgrid(side, side, indexing="ij"), np.zeros((40, 40))], axis=2)
    faces = cases.shape.grid_faces(40, 40, wrap=(False, False))
    plate = abut.Mesh(vertices.reshape(-1, 3), faces, device)
    other = abut.Mesh(vertices.reshape(-1, 3), faces, device)
    one = prepared(plate, other, strategy=Strategy.LEAF_WALK, room=1 << 10)
    assert one.ask([shift(0.01, 0.02, 0.5)], np.inf) is None
    assert one.crowded
    for pose in (shift(0.01, 0.02, 0.5), shift(0.3, 0.0, 0.1), *random_poses(3, 0.5)):
        near = abut.distance(plate, other, pose_b=pose)
        check_same(near, abut.distance(plate, other, pose_b=pose, method="brute"))


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("value", [np.nan, np.inf, 7.0])
def test_poses_that_are_not_rigid_are_refused(row, value, pair):
    pose = np.eye(4)
    pose[row, row] = value
    assert prepared(*pair).ask([pose], np.inf) is None
    with pytest.raises(abut.PoseError, match="pose_b"):
        abut.distance(*pair, pose_b=pose)


def test_poses_of_float32_and_arrays_in_any_order(pair):
    pose = random_poses(1, 2.5, seed=4)[0]
    single = pose.astype(np.float32)
    truth = abut.distance(*pair, pose_b=single.astype(np.float64))
    for same in (single, np.asfortranarray(single), single.tolist()):
        check_same(abut.distance(*pair, pose_b=same), truth)


def test_answers_outlive_the_pose_and_the_shape(device):
    shape, other = cases.pair("apart", 300)
    a, b = abut.Mesh(*shape, device), abut.Mesh(*other, device)
    pose = random_poses(1, 3.0, seed=1)[0]
    truth = abut.distance(a, b, pose_b=pose, method="brute").numpy()
    near, kept = (abut.distance(a, b, pose_b=pose) for _ in range(2))
    pose[:3, 3] += 1.0
    moved = abut.distance(a, b, pose_b=pose)
    a.deform(shape.vertices * 0.5)
    small = abut.distance(a, b, pose_b=pose)
    check_same(small, abut.distance(a, b, pose_b=pose, method="brute"))
    assert len({near.value, moved.value, small.value}) == 3
    for result in (near, pickle.loads(pickle.dumps(kept))):
        for name, value in result.numpy().items():
            np.testing.assert_array_equal(value, truth[name])


def test_threads_ask_at_once(pair):
    poses = random_poses(40, 3.0, seed=7)
    truth = [abut.distance(*pair, pose_b=pose).value for pose in poses]
    found = {}

    def ask(k):
        found[k] = [abut.distance(*pair, pose_b=pose).value for pose in poses]

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[k] == truth for k in range(4))


def test_long_searches_of_large_meshes_go_to_all_threads(monkeypatch):
    ask, asked = OneDistance.ask, []
    monkeypatch.setattr(OneDistance, "ask", lambda *of: asked.append(1) or ask(*of))
    monkeypatch.setattr("abut.query.distance.FACES_FOR_THREADS", 0)
    monkeypatch.setattr("abut.query.one_distance.LONG_S", 0.0)
    a, b = (abut.Mesh(*cases.icosphere(80), device="cpu") for _ in range(2))
    pose = np.eye(4)
    pose[:3, 3] = 2.5, 0.3, 0.1
    values = {abut.distance(a, b, pose_b=pose).value for _ in range(FOR_THREADS + 2)}
    assert len(values) == 1
    assert len(asked) == 2
