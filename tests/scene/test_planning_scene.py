"""Planning scenes and requests of MoveIt: what is added, where, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

import abut

URDF = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="slide"><collision><origin xyz="1 0 0"/><geometry><box size="0.2 0.2 0.2"/></geometry>
    </collision></link>
  <link name="tool"><collision><origin xyz="1 0 0.3"/><geometry><box size="0.1 0.1 0.1"/></geometry>
    </collision></link>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="slide"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="9"/></joint>
  <joint name="turn" type="revolute"><parent link="slide"/><child link="tool"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1"/></joint>
</robot>
"""
SCENE = """
name: shelf
robot_model_name: arm
robot_state:
  joint_state: {name: [lift, turn, wheel], position: [2.0, 0, 7]}
  attached_collision_objects:
    - link_name: tool
      touch_links: [slide]
      object:
        id: part
        primitives: [{type: sphere, dimensions: [0.05]}]
        primitive_poses: [{position: [1, 0, 0.4], orientation: [0, 0, 0, 1]}]
world:
  collision_objects:
    - id: table
      primitives:
        - {type: box, dimensions: [0.4, 0.4, 0.2]}
        - {type: cylinder, dimensions: [0.6, 0.1]}
      primitive_poses:
        - {position: [1, 0, 4], orientation: [0, 0, 0, 1]}
        - {position: {x: 1, y: 0.8, z: 4}, orientation: {x: 0, y: 0, z: 0, w: 1}}
    - id: cone
      header: {frame_id: slide}
      pose: {position: [0, 0, 1], orientation: [0, 0, 0, 1]}
      primitives: [{type: 4, dimensions: [1.0, 0.2]}]
    - id: sheet
      meshes:
        - vertices: [[0, 0, 8], [1, 0, 8], {x: 0, y: 1, z: 8}]
          triangles: [{vertex_indices: [0, 1, 2]}]
    - id: floor
      planes: [{coef: [0, 0, 2, 4]}]
"""
MATRIX = """
allowed_collision_matrix:
  entry_names: [base, slide, tool, cone]
  entry_values:
    - [false, true, false, true]
    - {enabled: [true, false, true, false]}
    - [false, true, false, false]
    - [true, false, false, false]
  default_entry_names: [floor]
  default_entry_values: [true]
link_padding: [{link_name: slide, padding: 0.05}]
link_scale: [{link_name: slide, scale: 1}]
"""
REQUEST = """
group_name: arm
start_state: {joint_state: {name: [lift, other], position: [0.5, 3]}}
goal_constraints:
  - joint_constraints: [{joint_name: lift, position: 2.5}, {joint_name: turn, position: 1}]
  - position_constraints: []
"""


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "scene.yaml").write_text(SCENE)
    return tmp_path


def load(folder, text=None):
    scene = abut.Scene.load(folder / "arm.urdf", "cpu")
    if text is not None:
        (folder / "scene.yaml").write_text(text)
    return scene, scene.add_planning_scene(folder / "scene.yaml")


def box_of(scene, name):
    """Bounds of an object in the frame of the scene."""
    points = scene.mesh(name).points.numpy()
    pose = scene.pose_of(name)
    placed = points @ pose[:3, :3].T + pose[:3, 3]
    return np.array([placed.min(axis=0), placed.max(axis=0)])


def test_objects_are_where_the_file_says(folder):
    scene, added = load(folder)
    assert added.name == "shelf" and added.start == {"lift": 2.0, "turn": 0.0}
    assert set(added.objects) == {"part", "table", "cone", "sheet", "floor"}
    assert np.allclose(box_of(scene, "table/0"), [[0.8, -0.2, 3.9], [1.2, 0.2, 4.1]])
    assert np.allclose(box_of(scene, "table/1")[:, 2], [3.7, 4.3])
    assert np.allclose(box_of(scene, "cone")[:, 2], [2.5, 3.5])  # above the link where it starts
    assert np.allclose(box_of(scene, "sheet"), [[0, 0, 8], [1, 1, 8]])
    assert np.allclose(box_of(scene, "floor")[:, 2], -2) and np.ptp(box_of(scene, "floor")) >= 2000
    assert scene["table/1"].deviation > 0 and scene["table/0"].deviation == 0
    assert scene["cone"].deviation == pytest.approx(0.2 * 0.0048, rel=0.02)


