"""abut.collide and abut.within at one pose: one call of a kernel gives what plans give.

A pose in a list takes the way of a plan, so it serves as the reference beside brute force.
"""

import dataclasses
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.core.pair_queue import NO_KEY_INT
from abut.core.timing import recording
from abut.query import one_pose as rooms
from abut.query.one_pose import MOST_UNDECIDED, one_pose
from shapes import random_poses, shift, strips, walls

FAR = shift(50.0, 3.0, -2.0)


@pytest.fixture(params=["tori", "apart", "stacked_boxes", "needles"])
def pair(request, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(request.param, 300)]


@pytest.fixture
def spheres(device):
    return [abut.Mesh(*shape, device) for shape in cases.pair("spheres", 300)]


def ask(a, b, pose, **options):
    return abut.collide(a, b, pose_b=pose, first=True, **options)


def check_contacts(got, want):
    assert (len(got), bool(got), got.colliding) == (len(want), bool(want), want.colliding)
    np.testing.assert_array_equal(got.pairs.numpy(), want.pairs.numpy())
    assert got.pairs.dtype is want.pairs.dtype and got.pairs.device == want.pairs.device
    assert got.pose is None and got.contained is None
    np.testing.assert_array_equal(got.segments.numpy(), want.segments.numpy())
    np.testing.assert_array_equal(got.coplanar.numpy(), want.coplanar.numpy())


def check_at(a, b, pose):
    """All three questions about one pose; returns whether there is contact."""
    listed, truth = pose.tolist(), abut.collide(a, b, pose_b=pose, method="brute")
    one_pose(a, b, None, pose)
    check_contacts(ask(a, b, pose), ask(a, b, listed))
    assert ask(a, b, pose).colliding == truth.colliding
    check_contacts(abut.collide(a, b, pose_b=pose), truth)
    return truth.colliding


def test_answers_are_those_of_plans_and_of_brute_force(pair):
    found = [check_at(*pair, pose) for pose in random_poses(40, 2.0)]
    assert 2 < sum(found) < 40


@pytest.mark.parametrize("which", [(), ("pose_a",), ("pose_b",), ("pose_a", "pose_b")])
@pytest.mark.parametrize("first", [False, True])
def test_either_mesh_may_have_a_pose(which, first, pair):
    for k in range(4):
        poses = dict(zip(which, random_poses(len(which), 1.5, seed=k), strict=True))
        one_pose(*pair, poses.get("pose_a"), poses.get("pose_b"))
        listed = {name: pose.tolist() for name, pose in poses.items()}
        if not which:
            listed["pose_b"] = np.eye(4).tolist()
        want = abut.collide(*pair, first=first, **listed)
        check_contacts(abut.collide(*pair, first=first, **poses), want)


@given(
    seed=st.integers(0, 2**31), reach=st.floats(0.05, 3.0), scale=st.sampled_from([1e-9, 1, 1e6])
)
def test_small_meshes_anywhere(seed, reach, scale, device):
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 6)
    corners = rng.normal(size=(2, 3 * count, 3)) * scale
    faces = np.arange(3 * count).reshape(-1, 3)
    a, b = (abut.Mesh(points, faces, device) for points in corners)
    pose = random_poses(1, reach * scale, seed=seed)[0]
    check_at(a, b, pose)
    distance = rng.uniform(0.0, 2.0) * scale
    abut.within(a, b, distance, pose_b=pose)
    check_gaps(abut.within(a, b, distance, pose_b=pose), a, b, distance, pose)


def check_gaps(got, a, b, distance, pose):
    want = abut.within(a, b, distance, pose_b=pose, method="brute")
    assert len(got) == len(want)
    for name, values in want.numpy().items():
        np.testing.assert_array_equal(got.numpy()[name], values)
        assert got.numpy()[name].dtype == values.dtype and got.numpy()[name].shape == values.shape


