"""The robot of a scene: its objects among obstacles."""

import pickle

import numpy as np
import pytest
import warp as wp

import abut
from abut.cases import box, icosphere
from abut.scene.robots.clearance_tables import clear_cells
from abut.scene.robots.kinematics import Joint, Kinematics
from abut.scene.robots.robot_search import RobotSearch

EYE = np.eye(4)
Z = np.array([0.0, 0.0, 1.0])


def shifted(*offset):
    pose = np.eye(4)
    pose[:3, 3] = offset
    return pose


def arm_kinematics():
    """A hinge at the origin, an arm along x; a slide at its end, along x, for a hand."""
    frames = np.stack([EYE, shifted(0, 0, 1), shifted(2, 0, 0)])
    turn = Joint(Z, True, np.zeros(3), 0)
    reach = Joint(np.array([1.0, 0, 0]), False, np.zeros(3), 1)
    parts = [(0, EYE), (1, shifted(1, 0, 0)), (2, EYE)]
    limits = np.array([[-3.0, 3.0], [0.0, 1.0]])
    moves, names = [[], [turn], [reach]], ["base", "arm", "hand"]
    return Kinematics(["turn", "reach"], names, [-1, 0, 1], frames, moves, parts, limits)


def arm_scene(device, obstacle_first=False):
    """The arm of cubes of edge 0.5, with or without an obstacle before it."""
    scene = abut.Scene(device)
    cube = abut.Mesh(*box((0.5, 0.5, 0.5)), device)
    if obstacle_first:
        scene.add(cube, shifted(9, 0, 0), "stone")
    rows = [scene.add(cube, name=name) for name in ("base", "arm", "hand")]
    scene.set_robot(arm_kinematics(), rows)
    scene.robot.move([0.0, 0.0])
    return scene


@pytest.mark.parametrize("obstacle_first", [False, True])
def test_poses_hold_obstacles_where_they_are(device, obstacle_first):
    scene = arm_scene(device, obstacle_first)
    first = int(obstacle_first)
    assert scene.robot.objects.tolist() == [first, first + 1, first + 2]
    scene.add(scene.mesh("base"), shifted(0, 5, 1), "wall")
    batch = scene.robot.poses([[0.0, 0.0], [np.pi / 2, 1.0]])
    assert batch.shape == (2, 4 + first, 4, 4)
    assert np.allclose(batch[1, first + 2, :3, 3], [0, 3, 1])
    assert np.array_equal(batch[:, -1], np.stack([shifted(0, 5, 1)] * 2))
    scene.move("wall", shifted(0, 3.4, 1))
    poses = scene.robot.poses([[0.0, 0.0], [np.pi / 2, 1.0], [np.pi / 2, 0.8]])
    assert scene.colliding(poses=poses).numpy().tolist() == [False, True, False]


def test_move(device):
    scene = arm_scene(device)
    scene.robot.move([np.pi / 2, 0.5])
    assert np.allclose(scene.pose_of("hand")[:3, 3], [0, 2.5, 1])


def test_removed_and_split_objects(device):
    scene = arm_scene(device)
    scene.remove("base")
    assert scene.robot.objects.tolist() == [1, 2]
    assert scene.add(scene.mesh("hand"), shifted(0, 9, 0)) == 0  # an obstacle in its row
    assert scene.robot.objects.tolist() == [1, 2]
    pieces = scene.split("hand", np.arange(12) % 2)
    assert set(scene.robot.objects.tolist()) == {1, *pieces.tolist()}
    scene.robot.move([np.pi / 2, 1.0])
    for piece in pieces:
        assert np.allclose(scene.pose_of(piece)[:3, 3], [0, 3, 1])
    assert np.allclose(scene.pose_of(0), shifted(0, 9, 0))


def test_pickling_keeps_the_robot(device):
    scene = arm_scene(device, obstacle_first=True)
    other = pickle.loads(pickle.dumps(scene))
    assert other.robot.objects.tolist() == [1, 2, 3]
    assert np.array_equal(other.robot.poses([0.3, 0.2]), scene.robot.poses([0.3, 0.2]))


