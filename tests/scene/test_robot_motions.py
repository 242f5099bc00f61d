"""Motions straight in joint space: certified free, or a time before the first contact."""

import json
import pickle

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere
from abut.scene.robots import motion_search
from abut.scene.robots.kinematics import Joint, Kinematics

EYE = np.eye(4)
X, Y, Z = np.eye(3)
TOLERANCE = 1e-6


def shifted(*offset):
    pose = np.eye(4)
    pose[:3, 3] = offset
    return pose


def random_pose(rng, reach):
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    pose = Joint(axis, True, np.zeros(3), 0).motions(rng.uniform(-3, 3, (1, 1)))[0]
    pose[:3, 3] = rng.uniform(-reach, reach, 3)
    return pose


def chain(rng, links=4):
    """A random tree of links: hinges, slides, a joint that mimics another, anchors off origin."""
    frames, moves, parents, parts = [], [], [], []
    for k in range(links):
        parents.append(-1 if k == 0 else int(rng.integers(max(k - 2, 0), k)))
        frames.append(random_pose(rng, 0.5))
        axis = rng.normal(size=3)
        column, scale = k % (links - 1), 1.0 if k < links - 1 else rng.uniform(-2, 2)
        hinge = bool(rng.random() < 0.75)
        anchor = rng.uniform(-0.3, 0.3, 3)
        about = (column, scale, rng.uniform(-1, 1))
        moves.append([Joint(axis / np.linalg.norm(axis), hinge, anchor, *about)])
        parts.append((k, random_pose(rng, 0.2)))
    names = [f"link{k}" for k in range(links)]
    joints = [f"joint{k}" for k in range(links - 1)]
    limits = np.tile([-2.0, 2.0], (links - 1, 1))
    return Kinematics(joints, names, parents, np.array(frames), moves, parts, limits)


def chain_scene(seed, device, obstacles=3):
    """A random robot of boxes and balls among balls; neighbours are not tested."""
    rng = np.random.default_rng(seed)
    kinematics = chain(rng)
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*box(rng.uniform(0.1, 0.5, 3)), device) for _ in range(4)]
    ball = icosphere(80)
    shapes[1] = abut.Mesh(ball.vertices * 0.2, ball.faces, device)
    rows = [scene.add(shapes[k % 4]) for k in range(len(kinematics.links))]
    for k, parent in enumerate(kinematics.parents):
        if parent >= 0:
            scene.ignore(rows[k], rows[parent])
    scene.set_robot(kinematics, rows)
    for _ in range(obstacles):
        size = rng.uniform(0.05, 0.3)
        stone = abut.Mesh(ball.vertices * size, ball.faces, device)
        scene.add(stone, random_pose(rng, 1.0))
    return scene, rng


def colliding(scene, values):
    """(n,) bool, of (n, k) joint values: the robot in contact, by faces alone."""
    robot = set(scene.robot.objects.tolist())
    hits = scene.collide(poses=scene.robot.poses(values), first=True)
    pairs, copies = hits.object_pairs.numpy(), hits.object_pair_pose.numpy()
    out = np.zeros(len(values), bool)
    out[copies[[bool(robot & set(pair)) for pair in pairs.tolist()]]] = True
    return out


def first_by_sampling(scene, q0, q1, count):
    """The first of some times with a contact, bisected; infinite without one."""
    times = np.linspace(0.0, 1.0, count + 1)
    met = colliding(scene, q0 + times[:, None] * (q1 - q0))
    if not met.any():
        return np.inf
    at = int(np.argmax(met))
    if at == 0:
        return 0.0
    low, high = times[at - 1], times[at]
    while high - low > 1e-8:
        grid = np.linspace(low, high, 9)
        met = colliding(scene, q0 + grid[1:, None] * (q1 - q0))
        k = int(np.argmax(met))
        low, high = grid[k], grid[k + 1]
    return high


