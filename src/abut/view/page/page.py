"""Page: a scene, its answers and its controls in a browser."""

import io
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from math import floor, log10
from typing import Any

import numpy as np

from abut.errors import AbutError, OptionError, ToolError
from abut.view.camera import Camera
from abut.view.page.answer_nodes import AnswerNodes
from abut.view.page.answers import Answers
from abut.view.page.field_slice import FieldSlice
from abut.view.page.given_frames import checked_frames
from abut.view.page.joint_sliders import JointSliders
from abut.view.page.live_scene import LiveScene, start_answering
from abut.view.page.object_nodes import ObjectNodes
from abut.view.page.page_frame import SIZE, PageFrame
from abut.view.page.panel import Panel
from abut.view.page.player import Player
from abut.view.page.row_table import RowTable
from abut.view.page.section import Plane
from abut.view.page.section_nodes import SectionNodes

GRACE = 3.0  # seconds without a page before the server ends; a reload is faster
POLL = 0.1  # seconds between looks at a page that is not there yet
AXES = ("off", "x", "y", "z")
FIELD_OF_VIEW = np.radians(45.0)
ASPECT = 0.8  # of the picture between the panels of a small window
MOST_POINTS = 100_000  # that the camera is placed for


class Page:
    """A server of one page, which may be open in several browsers and shows all the same scene.

    Args:
        live: The scene.
        host: Address to bind; 127.0.0.1 is reachable from this machine alone.
        port: Port to bind, or the next one that is free.
        vertical: The axis of the world that points upwards, ``"z"`` or ``"y"``.
        messages: Errors to show beside the scene.
        frames: (n, 3) vertices of the first object, one array for each frame of a sequence.

    Attributes:
        url: Address of the page.
        failure: Why the latest answers could not be shown; empty if they were.
    """

    def __init__(
        self,
        live: LiveScene,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        vertical: str = "z",
        messages: Sequence[str] = (),
        frames: Iterable[Any] = (),
    ) -> None:
        self.live, self.messages = live, list(messages)
        frames = checked_frames(live.scene, frames)
        self.server = _start_server(host, port)
        self.url = f"http://{host}:{self.server.get_port()}"
        self.shown = threading.Event()
        self._ended = threading.Event()
        self._visited = threading.Event()
        self.server.on_client_connect(lambda _: self._visited.set())
        self._rate, self.failure = 0.0, ""
        self._chosen: int | None = None
        self._dragging = False
        self._set_up(vertical)
        self.joints = JointSliders(self.server, live) if live.scene.robot is not None else None
        self.player = Player(self.server, live, self.frame, frames) if frames else None
        self._loop = start_answering(live, self._show, self._failed)

    def wait(self) -> None:
        """Wait until ``close`` is called, or until the page was open and is open nowhere."""
        alone = time.monotonic()
        while not self._ended.wait(0.1):
            if self.server.get_clients():
                alone = time.monotonic()
            elif self._visited.is_set() and time.monotonic() - alone > GRACE:
                break

    def update(self) -> None:
        """Show where the objects of the scene are now, after calls of ``scene.move``."""
        self.live.follow()

    def wait_until_shown(self) -> None:
        """Wait for the first answers on the page.

        Raises:
            AbutError: They cannot be shown, or the page was closed.
        """
        self._wait_for(lambda: True)

    def show_frame(self, frame: int) -> None:
        """Show a frame of the sequence, and wait until it is on the page.

        Raises:
            AbutError: It cannot be shown, or the page was closed.
            OptionError: There is no such frame.
        """
        player = self.player
        count = 0 if player is None else len(player.frames)
        if player is None or not 0 <= frame < count:
            raise OptionError(f"there is no frame {frame}; the page has {count}.")
        self.wait_until_shown()
        if player.shown != frame:
            self.shown.clear()
            player.go(frame)
            self._wait_for(lambda: player.shown == frame)

    def _wait_for(self, reached: Callable[[], bool]) -> None:
        while not (self.shown.wait(POLL) and reached()):
            problem = self.failure or (self.live.message if self.shown.is_set() else "")
            if problem or self._ended.is_set():
                reason = problem or "it was closed"
                raise AbutError(f"the page does not show what was asked: {reason}")
            if self.shown.is_set():
                time.sleep(0.01)  # a drag was answered before the frame
        if self.failure:
            raise AbutError(f"the page does not show what was asked: {self.failure}")

    def close(self) -> None:
        """Stop answering, disconnect all browsers and free the port."""
        if self._ended.is_set():
            return
        self._ended.set()
        self.live.close()
        self._loop.join()
        with redirect_stdout(io.StringIO()):
            self.server.stop()

    def _set_up(self, vertical: str) -> None:
        server = self.server
        server.scene.set_up_direction(f"+{vertical}")
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.set_panel_label("abut")
        server.gui.main_panel.dock_right()
        self.frame = PageFrame.around(self.live)
        self._place_camera(vertical)
        self.objects = ObjectNodes(server, self.live, self.frame, self._clicked)
        self.answers = AnswerNodes(server, self.live, self.frame)
        self.sections = SectionNodes(server, self.live, self.frame, self.objects)
        self.slice = FieldSlice(server, self.live, self.frame)
        self.panel = Panel(server, self.live, self._choose)
        self._add_section_controls()
        self.table = RowTable(server, self.live, self.frame)
        self.gizmo = server.scene.add_transform_controls("/gizmo", visible=False)
        self.gizmo.on_update(self._dragged)
        self.panel.say(self.messages)

    def _place_camera(self, vertical: str) -> None:
        """Look at all objects from the front right, between the panels of a small window."""
        live, angle = self.live, float(np.degrees(FIELD_OF_VIEW))
        step = 1 + sum(live.meshes[row].vertex_count for row in live.objects) // MOST_POINTS
        posed = [
            live.points(row)[::step] @ live.poses[row, :3, :3].T + live.poses[row, :3, 3]
            for row in live.objects
        ]
        points = self.frame.points(np.concatenate([self.frame.origin[None], *posed]))
        view = Camera.around(points, view_angle=angle, aspect=ASPECT, vertical=vertical)
        camera = self.server.initial_camera
        camera.position, camera.look_at = (
            view.eye,
            view.eye + view.ahead * np.dot(-view.eye, view.ahead),
        )
        camera.fov, camera.near = float(FIELD_OF_VIEW), 5e-3 * SIZE

    def _add_section_controls(self) -> None:
        gui = self.server.gui
        with gui.add_folder("section"):
            self.axis = gui.add_dropdown("plane across", AXES, initial_value=AXES[0])
            self.offset = gui.add_slider("at", 0.0, 1.0, 1e-3, 0.0, visible=False)
            self.other = gui.add_checkbox("other side", False)
            about = "the signed distance to the chosen object, on the plane"
            self.field = gui.add_checkbox("distance field", False, hint=about)
        self.axis.on_update(lambda _: self._choose_axis())
        for control in (self.offset, self.other, self.field):
            control.on_update(lambda _: self._cut())

    def _choose_axis(self) -> None:
        """Put the plane in the middle; the slider holds its place in the units of the files."""
        axis = AXES.index(self.axis.value) - 1
        slider = self.offset
        if axis >= 0:
            reach = 0.6 * SIZE / self.frame.scale
            middle = float(self.frame.origin[axis])
            slider.precision = max(0, 3 - floor(log10(reach)))
            slider.step = 10.0**-slider.precision
            slider.min, slider.max = middle - reach, middle + reach
            slider.value = middle
        slider.visible = axis >= 0
        self._cut()

    def _cut(self) -> None:
        axis = AXES.index(self.axis.value) - 1
        plane = Plane(axis, float(self.offset.value), self.other.value)
        self.sections.plane = plane if axis >= 0 else None
        self.slice.wanted = self.field.value
        self.live.ask()

    def _clicked(self, row: int) -> None:
        self._choose(row)
        self.panel.mark(row)

    def _choose(self, row: int | None) -> None:
        """Put the gizmo on an object."""
        self._chosen = self.table.marked = row
        self.gizmo.visible = row is not None
        if row is not None:
            self.gizmo.scale = float(np.clip(1.6 * self.objects.radius(row), 0.1, SIZE))
            self._put_gizmo(row)
        self.table.show(self.live.answers or Answers())

    def _put_gizmo(self, row: int) -> None:
        from viser.transforms import SO3

        rotation, position = self.objects.place(row)
        self.gizmo.wxyz, self.gizmo.position = SO3.from_matrix(rotation).wxyz, position

    async def _dragged(self, event: Any) -> None:
        from viser.transforms import SO3

        self._dragging = event.phase != "end"
        if self._chosen is not None:
            rotation = SO3(np.array(event.target.wxyz, np.float64)).normalize().as_matrix()
            pose = self.objects.pose_at(self._chosen, rotation, event.target.position)
            self.live.move({self._chosen: pose})

    def _show(self, moved: list[int], deformed: list[int]) -> None:
        """Send what has changed since the last answers."""
        answers = self.live.answers or Answers()
        with self.server.atomic():
            self.objects.move(moved)
            self.objects.deform(deformed)
            if self._chosen in moved and not self._dragging:
                self._put_gizmo(self._chosen)
            self.sections.show([*moved, *deformed])
            self.answers.show(answers, self.sections.plane)
            self._show_field()
            self.panel.show(answers, self._rate)
            self.panel.say([*self.messages, self.live.message])
            self.table.show(answers)
            if self.player is not None:
                self.player.record(answers)
        self._rate = 1 / (time.perf_counter() - self.live.began)
        self.failure = ""
        self.shown.set()

    def _failed(self, error: Exception) -> None:
        """Say on the page that the latest answers are missing, and why."""
        self.failure = f"{type(error).__name__}: {error}"
        self.panel.say([*self.messages, f"the page could not answer: {self.failure}"])
        self.shown.set()

    def _show_field(self) -> None:
        """Show the field of the chosen object, else of the first one."""
        rows = self.live.objects
        row = self._chosen if self._chosen is not None else (rows[0] if rows else None)
        try:
            self.slice.show(row, self.sections.plane)
        except AbutError as error:
            self.live.message = self.live.message or str(error)


def _start_server(host: str, port: int) -> Any:
    try:
        import viser
    except ModuleNotFoundError:
        raise ToolError("the page needs viser; pip install 'abut[view]' brings it.") from None

    with redirect_stdout(io.StringIO()):  # viser prints a box around the address
        server = viser.ViserServer(host=host, port=port, verbose=False)
    server.request_share_url = lambda verbose=True: None  # no page may open a tunnel
    return server