@pytest.mark.parametrize("gap", [1e-3, 0.1, 2.0])
def test_distances_about_the_gap_of_boxes(gap, device):
    """Two boxes exactly so far apart: pairs appear where the distance reaches the gap."""
    box = cases.box()
    a, b = abut.Mesh(*box, device), abut.Mesh(*box, device)
    pose = shift(np.ptp(np.asarray(box.vertices, float), axis=0)[0] + gap, 0.0, 0.0)
    one_pose(a, b, pose, pose)
    for turn in (np.eye(4), random_poses(1, 3.0)[0]):
        for distance in gap * np.array([0.0, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0]):
            near = abut.within(a, b, distance, pose_a=turn, pose_b=turn @ pose)
            truth = abut.within(a, b, distance, pose_a=turn, pose_b=turn @ pose, method="brute")
            np.testing.assert_array_equal(near.pairs.numpy(), truth.pairs.numpy())
        assert len(truth) > 0


def spoiled(how):
    pose = shift(0.1, 0.2, 0.3)
    if how == "scaled":
        pose[:3, :3] *= 1.001
    elif how == "mirrored":
        pose[0, 0] = -1.0
    elif how == "projective":
        pose[3, 0] = 1e-3
    else:
        pose[1, 3 if how == "infinite" else 1] = np.inf if how == "infinite" else np.nan
    return pose


@pytest.mark.parametrize("how", ["scaled", "mirrored", "projective", "infinite", "nan"])
@pytest.mark.parametrize("verb", ["first", "all", "within"])
@pytest.mark.parametrize("name", ["pose_a", "pose_b"])
def test_poses_that_are_not_rigid_are_refused(how, verb, name, spheres):
    def asked(pose):
        if verb == "within":
            return abut.within(*spheres, 0.1, **{name: pose})
        return abut.collide(*spheres, first=verb == "first", **{name: pose})

    asked(FAR), asked(FAR)
    with pytest.raises(abut.PoseError) as expected:
        asked(spoiled(how).tolist())
    with pytest.raises(abut.PoseError) as raised:
        asked(spoiled(how))
    assert str(raised.value) == str(expected.value)
    assert len(asked(FAR)) == 0


@pytest.mark.parametrize("distance", [-1.0, np.inf, np.nan, "far", None])
def test_bad_distances_are_refused(distance, spheres):
    one_pose(*spheres, None, FAR)
    with pytest.raises(abut.OptionError):
        abut.within(*spheres, distance, pose_b=FAR)


def test_other_operands_are_refused(spheres):
    a, _ = spheres
    for verb in (abut.collide, lambda a, b, **k: abut.within(a, b, 0.1, **k)):
        for other in (7, "mesh", None if verb is abut.collide else 7):
            with pytest.raises(abut.MeshError):
                verb(a, other, pose_b=FAR)
    with pytest.raises(abut.OptionError):
        abut.collide(*spheres, pose_b=FAR, width=3)
    with pytest.raises(abut.PoseError):
        abut.collide(*spheres, pose_b=np.eye(3))


def test_meshes_without_faces(device):
    empty = abut.Mesh(np.zeros((1, 3)), np.zeros((0, 3), int), device)
    box = abut.Mesh(*cases.box(), device)
    for a, b in ((empty, box), (box, empty)):
        assert not abut.collide(a, b, pose_b=np.eye(4), first=True)
        assert len(abut.within(a, b, 1.0, pose_b=np.eye(4))) == 0


def test_poses_of_any_layout(spheres):
    """Single precision, strides and order change nothing."""
    pose = shift(0.25, 0.5, 0.0)
    wide = np.zeros((8, 8))
    wide[::2, ::2] = pose
    want = ask(*spheres, pose.tolist())
    assert want
    for same in (pose.astype(np.float32), np.asfortranarray(pose), wide[::2, ::2], pose.view()):
        check_contacts(ask(*spheres, same), want)