def check(scene, q0, q1, verdicts, count, tolerance=TOLERANCE):
    """Compare verdicts with sampling; returns how many motions are free."""
    found = verdicts.numpy()
    for k in range(len(q0)):
        first = first_by_sampling(scene, q0[k], q1[k], count)
        time = found["time"][k]
        assert found["free"][k] == np.isinf(time)
        assert time <= first + 1e-12, "a contact is missed or late"
        if not found["free"][k] and found["faces"][k, 0] < 0:
            i, j = found["objects"][k].tolist()
            poses = scene.robot.poses(q0[k])
            at = {"pose_a": poses[i], "pose_b": poses[j]}
            assert time == 0.0 and abut.collide(scene.mesh(i), scene.mesh(j), **at, solid=True)
        elif found["converged"][k] and not found["free"][k]:
            ends = q0[k] + np.array([[time], [min(time + tolerance, 1.0)]]) * (q1[k] - q0[k])
            i, j = found["objects"][k].tolist()
            near = scene.distance(pairs=[(i, j)], poses=scene.robot.poses(ends))
            assert near.distance.numpy().min() < 1e-5, "an impact that is not near"
            if np.isfinite(first):
                assert time >= first - 2 * tolerance or first > first_contact_before(
                    scene, q0[k], q1[k], time
                )
    return int(found["free"].sum())


def first_contact_before(scene, q0, q1, time):
    """A time near ``time`` with a contact that sampling has missed; infinite if there is none."""
    times = time + np.geomspace(1e-9, 1e-3, 200)
    met = colliding(scene, q0 + times[:, None] * (q1 - q0))
    return times[np.argmax(met)] if met.any() else np.inf


def slider(device, gap=1.0):
    """A cube of edge 1 that slides along x towards a wall, ``gap`` away."""
    moves = [[Joint(X, False, np.zeros(3), 0)]]
    kinematics = Kinematics(
        ["x"], ["cube"], [-1], EYE[None], moves, [(0, EYE)], np.array([[0, 9.0]])
    )
    scene = abut.Scene(device)
    cube = abut.Mesh(*box((1.0, 1.0, 1.0)), device)
    row = scene.add(cube, name="cube")
    scene.add(cube, shifted(1.0 + gap, 0, 0), "wall")
    scene.set_robot(kinematics, [row])
    return scene


def test_known_times(device):
    robot = slider(device).robot
    assert robot.valid_motions([0.0], [0.9]).free
    found = robot.valid_motions([0.0], [2.0], tolerance=1e-9)
    assert not found.free and found.converged
    assert 0.5 - 1e-9 <= found.time <= 0.5
    assert found.objects.tolist() == [0, 1]
    assert not bool(found)
    near = robot.valid_motions([[0.0], [0.0], [0.0]], [[2.0], [0.7], [0.9]], min_distance=0.2)
    assert near.free.numpy().tolist() == [False, True, False]
    assert np.allclose(near.time.numpy()[[0, 2]], [0.4, 0.8 / 0.9], rtol=0, atol=2e-6)
    assert near.objects.numpy().tolist() == [[0, 1], [-1, -1], [0, 1]]


def test_contact_at_the_start_takes_no_time(device):
    robot = slider(device, gap=0.0).robot
    assert robot.valid_motions([0.0], [-1.0]).time == 0.0, "touching"
    robot = slider(device, gap=-0.5).robot
    found = robot.valid_motions([[0.0], [0.0], [-1.0]], [[-1.0], [0.0], [-2.0]])
    assert found.time.numpy().tolist() == [0.0, 0.0, np.inf]
    assert found.converged.numpy().all()


def test_contacts_at_the_start_are_not_searched_for(device, monkeypatch):
    """Regression: a motion that began deep in contact listed all faces that met, over and over."""
    scene, rng = chain_scene(5, device)
    values = rng.uniform(-2, 2, (400, len(scene.robot.joints)))
    met = values[~scene.robot.valid(values).numpy()]
    assert len(met) > 40
    monkeypatch.delattr(motion_search.MotionSearch, "_run")
    found = scene.robot.valid_motions(met, met + 0.1).numpy()
    assert not found["free"].any() and found["converged"].all() and (found["time"] == 0).all()
    for q, (a, b), faces in zip(met, found["objects"], found["faces"], strict=True):
        poses = scene.robot.poses(q)
        at = {"pose_a": poses[a], "pose_b": poses[b]}
        hits = abut.collide(scene.mesh(int(a)), scene.mesh(int(b)), **at, solid=True)
        assert hits
        if faces[0] >= 0:
            assert faces.tolist() in hits.pairs.numpy().tolist()
        else:
            assert not len(hits.pairs)