def test_set_robot_refuses_other_numbers_of_objects(device):
    scene = arm_scene(device)
    with pytest.raises(abut.SceneError, match="3 parts"):
        scene.set_robot(arm_kinematics(), [0, 1])
    assert abut.Scene(device).robot is None


def brute_valid(scene, values):
    """The verdict of moved objects and brute force, with solids."""
    scene.robot.move(values)
    own = scene.robot.objects
    met = scene.collide(which=own, method="brute")
    return not (bool(met) or len(scene.collide(which=own, solid=True).contained))


def cluttered(device):
    """The arm among boxes, balls and an open sheet, one ball so large that the hand fits in."""
    scene = arm_scene(device, obstacle_first=True)
    ball = abut.Mesh(*icosphere(320), device)
    big = abut.Mesh(ball.vertices.numpy() * 2.0, ball.faces.numpy(), device)
    scene.add(big, shifted(-3.5, 0, 1))
    scene.add(ball, shifted(0, 3.2, 1.2), "ball")
    corners = np.array([[2.0, -2, 0], [2.0, -2, 2], [3, -2.5, 0], [3, -2.5, 2]])
    scene.add(abut.Mesh(corners, np.array([[0, 1, 2], [1, 2, 3]]), device))
    return scene


def random_values(count, seed=0):
    return np.random.default_rng(seed).uniform([-3.2, -0.2], [3.2, 1.2], (count, 2))


def test_valid_is_that_of_brute_force(device):
    scene = cluttered(device)
    values = random_values(60)
    batch = scene.robot.valid(values).numpy()
    assert 5 < batch.sum() < 55
    for row, verdict in zip(values, batch, strict=True):
        assert scene.robot.valid(row) is bool(verdict)
        assert brute_valid(scene, row) == verdict


def test_spheres_change_no_verdict(device):
    scene = cluttered(device)
    values = random_values(20_000)
    before = scene.robot.valid(values).numpy()
    scene.robot.prepare()
    model = scene.robot._model()
    assert len(model.covers.outer) and len(model.covers.inner)
    model.tables = type(model.tables)()  # spheres alone
    model._one, model._searches = None, []
    assert np.array_equal(scene.robot.valid(values).numpy(), before)


@pytest.mark.parametrize("prepared", [False, True])
def test_valid_finds_solids_inside(device, prepared):
    scene = arm_scene(device)
    if prepared:
        scene.robot.prepare()
    ball = abut.Mesh(*icosphere(320), device)
    big = abut.Mesh(ball.vertices.numpy() * 2.0, ball.faces.numpy(), device)
    scene.add(big, shifted(2.4, 0, 1), "big")
    assert not scene.robot.valid([0.0, 0.4])
    hollow = abut.Mesh(big.vertices.numpy(), big.faces.numpy()[1:], device)  # open: a surface
    scene.remove("big")
    scene.add(hollow, shifted(2.4, 0, 1), "big")
    scene.remove("arm")
    assert scene.robot.valid([0.0, 0.4])
    small = abut.Mesh(ball.vertices.numpy() * 0.1, ball.faces.numpy(), device)
    scene.add(small, shifted(2.4, 0, 1), "small")
    assert not scene.robot.valid([0.0, 0.4])  # an obstacle in the hand
    assert scene.robot.valid([0.0, 0.9])


