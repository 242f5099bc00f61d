"""Attached objects move with a link and are tested as it is; padding widens contacts."""

import pickle

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, point_cloud, segments
from abut.scene.robots.kinematics import Joint, Kinematics


def pose(*at):
    out = np.eye(4)
    out[:3, 3] = at
    return out


def robot_scene(device):
    """A base at the origin, a slide along x with a hand fixed to it, and a turning finger."""
    cube = abut.Mesh(*box((0.2, 0.2, 0.2)), device)
    scene = abut.Scene(device=device)
    rows = [scene.add(cube, name=name) for name in ("base", "slide", "hand", "finger")]
    axis = np.array([1.0, 0, 0])
    frames = np.stack([pose(0, 0, 0), pose(1, 0, 0), pose(0, 0, 0.5), pose(0, 0.5, 0)])
    moves = [[], [Joint(axis, False, np.zeros(3), 0)], [], [Joint(axis, True, np.zeros(3), 1)]]
    limits = np.array([[-9.0, 9], [-3, 3]])
    parts = [(k, np.eye(4)) for k in range(4)]
    names = ["base", "slide", "hand", "finger"]
    parents = [-1, 0, 1, 2]
    robot = Kinematics(["push", "turn"], names, parents, frames, moves, parts, limits)
    scene.set_robot(robot, rows)
    scene.robot.move([0.0, 0.0])
    ball = abut.Mesh(*icosphere(80, 0.1), device)
    scene.add(ball, pose(1, 0, 0.75), "ball")
    scene.add(cube, pose(4, 0, 0.75), "wall")
    return scene


def test_attached_objects_move_with_the_link(device):
    scene = robot_scene(device)
    robot = scene.robot
    assert robot.valid([2.9, 0])  # the wall is higher than the hand
    robot.attach("ball", "hand")
    assert robot.attached == {scene.names["ball"]: "hand"}
    assert robot.valid([2.0, 0]) and not robot.valid([2.9, 0])
    robot.move([2.0, 0.0])
    assert np.allclose(scene.pose_of("ball"), pose(3, 0, 0.75))
    robot.detach("ball")
    robot.move([0.0, 0.0])
    assert np.allclose(scene.pose_of("ball"), pose(3, 0, 0.75)) and robot.attached == {}
    assert robot.valid([0.0, 0]) and robot.valid([2.9, 0])


def test_a_pose_in_the_frame_of_the_link(device):
    scene = robot_scene(device)
    scene.robot.move([1.0, 0.0])
    scene.robot.attach("ball", "finger", pose(0, 0.25, 0))
    assert np.allclose(scene.pose_of("ball"), pose(2, 0.75, 0.5))
    scene.robot.move([1.0, np.pi / 2])
    assert np.allclose(scene.pose_of("ball")[:3, 3], [2, 0.5, 0.75])
    with pytest.raises(abut.PoseError):
        scene.robot.attach("wall", "finger", 2 * np.eye(4))
    assert scene.robot.attached == {scene.names["ball"]: "finger"}


def test_where_the_robot_is(device):
    scene = robot_scene(device)
    scene.robot.attach("ball", "hand", at=[0.5, 0.0])
    scene.robot.move([1.5, 0])
    assert np.allclose(scene.pose_of("ball"), pose(2, 0, 0.75))


def test_links_that_may_be_touched(device):
    """The link and what is fixed to it; others only when named."""
    scene = robot_scene(device)
    scene.move("ball", pose(1, 0.25, 0.5))  # beside the hand, at the finger
    before = scene.ignored_pairs.tolist()
    scene.robot.attach("ball", "hand", pose(0, 0.35, 0))
    assert not scene.robot.valid([0.0, 0.0])
    scene.robot.detach("ball")
    assert scene.ignored_pairs.tolist() == before
    scene.robot.attach("ball", "hand", pose(0, 0.35, 0), touch_links=["finger"])
    assert scene.robot.valid([0.0, 0.0])
    scene.robot.detach("ball")
    scene.robot.attach(
        "ball", "hand", pose(0, 0, -0.45)
    )  # in the slide, which the hand is fixed to
    assert scene.robot.valid([0.0, 0.0])
    assert not scene.robot.valid([-1.0, 0.0])  # the base


def test_attached_objects_meet_obstacles_of_planning_scenes(device):
    """Filters of obstacles, which do not meet each other, are those of the link meanwhile."""
    scene = robot_scene(device)
    scene.set(["ball", "wall"], group=2, mask=~2)
    scene.set("ball", static=True)
    scene.robot.attach("ball", "hand")
    assert not scene.robot.valid([2.9, 0])
    scene.robot.detach("ball")
    scene.move("ball", scene.pose_of("wall"))
    assert not scene.colliding()
    other = pickle.loads(pickle.dumps(scene))
    assert other.robot.attached == {}