def test_robot_at_rest(device):
    robot = slider(device).robot
    assert robot.valid_motions([0.5], [0.5]).free
    assert not robot.valid_motions([1.5], [1.5]).free


def test_one_inside_another_is_contact(device):
    scene = slider(device)
    ball = icosphere(80)
    seed = scene.add(abut.Mesh(ball.vertices * 0.1, ball.faces, device), name="seed")
    found = scene.robot.valid_motions([[0.0], [-2.0]], [[0.1], [-2.1]])
    assert found.free.numpy().tolist() == [False, True]
    assert found.time.numpy()[0] == 0.0
    assert found.objects.numpy()[0].tolist() == [0, seed]
    scene.remove(seed)
    scene.add(abut.Mesh(ball.vertices * 0.1, ball.faces[1:], device), name="open")
    assert scene.robot.valid_motions([0.0], [0.1]).free, "an open mesh is a surface"


def test_ball_in_the_way_of_an_arm(device):
    """The arm sweeps through a ball that the straight line of its hand does not come near."""
    turn = Joint(Z, True, np.zeros(3), 0)
    parts = [(0, shifted(0.5, 0, 0))]
    kinematics = Kinematics(
        ["turn"], ["arm"], [-1], EYE[None], [[turn]], parts, np.array([[-9, 9.0]])
    )
    scene = abut.Scene(device)
    row = scene.add(abut.Mesh(*box((1.0, 0.1, 0.1)), device))
    scene.set_robot(kinematics, [row])
    ball = icosphere(320)
    angle = 1.2
    at = 0.95 * np.array([np.cos(angle), np.sin(angle)])
    scene.add(abut.Mesh(ball.vertices * 0.05, ball.faces, device), shifted(*at, 0), "ball")
    scene.robot.move([0.0])
    q0, q1 = np.array([0.0]), np.array([2.5])
    found = scene.robot.valid_motions(q0, q1)
    first = first_by_sampling(scene, q0, q1, 1000)
    assert first - 1e-6 <= found.time <= first
    assert found.objects.tolist() == [0, 1]
    back = scene.robot.valid_motions(q1, q0)
    assert not back.free and back.time < 1.0 - found.time
    assert scene.robot.valid_motions(q0, [0.8]).free


@pytest.mark.parametrize("seed", range(6))
def test_random_robots(device, seed):
    scene, rng = chain_scene(seed, device)
    q0, q1 = rng.uniform(-2, 2, (2, 24, 3))
    q1[::2] = q0[::2] + 0.2 * (q1[::2] - q0[::2])
    verdicts = scene.robot.valid_motions(q0, q1)
    check(scene, q0, q1, verdicts, 150)
    back = scene.robot.valid_motions(q1, q0)
    sure = verdicts.converged.numpy() & back.converged.numpy()
    assert (verdicts.free.numpy() == back.free.numpy())[sure].all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(10), 30, 36])
def test_many_random_robots(device, seed):
    scene, rng = chain_scene(100 + seed, device, obstacles=6)
    q0, q1 = rng.uniform(-2, 2, (2, 60, 3))
    q1[::2] = q0[::2] + 0.2 * (q1[::2] - q0[::2])
    check(scene, q0, q1, scene.robot.valid_motions(q0, q1), 10_000)


@pytest.mark.parametrize("seed", range(3))
def test_distance_is_kept(device, seed):
    scene, rng = chain_scene(50 + seed, device)
    q0 = rng.uniform(-2, 2, (30, 3))
    q1 = q0 + rng.uniform(-1, 1, (30, 3))
    found = scene.robot.valid_motions(q0, q1, min_distance=0.05).numpy()
    objects = set(scene.robot.objects.tolist())
    assert found["free"].any() and (found["time"] > 0).sum() > found["free"].sum()
    for k in np.flatnonzero(found["time"] > 0):
        times = np.linspace(0, min(found["time"][k], 1.0), 80)
        rows = scene.distance(
            upper_bound=0.0499999, poses=scene.robot.poses(q0[k] + times[:, None] * (q1[k] - q0[k]))
        )
        pairs = rows.objects.numpy().tolist()
        before = rows.pose.numpy() < 79
        assert not any(objects & set(p) for p, early in zip(pairs, before, strict=True) if early)