def test_a_rotated_solid_close_to_the_wall_around_it(device):
    """Regression: the box around a rotated box reached out, and what is inside was called free."""
    scene = abut.Scene(device=device)
    ball = abut.Mesh(*icosphere(320, 0.1), device)
    wall = abut.Mesh(*box((0.24, 2.0, 2.0)), device)
    row = scene.add(ball, name="ball")
    axis = np.array([1.0, 1, 1]) / np.sqrt(3)
    moves = [[Joint(axis, True, np.zeros(3), 0)]]
    limits, parts = np.array([[-3.0, 3]]), [(0, np.eye(4))]
    kinematics = Kinematics(["turn"], ["ball"], [-1], np.eye(4)[None], moves, parts, limits)
    scene.set_robot(kinematics, [row])
    scene.add(wall, name="wall")
    values = np.linspace(-3, 3, 41)[:, None]
    assert not scene.robot.valid(values).numpy().any()
    assert not scene.robot.valid_motions(values[:1], values[1:2]).free.numpy().any()
    assert (scene.robot.clearance(values).distance.numpy() == 0).all()
    for value in values[::5]:
        scene.robot.move(value)
        assert scene.collide(solid=True).contained.numpy().tolist() == [[0, 1]]
        assert scene.overlap()


def lifted(shape, turn, obstacle, device):
    """A robot of one link that moves up and down, and an obstacle."""
    scene = abut.Scene(device=device)
    row = scene.add(abut.Mesh(*shape, device), name="link")
    moves, pose = [[Joint(np.array([0.0, 0, 1]), False, np.zeros(3), 0)]], np.eye(4)
    pose[:3, :3] = turn
    limits = np.array([[-3.0, 3]])
    kinematics = Kinematics(["lift"], ["link"], [-1], np.eye(4)[None], moves, [(0, pose)], limits)
    scene.set_robot(kinematics, [row])
    scene.add(obstacle, name="obstacle")
    return scene


def test_a_solid_off_the_middle_of_its_box(device):
    """Regression: the middle of the box of a tetrahedron was outside of the solid around it."""
    corner = np.vstack([np.zeros(3), np.eye(3)])
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    up = np.ones(3) / np.sqrt(3)
    aside = np.cross([0.0, 0, 1], up) / np.sqrt(2 / 3)
    block = box((18.0, 18.0, 9.6))
    wall = abut.Mesh(block.vertices - [0, 0, 4.2], block.faces, device)  # up to 0.6
    scene = lifted((corner, faces), [aside, np.cross(up, aside), up], wall, device)
    values = np.linspace(0.0, 0.02, 5)[:, None]  # up to 0.5974
    assert not scene.robot.valid(values).numpy().any()
    assert not scene.robot.valid_motions(values[:1], values[1:2]).free.numpy().any()
    assert (scene.robot.clearance(values).distance.numpy() == 0).all()
    scene.robot.move(values[0])
    assert scene.collide(solid=True).contained.numpy().tolist() == [[0, 1]]
    assert scene.overlap().objects.numpy().tolist() == [[0, 1]]


def test_a_piece_inside_a_link(device):
    """Regression: a piece of an object lies among the points of the whole, which were mixed up."""
    near, far = box((0.2, 0.2, 0.2)), box((0.2, 0.2, 0.2))
    vertices = np.concatenate([far.vertices + np.array([10, 0, 0]), near.vertices])
    both = abut.Mesh(vertices, np.concatenate([far.faces, near.faces + 8]), device)
    scene = lifted(icosphere(320, 1.0), np.eye(3), both, device)
    scene.split("obstacle", np.repeat([0, 1], 12))
    assert not scene.robot.valid([[0.0], [0.5]]).numpy().any()
    assert scene.robot.valid([2.5])


def test_valid_follows_obstacles(device):
    scene = arm_scene(device)
    at = [np.pi / 2, 1.0]
    batch = np.array([at, [0.0, 0.0]])
    assert scene.robot.valid(at)
    wall = scene.add(scene.mesh("base"), shifted(0, 3.4, 1))
    assert not scene.robot.valid(at)
    assert scene.robot.valid(batch).numpy().tolist() == [False, True]
    scene.move(wall, shifted(0, 3.6, 1))
    assert scene.robot.valid(at)
    scene.poses.numpy()
    poses = scene.poses.numpy()
    poses[wall] = shifted(0, 3.4, 1)
    scene.poses.assign(poses)
    assert not scene.robot.valid(at)
    poses[wall] *= 2.0
    scene.poses.assign(poses)
    with pytest.raises(abut.PoseError):
        scene.robot.valid(at)
    poses[wall] = shifted(0, 3.4, 1)
    scene.poses.assign(poses)
    scene.ignore(wall, "hand")
    assert scene.robot.valid(batch).numpy().all()
    scene.allow(wall, "hand")
    assert not scene.robot.valid(at)
    scene.deform(wall, scene.mesh(wall).vertices.numpy() * 0.2)
    assert scene.robot.valid(at)
    scene.remove(wall)
    assert scene.robot.valid(at)


