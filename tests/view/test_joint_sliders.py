"""JointSliders of robots whose rest is not zero, without a browser."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

import abut
from abut.view.page.joint_sliders import JointSliders

FLOATING = """<robot name="r"><link name="floor"/>
  <link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <joint name="root" type="floating"><parent link="floor"/><child link="base"/></joint></robot>"""


class Slider:
    """A slider of viser, as far as it is used."""

    def __init__(self, name, low, high, step, value):
        self.name, self.min, self.max, self.step, self.value = name, low, high, step, value

    def on_update(self, call):
        self.call = call


def test_a_floating_base_begins_at_rest(tmp_path):
    """Regression: the sliders began at a quaternion of zeros, which is no rotation."""
    (tmp_path / "robot.urdf").write_text(FLOATING)
    scene, moved = abut.Scene.load(tmp_path / "robot.urdf", "cpu"), []
    gui = SimpleNamespace(add_folder=lambda _: nullcontext(), add_slider=Slider)
    live = SimpleNamespace(scene=scene, move=moved.append)
    sliders = JointSliders(SimpleNamespace(gui=gui), live).sliders
    assert [slider.value for slider in sliders] == [0, 0, 0, 1, 0, 0, 0]
    assert np.array_equal(moved[0][0], np.eye(4))
    assert all((slider.min, slider.max) == (-1, 1) for slider in sliders[3:])
    sliders[3].value = 0.0
    sliders[3].call(None)
    assert len(moved) == 1, "no rotation"
    sliders[4].value = 0.5
    sliders[4].call(None)
    assert np.allclose(moved[1][0], np.diag([1, -1, -1, 1]))