def test_paths(device):
    robot = slider(device).robot
    path = np.array([[0.0], [0.5], [2.5], [0.0]])
    found = robot.valid_motions(path)
    assert not found.free and abs(found.time - 1.25) < 2e-6
    both = robot.valid_motions(np.stack([path, 0.3 * path]))
    assert both.free.numpy().tolist() == [False, True]
    assert both.time.numpy()[0] == found.time
    assert robot.valid_motions([[0.5]]).free, "one waypoint is a configuration"


def test_paths_end_at_their_first_contact(device, monkeypatch):
    """Pieces after a contact are not searched, and answers are those of all pieces."""
    scene, rng = chain_scene(3, device)
    paths = np.cumsum(rng.uniform(-0.2, 0.2, (6, 60, len(scene.robot.joints))), axis=1)
    paths[0] = paths[0, :1]
    asked, run = [], motion_search.MotionSearch.run

    def counted(self, start, *more):
        asked.append(len(start))
        return run(self, start, *more)

    monkeypatch.setattr(motion_search.MotionSearch, "run", counted)
    found = scene.robot.valid_motions(paths).numpy()
    assert sum(asked) < 6 * 59 * 0.7 and asked[0] == 6
    for path, *answer in zip(paths, found["free"], found["time"], found["objects"], strict=True):
        pieces = scene.robot.valid_motions(path[:-1], path[1:]).numpy()
        assert answer[0] == pieces["free"].all()
        if not answer[0]:
            k = int(np.argmin(pieces["free"]))
            assert answer[1] == k + pieces["time"][k]
            assert answer[2].tolist() == pieces["objects"][k].tolist()
    assert 0 < found["free"].sum() < 6 and (found["time"] > 10).any()
    assert not scene.robot.valid_motions(np.empty((0, 5, paths.shape[2]))).numpy()["free"].size


def test_trajectories_with_times(device):
    robot = slider(device).robot
    path = np.array([[0.0], [0.5], [2.5], [0.0]])
    found = robot.valid_motions(path, times=[2.0, 3.0, 7.0, 8.0])
    assert not found.free and 4.0 - 8e-6 < found.time <= 4.0
    both = robot.valid_motions(np.stack([path, 0.3 * path]), times=np.array([2.0, 3, 7, 8]))
    assert both.time.numpy().tolist() == [found.time, np.inf]
    inside = robot.valid_motions([[1.5], [0.0]], times=[0.25, 1.0])
    assert inside.time == 0.25, "contact at the start"
    assert robot.valid_motions([[1.5]], times=[5.0]).time == 5.0
    for bad in ([0.0, 1.0], [0.0, 1, 1, 2], [0.0, 1, 2, np.inf]):
        with pytest.raises(abut.SceneError, match="increasing"):
            robot.valid_motions(path, times=bad)
    with pytest.raises(abut.SceneError, match="increasing"):
        robot.valid_motions(path[0], path[1], times=[0.0, 1.0])


def test_faces_of_the_first_contact(device):
    scene, rng = chain_scene(3, device)
    q0, q1 = rng.uniform(-2, 2, (2, 30, 3))
    found = scene.robot.valid_motions(q0, q1).numpy()
    rows = np.flatnonzero(~found["free"] & found["converged"] & (found["time"] > 0))
    assert len(rows) > 3
    for k in rows:
        (i, j), t = found["objects"][k], found["time"][k]
        poses = scene.robot.poses(q0[k] + t * (q1[k] - q0[k]))
        corners = [
            (m := scene.mesh(int(o))).vertices.numpy()[m.faces.numpy()[f]] @ poses[o, :3, :3].T
            + poses[o, :3, 3]
            for o, f in zip((i, j), found["faces"][k], strict=True)
        ]
        assert abut.primitives.distance_tri_tri(*(c[None] for c in corners))[0].numpy()[0] < 1e-5


