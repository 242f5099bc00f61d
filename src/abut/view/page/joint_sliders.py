"""JointSliders: a slider for each joint of a robot."""

from typing import Any

import numpy as np

from abut.view.page.live_scene import LiveScene

TURN = np.pi  # range of a joint without limits, to both sides


class JointSliders:
    """Sliders that move the objects of a robot's scene; objects added later stay.

    Args:
        server: The viser server.
        live: A scene with a robot.
    """

    def __init__(self, server: Any, live: LiveScene) -> None:
        assert live.scene.robot is not None
        self.live, self.robot = live, live.scene.robot
        limits = np.asarray(self.robot.limits, float).reshape(-1, 2)
        low = np.where(np.isfinite(limits[:, 0]), limits[:, 0], -TURN)
        high = np.where(np.isfinite(limits[:, 1]), limits[:, 1], TURN)
        start = np.clip(0.0, low, high)
        with server.gui.add_folder("joints"):
            self.sliders = [
                server.gui.add_slider(name, a, b, (b - a) / 500, x)
                for name, a, b, x in zip(self.robot.joints, low, high, start, strict=True)
            ]
        for slider in self.sliders:
            slider.on_update(lambda _: self.move())
        self.move()

    def move(self) -> None:
        """Put the robot where the sliders say."""
        poses = self.robot.object_poses([slider.value for slider in self.sliders])
        self.live.move(dict(zip(self.robot.objects.tolist(), poses, strict=True)))
