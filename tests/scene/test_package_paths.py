"""Mesh files that a URDF names: packages, file URLs and relative paths."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

import abut
from abut.cases import icosphere

ROBOT = """<robot name="r">
  <link name="a"><collision><geometry><mesh filename="{file}"/></geometry></collision></link>
</robot>
"""


@pytest.fixture
def robot(tmp_path, monkeypatch):
    """Write a robot that names a file, and the file at places below the folder."""
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)

    def write(named, **places):
        path = tmp_path / "arm description" / "urdf" / "arm.urdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ROBOT.format(file=named))
        for place, faces in places.items():
            mesh = tmp_path / place.replace("__", "/") / "ball.stl"
            mesh.parent.mkdir(parents=True, exist_ok=True)
            trimesh.Trimesh(*icosphere(faces), process=False).export(mesh)
        return path

    return write


def faces_of(path, **options):
    return abut.Scene.load(path, "cpu", **options).mesh(0).face_count


def test_a_package_above_the_file(robot, tmp_path):
    path = robot("package://tools/meshes/ball.stl", tools__meshes=80)
    assert faces_of(path) == 80
    robot("package://meshes/ball.stl", **{"arm description__urdf__meshes": 20})
    assert faces_of(path) == 20
    robot("package://arm%20description/meshes/ball.stl", **{"arm description__meshes": 180})
    assert faces_of(path) == 180  # the package is the folder that the file is in


def test_given_packages_come_first(robot, tmp_path, monkeypatch):
    name = "package://tools/ball.stl"
    path = robot(name, tools=20, far__tools=80, ros__tools=180, ament__share__tools=320, mine=500)
    assert faces_of(path) == 20
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ament"))
    assert faces_of(path) == 320
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/none:{tmp_path / 'ros'}")
    assert faces_of(path) == 180
    for packages in (tmp_path / "far", [tmp_path / "far"], [tmp_path / "far" / "tools"]):
        assert faces_of(path, packages=packages) == 80
    assert faces_of(path, packages={"tools": str(tmp_path / "mine")}) == 500


def test_file_urls_and_relative_paths(robot, tmp_path):
    robot("", meshes=20)
    url = (tmp_path / "meshes" / "ball.stl").as_uri()
    for named in (url, "../../meshes/ball.stl", "file://../../meshes/ball.stl"):
        assert faces_of(robot(named)) == 20
    assert faces_of(robot(url.replace("file://", "file://localhost"))) == 20


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("package://tools/ball.stl", r"packages=.*'tools'"),
        ("file:///none/ball.stl", "not there"),
        ("http://host/ball.stl", "only package:// and file://"),
        ("package://tools", "not there"),
        ("package://", "not there"),
        ("file://[", "URDF"),
    ],
)
def test_files_that_are_not_there(robot, named, message):
    path = robot(named)
    with pytest.raises(abut.FileError, match=message) as error:
        abut.Scene.load(path, "cpu")
    assert "arm.urdf" in str(error.value) and "\n" not in str(error.value)


def test_options_of_other_files_are_refused(robot, tmp_path):
    path = robot("../../meshes/ball.stl", meshes=20)
    mesh = tmp_path / "meshes" / "ball.stl"
    for bad, options in ((path, {"packages": 3}), (mesh, {"packages": "."}), (path, {"chord": -1})):
        with pytest.raises(abut.OptionError):
            abut.Scene.load(bad, "cpu", **options)
    with pytest.raises(abut.OptionError, match="convex is for MJCF"):
        abut.Scene.load(path, "cpu", convex=True)


@pytest.mark.parametrize("name", ["mbm_panda", "rtcd_shelf"])
def test_robots_of_others_load_as_they_are(data, name):
    path = Path(data, "robots", name, "panda.urdf")
    if not path.is_file():
        pytest.skip("there are no such robots in the data folder")
    scene = abut.Scene.load(path, "cpu")
    assert {"panda_link0", "panda_link4"} <= set(scene.names)
    assert not any("/" in name for name in scene.names)
    assert np.isfinite(scene.robot.poses(np.zeros(len(scene.robot.joints)))).all()
