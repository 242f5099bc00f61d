"""LiveScene: the scene of a page, and the loop that computes its answers."""

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from abut.errors import AbutError
from abut.scene import Scene
from abut.view.page.answers import Answers, Question, answer


class LiveScene:
    """A scene, the changes that wait for the next answer, and the latest answers.

    Any thread may change it. Changes are coalesced: of several poses of an object between two
    answers only the last one counts.

    Args:
        scene: Its objects move when they are dragged on the page.
        question: The first choices of the panel.

    Attributes:
        poses: (n, 4, 4), by index, as of the latest answers.
        answers: None before the first.
        message: The error of the latest question; empty if there was none.
        given: Vertices that ``deform`` received, by object, as of the latest answers.
        frame: The frame of a sequence that the latest answers are about.
        began: When the work on the latest answers began, by ``time.perf_counter``.
    """

    def __init__(self, scene: Scene, question: Question) -> None:
        self.scene, self.question = scene, question
        self.objects: list[int] = scene.indices.tolist()
        self.meshes = scene.meshes
        self._share()
        self.poses = scene.poses.numpy().reshape(-1, 4, 4).copy()
        self.start = self.poses.copy()
        self.answers: Answers | None = None
        self.message = self._problem = ""
        self.closed, self.began = False, 0.0
        self._names = {row: name for name, row in scene.names.items()}
        self._pending: dict[int, np.ndarray] = {}
        self._bent: dict[int, np.ndarray] = {}
        self.frame, self._next_frame = 0, 0
        self.given: dict[int, np.ndarray] = {}
        self._asked = True
        self._change = threading.Condition()

    def name(self, row: int) -> str:
        """The name of an object; its index where it has none."""
        return self._names.get(row, str(row))

    def points(self, row: int) -> np.ndarray:
        """(n, 3) float64 vertices of an object in its own frame."""
        return self.meshes[row].vertices.numpy().astype(np.float64)

    def faces(self, row: int) -> np.ndarray:
        """(m, 3) faces of an object."""
        return self.meshes[row].faces.numpy()

    def corners(self, rows: np.ndarray) -> np.ndarray:
        """(k, 3, 3) float64 corners of rows (object, face), where the objects are now."""
        out = np.empty((len(rows), 3, 3))
        meshes = np.array([self._mesh_of[row] for row in rows[:, 0].tolist()], np.int64)
        for mesh in np.unique(meshes).tolist():
            here = np.flatnonzero(meshes == mesh)
            chosen = self.faces(mesh)[rows[here, 1]]
            poses = self.poses[rows[here, 0]]
            points = self.meshes[mesh].vertices.numpy()[chosen].astype(np.float64)
            out[here] = points @ poses[:, :3, :3].swapaxes(1, 2) + poses[:, None, :3, 3]
        return out

    def move(self, poses: dict[int, np.ndarray]) -> None:
        """Give objects poses, (4, 4) each, before the next answer."""
        self._put(self._pending, poses)

    def deform(self, vertices: dict[int, np.ndarray], frame: int | None = None) -> None:
        """Give objects vertices, in their own frame, before the next answer.

        Args:
            vertices: (n, 3) by object.
            frame: Their frame in a sequence; None leaves the last one.
        """
        with self._change:
            self._next_frame = self._next_frame if frame is None else frame
            self._put(self._bent, vertices)

    def give(self, answers: Answers) -> None:
        """Show answers that are known, until something changes."""
        self.answers, self._asked = answers, False

    def ask(self, **choices: Any) -> None:
        """Change the question; without choices ask it again."""
        with self._change:
            self.question, self._asked = replace(self.question, **choices), True
            self._change.notify()

    def close(self) -> None:
        """End the loop."""
        with self._change:
            self.closed = True
            self._change.notify()

    def follow(self) -> None:
        """Take the poses that the scene has now, after calls of ``scene.move``."""
        now = self.scene.poses.numpy().reshape(-1, 4, 4)
        self.move({row: now[row].copy() for row in self.objects})

    def next_changes(self) -> tuple[list[int], list[int]] | None:
        """Wait for changes and apply them; the objects moved and deformed, None at the end."""
        with self._change:
            self._change.wait_for(lambda: self.closed or self._asked or self._waiting())
            if self.closed:
                return None
            moved, self._pending = self._pending, {}
            bent, self._bent = self._bent, {}
            self._asked, frame = False, self._next_frame
        self.began = time.perf_counter()
        try:
            self._apply(moved, bent)
            self.frame = frame
        except AbutError as error:
            self._problem = str(error)
        return list(moved), list(bent)

    def _apply(self, moved: dict[int, np.ndarray], bent: dict[int, np.ndarray]) -> None:
        self._problem = ""
        if moved:
            self.scene.move(list(moved), np.array(list(moved.values())))
            self.poses[list(moved)] = list(moved.values())
        for row, vertices in bent.items():
            self.scene.deform(row, vertices)
            self.given[row] = vertices
            self.meshes[row] = self.scene.mesh(row)
        if bent:
            self._share()

    def answer(self) -> None:
        """Answer the question; an error becomes the message."""
        try:
            self.answers = answer(self.scene, self.question)
            self.message = self._problem or self.answers.message
        except AbutError as error:
            self.answers, self.message = Answers(), str(error)

    def _share(self) -> None:
        """For each object, the first one that has the same mesh."""
        first: dict[int, int] = {}
        self._mesh_of = {row: first.setdefault(id(self.meshes[row]), row) for row in self.objects}

    def _waiting(self) -> bool:
        return bool(self._pending or self._bent)

    def _put(self, waiting: dict[int, np.ndarray], values: dict[int, np.ndarray]) -> None:
        with self._change:
            waiting.update(values)
            self._change.notify()


def start_answering(
    live: LiveScene,
    show: Callable[[list[int], list[int]], None],
    fail: Callable[[Exception], None] = lambda _: None,
) -> threading.Thread:
    """Answer after every change, in a thread.

    Args:
        live: The scene.
        show: Receives the objects moved and deformed.
        fail: Receives an error that is not about the question; the thread goes on.
    """

    def run() -> None:
        while (changes := live.next_changes()) is not None:
            try:
                live.answer()
                show(*changes)
            except Exception as error:  # a page that stops answering is worse than a wrong frame
                traceback.print_exc()
                fail(error)

    if live.answers is not None:
        show([], [])
    thread = threading.Thread(target=run, name="abut answers", daemon=True)
    thread.start()
    return thread
