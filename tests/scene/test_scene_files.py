"""Scenes of files: objects at the poses of the file, neighbouring links ignored."""

import pickle

import numpy as np
import pytest
import trimesh

import abut
from abut.cases import box, icosphere
from abut.cli import main

ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="upper">
    <collision><origin xyz="0 0 1"/><geometry><box size="0.4 0.4 2.2"/></geometry></collision>
    <visual><geometry><sphere radius="0.3"/></geometry></visual>
  </link>
  <link name="lower">
    <collision><origin xyz="0 0 0.9"/><geometry><cylinder radius="0.2" length="2"/></geometry>
    </collision>
    <collision><geometry><mesh filename="ball.stl" scale="0.3 0.3 0.3"/></geometry></collision>
  </link>
  <link name="tool"><collision><geometry><sphere radius="0.25"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 1 0"/><limit lower="-2" upper="3" effort="1" velocity="1"/>
  </joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 2"/><axis xyz="0 1 0"/></joint>
  <joint name="wrist" type="fixed"><parent link="lower"/><child link="tool"/>
    <origin xyz="0 0 2"/></joint>
</robot>
"""

ROBOT = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <geom name="pillar" type="box" size="0.2 0.2 1" pos="2 0 1"/>
    <body name="base" pos="0 0 0.5">
      <geom name="foot" type="box" size="0.3 0.3 0.4"/>
      <body name="upper" pos="0 0 0.5">
        <joint name="turn" axis="0 0 1"/>
        <joint name="lift" axis="0 1 0" range="-2 2" limited="true"/>
        <geom name="arm" type="capsule" size="0.15" fromto="0.5 0 0 1.4 0 0"/>
        <geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/>
        <body name="slider" pos="1.5 0 0">
          <joint name="reach" type="slide" axis="1 0 0"/>
          <geom name="hand" type="sphere" size="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="base" body2="slider"/></contact>
</mujoco>
"""


def meeting(scene, poses=None):
    """Names of the objects that meet."""
    if poses is not None:
        scene.move(scene.indices, poses)
    names = {row: name for name, row in scene.names.items()}
    pairs = scene.collide(first=True).object_pairs.numpy()
    return {tuple(names[i] for i in pair) for pair in pairs}


def test_a_glb_scene(device, tmp_path):
    shapes = trimesh.Scene()
    ball = trimesh.Trimesh(*icosphere(80), process=False)
    block = trimesh.Trimesh(*box(), process=False)
    far = np.eye(4)
    far[0, 3] = 1.2
    stretched = np.diag([3.0, 1.0, 1.0, 1.0])
    stretched[0, 3] = -2.0
    shapes.add_geometry(ball, node_name="ball", geom_name="ball")
    shapes.add_geometry(block, node_name="near", geom_name="block", transform=far)
    shapes.graph.update(frame_to="long", matrix=stretched, geometry="block")
    shapes.graph.update(frame_to="away", matrix=3 * far - 2 * np.eye(4), geometry="block")
    path = tmp_path / "scene.glb"
    shapes.export(path)
    scene = abut.Scene.load(path, device)
    assert set(scene.names) == {"ball", "near", "long", "away"}
    assert scene.mesh("near") is scene.mesh("away")
    assert meeting(scene) == {("ball", "long"), ("ball", "near")}
    size = np.ptp(scene.mesh("long").vertices.numpy(), axis=0)
    assert np.allclose(size, [3, 1, 1])


def test_single_mesh_file(device, tmp_path):
    path = tmp_path / "ball.stl"
    trimesh.Trimesh(*icosphere(80)).export(path)
    scene = abut.Scene.load(path, device)
    assert len(scene) == 1
    assert scene.mesh(0).face_count == 80


