"""Round shapes of robots are never smaller than they are: against formulas, MuJoCo and Coal."""

import numpy as np
import pytest

import abut
from abut.scene.files.robot_parts import is_half_space

MODEL = """<mujoco><worldbody>
  <body name="a"><geom name="a" type="{a}" size="{b}"/></body>
  <body name="b"><joint type="slide"/><geom name="b" type="{c}" size="{d}"/></body>
</worldbody></mujoco>
"""
SIZES = {
    "sphere": "0.5",
    "capsule": "0.3 0.4",
    "cylinder": "0.3 0.5",
    "ellipsoid": "0.5 0.3 0.2",
    "box": "0.3 0.4 0.5",
}


def random_poses(count, spread, seed=0):
    from abut.cases.placed_shapes import random_rotations

    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    poses[:, :3, 3] = rng.uniform(-spread, spread, (count, 3))
    return poses


def loaded(tmp_path, a, b, **options):
    path = tmp_path / "pair.xml"
    path.write_text(MODEL.format(a=a, b=SIZES[a], c=b, d=SIZES[b]))
    return path, abut.Scene.load(path, "cpu", **options)


@pytest.mark.parametrize("a", SIZES)
@pytest.mark.parametrize("b", SIZES)
def test_distances_lie_between_those_of_the_shapes_and_the_deviations(tmp_path, a, b):
    """abut's distance is at most MuJoCo's, and at least that less both deviations."""
    mujoco = pytest.importorskip("mujoco")
    path, scene = loaded(tmp_path, a, b)
    slack = scene["a"].deviation + scene["b"].deviation
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    poses = random_poses(40, 1.6)
    apart = 0
    for pose in poses:
        scene.move("b", pose)
        mine = scene.distance(pairs=[("a", "b")]).distance.numpy()[0]
        turn = np.empty(4)
        mujoco.mju_mat2Quat(turn, pose[:3, :3].ravel().copy())
        model.body("b").pos, model.body("b").quat = pose[:3, 3], turn
        mujoco.mj_kinematics(model, state)
        true = mujoco.mj_geomDistance(model, state, 0, 1, 10.0, None)
        noise = 1e-4 if "ellipsoid" in (a, b) or "cylinder" in (a, b) else 1e-6  # of MuJoCo
        if true > noise:
            apart += 1
            assert true - slack - noise <= mine <= true + noise
        else:
            assert mine <= noise
    assert apart > 10


@pytest.mark.parametrize("a", ["sphere", "capsule", "cylinder", "ellipsoid", "box"])
def test_distances_agree_with_coal(tmp_path, a):
    coal = pytest.importorskip("coal")
    pytest.importorskip("mujoco")
    _, scene = loaded(tmp_path, a, "sphere")
    size = [float(x) for x in SIZES[a].split()]
    full = {
        "sphere": coal.Sphere,
        "capsule": lambda r, h: coal.Capsule(r, 2 * h),
        "cylinder": lambda r, h: coal.Cylinder(r, 2 * h),
        "ellipsoid": coal.Ellipsoid,
        "box": lambda *h: coal.Box(*(2 * x for x in h)),
    }
    shape, ball = full[a](*size), coal.Sphere(0.5)
    slack = scene["a"].deviation + scene["b"].deviation
    for pose in random_poses(40, 2.0, seed=1):
        scene.move("b", pose)
        mine = scene.distance(pairs=[("a", "b")]).distance.numpy()[0]
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        place = coal.Transform3s(pose[:3, :3], pose[:3, 3])
        true = coal.distance(shape, coal.Transform3s(), ball, place, request, result)
        if true > 1e-5:
            assert true - slack - 1e-5 <= mine <= true + 1e-5


def test_contacts_of_spheres_are_not_missed(tmp_path):
    """Regression: inscribed polyhedra called spheres free that meet."""
    pytest.importorskip("mujoco")
    _, scene = loaded(tmp_path, "sphere", "sphere")
    for pose in random_poses(100, 1.0, seed=2):
        pose[:3, 3] *= (1 - 1e-12) / np.linalg.norm(pose[:3, 3])  # they just meet
        scene.move("b", pose)
        assert scene.colliding()
        pose[:3, 3] *= 1 + 2 * scene["a"].deviation / 0.5  # farther than both deviations
        scene.move("b", pose)
        assert not scene.colliding()


