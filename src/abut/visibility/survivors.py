"""Survivors: the faces and objects that a culling leaves, compacted on the device."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bvh.layout import vec4_with_int
from abut.core.launch import Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.plan import Stage
from abut.operands.soup import Soup
from abut.visibility.adjacency import folded_neighbours_kernel, neighbours_of
from abut.visibility.settings import Settings
from abut.visibility.state import BOTH, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

GROWN = wp.constant(wp.float32(2.0**-22))  # bounds the relative error of a float32 sum
LEAST_EXPECTED = 256  # faces


@wp.kernel
def mark_survivors_kernel(
    # in
    span: wp.vec3i,
    primitives: Primitives,
    folded: wp.array[wp.int32],
    # out
    kept_out: wp.array[wp.int32],
):
    """Write 1 for faces that are not pruned, and for faces folded over a neighbour."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        left = primitives.state[primitive_of(primitives, i)] != BOTH
        if folded.shape[0] > 0:
            left = left or folded[i] != 0
        kept_out[i] = wp.where(left, 1, 0)


@wp.kernel
def compact_survivors_kernel(
    # in
    span: wp.vec3i,
    kept: wp.array[wp.int32],
    places: wp.array[wp.int32],
    object_of: wp.array[wp.int32],
    first_face: wp.array[wp.int32],
    # out
    faces_out: wp.array[wp.int32],
    rows_out: wp.array[wp.vec2i],
    objects_out: wp.array[wp.int32],
    count_out: wp.array[wp.int64],
):
    """Compact the survivors: faces of the soup, rows (object, face of it), flags of objects."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        place = places[i]
        owner = object_of[i]
        if kept[i] != 0:
            faces_out[place] = i
            rows_out[place] = wp.vec2i(owner, i - first_face[owner])
            objects_out[owner] = 1
        if i == object_of.shape[0] - 1:
            count_out[0] = wp.int64(place + kept[i])


@wp.kernel
def survivor_boxes_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    primitives: Primitives,
    wanted: wp.array[wp.int32],
    count: wp.array[wp.int64],
    margin: wp.float32,
    # out
    boxes_out: wp.array2d[wp.vec4f],
    corners_out: wp.array2d[wp.vec3d],
):
    """Corners of survivors; their boxes relative to a corner of the first, grown by a margin.

    The fourth components of boxes hold the face and its state.
    """
    for i in range(span[0] + wp.tid(), wp.min(span[1], wp.int32(count[0])), span[2]):
        face = wanted[i]
        f = faces[face]
        origin = points[faces[wanted[0]][0]]
        low, high = fit_aabb(points[f[0]], points[f[1]], points[f[2]], origin)
        if margin > wp.float32(0.0):
            around = wp.vec3f(margin, margin, margin)
            grown = (wp.max(wp.abs(low), wp.abs(high)) + around) * GROWN
            low = low - around - grown
            high = high + around + grown
        boxes_out[i, 0] = vec4_with_int(low, face)
        boxes_out[i, 1] = vec4_with_int(high, primitives.state[primitive_of(primitives, face)])
        for k in range(3):
            corners_out[i, k] = points[f[k]]


class Survivors:
    """Survivors of a culling, and pairs of neighbours that may be folded over each other.

    Attributes:
        queues: The queue "folds" of keys of such pairs.
        count, fold_count: Number of faces and of such pairs, once read.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.count = self.fold_count = 0
        faces, objects, device = soup.face_count, soup.object_count, soup.device
        self._kept = wp.empty(faces, dtype=wp.int32, device=device)
        self._places = wp.empty(faces, dtype=wp.int32, device=device)
        self._faces = wp.empty(faces, dtype=wp.int32, device=device)
        self._boxes = wp.empty((faces, 2), dtype=wp.vec4f, device=device)
        self._corners = wp.empty((faces, 3), dtype=wp.vec3d, device=device)
        self._rows = wp.empty(faces, dtype=wp.vec2i, device=device)
        self._objects = wp.zeros(objects, dtype=wp.int32, device=device)
        self._first_face = wp.array(soup.first_face[:-1].astype(np.int32), device=device)
        self._count = wp.zeros(1, dtype=wp.int64, device=device)
        self._folded = wp.zeros(faces if settings.within else 0, dtype=wp.int32, device=device)
        self.queues = PairQueues(device, folds=max(1024, faces // 4) if settings.within else 1)
        self._read_back = self._host = [self._count, self._objects, self.queues.counts]
        if device.is_cuda:
            self._host = [wp.zeros_like(x, device="cpu", pinned=True) for x in self._read_back]
        self._ahead = device.is_cuda
        self._expected = 0  # faces, by the last answers
        self._copies: list[wp.array] | None = None

    def clear(self) -> None:
        """Reset the accumulated flags and queues."""
        self._objects.zero_()
        if self.settings.within:
            self._folded.zero_()
            self.queues.clear()

    def stages(self, primitives: Any) -> Iterator[Stage]:
        """Compact the survivors by the states of primitives."""
        yield from (("survivors", run) for run in self._runs(primitives))
        if self.device.is_cuda:
            yield "survivors", self._send

    def read(self) -> dict[str, int]:
        """Wait for the device and return the counts of the queues."""
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        self.count, self.fold_count = (int(self._host[k].numpy()[0]) for k in (0, 2))
        more = self.count + self.count // 4 + LEAST_EXPECTED
        self._expected = min(max(more, self._expected * 7 // 8), self.soup.face_count)
        return {"folds": self.fold_count}

    def copy_ahead(self) -> bool:
        """On CUDA, copy as many rows as are expected while the device is busy; returns True."""
        self._copies = None
        if self._ahead and self._expected:
            arrays = self._rows, self._boxes, self._corners
            self._copies = [wp.clone(array[: self._expected]) for array in arrays]
        return True

    @property
    def rows(self) -> wp.array:
        """(n, 2) int32 rows (object, face) of the survivors."""
        return self._copied(0, self._rows).view(wp.int32)

    @property
    def boxes(self) -> wp.array:
        """(n, 2) vec4f boxes of the survivors, see ``survivor_boxes_kernel``."""
        return self._copied(1, self._boxes)

    @property
    def corners(self) -> wp.array:
        """(n, 3) vec3d corners of the survivors."""
        return self._copied(2, self._corners)

    @property
    def fold_keys(self) -> wp.array:
        """(m,) int64 keys of pairs of neighbours that may be folded over each other."""
        return wp.clone(self.queues["folds"].keys[: self.fold_count])

    @property
    def objects(self) -> np.ndarray:
        """Objects that have survivors, ascending."""
        return np.flatnonzero(self._host[1].numpy()).astype(np.int32)

    def _copied(self, which: int, array: wp.array) -> wp.array:
        if self._copies is not None and self.count <= self._copies[which].shape[0]:
            return self._copies[which][: self.count]
        return wp.clone(array[: self.count])

    def _runs(self, primitives: Any) -> Iterator[Callable[[], Any]]:
        soup, device = self.soup, self.device
        count = soup.face_count
        if self.settings.within:
            neighbours = neighbours_of(soup).pairs
            args = [soup.view, soup.local_view, soup.object_of, neighbours, self.settings.sharing]
            args += [self.settings.distance > 0.0, layout_of(soup).bits]
            args += [self._folded, self.queues["folds"]]
            kernel = folded_neighbours_kernel
            yield Task(kernel, neighbours.shape[0], args, device, grain=512).run
        args = [primitives, self._folded, self._kept]
        yield Task(mark_survivors_kernel, count, args, device).run
        yield lambda: wp.utils.array_scan(self._kept, self._places, inclusive=False)
        args = [self._kept, self._places, soup.object_of, self._first_face]
        args += [self._faces, self._rows, self._objects, self._count]
        yield Task(compact_survivors_kernel, count, args, device).run
        distance = self.settings.distance_in(soup)
        with np.errstate(over="ignore"):  # infinite where half the distance exceeds float32
            margin = np.nextafter(np.float32(distance / 2), np.float32(np.inf))
        args = [soup.points, soup.faces, primitives, self._faces, self._count]
        args += [float(margin) if distance else 0.0, self._boxes, self._corners]
        yield Task(survivor_boxes_kernel, count, args, device).run

    def _send(self) -> None:
        for host, array in zip(self._host, self._read_back, strict=True):
            wp.copy(host, array)


def layout_of(soup: Soup) -> KeyLayout:
    """The layout of keys of pairs of the soup's faces."""
    return KeyLayout.of(soup.face_count, soup.face_count)