def test_obstacles_meet_the_robot_and_not_each_other(folder):
    scene, _ = load(folder)
    scene.move("cone", scene.pose_of("table/1"))
    assert not scene.colliding()
    assert scene.robot.valid({"lift": 1.0})
    assert not scene.robot.valid({"lift": 4.0})  # the table
    assert not scene.robot.valid({"lift": 3.5})  # the attached part: 3.55 + 0.4 + 0.05
    scene.robot.detach("part")
    assert scene.robot.valid({"lift": 3.5})


def test_attached_objects(folder):
    scene, added = load(folder)
    assert added.attached == ["part"]
    assert scene.robot.attached == {added.objects["part"][0]: "tool"}
    scene.robot.move({"lift": 3.0})
    assert np.allclose(box_of(scene, "part").mean(axis=0), [1, 0, 3.4])


def test_a_matrix_replaces_the_pairs_of_links(folder):
    scene, _ = load(folder, SCENE + MATRIX)
    names = scene.name_of(scene.ignored_pairs).tolist()
    pairs = {frozenset(pair) for pair in names}
    assert {"base", "slide"} in pairs and {"slide", "tool"} in pairs and {"base", "cone"} in pairs
    assert {"floor", "tool"} in pairs and {"base", "tool"} not in pairs
    assert scene.robot.padding == {scene.names["slide"]: 0.05}


def test_requests(folder):
    scene, _ = load(folder)
    (folder / "request.yaml").write_text(REQUEST)
    request = scene.robot.read_request(folder / "request.yaml")
    assert (request.group, request.start) == ("arm", {"lift": 0.5})
    assert request.goals == [{"lift": 2.5, "turn": 1.0}]


BASE = """
robot_state:
  joint_state: {name: [turn], position: [0.5]}
  multi_dof_joint_state:
    joint_names: [lift]
    transforms: [{translation: [1, 2, 0], rotation: [0, 0, 0.6, 0.8]}]
"""


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_poses_of_mobile_bases(folder, kind):
    """Regression: a transform of a joint was left out, and the robot stayed at the origin."""
    urdf = URDF.replace('type="prismatic"', f'type="{kind}"')
    (folder / "arm.urdf").write_text(urdf)
    (folder / "base.yaml").write_text(BASE)
    scene = abut.Scene.load(folder / "arm.urdf", "cpu")
    start = scene.add_planning_scene(folder / "base.yaml").start
    pose = scene.robot.poses(start)[scene.names["slide"]]
    turn = [[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]]
    assert np.allclose(pose[:3, :3], turn)
    assert np.allclose(pose[:3, 3], [1.28, 2.96, 0]), "the box is at x = 1 of its link"
    (folder / "base.yaml").write_text(BASE.replace("robot_state", "start_state"))
    assert scene.robot.read_request(folder / "base.yaml").start == start
    if kind == "planar":
        (folder / "base.yaml").write_text(BASE.replace("[1, 2, 0]", "[1, 2, 1]"))
        with pytest.raises(abut.FileError, match="lift cannot reach its transform"):
            scene.add_planning_scene(folder / "base.yaml")


def test_poses_of_joints_that_a_robot_does_not_have(folder):
    scene = abut.Scene.load(folder / "arm.urdf", "cpu")
    (folder / "base.yaml").write_text(BASE.replace("[lift]", "[world]"))
    with pytest.raises(abut.FileError, match="world moves the robot, which has no such joint"):
        scene.add_planning_scene(folder / "base.yaml")
    still = BASE.replace("[lift]", "[world]").replace("[1, 2, 0]", "[0, 0, 0]")
    (folder / "base.yaml").write_text(still.replace("[0, 0, 0.6, 0.8]", "[0, 0, 0, 1]"))
    assert scene.add_planning_scene(folder / "base.yaml").start == {"turn": 0.5}