def test_a_chord_bounds_the_deviation(tmp_path):
    pytest.importorskip("mujoco")
    _, coarse = loaded(tmp_path, "capsule", "sphere")
    _, fine = loaded(tmp_path, "capsule", "sphere", chord=5e-4)
    assert 0 < fine["a"].deviation <= 5e-4 < coarse["a"].deviation < 0.003
    assert abs(fine.mesh("b").bounds).max() <= 0.5005
    assert pytest.approx(fine["b"].deviation) == fine.mesh("b").deviation


PLANE = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 0.1"/>
  <body name="ball"><joint type="slide"/><geom name="ball" type="sphere" size="0.5"/></body>
</worldbody></mujoco>
"""


def test_planes_are_half_spaces(tmp_path):
    """MuJoCo's planes are infinite whatever their size, and solid below."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "floor.xml"
    path.write_text(PLANE)
    scene = abut.Scene.load(path, "cpu")
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    for x, z in ((0, 0.51), (0, 0.49), (30, 0.49), (-400, -0.3), (0, -5), (30, -99)):
        pose = np.eye(4)
        pose[:3, 3] = x, 0, z
        scene.move("ball", pose)
        model.body("ball").pos = pose[:3, 3]
        mujoco.mj_forward(model, state)
        assert bool(scene.collide(solid=True)) == (state.ncon > 0) == (z < 0.5)
    assert scene["floor"].deviation == 0 and scene.mesh("floor").oriented
    assert is_half_space(scene.mesh("floor")) and not is_half_space(scene.mesh("ball"))


ARM = """<mujoco><compiler angle="radian"/><worldbody>
  <geom name="wall" type="box" size="0.1 0.5 0.4" pos="0.75 0 0.3" contype="2" conaffinity="2"/>
  <geom name="stone" type="sphere" size="0.25" pos="-0.5 0.3 0.6" contype="3" conaffinity="3"/>
  <geom name="pipe" type="capsule" size="0.08 0.4" pos="0 -0.7 0.5" euler="0.3 0.9 0"/>
  <body name="one" pos="0 0 0.2"><joint axis="0 0 1" range="-3 3" limited="true"/>
    <geom name="one" type="capsule" size="0.07" fromto="0 0 0 0.1 0 0.4"/>
    <body name="two" pos="0.1 0 0.4"><joint axis="0 1 0" range="-3 3" limited="true"/>
      <geom name="two" type="sphere" size="0.12" pos="0.3 0 0.1" contype="3" conaffinity="3"/>
      <body name="three" pos="0.4 0 0.1"><joint axis="1 1 0" range="-3 3" limited="true"/>
        <geom name="three" type="capsule" size="0.05 0.15" pos="0.1 0 0.2"/>
        <geom name="tip" type="sphere" size="0.06" pos="0.1 0 0.45" contype="3" conaffinity="3"/>
</body></body></body></worldbody></mujoco>
"""


def true_shapes(scene, model, mujoco):
    """The same robot of points and segments with paddings, and boxes."""
    out = abut.Scene("cpu")
    for k in scene.indices.tolist():
        geom = model.geom(scene.name_of(k))
        size, kind = geom.size, int(geom.type[0])
        shape = abut.cases.box(2 * size)
        if kind == int(mujoco.mjtGeom.mjGEOM_SPHERE):
            shape = abut.cases.point_cloud(np.zeros((1, 3)))
        elif kind == int(mujoco.mjtGeom.mjGEOM_CAPSULE):
            shape = abut.cases.segments([[[0, 0, -size[1]], [0, 0, size[1]]]])
        out.add(abut.Mesh(*shape, "cpu"), scene.pose_of(k), scene.name_of(k))
    out.ignore(*scene.ignored_pairs.T)
    out.set_robot(scene.robot.kinematics, scene.robot.objects)
    round_ones = [k for k in scene.indices.tolist() if scene[k].deviation > 0]
    out.robot.pad({k: float(model.geom(scene.name_of(k)).size[0]) for k in round_ones})
    return out


