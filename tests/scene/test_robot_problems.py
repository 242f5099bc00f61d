"""A Panda among obstacles of the data folder: grids and spheres against the search of meshes."""

import numpy as np
import pytest
from benchmarks.robot_cases import problems, robot_folder, shelf

COUNT = 20_000  # configurations of each problem


@pytest.mark.slow
def test_a_hundred_thousand_verdicts_of_a_panda(tmp_path):
    pytest.importorskip("yaml")
    folder = robot_folder()
    if folder is None:
        pytest.skip("no robots in the data folder (ABUT_DATA)")
    compared = 0
    for case in [*list(problems(folder, "cpu", 1, tmp_path))[:4], shelf(folder, "cpu")]:
        robot = case.scene.robot
        values = case.random(COUNT)
        robot.prepare()
        found = robot.valid(values).numpy()
        for first in range(0, COUNT, 1000):
            poses = robot.poses(values[first : first + 1000])
            met = case.scene.colliding(which=robot.objects, poses=poses).numpy()
            differ = first + np.flatnonzero(met == found[first : first + 1000])
            for row in differ.tolist():  # solids inside others, whose surfaces do not meet
                robot.move(values[row])
                assert case.scene.collide(which=robot.objects, solid=True).colliding
                assert not found[row]
        compared += COUNT
    assert compared >= 100_000