def test_a_scene_without_a_robot(folder):
    text = SCENE.replace("attached_collision_objects", "others").replace("frame_id: slide", "")
    (folder / "scene.yaml").write_text(text)
    scene = abut.Scene(device="cpu")
    added = scene.add_planning_scene(folder / "scene.yaml")
    assert len(scene) == 5 and added.start == {}


def test_json_is_read_too(folder):
    (folder / "scene.json").write_text(
        '{"world": {"collision_objects": [{"id": "a", "primitives": [{"type": 1, '
        '"dimensions": [1, 1, 1]}]}]}}'
    )
    scene = abut.Scene(device="cpu")
    assert scene.add_planning_scene(folder / "scene.json").objects == {"a": [0]}


FAULTS = {
    "no mapping": (None, "[1, 2]"),
    "no yaml": (None, "a: [1"),
    "empty": (None, ""),
    "no id": ("id: table", "idd: table"),
    "no shape": ("planes:", "plains:"),
    "same name twice": ("id: cone", "id: sheet"),
    "unknown type": ("type: cylinder", "type: torus"),
    "prism": ("type: 4", "type: 5"),
    "two sizes": ("[0.4, 0.4, 0.2]", "[0.4, 0.4]"),
    "size of words": ("[0.4, 0.4, 0.2]", "[a, b, c]"),
    "size of nan": ("[0.4, 0.4, 0.2]", "[.nan, 1, 1]"),
    "size of true": ("[0.4, 0.4, 0.2]", "[true, 1, 1]"),
    "huge size": ("[0.4, 0.4, 0.2]", f"[1{'0' * 400}, 1, 1]"),
    "negative size": ("[0.4, 0.4, 0.2]", "[-1, 1, 1]"),
    "missing pose": ("- {position: [1, 0, 4], orientation: [0, 0, 0, 1]}", ""),
    "turn of length 3": (
        "[1, 0, 4], orientation: [0, 0, 0, 1]",
        "[1, 0, 4], orientation: [3, 0, 0, 0]",
    ),
    "place of two": ("position: [1, 0, 4]", "position: [1, 0]"),
    "unknown frame": ("frame_id: slide", "frame_id: slid"),
    "unknown link": ("link_name: tool", "link_name: tol"),
    "unknown touch link": ("touch_links: [slide]", "touch_links: [slid]"),
    "no triangles": ("triangles: [{vertex_indices: [0, 1, 2]}]", "triangles: []"),
    "triangle out of range": ("vertex_indices: [0, 1, 2]", "vertex_indices: [0, 1, 9]"),
    "vertex of nan": ("[1, 0, 8]", "[.inf, 0, 8]"),
    "plane without normal": ("[0, 0, 2, 4]", "[0, 0, 0, 4]"),
    "joints without positions": ("position: [2.0, 0, 7]", "position: [2.0]"),
    "a list is a word": (
        "collision_objects:\n    - id: table",
        "collision_objects: x\n    - id: table",
    ),
    "octomap": ("world:", "world:\n  octomap: {octomap: {data: [1]}}"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_scenes_are_one_line_and_change_nothing(folder, fault):
    before, after = FAULTS[fault]
    assert before is None or SCENE.count(before) == 1
    (folder / "scene.yaml").write_text(after if before is None else SCENE.replace(before, after))
    scene = abut.Scene.load(folder / "arm.urdf", "cpu")
    with pytest.raises(abut.AbutError, match=r"scene\.yaml") as error:
        scene.add_planning_scene(folder / "scene.yaml")
    assert "\n" not in str(error.value)
    assert len(scene) == 3 and scene.robot.attached == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[true, false, true, false]", "[true, false]"),
        ("entry_names: [base, slide, tool, cone]", "entry_names: [base]"),
        ("default_entry_values: [true]", "default_entry_values: []"),
        ("scale: 1", "scale: 1.1"),
        ("padding: 0.05", "padding: far"),
        ("{link_name: slide, padding", "{link_name: slid, padding"),
    ],
)
def test_damaged_matrices(folder, before, after):
    assert MATRIX.count(before) >= 1
    (folder / "scene.yaml").write_text(SCENE + MATRIX.replace(before, after))
    scene = abut.Scene.load(folder / "arm.urdf", "cpu")
    with pytest.raises(abut.AbutError, match=r"scene\.yaml"):
        scene.add_planning_scene(folder / "scene.yaml")
    assert len(scene) == 3