def test_verdicts_of_a_robot_are_those_of_mujoco(tmp_path):
    """Equal for points and segments with a radius; polyhedra never call free what meets."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    scene = abut.Scene.load(path, "cpu")
    model = mujoco.MjModel.from_xml_path(str(path))
    state, exact = mujoco.MjData(model), true_shapes(scene, model, mujoco)
    values = np.random.default_rng(0).uniform(*scene.robot.limits.T, (3000, 3))
    depth = np.full(len(values), np.inf)
    for k, row in enumerate(values):
        state.qpos[:] = row
        mujoco.mj_forward(model, state)
        depth[k] = state.contact.dist.min(initial=np.inf)
    outer, found = (x.robot.valid(values).numpy() for x in (scene, exact))
    sure = ~(np.abs(depth) < 1e-9)
    assert (found[sure] == np.isinf(depth[sure])).all() and 300 < found.sum() < 2700
    assert (outer <= found).all() and (found & ~outer).sum() < 150
    assert [exact.robot.valid(row) for row in values[:50]] == found[:50].tolist()


HULL = """<mujoco><asset><mesh name="ring" file="ring.stl"/></asset><worldbody>
  <body name="ring"><geom name="ring" type="mesh" mesh="ring"/></body>
  <body name="ball"><joint type="slide"/><geom name="ball" type="sphere" size="0.2"/></body>
</worldbody></mujoco>
"""


def test_convex_takes_the_hulls_that_mujoco_collides(tmp_path):
    import trimesh

    mujoco = pytest.importorskip("mujoco")
    trimesh.Trimesh(*abut.cases.torus(), process=False).export(tmp_path / "ring.stl")
    path = tmp_path / "ring.xml"
    path.write_text(HULL)
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    mujoco.mj_forward(model, state)
    assert state.ncon > 0
    assert not abut.Scene.load(path, "cpu").colliding()
    hulls = abut.Scene.load(path, "cpu", convex=True)
    assert bool(hulls.collide(solid=True))
    ring = hulls.mesh("ring")
    assert ring.oriented and ring.face_count < abut.cases.torus().faces.shape[0]
    corners = ring.points.numpy()[ring.faces.numpy()]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    above = ring.points.numpy() @ normals.T - (normals * corners[:, 0]).sum(axis=1)
    assert above.max() < 1e-5  # convex, up to the rounding of qhull


def test_height_fields_are_those_of_mujoco(tmp_path):
    """Contacts of tiny balls on and beside a height field, whose faces are MuJoCo's."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(0)
    heights = rng.integers(0, 5, (5, 7)) / 4
    heights[0, :2] = 0, 1  # MuJoCo scales to these
    words = " ".join(map(str, heights.ravel()))
    path = tmp_path / "field.xml"
    path.write_text(
        f'<mujoco><asset><hfield name="h" nrow="5" ncol="7" size="1.2 0.8 0.5 0.2" '
        f'elevation="{words}"/></asset><worldbody><geom name="field" type="hfield" hfield="h"/>'
        '<body><freejoint/><geom name="ball" size="0.01"/></body></worldbody></mujoco>'
    )
    scene = abut.Scene.load(path, "cpu")
    mesh, ball = scene.mesh("field"), scene.mesh("ball")
    assert mesh.watertight and mesh.oriented and scene["field"].deviation == 0
    assert np.allclose(mesh.bounds, [[-1.2, -0.8, -0.2], [1.2, 0.8, 0.5]])
    model = mujoco.MjModel.from_xml_path(str(path))
    state = mujoco.MjData(model)
    values = np.tile(scene.robot.values({}), (4000, 1))
    values[:, :3] = rng.uniform([-1.3, -0.9, -0.1], [1.3, 0.9, 0.6], (4000, 3))
    free = scene.robot.valid(values).numpy()
    near = abut.closest_point(mesh, values[:, :3], signed=True).distance.numpy()
    for row, mine, gap in zip(values, free, near, strict=True):
        state.qpos[:] = row
        mujoco.mj_forward(model, state)
        met = any(contact.dist < 0 for contact in state.contact)
        assert mine != met or 0 <= gap - 0.01 <= ball.deviation, (row[:3], gap)
    assert 500 < free.sum() < 3500