def test_segments_are_of_the_pose_and_the_shape_of_their_time(spheres):
    a, b = spheres
    pose = shift(0.3, 0.1, 0.0)
    want = ask(a, b, pose.tolist())
    want_segments = want.segments.numpy().copy()
    found = ask(a, b, pose)
    pose[:] = FAR
    b.deform(b.vertices.numpy() + 9.0)
    ask(a, b, FAR)
    np.testing.assert_array_equal(found.segments.numpy(), want_segments)


def test_deformed_meshes(spheres):
    a, b = spheres
    start, pose = b.vertices.numpy(), shift(0.1, 0.0, 0.0)
    for step in (0.0, 9.0, 0.2, 9.0, 0.0):
        b.deform(start + np.array([step, 0.0, 0.0]))
        assert check_at(a, b, pose) == (step < 1.0)
        assert len(abut.within(a, b, 0.1, pose_b=pose)) == len(
            abut.within(a, b, 0.1, pose_b=pose, method="brute")
        )


def test_a_refused_deformation_leaves_the_answers_as_they_were(spheres):
    a, b = spheres
    want = ask(a, b, np.eye(4)).pairs.numpy()
    bad = b.vertices.numpy()
    bad[3, 1] = np.nan
    with pytest.raises(abut.MeshError):
        b.deform(bad)
    np.testing.assert_array_equal(ask(a, b, np.eye(4)).pairs.numpy(), want)


@pytest.mark.parametrize("dropped", [0, 1])
def test_dropped_meshes_are_not_kept(dropped, spheres):
    meshes = list(spheres)
    spheres.clear()
    found = ask(*meshes, np.eye(4)), abut.collide(*meshes, pose_b=FAR)
    assert one_pose(*meshes, None, FAR) is not None
    prepared = weakref.ref(one_pose(*meshes, None, FAR))
    gone = weakref.ref(meshes.pop(dropped))
    gc.collect()
    assert gone() is None and prepared() is None
    assert found[0] and len(found[0].segments) == 1 and not found[1]


def test_a_mesh_against_its_own_copy(device):
    mesh = abut.Mesh(*cases.icosphere(200), device)
    for pose in (shift(0.5, 0.0, 0.0), shift(5.0, 0.0, 0.0)):
        check_at(mesh, mesh, pose)


def test_meshes_in_a_plane_take_the_exact_stage(device):
    """Few undecided pairs are settled at once, many of them by a plan."""
    for count, settled in ((3, True), (40, False)):
        a, b = abut.Mesh(*strips(count), device), abut.Mesh(*strips(count, 1), device)
        searched, key = one_pose(a, b, None, np.eye(4)).first(None, np.eye(4))
        assert searched == settled == (key is not None) and (count**2 > MOST_UNDECIDED) != settled
        check_contacts(ask(a, b, np.eye(4)), ask(a, b, np.eye(4).tolist()))
        _, key = one_pose(a, b, None, FAR).first(None, shift(0.0, 0.0, 1e-9))
        assert key == NO_KEY_INT


@pytest.mark.parametrize("count", [20, 60])
def test_more_pairs_than_there_is_room_for(count, device):
    a, b = abut.Mesh(*strips(count), device), abut.Mesh(*walls(count), device)
    known = one_pose(a, b, None, np.eye(4))
    searched, keys = known.every(None, np.eye(4))
    if device == "cpu":
        assert searched == (keys is not None) == (count**2 <= rooms.MOST_PAIRS)
    for _ in range(3):
        check_at(a, b, np.eye(4))
    assert len(abut.collide(a, b, pose_b=np.eye(4))) == count**2


def test_long_searches_are_left_to_plans_for_a_while(spheres, monkeypatch):
    pose = shift(0.3, 0.0, 0.0)
    want = abut.collide(*spheres, pose_b=pose, method="brute")
    known = one_pose(*spheres, None, pose)
    monkeypatch.setattr(rooms, "LONG_S", 0.0)
    answered = []
    for _ in range(2 * rooms.PLANS_IN_TURN + 2):
        check_contacts(abut.collide(*spheres, pose_b=pose), want)
        answered.append(known._plans_due == rooms.PLANS_IN_TURN)
        assert not abut.collide(*spheres, pose_b=FAR)
    assert sum(answered) == (2 if spheres[0].device.is_cpu else 0)


