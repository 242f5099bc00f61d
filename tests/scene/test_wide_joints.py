"""Joints of several values: free and ball joints of MJCF, floating and planar ones of URDF."""

import numpy as np
import pytest

import abut
from abut.scene.robots.joint_rotations import rotations_of, turns_between

MODEL = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 .1" pos="0 0 -0.4"/>
  <geom name="post" type="box" size=".1 .1 .5" pos="0.9 0 0"/>
  <body name="base" pos="0 0 0.3"><freejoint name="root"/>
    <geom name="trunk" type="box" size=".25 .15 .1"/>
    <body name="arm" pos="0.3 0 0"><joint name="shoulder" type="ball" pos="-.02 .01 0"/>
      <geom name="arm" type="box" size=".2 .04 .03" pos=".2 0 0"/>
      <body name="hand" pos="0.45 0 0"><joint name="wrist" axis="0 1 0" range="-90 90"/>
        <geom name="hand" type="box" size=".05 .08 .05" pos=".05 0 0"/></body></body></body>
  <body name="loose" pos="-1 0 0"><freejoint/><geom name="cube" type="box" size=".1 .1 .1"/></body>
</worldbody>
<keyframe><key name="up" qpos="0 0 1 1 0 0 0  0.7 0 -0.7 0  0.3  -1 0 0 1 0 0 0"/></keyframe>
</mujoco>"""

WALKER = """<robot name="walker">
  <link name="ground"><collision><origin xyz="0 0 -0.5"/><geometry><box size="6 6 0.4"/></geometry>
    </collision></link>
  <link name="base"><collision><geometry><box size="0.5 0.3 0.2"/></geometry></collision></link>
  <link name="arm"><collision><origin xyz="0.2 0 0"/><geometry>
    <box size="0.4 0.08 0.08"/></geometry></collision></link>
  <joint name="root" type="{kind}"><parent link="ground"/><child link="base"/>
    <origin xyz="0.1 0 0.2" rpy="0.1 0.2 0.3"/>{axis}</joint>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/></joint>