def test_answers_do_not_depend_on_batches_or_threads(threads, monkeypatch):
    scene, rng = chain_scene(7, "cpu")
    q0, q1 = rng.uniform(-2, 2, (2, 20, 3))
    whole = scene.robot.valid_motions(q0, q1).numpy()
    for k in range(20):
        one = scene.robot.valid_motions(q0[k], q1[k]).numpy()
        assert all(np.array_equal(one[name], whole[name][k]) for name in one)
    threads(1)
    monkeypatch.setattr(motion_search, "LISTED", 16)  # lists are full at first
    scene.add(abut.Mesh(*box((0.1, 0.1, 0.1)), "cpu"), shifted(99, 0, 0))
    again = scene.robot.valid_motions(q0, q1).numpy()
    assert all(np.array_equal(again[name], whole[name]) for name in whole)


def test_the_scene_may_change(device):
    scene = slider(device)
    robot, about = scene.robot, ([0.0], [0.9])
    assert robot.valid_motions(*about).free
    scene.move("wall", shifted(1.5, 0, 0))
    assert not robot.valid_motions(*about).free
    scene.ignore("cube", "wall")
    assert robot.valid_motions(*about).free
    scene.allow("cube", "wall")
    scene.move("wall", shifted(2.0, 0, 0))
    assert robot.valid_motions(*about).free
    scene.deform("wall", box((2.0, 2.0, 2.0)).vertices)
    assert not robot.valid_motions(*about).free
    scene.remove("wall")
    assert robot.valid_motions(*about).free


def test_a_gap_of_rounding_is_not_free(device):
    """Cubes slide past each other at gaps from 1 down to less than rounding; a gap is decided."""
    for gap in 10.0 ** -np.arange(0, 18, 2.0):
        scene = slider(device)
        scene.move("wall", shifted(1.5, 1.0 + gap, 0.1))
        found = scene.robot.valid_motions([0.0], [3.0])
        truly = scene.robot.poses([1.5])
        apart = not scene.colliding(poses=truly[None]).numpy()[0]
        assert not found.free or apart
        assert found.free or gap < 1e-9


def test_impacts_of_pairs(device):
    for seed in range(4):
        scene, rng = chain_scene(seed, device)
        q0, q1 = rng.uniform(-2, 2, (2, 3))
        times = np.linspace(0, 1, 400)
        robot = set(scene.robot.objects.tolist())
        hits = scene.collide(poses=scene.robot.poses(q0 + times[:, None] * (q1 - q0)), first=True)
        pairs, copies = hits.object_pairs.numpy(), hits.object_pair_pose.numpy()
        first = {}
        for pair, copy in zip(map(tuple, pairs.tolist()), copies.tolist(), strict=True):
            if robot & set(pair):
                first.setdefault(pair, times[copy])
        impacts = scene.ccd(joints=(q0, q1))
        rows = impacts.numpy()
        found = dict(zip(map(tuple, rows["objects"].tolist()), rows["time"], strict=True))
        assert list(found) == sorted(found) and set(first) <= set(found)
        for pair, time in first.items():
            assert time - 1 / 399 - 1e-6 <= found[pair] <= time or found[pair] == 0.0
        assert impacts.first == min(found.values(), default=np.inf)
        assert impacts.first == scene.robot.valid_motions(q0, q1).time
        one = scene.ccd(joints=(q0, q1), first=True)
        assert one.first == impacts.first and len(one) == min(len(impacts), 1)
        assert impacts.safe_step == min(impacts.first, 1.0) and bool(impacts) == bool(found)


def test_impacts_refuse_other_operands(device):
    scene = slider(device)
    for options in ({"poses": scene.poses}, {"self_collisions": True}, {"method": "brute"}):
        with pytest.raises(abut.AbutError, match="joints"):
            scene.ccd(joints=([0.0], [1.0]), **options)
    with pytest.raises(abut.AbutError, match="one motion"):
        scene.ccd(joints=(np.zeros((2, 1)), np.zeros((2, 1))))
    with pytest.raises(abut.AbutError, match="robot"):
        abut.Scene(device).ccd(joints=([0.0], [1.0]))


