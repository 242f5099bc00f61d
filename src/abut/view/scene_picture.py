"""A picture of a scene and its answers, drawn without a browser."""

from typing import Any

import numpy as np

from abut.cases.shape import Shape
from abut.geometry.polylines import join_segments
from abut.view.aim import aim
from abut.view.body import RED, Body
from abut.view.page.answers import Answers
from abut.view.page.live_scene import LiveScene
from abut.view.page.object_nodes import PALETTE
from abut.view.picture import render


def draw_scene(
    live: LiveScene, *, size: tuple[int, int] = (1200, 800), vertical: str = "z", device: Any = None
) -> np.ndarray:
    """Draw all objects, faces in contact in red, intersection curves and the shortest distance.

    Returns:
        (height, width, 3) uint8.
    """
    answers = live.answers or Answers()
    bodies = [_body(live, row, answers) for row in live.objects if live.meshes[row].face_count]
    segments = answers.segments[(answers.segments[:, 0] != answers.segments[:, 1]).any(axis=1)]
    curves = join_segments(segments) if len(segments) else []
    if answers.nearest is not None:
        curves.append(answers.nearest.points)
    points = np.concatenate([np.zeros((0, 3)), *curves])
    bodies, camera = aim(bodies, points, size=size, vertical=vertical, device=device)
    return render(bodies, curves, camera=camera, size=size, vertical=vertical, device=device)


def _body(live: LiveScene, row: int, answers: Answers) -> Body:
    pose, color = live.poses[row], PALETTE[row % len(PALETTE)] / 255
    points = live.points(row) @ pose[:3, :3].T + pose[:3, 3]
    marked = answers.faces[(answers.objects == row) & (answers.faces >= 0)]
    shape = Shape(points, live.faces(row))
    return Body(shape, tuple(color.tolist()), marked=np.unique(marked), mark=RED)