def test_touching_boxes(device):
    a, b = abut.Mesh(*cases.box(), device), abut.Mesh(*cases.box(), device)
    side = float(np.ptp(a.vertices.numpy(), axis=0)[2])
    for height, meets in (
        (side, True),
        (np.nextafter(side, 9), False),
        (np.nextafter(side, 0), True),
    ):
        assert check_at(a, b, shift(0.0, 0.0, height)) == meets


def test_searches_improve_the_trees(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 700))
    pose = shift(0.2, 0.1, 0.0)
    before = bvh_of(a)
    for _ in range(20_000):
        ask(a, b, pose)
        if bvh_of(a) is not before and bvh_of(b).improved:
            break
    assert bvh_of(a).improved and one_pose(a, b, None, pose).trees == (bvh_of(a), bvh_of(b))
    check_at(a, b, pose)


def test_boxes_that_are_apart_count_as_no_search(spheres, monkeypatch):
    counted = []
    monkeypatch.setattr(rooms.OnePose, "count_search", lambda *_: counted.append(1))
    for first in (True, False):
        for pose in (FAR, FAR, np.eye(4)):
            abut.collide(*spheres, pose_b=pose, first=first)
    assert len(counted) == (2 if spheres[0].device.is_cpu else 1)


def test_threads_ask_at_once(pair):
    poses = random_poses(60, 2.0)
    every = [abut.collide(*pair, pose_b=pose, method="brute").pairs.numpy() for pose in poses]
    want = [{tuple(row) for row in pairs.tolist()} for pairs in every]
    wrong = []

    def work(start):
        for k in range(start, start + 120):
            pose = poses[k % 60]
            rows = {tuple(row) for row in ask(*pair, pose).pairs.numpy().tolist()}
            if not rows <= want[k % 60] or len(rows) != bool(want[k % 60]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(17 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_stages_are_timed_by_a_plan(spheres):
    with recording() as timer:
        assert ask(*spheres, np.eye(4))
    assert "search" in timer.milliseconds


def test_other_questions_are_prepared_at_the_second_call(spheres):
    """The first one may need a plan anyway."""
    made = []
    for _ in range(3):
        assert not abut.collide(*spheres, pose_b=FAR)
        made.append(rooms._prepared.get(tuple(spheres), dict)[False, True] is not None)
    assert made == [False, True, True]


@pytest.mark.parametrize("pose", [np.eye(4), FAR], ids=["near", "far"])
def test_results_are_frozen_and_pickle(pose, spheres):
    for found in (ask(*spheres, pose), abut.within(*spheres, 0.0, pose_b=pose)):
        again = pickle.loads(pickle.dumps(found))
        for name in ("pairs", "distance", "points", "segments"):
            if hasattr(found, name):
                assert getattr(again, name).device == getattr(found, name).device
                np.testing.assert_array_equal(
                    getattr(again, name).numpy(), getattr(found, name).numpy()
                )
        assert found.pairs is found.pairs and len(again) == len(found)
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.pose = None


def test_no_array_is_made_that_nobody_reads(spheres, monkeypatch):
    ask(*spheres, np.eye(4)), abut.within(*spheres, 0.1, pose_b=FAR)
    for name in ("array", "empty", "zeros"):
        monkeypatch.setattr(rooms.wp, name, lambda *_, **__: pytest.fail("an array was made"))
    assert ask(*spheres, np.eye(4)) and len(ask(*spheres, np.eye(4))) == 1
    assert not ask(*spheres, FAR) and len(abut.within(*spheres, 0.1, pose_b=FAR)) == 0