def test_fixed_objects_follow_obstacles(device):
    """A free configuration proves the base apart from all obstacles, until one of them moves."""
    scene = arm_scene(device)
    stone = scene.add(scene.mesh("base"), shifted(0, 3, 0))
    values = np.array([[0.0, 0.0], [1.0, 0.5]])
    for _ in range(2):
        assert scene.robot.valid([0.0, 0.0])
        scene.move(stone, shifted(0.2, 0, 0))
        assert not scene.colliding(which=stone, against="arm")  # another search follows the move
        assert not scene.robot.valid(values).numpy().any()
        scene.move(stone, shifted(0, 3, 0))
        assert scene.robot.valid(values).numpy().all()
        scene.move(stone, shifted(0.2, 0, 0))
        assert not scene.robot.valid([0.0, 0.0])
        scene.move(stone, shifted(0, 3, 0))


def test_valid_tests_objects_of_the_robot_as_filters_say(device):
    scene = arm_scene(device)
    scene.move("hand", shifted(9, 9, 9))  # where objects are does not matter
    low = [0.0, -0.9]  # the hand in the arm
    assert not scene.robot.valid(low)
    scene.ignore("arm", "hand")
    assert scene.robot.valid(low)
    scene.allow("arm", "hand")
    scene.set("hand", mask=0)
    assert scene.robot.valid(low)


def test_valid_refuses_what_is_not_finite(device):
    scene = arm_scene(device)
    with pytest.raises(abut.SceneError, match=r"joint .* is nan"):
        scene.robot.valid([0.0, np.nan])
    with pytest.raises(abut.SceneError, match="configuration 2 is inf"):
        scene.robot.valid([[0.0, 0.0], [0.0, 0.5], [np.inf, 0.0]])
    with pytest.raises(abut.SceneError, match="2 joints"):
        scene.robot.valid([0.0])
    assert scene.robot.valid([0.0, 0.0])


def test_valid_within_limits(device):
    scene = arm_scene(device)
    assert scene.robot.valid([3.1, 0.0]) and not scene.robot.valid([3.1, 0.0], limits=True)
    values = [[3.1, 0.0], [3.0, 1.0], [0.0, 1.01]]
    assert scene.robot.valid(values, limits=True).numpy().tolist() == [False, True, False]


def test_valid_of_no_configurations_and_of_no_objects(device):
    scene = arm_scene(device)
    assert scene.robot.valid(np.empty((0, 2))).numpy().shape == (0,)
    scene.remove(["base", "arm", "hand"])
    scene.add(abut.Mesh(*box(), device))
    assert scene.robot.valid([0.0, 0.0])
    assert scene.robot.valid(np.zeros((3, 2))).numpy().all()


def test_valid_grows_its_queues(device):
    """Every object of the robot meets the boxes of hundreds of sheets, none of which it touches."""
    scene = arm_scene(device)
    thin = abut.Mesh(np.array([[-3.0, -3, 0], [3, 3, 4], [3, 3.001, 4]]), [[0, 1, 2]], device)
    scene.add(thin, np.stack([shifted(0.9, -0.9, -1)] * 400))
    values = np.array([[0.0, 0.0], [0.0, 0.5]])
    assert len(scene.robot.valid(values).numpy()) == 2
    for row in values:
        assert scene.robot.valid(row) == brute_valid(scene, row)


