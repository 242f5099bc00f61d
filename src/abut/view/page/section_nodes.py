"""SectionNodes: objects of a page cut by a plane."""

from typing import Any

import numpy as np

from abut.view.body import INK
from abut.view.page.answer_nodes import add_lines, set_lines
from abut.view.page.live_scene import LiveScene
from abut.view.page.object_nodes import PALETTE, ObjectNodes
from abut.view.page.page_frame import PageFrame
from abut.view.page.section import Plane, Section, cut_mesh


class SectionNodes:
    """The cut objects, one node for each colour, and the outline of the cut.

    Attributes:
        plane: The plane in the world; None shows whole objects.
    """

    def __init__(
        self, server: Any, live: LiveScene, frame: PageFrame, objects: ObjectNodes
    ) -> None:
        self.live, self.frame, self.objects = live, frame, objects
        self.plane: Plane | None = None
        self._cuts: dict[int, tuple[Plane, Section]] = {}
        self.outline = add_lines(server.scene, "/section/outline", INK)
        self.parts = [_add_part(server.scene, k) for k in range(len(PALETTE))]

    def show(self, changed: list[int]) -> None:
        """Cut objects again that have changed, or all for another plane."""
        plane = self.plane
        self.objects.show(plane is None)
        for row in changed:
            self._cuts.pop(row, None)
        if plane is None:
            for handle in [self.outline, *self.parts]:
                handle.visible = False
            return
        same = len(self._cuts) == len(self.live.objects)
        if same and self.outline.visible and all(k == plane for k, _ in self._cuts.values()):
            return
        cuts = {row: self._cut(row, plane) for row in self.live.objects}
        set_lines(
            self.outline, self.frame.points(np.concatenate([c.outline for c in cuts.values()]))
        )
        for k, handle in enumerate(self.parts):
            rows = [cut.corners for row, cut in cuts.items() if row % len(PALETTE) == k]
            corners = np.concatenate([np.zeros((0, 3, 3)), *rows])
            handle.visible = len(corners) > 0
            if len(corners):
                points, index = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
                handle.vertices = self.frame.points(points)
                handle.faces = index.reshape(-1, 3).astype(np.uint32)

    def _cut(self, row: int, plane: Plane) -> Section:
        known = self._cuts.get(row)
        if known is None or known[0] != plane:
            pose = self.live.poses[row]
            points = self.live.points(row) @ pose[:3, :3].T + pose[:3, 3]
            self._cuts[row] = known = (plane, cut_mesh(points, self.live.faces(row), plane))
        return known[1]


def _add_part(scene: Any, k: int) -> Any:
    about: Any = {"side": "double", "cast_shadow": False, "receive_shadow": False}
    shape = np.zeros((3, 3), np.float32), np.arange(3, dtype=np.uint32)[None]
    color = tuple(PALETTE[k].tolist())
    return scene.add_mesh_simple(f"/section/{k}", *shape, color=color, visible=False, **about)