def test_travel_bounds_paths():
    for seed in range(8):
        scene, rng = chain_scene(seed, "cpu")
        motion = scene.robot.motion(*rng.uniform(-2, 2, (2, 3)))
        t0, t1 = np.sort(rng.uniform(0, 1, 2))
        times = np.linspace(t0, t1, 200)
        poses, objects = motion.poses(times), scene.robot.objects
        points = [
            scene.mesh(int(o)).vertices.numpy() @ poses[:, k, :3, :3].swapaxes(1, 2)
            + poses[:, k, None, :3, 3]
            for k, o in enumerate(objects)
        ]
        travel = motion.travel(t0, t1)
        for k, paths in enumerate(points):
            length = np.linalg.norm(np.diff(paths, axis=0), axis=2).sum(axis=0).max()
            assert length <= travel[k] <= 30 * length + 1e-9
            for other in range(k):
                gaps = np.linalg.norm(paths[:, :, None] - points[other][:, None, :8], axis=3)
                change = np.abs(gaps - gaps[:1]).max()
                assert change <= motion.relative_travel(k, other, t0, t1) + 1e-12
                both = motion.travel(t0, t1)[[k, other]].sum()
                assert motion.relative_travel(k, other, t0, t1) <= both * (1 + 1e-9)


def test_bad_input(device):
    robot = slider(device).robot
    with pytest.raises(abut.AbutError, match="1 joints"):
        robot.valid_motions([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(abut.AbutError, match="finite"):
        robot.valid_motions([0.0], [np.nan])
    with pytest.raises(abut.AbutError, match="shape"):
        robot.valid_motions(np.zeros((2, 1)), np.zeros((3, 1)))
    with pytest.raises(abut.AbutError, match="waypoints"):
        robot.valid_motions([0.0])
    with pytest.raises(abut.AbutError, match="tolerance"):
        robot.valid_motions([0.0], [1.0], tolerance=0.0)
    with pytest.raises(abut.AbutError, match="min_distance"):
        robot.valid_motions([0.0], [1.0], min_distance=-1.0)
    with pytest.raises(abut.AbutError, match="q0 and q1"):
        robot.motion([[0.0]], [[1.0]])
    assert len(robot.valid_motions(np.zeros((0, 1)), np.zeros((0, 1))).free) == 0


def test_pickling(device):
    found = slider(device).robot.valid_motions(np.zeros((2, 1)), np.ones((2, 1)) * 2)
    again = pickle.loads(pickle.dumps(found))
    assert all(np.array_equal(v, found.numpy()[k]) for k, v in again.numpy().items())


def shelf_scene(data, device):
    folder = data / "robots" / "rtcd_shelf"
    if not folder.is_dir():
        pytest.skip("there is no shelf scene")
    scene = abut.Scene.load(folder / "panda.urdf", device)
    for item in json.loads((folder / "scene.json").read_text())["objects"]:
        mesh = abut.Mesh.load(folder / item["file"], device=device)
        scene.add(mesh, shifted(*item["translate"]), static=True)
    return scene


def shelf_motions(scene, count, size, seed=0):
    """Motions of a length in joint space from configurations without contact."""
    rng = np.random.default_rng(seed)
    q0 = rng.uniform(*scene.robot.limits.T, (4 * count, 7))
    q0 = q0[scene.robot.valid(q0).numpy()][:count]
    way = rng.normal(size=q0.shape)
    return q0, q0 + size * way / np.linalg.norm(way, axis=1, keepdims=True)


def test_panda_in_the_shelf(device, data):
    scene = shelf_scene(data, device)
    q0, q1 = shelf_motions(scene, 30, 0.3)
    assert check(scene, q0, q1, scene.robot.valid_motions(q0, q1), 120) > 15
    q0, q1 = shelf_motions(scene, 10, 3.0, 1)
    check(scene, q0, q1, scene.robot.valid_motions(q0, q1), 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_panda_in_the_shelf_in_depth(device, data, seed):
    scene = shelf_scene(data, device)
    q0, q1 = shelf_motions(scene, 40, 0.3, seed)
    check(scene, q0, q1, scene.robot.valid_motions(q0, q1), 10_000)