def test_urdf(device, tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    trimesh.Trimesh(*icosphere(80)).export(tmp_path / "ball.stl")
    scene = abut.Scene.load(tmp_path / "arm.urdf", device)
    robot = scene.robot
    assert robot.joints == ["shoulder", "elbow"]
    assert np.array_equal(robot.limits, [[-2, 3], [-np.inf, np.inf]])
    assert list(scene.names) == ["base", "upper", "lower/0", "lower/1", "tool"]
    assert meeting(scene) == set()
    tool = scene.names["tool"]
    bent = robot.poses([np.pi / 2, 0.0])
    assert np.allclose(bent[tool][:3, 3], [4, 0, 0.5])
    folded = robot.poses([np.pi / 2, np.pi])
    assert np.allclose(folded[tool][:3, 3], [0, 0, 0.5])
    assert ("base", "tool") in meeting(scene, folded)
    batch = robot.poses([[0, 0], [np.pi / 2, np.pi]])
    assert scene.colliding(poses=batch).numpy().tolist() == [False, True]
    assert len(abut.Scene.load(tmp_path / "arm.urdf", device, geometry="visual")) == 1
    with pytest.raises(abut.SceneError, match="2 joints"):
        robot.poses([1.0])


def test_mjcf(device, tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    scene = abut.Scene.load(path, device)
    robot = scene.robot
    assert robot.joints == ["turn", "lift", "reach"]
    assert set(scene.names) == {"floor", "pillar", "foot", "arm", "hand"}
    assert meeting(scene, robot.poses([0, 0, 0])) == set()
    assert meeting(scene, robot.poses([0, 0, 0.3])) == {("pillar", "hand")}
    assert meeting(scene, robot.poses([np.pi / 2, 0, 0.3])) == set()
    assert ("floor", "hand") in meeting(scene, robot.poses([np.pi / 2, 0.9, 0.0]))
    assert meeting(scene, robot.poses([np.pi / 2, 0, -1.5])) == set()  # excluded: hand in the base
    assert len(abut.Scene.load(path, device, geometry="visual")) == 1
    other = pickle.loads(pickle.dumps(scene))
    assert other.robot.joints == robot.joints
    assert meeting(other, other.robot.poses([0, 0, 0.3])) == {("pillar", "hand")}
    assert meeting(other, other.robot.poses([np.pi / 2, 0, -1.5])) == set()


def test_mjcf_agrees_with_mujoco(device, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    scene = abut.Scene.load(path, device)
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    for values in np.random.default_rng(0).uniform(-2, 2, (20, 3)):
        state.qpos[:] = values
        mujoco.mj_kinematics(model, state)
        poses = scene.robot.poses(values)
        for name, row in scene.names.items():
            geom = model.geom(name).id
            assert np.allclose(poses[row][:3, 3], state.geom_xpos[geom], atol=1e-12)
            assert np.allclose(poses[row][:3, :3].ravel(), state.geom_xmat[geom], atol=1e-12)


def test_mjcf_tests_the_pairs_that_mujoco_tests(device, tmp_path):
    """A moving link and the fixed base that it is joined to are tested, other parents are not."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    for flag in ("", '<option><flag filterparent="disable"/></option>'):
        path.write_text(ROBOT.replace("<mujoco>", f"<mujoco>{flag}"))
        scene = abut.Scene.load(path, device)
        model = mujoco.MjModel.from_xml_path(str(path))
        state = mujoco.MjData(model)
        met = set()
        for values in np.random.default_rng(0).uniform(-2, 2, (60, 3)):
            state.qpos[:] = values
            mujoco.mj_forward(model, state)
            pairs = {tuple(sorted((c.geom1, c.geom2))) for c in state.contact}
            theirs = {tuple(model.geom(geom).name for geom in pair) for pair in pairs}
            scene.robot.move(values)
            hits = scene.collide(solid=True)
            rows = [*hits.object_pairs.numpy(), *hits.contained.numpy()]
            mine = {tuple(scene.name_of(np.sort(row))) for row in rows}
            assert theirs <= mine
            for pair in mine - theirs:
                gap = mujoco.mj_geomDistance(
                    model, state, *(model.geom(name).id for name in pair), 1.0, None
                )
                assert 0 < gap < sum(scene[name].deviation for name in pair)
            met |= mine
        assert ("foot", "arm") in met and ("foot", "hand") not in met
        assert (("arm", "hand") in met) == bool(flag)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.glb", None, "no file"),
        ("bad.glb", "nothing", "cannot be read"),
        ("bad.xml", "<mujoco><nonsense/></mujoco>", "cannot be read as MJCF"),
        ("bad.urdf", "<robot", "cannot be read as URDF"),
        ("bare.urdf", '<robot name="r"><link name="a"/></robot>', "no geometry"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    if name.endswith("xml"):
        pytest.importorskip("mujoco")
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(abut.FileError, match=message):
        abut.Scene.load(tmp_path / name, "cpu")


def test_panda(device, data, tmp_path):
    """A real arm: no contacts at rest, some when folded."""
    pytest.importorskip("mujoco")
    if not (data / "robots" / "panda.npz").is_file():
        pytest.skip("there are no robots in the data folder")
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("panda", "panda_collision"):
        held = np.load(data / "robots" / f"{name}.npz")
        for key in {k.rsplit("__", 1)[0] for k in held}:
            stem, kind = key.rsplit("_", 1)
            mesh = trimesh.Trimesh(held[f"{key}__V"], held[f"{key}__F"], process=False)
            mesh.export(assets / f"{stem}.{kind}")
    path = tmp_path / "panda.xml"
    path.write_text((data / "robots" / "panda_panda.xml").read_text())
    scene = abut.Scene.load(path, device)
    robot = scene.robot
    assert len(robot.joints) == 9
    rest = np.array([0, 0, 0, -np.pi / 2, 0, np.pi / 2, -np.pi / 4, 0.04, 0.04])
    folded = np.array([0, 1.7, 0, -3.05, 0, 0.0, 0, 0.04, 0.04])
    assert scene.colliding(poses=robot.poses([rest, folded])).numpy().tolist() == [False, True]


def test_assembly(device, data):
    """Parts of an engine, as a file of arrays: contacts are those of all pairs."""
    path = data / "assemblies" / "Ifc4_SampleHouse.npz"
    if not path.is_file():
        pytest.skip("there are no assemblies in the data folder")
    held = np.load(path)
    scene = abut.Scene(device)
    names = sorted(k[:-3] for k in held if k.endswith("__V"))
    for name in names:
        scene.add(abut.Mesh(held[f"{name}__V"], held[f"{name}__F"], device), name=name)
    hits = scene.collide()
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, len(names), (60, 2)), axis=1)
    met = {tuple(pair) for pair in hits.object_pairs.numpy().tolist()}
    some = [*pairs[pairs[:, 0] < pairs[:, 1]].tolist(), *sorted(met)[:20]]
    rows = np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)
    for i, j in some:
        expected = abut.collide(scene.mesh(i), scene.mesh(j)).pairs.numpy()
        mine = rows[(rows[:, 0] == i) & (rows[:, 1] == j)][:, 2:]
        assert np.array_equal(mine, expected)
    assert len(met) > 40


MESHES = """<robot name="r">
  <link name="a"><collision><geometry><mesh filename="{file}"/></geometry></collision></link>
</robot>
"""
MODEL = """<mujoco><asset><mesh name="m" file="{file}"/></asset>
  <worldbody><body><geom type="mesh" mesh="m"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize("kind", ["urdf", "xml"])
@pytest.mark.parametrize("file", ["ball.stl", "ball.obj", "ball.ply", "ball.off"])
@pytest.mark.parametrize("damage", ["none", "empty", "garbage", "cut"])
def test_damaged_meshes_of_robots(tmp_path, kind, file, damage, capsys):
    """Regression: a damaged mesh became a link without faces."""
    if kind != "urdf":
        pytest.importorskip("mujoco")
    if kind == "xml" and file[-3:] in ("ply", "off"):
        pytest.skip("MuJoCo does not read this format")
    mesh = tmp_path / file
    ascii = {"encoding": "ascii"} if file.endswith("ply") else {}
    trimesh.Trimesh(*icosphere(80), process=False).export(mesh, **ascii)
    content = mesh.read_bytes()
    size = content.index(b"\nf") + 40 if file.endswith("obj") else len(content) * 4 // 5
    size = content.index(b"\n", size) - 3 if file.endswith("obj") else size
    changed = {"none": content, "empty": b"", "garbage": b"words, not a mesh\n" * 9}
    mesh.write_bytes(changed.get(damage, content[:size]))
    path = tmp_path / f"robot.{kind}"
    path.write_text({"urdf": MESHES, "xml": MODEL}[kind].format(file=file))
    status = main(["scene", str(path), "--device", "cpu"])
    told = capsys.readouterr().err
    if damage == "none":
        assert status == 0
        return
    assert status == 2 and len(told.splitlines()) == 1
    assert path.name in told and file in told
    with pytest.raises(abut.AbutError, match=f"{path.name}.*{file}"):
        abut.Scene.load(path, "cpu")


def test_a_mesh_of_a_robot_with_a_bad_vertex(tmp_path):
    (tmp_path / "bad.obj").write_text("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "robot.urdf").write_text(MESHES.format(file="bad.obj"))
    with pytest.raises(abut.MeshError, match=r"robot\.urdf: .*bad\.obj: vertices\[0\]"):
        abut.Scene.load(tmp_path / "robot.urdf", "cpu")


FIXED = """<robot name="r">
  <link name="a"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="b"><collision><geometry><sphere radius="1"/></geometry></collision></link>
  <joint name="j" type="fixed"><parent link="a"/><child link="b"/><origin xyz="3 0 0"/></joint>
</robot>
"""
STILL = """<mujoco><worldbody><geom name="a" type="box" size="1 1 1"/>
  <body pos="3 0 0"><geom name="b" type="sphere" size="1"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("fixed.urdf", FIXED, 2),
        ("single.urdf", FIXED.partition('<link name="b">')[0] + "</robot>", 1),
        ("still.xml", STILL, 2),
    ],
)
def test_robots_without_joints(device, tmp_path, name, text, count):
    """Regression: poses of a robot with no joints were refused."""
    if not name.endswith("urdf"):
        pytest.importorskip("mujoco")
    path = tmp_path / name
    path.write_text(text)
    scene = abut.Scene.load(path, device)
    robot = scene.robot
    assert (len(scene), robot.joints, robot.limits.shape) == (count, [], (0, 2))
    poses = robot.poses([])
    assert poses.shape == (count, 4, 4)
    assert np.array_equal(poses[-1][:3, 3], [3.0 * (count - 1), 0, 0])
    batch = robot.poses(np.zeros((5, 0)))
    assert np.array_equal(batch, np.tile(poses, (5, 1, 1, 1)))
    assert robot.poses(np.zeros((0, 0))).shape == (0, count, 4, 4)
    assert scene.colliding(poses=batch).numpy().tolist() == [False] * 5
    assert len(scene.collide(poses=batch)) == 0
    assert main(["scene", str(path), "--device", device]) == 0
    with pytest.raises(abut.SceneError, match="0 joints"):
        robot.poses([1.0])
