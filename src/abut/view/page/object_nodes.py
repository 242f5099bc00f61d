"""ObjectNodes: the objects of a scene on a page, one mesh or one instance of a batch each."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.view.body import CORAL, GOLD, INDIGO, SAND, TEAL
from abut.view.page.live_scene import LiveScene
from abut.view.page.page_frame import PageFrame

PALETTE = np.round(255 * np.array([CORAL, TEAL, SAND, INDIGO, GOLD])).astype(np.uint8)
MOST_SINGLE = 64  # objects; more are sent as batches of those that share a mesh
MOST_CLICKED = 300_000  # faces; a browser finds the face below the pointer by trying all


@dataclass
class MeshNode:
    """A mesh on the page and the objects that it shows.

    Attributes:
        handle: The node.
        rows: Objects: the instances of a batch, or one.
        centre: (3,) middle of the mesh in its own frame; vertices are sent relative to it.
    """

    handle: Any
    rows: np.ndarray
    centre: np.ndarray


class ObjectNodes:
    """All objects of a scene on a page.

    Args:
        server: The viser server.
        live: The scene.
        frame: Coordinates of the page.
        on_click: Receives the index of an object that is clicked.
    """

    def __init__(
        self, server: Any, live: LiveScene, frame: PageFrame, on_click: Callable[[int], None]
    ) -> None:
        self.server, self.live, self.frame, self.on_click = server, live, frame, on_click
        self._visible = True
        self._node_of: dict[int, MeshNode] = {}
        groups: dict[int, list[int]] = defaultdict(list)
        for row in live.objects:
            if live.meshes[row].face_count:
                groups[id(live.meshes[row])].append(row)
        together = len(live.objects) > MOST_SINGLE
        for rows in groups.values():
            for part in [rows] if together and len(rows) > 1 else [[row] for row in rows]:
                node = self._add(np.array(part))
                self._node_of.update(dict.fromkeys(part, node))

    @property
    def nodes(self) -> list[MeshNode]:
        """Every node once."""
        return list({id(node): node for node in self._node_of.values()}.values())

    def place(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Rotation (3, 3) of an object, and the position of its middle on the page."""
        pose = self.live.poses[row]
        middle = pose[:3, :3] @ self._node_of[row].centre + pose[:3, 3]
        return pose[:3, :3], self.frame.points(middle)

    def pose_at(self, row: int, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
        """The pose (4, 4) of an object whose middle is at a position of the page."""
        pose = np.eye(4)
        pose[:3, :3] = rotation
        pose[:3, 3] = self.frame.world(position) - rotation @ self._node_of[row].centre
        return pose

    def radius(self, row: int) -> float:
        """Half the extent of an object on the page."""
        points = self._node_of[row].handle.vertices
        return float(np.ptp(points, axis=0).max()) / 2

    def show(self, visible: bool) -> None:
        """Show or hide all objects."""
        if visible != self._visible:
            self._visible = visible
            for node in self.nodes:
                node.handle.visible = visible

    def move(self, rows: list[int]) -> None:
        """Send the poses of objects that have moved."""
        for node in {id(self._node_of[row]): self._node_of[row] for row in rows}.values():
            places = self._places(node)
            if len(node.rows) == 1:
                node.handle.wxyz, node.handle.position = places[0][0], places[1][0]
            else:
                node.handle.batched_wxyzs, node.handle.batched_positions = places

    def deform(self, rows: list[int]) -> None:
        """Send the vertices of objects that have deformed."""
        for row in rows:
            node = self._node_of[row]
            node.handle.vertices = self._vertices(row, node.centre)

    def _add(self, rows: np.ndarray) -> MeshNode:
        row = int(rows[0])
        points = self.live.points(row)
        node = MeshNode(None, rows, (points.min(axis=0) + points.max(axis=0)) / 2)
        wxyz, position = self._places(node)
        name, colors = f"/objects/{row}", PALETTE[rows % len(PALETTE)]
        shape = (name, self._vertices(row, node.centre), self.live.faces(row).astype(np.uint32))
        add, look = self.server.scene, {"side": "double", "cast_shadow": False}
        if len(rows) == 1:
            look |= {"color": tuple(colors[0].tolist()), "receive_shadow": False}
            node.handle = add.add_mesh_simple(*shape, wxyz=wxyz[0], position=position[0], **look)
        else:
            node.handle = add.add_batched_meshes_simple(
                *shape, wxyz, position, batched_colors=colors, receive_shadow=False, **look
            )
        if len(shape[2]) <= MOST_CLICKED:
            node.handle.on_click(lambda event: self._clicked(node, event))
        return node

    def _clicked(self, node: MeshNode, event: Any) -> None:
        self.on_click(int(node.rows[getattr(event, "instance_index", None) or 0]))

    def _vertices(self, row: int, centre: np.ndarray) -> np.ndarray:
        return ((self.live.points(row) - centre) * self.frame.scale).astype(np.float32)

    def _places(self, node: MeshNode) -> tuple[np.ndarray, np.ndarray]:
        """Quaternions (k, 4) and positions (k, 3) of the objects of a node on the page."""
        from viser.transforms import SO3

        poses = self.live.poses[node.rows]
        middles = poses[:, :3, :3] @ node.centre + poses[:, :3, 3]
        return SO3.from_matrix(poses[:, :3, :3]).wxyz, self.frame.points(middles)