def test_values_on_the_device(device):
    """The way of large batches on CUDA, which the CPU can go too; values may be on the device."""
    scene = cluttered(device)
    values = random_values(600)
    expected = scene.robot.valid(values).numpy()
    rows = wp.array(values, dtype=wp.float64, device=device)
    assert np.array_equal(scene.robot.valid(rows).numpy(), expected)
    model = scene.robot._model()
    for given in (rows, values, values[:40]):
        assert np.array_equal(model._cuda_flags(given) == 0, expected[: len(given)])
    flags = wp.full(600, 7, dtype=wp.int32, device=device)
    search = RobotSearch(scene.robot._model(), 256)
    search._sizes = [4, 1, 1]  # queues that must grow
    search._record()
    for start, stop in ((0, 256), (256, 512), (512, 600)):
        part = slice(start, stop)
        search.write_flags(rows[part], flags[part])
    assert np.array_equal(flags.numpy() == 0, expected)
    assert set(flags.numpy().tolist()) == {0, 1}


def test_mimic_joints_and_links_that_touch_exactly(device):
    """Two fingers of one joint; they close on a box until faces are coplanar, which is contact."""
    finger = abut.Mesh(*box((0.25, 0.25, 0.25)), device)
    y = np.array([0.0, 1.0, 0.0])
    left, right = Joint(y, False, np.zeros(3), 0), Joint(y, False, np.zeros(3), 0, -1.0)
    kinematics = Kinematics(
        ["grip"],
        ["palm", "left", "right"],
        [-1, 0, 0],
        np.stack([EYE, EYE, EYE]),
        [[], [left], [right]],
        [(1, EYE), (2, EYE)],
        np.array([[0.0, 1.0]]),
    )
    scene = abut.Scene(device)
    rows = [scene.add(finger, name="left"), scene.add(finger, name="right")]
    scene.set_robot(kinematics, rows)
    scene.add(finger, EYE, "part")
    assert not scene.robot.valid([0.25])  # common faces
    assert scene.robot.valid([0.25 + 2.0**-40])
    assert not scene.robot.valid([0.125])
    assert scene.robot.valid([[0.5], [0.25]]).numpy().tolist() == [True, False]
    poses = scene.robot.object_poses([0.5])
    assert np.allclose(poses[:, 1, 3], [0.5, -0.5])


def folding_arm(device):
    """A base, an arm that a hinge folds onto it, a fist on a second hinge, and a slide beyond."""
    x = np.array([1.0, 0.0, 0.0])
    y = np.array([0.0, 1.0, 0.0])
    anchor = np.array([0.1, 0.2, 0.0])
    joints = [
        [],
        [Joint(y, True, anchor, 0)],
        [Joint(np.array([0.6, 0.0, 0.8]), True, np.zeros(3), 1, 0.5, 0.1)],
        [Joint(x, False, np.zeros(3), 0, -0.2)],
    ]
    frames = np.stack([EYE, shifted(0.3, 0, 0.5), shifted(0.9, 0, 0), shifted(0.4, 0.1, 0)])
    parts = [(0, EYE), (1, shifted(0.5, 0, 0)), (2, shifted(0.2, 0, 0.1)), (3, EYE)]
    limits = np.array([[-3.0, 3.0], [-np.inf, np.inf]])
    kinematics = Kinematics(
        ["fold", "turn"],
        ["base", "arm", "fist", "tip"],
        [-1, 0, 1, 2],
        frames,
        joints,
        parts,
        limits,
    )
    scene = abut.Scene(device)
    meshes = [box((0.5, 0.4, 0.5)), box((0.6, 0.2, 0.2)), icosphere(80, 0.3), box((0.3, 0.4, 0.1))]
    scene.set_robot(kinematics, [scene.add(abut.Mesh(*mesh, device)) for mesh in meshes])
    scene.ignore([0, 1, 2], [1, 2, 3])
    return scene


