"""RowTable: rows of answers beside the picture; a click on one moves the camera there."""

import time
from typing import Any

import numpy as np

from abut.view.page.answer_rows import KINDS, OBJECT_PAIRS, Row, row_count, rows_from, title_of
from abut.view.page.answers import Answers
from abut.view.page.live_scene import LiveScene
from abut.view.page.page_frame import SIZE, PageFrame

ROWS = 14  # shown at once
PLAIN, MARKED, CHOSEN = (236, 239, 244), (252, 226, 170), (245, 172, 110)
FLIGHT, STEPS = 0.35, 14  # seconds and pictures of a flight of the camera
WRAPPED = """<style>
.mantine-Button-root { height: auto !important; min-height: 2em; padding-block: 0.3em }
.mantine-Button-inner, .mantine-Button-label { height: auto }
.mantine-Button-label { white-space: normal; overflow-wrap: anywhere; line-height: 1.3 }
</style>"""  # rows may be longer than the panel is wide
NEAREST_VIEW = 0.12 * SIZE  # distance of the camera from a place


class RowTable:
    """A panel with a button for each row.

    Attributes:
        marked: An object of the picture; rows with it are marked.
    """

    def __init__(self, server: Any, live: LiveScene, frame: PageFrame) -> None:
        self.live, self.frame = live, frame
        self.marked: int | None = None
        self._chosen: tuple[int, ...] | None = None
        self._rows: list[Row] = []
        gui = server.gui
        self.panel = gui.add_panel()
        with self.panel.add_tab("Rows"):
            self.kind = gui.add_dropdown("rows", KINDS, initial_value=OBJECT_PAIRS)
            self.count = gui.add_html("no rows")
            gui.add_html(WRAPPED)
            self.first = gui.add_slider("from", 0, 1, 1, 0, visible=False)
            self.buttons = [self._button(gui, k) for k in range(ROWS)]
        self.panel.dock_left()
        self.panel.set_width(300)
        for control in (self.kind, self.first):
            control.on_update(lambda _: self.show(self.live.answers or Answers()))

    def show(self, answers: Answers) -> None:
        """Show the rows of answers in place of the last ones."""
        count = row_count(answers, self.kind.value)
        title = title_of(answers, self.kind.value)
        self.count.content = f"<div style='padding:0 1em'>{title}</div>"
        pages = max(count - ROWS, 0)
        self.first.visible = pages > 0
        if pages and self.first.max != pages:
            self.first.max = pages
        first = min(int(self.first.value), pages)
        self._rows = rows_from(self.live, answers, self.kind.value, first, ROWS)
        for button, row in zip(self.buttons, self._rows, strict=False):
            button.label, button.color = row.text, self._color(row)
        for k, button in enumerate(self.buttons):
            button.visible = k < len(self._rows)

    def _color(self, row: Row) -> tuple[int, int, int]:
        if self._chosen == row.key:
            return CHOSEN
        return MARKED if self.marked in row.key[:2] else PLAIN

    def _button(self, gui: Any, k: int) -> Any:
        button = gui.add_button("", visible=False, color=PLAIN)
        button.on_click(lambda event: self._clicked(k, event.client))
        return button

    def _clicked(self, k: int, client: Any) -> None:
        if k >= len(self._rows) or client is None:
            return
        row = self._rows[k]
        self._chosen = row.key
        self.show(self.live.answers or Answers())
        fly_to(client, self.frame.points(row.points))


def fly_to(client: Any, points: np.ndarray) -> None:
    """Move the camera of a page, in its present direction, until points of the page fill it."""
    target = (points.min(axis=0) + points.max(axis=0)) / 2
    camera = client.camera
    start, looked = np.array(camera.position), np.array(camera.look_at)
    back = (start - looked) / max(float(np.linalg.norm(start - looked)), 1e-9)
    end = target + back * max(NEAREST_VIEW, 1.5 * float(np.ptp(points, axis=0).max()))
    for share in (1 - np.cos(np.linspace(0, np.pi, STEPS + 1)[1:])) / 2:
        with client.atomic():
            camera.position = start + share * (end - start)
            camera.look_at = looked + share * (target - looked)
        client.flush()
        time.sleep(FLIGHT / STEPS)
