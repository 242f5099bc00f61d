"""JointSliders: a slider for each joint of a robot."""

from typing import Any

import numpy as np

from abut.view.page.live_scene import LiveScene

TURN = np.pi  # range of a joint without limits, to both sides of its rest


class JointSliders:
    """Sliders that move the objects of a robot's scene; objects added later stay.

    Args:
        server: The viser server.
        live: A scene with a robot.
    """

    def __init__(self, server: Any, live: LiveScene) -> None:
        assert live.scene.robot is not None
        self.live, self.robot = live, live.scene.robot
        limits, rest = self.robot.limits.reshape(-1, 2), self.robot.values({})
        low = np.where(np.isfinite(limits[:, 0]), limits[:, 0], rest - TURN)
        high = np.where(np.isfinite(limits[:, 1]), limits[:, 1], rest + TURN)
        for column in self.robot.kinematics.balls:
            low[column : column + 4], high[column : column + 4] = -1.0, 1.0
        start = np.clip(rest, low, high)
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
        values = np.array([slider.value for slider in self.sliders], float)
        for column in self.robot.kinematics.balls:
            if not values[column : column + 4].any():  # no rotation
                return
        poses = self.robot.object_poses(values)
        self.live.move(dict(zip(self.robot.objects.tolist(), poses, strict=True)))
