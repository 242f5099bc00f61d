"""Player: the frames of a deforming object on a page, and numbers over them."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from abut.motion import Motion
from abut.query.ccd import ccd
from abut.view.body import INK
from abut.view.page.answers import Answers
from abut.view.page.impact_points import impact_points
from abut.view.page.live_scene import LiveScene
from abut.view.page.page_frame import SIZE, PageFrame
from abut.view.page.panel import facts_table

MOST_RATE = 25.0  # frames per second
PLOTS = ("face pairs", "milliseconds", "clearance")


class Player:
    """Play, pause, step and a slider; each number of the frames seen so far in a plot.

    Args:
        server: The viser server.
        live: The scene, whose first object deforms.
        frame: Coordinates of the page.
        frames: (n, 3) vertices of each frame.

    Attributes:
        shown: The frame of the latest answers.
    """

    def __init__(
        self, server: Any, live: LiveScene, frame: PageFrame, frames: Sequence[np.ndarray]
    ) -> None:
        self.live, self.frame, self.frames = live, frame, frames
        self.shown = 0
        self.numbers = {name: np.full(len(frames), np.nan) for name in PLOTS}
        self._playing, self._shown = threading.Event(), threading.Event()
        gui = server.gui
        with gui.add_folder("frames"):
            self.slider = gui.add_slider("frame", 0, len(frames) - 1, 1, 0)
            self.play = gui.add_button("play")
            self.steps = gui.add_button_group("step", ("back", "forward"))
            self.ccd = gui.add_checkbox("impacts until the next frame", False)
            self.found = gui.add_html("", visible=False)
            self.plots = {name: self._plot(gui, name) for name in PLOTS}
        self.points = server.scene.add_point_cloud(
            "/impacts", np.zeros((1, 3), np.float32), INK, point_size=0.01 * SIZE, visible=False
        )
        self.ccd.on_update(lambda _: live.ask())
        self.slider.on_update(lambda _: self.go(int(self.slider.value)))
        self.play.on_click(lambda _: self._toggle())
        self.steps.on_click(lambda event: self.step(1 if event.target.value == "forward" else -1))
        threading.Thread(target=self._run, name="abut frames", daemon=True).start()

    def step(self, by: int) -> None:
        """Show the frame ``by`` frames on; the first one follows the last."""
        self.slider.value = (int(self.slider.value) + by) % len(self.frames)

    def record(self, answers: Answers) -> None:
        """Store and plot the numbers of the answered frame."""
        self.shown = frame = self.live.frame
        spent = sum(ms for name, ms in answers.milliseconds.items() if not name.startswith("·"))
        values = (len(answers.faces), spent, answers.clearance)
        for (name, numbers), value in zip(self.numbers.items(), values, strict=True):
            numbers[frame] = value
            known = np.flatnonzero(np.isfinite(numbers))
            self.plots[name].visible = len(known) > 1
            if len(known) > 1:
                self.plots[name].data = (known.astype(float), numbers[known])
        self._show_impacts(frame)
        self._shown.set()

    def _show_impacts(self, frame: int) -> None:
        """Show where the object touches itself on its way to the next frame, at these times."""
        wanted = self.ccd.value and frame + 1 < len(self.frames)
        self.found.visible = wanted
        if not wanted:
            self.points.visible = False
            return
        mesh = self.live.meshes[self.live.objects[0]]
        end = np.asarray(self.frames[frame + 1])
        hits = ccd(Motion(mesh, end=end))
        facts = [("impacts", f"{len(hits):,}")]
        if hits:
            facts.append(("first impact, share of the step", f"{hits.first:.6g}"))
            points = impact_points(mesh, end, hits)
            pose = self.live.poses[self.live.objects[0]]
            self.points.points = self.frame.points(points @ pose[:3, :3].T + pose[:3, 3])
        self.points.visible = bool(hits)
        self.found.content = facts_table(facts)

    def _plot(self, gui: Any, name: str) -> Any:
        series: Any = ({"label": "frame"}, {"label": name, "stroke": "#d62f2f", "width": 2})
        scales: Any = {"x": {"time": False, "auto": True}}
        data, look = (np.arange(2.0), np.zeros(2)), {"aspect": 2.2, "visible": False}
        return gui.add_uplot(data, series, scales=scales, title=name, **look)

    def go(self, frame: int) -> None:
        """Show a frame after the next answer."""
        self.live.deform({self.live.objects[0]: self.frames[frame]}, frame)

    def _toggle(self) -> None:
        playing = not self._playing.is_set()
        self.play.label = "pause" if playing else "play"
        if playing:
            self._shown.set()
            self._playing.set()
        else:
            self._playing.clear()

    def _run(self) -> None:
        """Show one frame after the other, as soon as the answers of the last one are shown."""
        while not self.live.closed:
            start = time.monotonic()
            if self._playing.wait(0.2) and self._shown.wait(0.2):
                self._shown.clear()
                self.step(1)
                time.sleep(max(0.0, 1 / MOST_RATE - (time.monotonic() - start)))