def test_grids_change_no_verdict(device):
    scene = folding_arm(device)
    values = np.random.default_rng(0).uniform(-4, 4, (20_000, 2))
    before = scene.robot.valid(values).numpy()
    assert 1000 < before.sum() < 19_000
    scene.ignore(0, 2)
    other = scene.robot.valid(values).numpy()
    scene.allow(0, 2)
    scene.robot.prepare()
    model = scene.robot._model()
    cells = model.tables.cells.numpy()
    assert (cells == 1).mean() > 0.2 and (cells == 2).any() and (cells == 0).any()
    assert np.array_equal(scene.robot.valid(values).numpy(), before)
    for row in values[:50]:
        assert scene.robot.valid(row) == scene.robot.valid(row[None]).numpy()[0]
    scene.ignore(0, 2)  # the grids of other pairs stay
    assert np.array_equal(scene.robot.valid(values).numpy(), other)
    assert scene.robot._model().grids is model.grids


@pytest.mark.parametrize("gap", [0.0, 0.07])
def test_cells_hold_at_their_corners(device, gap):
    """No pose of a free cell is within a gap, and every pose of a meeting cell has a contact."""
    scene = folding_arm(device)
    meshes = scene.meshes
    kinematics = scene.robot.kinematics
    grid = clear_cells(kinematics, meshes, (0, 3), gap)
    step = (grid.high - grid.low) / grid.cells.shape
    for state in (1, 2, 3) if gap else (1, 2):
        cells = np.argwhere(grid.cells == state)
        assert len(cells) > 500
        cells = cells[np.random.default_rng(0).choice(len(cells), 300)]
        for corner in ([0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]):
            poses = scene.robot.object_poses(grid.low + (cells + corner) * step)
            at = {"pose_a": poses[:, 0], "pose_b": poses[:, 3]}
            met = abut.collide(meshes[0], meshes[3], **at, first=True, solid=True)
            if state < 3:
                assert (met.colliding.numpy() == (state == 2)).all()
            far = abut.distance(meshes[0], meshes[3], **at).value.numpy() > gap
            assert (far == (state == 1)).all() or state == 2


def test_grids_are_made_as_they_pay(device):
    scene = folding_arm(device)
    assert scene.robot.valid([0.0, 0.0]) in (True, False)
    grids = scene.robot._model().grids
    assert grids.version == 0
    grids.spent = 1e3
    verdict = scene.robot.valid([2.0, 0.3])
    assert grids.version == 4  # the spheres and three grids
    assert scene.robot.valid([2.0, 0.3]) == verdict


def test_grids_of_padded_links(device):
    """Verdicts with paddings do not depend on grids, which are made anew for larger paddings."""
    scene, values = folding_arm(device), np.random.default_rng(3).uniform(-3, 3, (2000, 2))
    robot, verdicts = scene.robot, []
    for pad in (0.0, 0.05, 0.02, 0.1):
        robot.pad(pad)
        verdicts.append(robot.valid(values).numpy())
    assert len({verdict.sum() for verdict in verdicts}) == 4
    for pad, verdict in zip((0.0, 0.05, 0.02, 0.1), verdicts, strict=True):
        robot.pad(pad)
        robot.prepare()
        assert np.array_equal(robot.valid(values).numpy(), verdict)
        grids = robot._model(robot.padding).grids._grids.values()
        assert all(grid.gap >= 2 * pad for grid in grids if grid is not None)
    cells = np.concatenate([grid.cells.ravel() for grid in grids if grid is not None])
    assert max(grid.gap for grid in grids if grid is not None) == 0.2 and (cells == 3).any()


def test_deformed_objects_get_new_grids_and_spheres(device):
    scene = folding_arm(device)
    values = np.random.default_rng(3).uniform(-3, 3, (2000, 2))
    scene.robot.prepare()
    before = scene.robot.valid(values).numpy()
    scene.deform(0, scene.mesh(0).vertices.numpy() * 1.6)
    after = scene.robot.valid(values).numpy()
    assert (before != after).any()
    fresh = folding_arm(device)
    fresh.deform(0, fresh.mesh(0).vertices.numpy() * 1.6)
    assert np.array_equal(fresh.robot.valid(values).numpy(), after)
    scene.robot.prepare()
    assert np.array_equal(scene.robot.valid(values).numpy(), after)