</robot>"""


@pytest.fixture
def mujoco():
    return pytest.importorskip("mujoco")


@pytest.fixture
def model_file(tmp_path, mujoco):
    path = tmp_path / "robot.xml"
    path.write_text(MODEL)
    return path


def walker(tmp_path, device, kind, axis=""):
    path = tmp_path / "walker.urdf"
    path.write_text(WALKER.format(kind=kind, axis=axis))
    return abut.Scene.load(path, device)


def random_values(robot, count, seed=0, spread=0.6):
    """Positions about rest, quaternions of all lengths and signs, angles."""
    rng = np.random.default_rng(seed)
    rest = robot.values({})
    values = rest + rng.uniform(-spread, spread, (count, len(rest)))
    for column in robot.kinematics.balls:
        quaternions = rng.normal(size=(count, 4)) * 10.0 ** rng.uniform(-2, 2, (count, 1))
        values[:, column : column + 4] = quaternions
    return values


def test_values_are_those_of_mujoco(model_file, device):
    scene = abut.Scene.load(model_file, device)
    robot = scene.robot
    joints = [f"root/{x}" for x in ("trans_x", "trans_y", "trans_z")]
    joints += [f"root/rot_{x}" for x in "wxyz"] + [f"shoulder/rot_{x}" for x in "wxyz"] + ["wrist"]
    assert robot.joints[:12] == joints and len(robot.joints) == 19
    assert robot.values({}).tolist()[:8] == [0, 0, 0.3, 1, 0, 0, 0, 1]
    assert robot.values("up")[11] == 0.3 and np.isclose(
        robot.states["up"]["shoulder/rot_y"], -np.sqrt(0.5)
    )
    named = {"shoulder": [0.5, 0.5, 0.5, 0.5], "root/trans_x": 2.0, "wrist": 0.1}
    assert robot.values(named)[[0, 7, 8, 11]].tolist() == [2.0, 0.5, 0.5, 0.1]
    assert robot.values({"shoulder": np.ones((3, 4))}).shape == (3, 19)


def test_poses_and_verdicts_are_those_of_mujoco(model_file, mujoco, device):
    scene = abut.Scene.load(model_file, device)
    model = mujoco.MjModel.from_xml_path(str(model_file))
    state = mujoco.MjData(model)
    values = random_values(scene.robot, 400)
    poses, free = scene.robot.poses(values), scene.robot.valid(values).numpy()
    met = []
    for row, pose in zip(values, poses, strict=True):
        state.qpos[:] = row
        mujoco.mj_forward(model, state)
        for geom in range(model.ngeom):
            mine = pose[scene.names[model.geom(geom).name]]
            if model.geom(geom).name != "floor":  # a box below its plane
                assert np.allclose(mine[:3, 3], state.geom_xpos[geom], atol=1e-12)
            assert np.allclose(mine[:3, :3].ravel(), state.geom_xmat[geom], atol=1e-12)
        met.append(any(contact.dist < 0 for contact in state.contact))
    assert np.array_equal(free, ~np.array(met)) and 40 < free.sum() < 360
    assert [scene.robot.valid(row) for row in values[:20]] == free[:20].tolist()
    assert np.allclose(scene.robot.kinematics.poses(values), scene.robot.object_poses(values))


def test_quaternions_that_are_no_rotation(model_file, device):
    robot = abut.Scene.load(model_file, device).robot
    values = np.tile(robot.values({}), (3, 1))
    values[1, 7:11] = 0.0
    for ask in (robot.valid, robot.poses, robot.values, robot.clearance):
        with pytest.raises(abut.SceneError, match=r"shoulder/rot of configuration 1 is \[0\.0"):
            ask(values)
    with pytest.raises(abut.SceneError, match="shoulder/rot is"):
        robot.valid(values[1])
    with pytest.raises(abut.SceneError, match="root/rot"):
        robot.valid_motions(values[0], np.where(np.arange(19) == 3, 1e-9, 0 * values[0]))
    with pytest.raises(abut.SceneError, match=r"shoulder has 4 values, w x y z"):
        robot.values({"shoulder": 0.5})
    with pytest.raises(abut.SceneError, match="no joint 'sholder'"):
        robot.values({"sholder": 0.5})


def test_limits_of_a_ball(tmp_path, mujoco, device):
    """Regression: q and -q are one rotation, and a length does not count."""
    text = MODEL.replace('type="ball"', 'type="ball" range="0 60"')
    (tmp_path / "robot.xml").write_text(text)
    robot = abut.Scene.load(tmp_path / "robot.xml", device).robot
    turn = np.array([np.cos(0.5), 0, 0, np.sin(0.5)])  # by 1 radian
    more = np.array([np.cos(0.6), 0, 0, np.sin(0.6)])
    for row, inside in ((turn, True), (-3 * turn, True), (more, False), (-more, False)):
        values = robot.values({"shoulder": row})
        assert robot.kinematics.outside(values).any() != inside
        if inside:
            robot.values({"shoulder": row}, limits="refuse")
        else:
            assert not robot.valid(values, limits=True)


def straight(robot, q0, q1, t):
    """(n, k) values at (n,) times, by rotation vectors: another formula than abut's."""
    values = q0 + t[:, None] * (q1 - q0)
    for column in robot.kinematics.balls:
        part = slice(column, column + 4)
        start, end = rotations_of(np.stack([q0[part], q1[part]]))
        turn = start.T @ end
        angle = np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))
        axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        axis /= max(np.linalg.norm(axis), 1e-300)
        half = 0.5 * angle * t
        p = q0[part] / np.linalg.norm(q0[part])
        w, v = np.cos(half), np.sin(half)[:, None] * axis
        values[:, column] = w * p[0] - v @ p[1:]
        values[:, column + 1 : column + 4] = (
            w[:, None] * p[1:] + p[0] * v + np.cross(np.tile(p[1:], (len(t), 1)), v)
        )
    return values


@pytest.mark.parametrize("kind", ["mjcf", "floating", "planar"])
def test_motions_against_sampling(tmp_path, kind, device):
    if kind == "mjcf":
        pytest.importorskip("mujoco")
        (tmp_path / "robot.xml").write_text(MODEL)
        scene = abut.Scene.load(tmp_path / "robot.xml", device)
    else:
        scene = walker(tmp_path, device, kind, '<axis xyz="0.1 0.2 1"/>' * (kind == "planar"))
        pose = np.eye(4)
        pose[:3, 3] = 0.7, 0.3, 0.3
        scene.add(abut.Mesh(*abut.cases.box((0.3, 0.3, 0.8)), device), pose)
    robot = scene.robot
    values = random_values(robot, 300, 1)
    values = values[robot.valid(values).numpy()][:40]
    q0, q1 = values[:-1], values[1:]
    verdicts = robot.valid_motions(q0, q1).numpy()
    times, free = np.linspace(0, 1, 2001), 0
    for k in range(len(q0)):
        motion = robot.motion(q0[k], q1[k])
        rows = straight(robot, q0[k], q1[k], times)
        assert np.allclose(robot.poses(rows[::400]), robot.poses(motion.values(times[::400])))
        met = ~robot.valid(rows).numpy()
        first = times[met.argmax()] if met.any() else np.inf
        assert verdicts["free"][k] == np.isinf(verdicts["time"][k])
        assert verdicts["time"][k] <= first
        if np.isfinite(first):
            assert verdicts["time"][k] > first - 0.02
        free += verdicts["free"][k]
        one = robot.valid_motions(q0[k], q1[k])
        assert (one.free, one.time) == (verdicts["free"][k], verdicts["time"][k])
    assert 2 < free < len(q0) - 2