def test_nested_aliases_do_not_grow(folder):
    lines = ["a0: &a0 [1, 1]"]
    lines += [f"a{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * 9)}]" for k in range(12)]
    lines += ["world: {collision_objects: [{id: x, primitives: [{type: box, dimensions: *a12}]}]}"]
    (folder / "scene.yaml").write_text("\n".join(lines))
    with pytest.raises(abut.FileError, match="must be 3 numbers"):
        abut.Scene(device="cpu").add_planning_scene(folder / "scene.yaml")


def test_scenes_of_a_benchmark(data, tmp_path):
    """Every start and goal of MotionBenchMaker's requests is free among its obstacles."""
    import tarfile

    pytest.importorskip("yaml")
    folder = Path(data, "robots", "mbm_panda")
    if not folder.is_dir():
        pytest.skip("there are no such robots in the data folder")
    with tarfile.open(folder / "problems.tar.bz2") as problems:
        problems.extractall(tmp_path, filter="data")
    for kind in ("bookshelf_small_panda", "cage_panda"):
        scene = abut.Scene.load(folder / "panda.urdf", "cpu", srdf=True)
        pairs = scene.ignored_pairs.tolist()
        there = tmp_path / "problems" / kind
        added = scene.add_planning_scene(there / "scene0001.yaml")
        request = scene.robot.read_request(there / "request0001.yaml")
        assert scene.ignored_pairs.tolist() == pairs  # its matrix is that of the SRDF
        assert len(added.objects) > 5 and request.group == "panda_arm"
        assert scene.robot.valid(request.start) and scene.robot.valid(request.goals[0])
        scene.robot.pad(0.5)
        assert not scene.robot.valid(request.goals[0])


@pytest.mark.parametrize(
    ("names", "values", "valid"),
    [
        (["tool", "box"], [True, False], False),
        (["tool", "box"], [False, True], False),
        (["tool", "box"], [True, True], True),
        (["tool"], [True], True),
        (["box"], [True], True),
        (["box"], [False], False),
    ],
)
def test_defaults_of_two_names_both_have_to_allow_a_pair(folder, names, values, valid):
    text = f"""
world:
  collision_objects:
    - id: box
      primitives: [{{type: box, dimensions: [0.3, 0.3, 0.3]}}]
      primitive_poses: [{{position: [1, 0, 0.3], orientation: [0, 0, 0, 1]}}]
allowed_collision_matrix:
  entry_names: [base, slide]
  entry_values: [[false, true], [true, false]]
  default_entry_names: [{", ".join([*names, "slide"])}]
  default_entry_values: {str([*values, True]).lower()}
"""
    scene, _ = load(folder, text)
    scene.ignore("slide", ["tool", "box"])
    assert scene.robot.valid([0.0, 0.0]) == valid


def test_an_entry_that_only_one_row_allows_is_tested(folder):
    text = MATRIX.replace("- [false, true, false, true]", "- [false, true, false, false]", 1)
    scene, _ = load(folder, SCENE + text)
    ignored = {frozenset(x) for x in scene.name_of(scene.ignored_pairs).reshape(-1, 2).tolist()}
    assert frozenset(("base", "slide")) in ignored and frozenset(("base", "cone")) not in ignored