def test_several_objects_and_what_is_refused(device):
    scene = robot_scene(device)
    scene.move("wall", scene.pose_of("ball"))
    scene.robot.attach(["ball", "wall"], "hand")
    assert scene.robot.valid([0.0, 0.0])  # held objects do not meet each other
    copy = pickle.loads(pickle.dumps(scene))
    copy.robot.move([1.0, 0])
    assert np.allclose(copy.pose_of("wall"), pose(2, 0, 0.75))
    copy.robot.detach(["wall", "ball"])
    assert copy.colliding()
    with pytest.raises(abut.SceneError, match="carries one of these"):
        scene.robot.attach("ball", "hand")
    scene.remove("ball")
    assert list(scene.robot.attached) == [scene.names["wall"]]
    with pytest.raises(abut.SceneError, match="not attached"):
        scene.robot.detach("base")
    with pytest.raises(abut.SceneError, match="did you mean 'hand'"):
        scene.robot.attach("wall", "hnd")
    pieces = scene.split("wall", np.arange(12) // 6)
    scene.robot.detach(pieces)
    assert scene.robot.attached == {}


def test_padding_counts_as_contact(device):
    scene = robot_scene(device)
    robot = scene.robot
    scene.remove("ball")
    scene.move("wall", pose(3, 0, 0))
    assert robot.valid([1.79, 0]) and not robot.valid([1.8, 0])  # they touch
    robot.pad({"slide": 0.25})
    batch = np.array([[1.5, 0], [1.54, 0], [1.56, 0], [1.81, 0]])
    assert robot.valid(batch).numpy().tolist() == [True, True, False, False]
    robot.pad({"wall": 0.125})
    assert robot.valid(batch - 0.125 * np.array([1, 0])).numpy().tolist()[:3] == [True, True, False]
    assert robot.padding == {scene.names["slide"]: 0.25, scene.names["wall"]: 0.125}
    robot.pad({"slide": 0, "wall": 0.0})
    assert robot.padding == {} and robot.valid([1.79, 0])
    robot.pad(0.1)
    assert len(robot.padding) == 4 and not robot.valid([1.75, 0])
    assert robot.valid([1.6, 0], limits=True) and not robot.valid([1.6, 4.0], limits=True)


def test_padding_of_the_robot_itself(device):
    """Between links both paddings add up; pairs that are not tested stay so."""
    scene = robot_scene(device)
    robot = scene.robot
    scene.remove(["ball", "wall"])
    assert robot.valid([-0.79, 0])
    robot.pad({"base": 0.125, "slide": 0.125})
    assert robot.valid([-0.54, 0]) and not robot.valid([-0.56, 0])
    scene.ignore("base", "slide")
    assert robot.valid([-0.56, 0])


def test_motions_keep_paddings(device):
    scene = robot_scene(device)
    robot = scene.robot
    scene.remove("ball")
    scene.move("wall", pose(3, 0, 0))
    assert robot.valid_motions([0.0, 0], [1.6, 0]).free
    robot.pad({"wall": 0.15})
    assert robot.valid_motions([0.0, 0], [1.6, 0]).free
    robot.pad({"slide": 0.1})
    assert not robot.valid_motions([0.0, 0], [1.6, 0]).free
    assert robot.valid_motions([0.0, 0], [1.5, 0]).free
    assert len(scene.ccd(joints=([0.0, 0], [1.6, 0]))) == 1
    robot.pad({"slide": 0, "wall": 0, "hand": 0.125, "finger": 0.25})
    free = robot.valid([0.0, 0.0]) and robot.valid([0.0, 0.1])
    assert robot.valid_motions([0.0, 0], [0.0, 0.1]).free == free


def near_by_distance(robot, values):
    """(n,) bool: padded pairs of objects by their distances, as ``scene.distance`` finds them."""
    scene, pad = robot.scene, np.zeros(len(robot.scene))
    pad[list(robot.padding)] = list(robot.padding.values())
    poses = robot.poses(values)
    found = scene.distance(which=robot.objects, upper_bound=2 * pad.max(), poses=poses).numpy()
    hit = found["distance"] <= pad[found["objects"]].sum(axis=1)
    near = np.zeros(len(values), bool)
    near[found["pose"][hit]] = True
    return near


@pytest.mark.parametrize("seed", range(3))
def test_padding_is_that_of_distances(device, seed):
    rng = np.random.default_rng(seed)
    scene = robot_scene(device)
    robot, ball = scene.robot, scene.mesh("ball")
    for _ in range(6):
        scene.add(ball, pose(*rng.uniform([-4, -1, -0.5], [4, 1, 1])))
    scene.ignore("base", "slide")
    values = rng.uniform([-3.0, -3], [3, 3], (300, 2))
    plain = robot.valid(values).numpy()
    for _ in range(3):
        chosen = rng.choice(len(scene), 6, replace=False).tolist()
        robot.pad(0.0)
        robot.pad(dict.fromkeys(range(len(scene)), 0.0))
        robot.pad(dict(zip(chosen, rng.uniform(0, 0.15, 6).tolist(), strict=True)))
        expected = plain & ~near_by_distance(robot, values)
        assert (robot.valid(values).numpy() == expected).all()
        assert [robot.valid(row) for row in values[:20]] == expected[:20].tolist()
        robot.prepare()
        assert (robot.valid(values).numpy() == expected).all()
        assert 0 < expected.sum() < plain.sum()
        assert (robot.clearance(values).distance.numpy() > 0).tolist() == expected.tolist()


def test_points_and_segments_with_a_padding_are_balls_and_capsules(device):
    """True shapes: against distances by formulas, of a cube that slides along x."""
    rng = np.random.default_rng(5)
    scene = abut.Scene(device=device)
    row = scene.add(abut.Mesh(*box((0.2, 0.2, 0.2)), device), name="cube")
    axis = np.array([1.0, 0, 0])
    moves, limits = [[Joint(axis, False, np.zeros(3), 0)]], np.array([[-3.0, 3]])
    parts = [(0, np.eye(4))]
    robot = Kinematics(["push"], ["cube"], [-1], np.eye(4)[None], moves, parts, limits)
    scene.set_robot(robot, [row])
    points = rng.uniform([-3, -1, -1], [3, 1, 1], (80, 3))
    ends = rng.uniform([-3, -1, -1], [3, 1, 1], (10, 2, 3))
    scene.add(abut.Mesh(*point_cloud(points), device), name="cloud")
    scene.add(abut.Mesh(*segments(ends), device), name="pipes")
    scene.robot.pad({"cloud": 0.05, "pipes": 0.1})
    values = rng.uniform(-3, 3, (400, 1))
    gap = np.abs(points[None] - values[:, :1, None] * axis) - 0.1
    gaps = np.linalg.norm(np.maximum(gap, 0.0), axis=2).min(axis=1) - 0.05
    share = np.linspace(0, 1, 2001)[:, None]
    along = (ends[:, :1] + share * (ends[:, 1:] - ends[:, :1])).reshape(-1, 3)
    for k, value in enumerate(values[:, 0]):
        gap = np.maximum(np.abs(along - value * axis) - 0.1, 0.0)
        gaps[k] = min(gaps[k], np.linalg.norm(gap, axis=1).min() - 0.1)
    found = scene.robot.valid(values).numpy()
    sure = np.abs(gaps) > 1e-5  # samples along segments are too far by about 1e-6
    assert (found[sure] == (gaps[sure] > 0)).all() and 40 < found.sum() < 360
    q0, q1 = values[:100], values[:100] + 0.05
    free = scene.robot.valid_motions(q0, q1).free.numpy()
    between = scene.robot.valid((q0 + np.linspace(0, 1, 11) * (q1 - q0)).reshape(-1, 1)).numpy()
    assert (free <= between.reshape(-1, 11).all(axis=1)).all() and free.sum() > 5


@pytest.mark.parametrize("given", [np.zeros((0, 3)), np.zeros((4, 2)), np.zeros((4, 3, 3))])
def test_point_clouds_of_other_shapes_are_refused(given):
    with pytest.raises(abut.OptionError, match="was expected"):
        point_cloud(given)


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, "far", True])
def test_padding_that_is_refused(device, bad):
    scene = robot_scene(device)
    with pytest.raises(abut.SceneError):
        scene.robot.pad({"hand": bad})
    with pytest.raises(abut.SceneError, match="nothing"):
        scene.robot.pad({"nothing": 0.1})
    assert scene.robot.padding == {}


def test_padding_goes_with_its_object(device):
    scene = robot_scene(device)
    scene.robot.pad({"wall": 1.0})
    scene.remove("wall")
    scene.add(scene.mesh("ball"), pose(4, 0, 0), "new")  # has the index of the wall
    assert scene.robot.padding == {}