def test_travel_of_a_ball(model_file, device):
    """No point of an object travels farther than its bound says."""
    scene = abut.Scene.load(model_file, device)
    robot = scene.robot
    q0, q1 = random_values(robot, 2, 3)
    motion, times = robot.motion(q0, q1), np.linspace(0.2, 0.7, 400)
    poses, bounds = motion.poses(times), motion.travel(0.2, 0.7)
    for k, row in enumerate(robot.objects.tolist()):
        points = scene.mesh(row).points.numpy()
        moved = points @ poses[:, k, :3, :3].swapaxes(1, 2) + poses[:, k, None, :3, 3]
        lengths = np.linalg.norm(np.diff(moved, axis=0), axis=2).sum(axis=0)
        assert lengths.max() <= bounds[k] * (1 + 1e-9)
    assert bounds[scene.names["floor"]] == 0


def test_turns_take_the_shorter_way():
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, 500, 4))
    turns, back = turns_between(start, end), turns_between(start, -end)
    assert np.allclose(turns, back) and (turns[:, 0] <= np.pi).all()
    assert np.allclose(np.linalg.norm(turns[:, 1:], axis=1), 1)
    assert (turns_between(start, 3 * start)[:, 0] < 1e-7).all()


def test_a_planar_joint_moves_in_its_plane(tmp_path, device):
    scene = walker(tmp_path, device, "planar", '<axis xyz="0 0 1"/>')
    robot = scene.robot
    assert robot.joints == ["root/x", "root/y", "root/theta", "elbow"]
    origin = robot.poses({})[scene.names["base"]]
    pose = robot.poses({"root": [0.3, -0.2, 0.5]})[scene.names["base"]]
    local = np.linalg.inv(origin) @ pose
    c, s = np.cos(0.5), np.sin(0.5)
    expected = [[c, -s, 0, 0.3], [s, c, 0, -0.2], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert np.allclose(local, expected)
    plain = walker(tmp_path, device, "planar")  # without an axis: x and y, as in MoveIt
    assert np.allclose(
        plain.robot.poses({"root": [0.3, -0.2, 0.5]}), robot.poses([0.3, -0.2, 0.5, 0])
    )


def test_a_floating_base_is_tested_against_its_ground(tmp_path, device):
    """One hinge or slide makes links neighbours, a joint that goes anywhere does not."""
    scene = walker(tmp_path, device, "floating")
    names = scene.names
    tested = scene.robot.valid({"root/trans_z": -0.5})
    assert not tested and scene.robot.valid({})
    pairs = {frozenset(pair[:2]) for pair in scene.robot.pairs}
    assert frozenset(("base", "arm")) in pairs and frozenset(("ground", "base")) not in pairs
    assert set(names) == {"ground", "base", "arm"}


def test_states_and_groups_of_an_srdf_with_a_floating_joint(tmp_path, device):
    """MoveIt writes x y z and a quaternion x y z w."""
    (tmp_path / "walker.srdf").write_text("""<robot name="walker">
      <group name="body"><joint name="root"/></group>
      <group_state name="up" group="body">
        <joint name="root" value="1 2 3 0 0.6 0 0.8"/></group_state>
    </robot>""")
    path = tmp_path / "walker.urdf"
    path.write_text(WALKER.format(kind="floating", axis=""))
    robot = abut.Scene.load(path, device, srdf=True).robot
    assert robot.values("up").tolist() == [1, 2, 3, 0.8, 0, 0.6, 0, 0]
    assert robot.groups["body"].joints == robot.joints[:7]
    robot.write_srdf(tmp_path / "copy.srdf")
    copy = abut.Scene.load(path, device, srdf=tmp_path / "copy.srdf").robot
    assert copy.states == robot.states and copy.groups == robot.groups
    wrong = (tmp_path / "walker.srdf").read_text().replace("1 2 3 0", "1 2 3")
    (tmp_path / "walker.srdf").write_text(wrong)
    with pytest.raises(abut.FileError, match="state up: joint root needs 7 values"):
        abut.Scene.load(path, device, srdf=True)


def test_sampled_pairs_with_free_joints(model_file, device):
    """Positions that samples leave at rest prove nothing about what moves freely."""
    robot = abut.Scene.load(model_file, device).robot
    pairs = robot.allowed_pairs(samples=300, seed=0)
    never = {frozenset(pair[:2]) for pair in pairs if pair.reason == "Never"}
    assert not any("loose" in pair for pair in never)
    assert pairs == robot.allowed_pairs(samples=300, seed=0)


def test_prepared_grids_with_free_joints(model_file, device):
    """Grids pose the other joints at rest: zeros are no rotation."""
    scene = abut.Scene.load(model_file, device)
    values = random_values(scene.robot, 2000, 5, 0.3)
    before = scene.robot.valid(values).numpy()
    scene.robot.prepare()
    assert np.array_equal(before, scene.robot.valid(values).numpy())
