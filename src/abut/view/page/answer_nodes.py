"""AnswerNodes: contacts and the shortest distance of a scene on a page."""

from typing import Any

import numpy as np

from abut.view.body import GOLD, INK, RED, Color
from abut.view.page.answers import NO_FACE, Answers
from abut.view.page.live_scene import LiveScene
from abut.view.page.page_frame import SIZE, PageFrame
from abut.view.page.section import Plane, cut_mesh

LIFT = 1.5e-4 * SIZE  # of marked faces above the surface, on both sides
LINE = 2.5  # pixels
ARROW = {"shaft_radius": 0.006 * SIZE, "head_radius": 0.015 * SIZE, "head_length": 0.04 * SIZE}


class AnswerNodes:
    """Faces in contact in red, their curves, the distance, and the culling set in gold."""

    def __init__(self, server: Any, live: LiveScene, frame: PageFrame) -> None:
        self.live, self.frame = live, frame
        scene = server.scene
        self.faces = add_faces(scene, "/contacts/faces", RED)
        self.culled = add_faces(scene, "/culled/faces", GOLD)
        self.curves = add_lines(scene, "/contacts/curves", GOLD)
        self.line = add_lines(scene, "/distance/line", INK)
        self.arrows = scene.add_arrows(
            "/overlap/separation", np.zeros((1, 2, 3), np.float32), INK, visible=False, **ARROW
        )
        about: Any = {"visible": False, "anchor": "bottom-center"}
        self.label = scene.add_label("/distance/value", "0", **about)

    def show(self, answers: Answers, plane: Plane | None = None) -> None:
        """Show answers in place of the last ones, those on one side of a plane."""
        marked = np.stack([answers.objects.ravel(), answers.faces.ravel()], axis=1)
        segments = self._lifted(answers)
        if plane is not None:
            kept = ~plane.hides(answers.segments).any(axis=1)
            segments = segments[np.tile(kept, 2)]
        set_faces(self.faces, self._corners(marked, plane), 2 * LIFT)
        set_faces(self.culled, self._corners(answers.culled, plane))
        set_lines(self.curves, segments)
        self._show_overlaps(answers)
        near = answers.nearest
        self.line.visible = self.label.visible = near is not None
        if near is not None:
            set_lines(self.line, self.frame.points(near.points)[None])
            self.label.text = f"{near.value:.6g}"
            self.label.position = self.frame.points(near.points.mean(axis=0))

    def _show_overlaps(self, answers: Answers) -> None:
        """From the deepest point of each second object, an arrow that ends the overlap."""
        starts = np.array([o.deepest[1] for o in answers.overlaps]).reshape(-1, 3)
        ways = np.array([o.separation for o in answers.overlaps]).reshape(-1, 3)
        set_lines(self.arrows, self.frame.points(np.stack([starts, starts + ways], axis=1)))

    def _lifted(self, answers: Answers) -> np.ndarray:
        """(2 n, 2, 3) segments on the page, above marked faces on both sides of both surfaces."""
        if not len(answers.segments):
            return np.zeros((0, 2, 3), np.float32)
        sides = [np.stack([answers.objects[:, k], answers.faces[:, k]], axis=1) for k in (0, 1)]
        a, b = (unit_normals(self.live.corners(rows)) for rows in sides)
        lift = (4 * LIFT * (a + b)[:, None]).astype(np.float32)
        segments = self.frame.points(answers.segments)
        return np.concatenate([segments + lift, segments - lift])

    def _corners(self, rows: np.ndarray, plane: Plane | None) -> np.ndarray:
        """(k, 3, 3) corners on the page of rows (object, face), each once, on one side."""
        rows = rows[rows[:, 1] != NO_FACE].astype(np.int64)
        keys = np.unique(rows @ [1 << 32, 1])
        corners = self.live.corners(np.stack(np.divmod(keys, 1 << 32), axis=1))
        if plane is not None:
            order = np.arange(3 * len(corners)).reshape(-1, 3)
            corners = cut_mesh(corners.reshape(-1, 3), order, plane).corners
        return self.frame.points(corners)


def add_faces(scene: Any, name: str, color: Color) -> Any:
    """Add a node for marked faces, hidden until it has some."""
    about: Any = {"color": color, "side": "double", "flat_shading": True, "cast_shadow": False}
    shape = np.zeros((3, 3), np.float32), np.arange(3, dtype=np.uint32)[None]
    return scene.add_mesh_simple(name, *shape, visible=False, receive_shadow=False, **about)


def set_faces(handle: Any, corners: np.ndarray, height: float = LIFT) -> None:
    """Show faces (k, 3, 3) of the page, lifted off the surface that they mark, on both sides."""
    handle.visible = len(corners) > 0
    if not len(corners):
        return
    lift = (height * unit_normals(corners)).astype(np.float32)
    both = np.concatenate([corners + lift[:, None], corners - lift[:, None]]).reshape(-1, 3)
    handle.vertices = both
    handle.faces = np.arange(len(both), dtype=np.uint32).reshape(-1, 3)


def add_lines(scene: Any, name: str, color: Color) -> Any:
    """Add a node for line segments, hidden until it has some."""
    about: Any = {"thickness": LINE, "thickness_units": "screen", "visible": False}
    return scene.add_line_segments(name, np.zeros((1, 2, 3), np.float32), color, **about)


def set_lines(handle: Any, segments: np.ndarray) -> None:
    """Show segments (k, 2, 3) of the page."""
    handle.visible = len(segments) > 0
    if len(segments):
        handle.points = segments


def unit_normals(corners: np.ndarray) -> np.ndarray:
    """(k, 3) unit normals of faces (k, 3, 3); zero for a face without area."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0)
