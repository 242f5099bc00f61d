"""What a culling leaves, brought together on the device."""

import operator
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bvh.layout import with_integer
from abut.core.launch import Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.operands.soup import Soup
from abut.options import Level
from abut.visibility.adjacency import fold_kernel, neighbours_of
from abut.visibility.settings import Settings
from abut.visibility.state import BOTH, Primitives, primitive_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

GROWN = wp.constant(wp.float32(2.0**-22))  # more than float32 loses when something is added
LEAST_EXPECTED = 256  # faces


@wp.kernel
def keep_kernel(
    # in
    span: wp.vec3i,
    primitives: Primitives,
    folded: wp.array[wp.int32],
    # out
    kept_out: wp.array[wp.int32],
):
    """1 for faces that are left; those folded over a neighbour are, whatever the views say."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        left = primitives.state[primitive_of(primitives, i)] != BOTH
        if folded.shape[0] > 0:
            left = left or folded[i] != 0
        kept_out[i] = wp.where(left, 1, 0)


@wp.kernel
def gather_kernel(
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
    """Faces that are left, side by side: of the soup, and as rows (object, face of it)."""
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
def box_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    primitives: Primitives,
    wanted: wp.array[wp.int32],
    count: wp.array[wp.int64],
    around: wp.float32,
    # out
    boxes_out: wp.array2d[wp.vec4f],
):
    """Boxes of faces, with something around them; with each its face, and the set that is in.

    Relative to a corner of the first.
    """
    for i in range(span[0] + wp.tid(), wp.min(span[1], wp.int32(count[0])), span[2]):
        face = wanted[i]
        f = faces[face]
        origin = points[faces[wanted[0]][0]]
        low, high = fit_aabb(points[f[0]], points[f[1]], points[f[2]], origin)
        if around > wp.float32(0.0):
            margin = wp.vec3f(around, around, around)
            grown = (wp.max(wp.abs(low), wp.abs(high)) + margin) * GROWN
            low = low - margin - grown
            high = high + margin + grown
        boxes_out[i, 0] = with_integer(low, face)
        boxes_out[i, 1] = with_integer(high, primitives.state[primitive_of(primitives, face)])


class Survivors:
    """Faces and objects that a culling leaves, and neighbours that may be folded over.

    Attributes:
        count, fold_count: Number of faces left and of pairs of neighbours, once read.
    """

    def __init__(self, soup: Soup, settings: Settings) -> None:
        self.soup, self.settings, self.device = soup, settings, soup.device
        self.count = self.fold_count = 0
        faces, objects, device = soup.face_count, soup.object_count, soup.device
        self._kept = wp.empty(faces, dtype=wp.int32, device=device)
        self._places = wp.empty(faces, dtype=wp.int32, device=device)
        self._gathered = wp.empty(faces, dtype=wp.int32, device=device)
        self._boxes = wp.empty((faces, 2), dtype=wp.vec4f, device=device)
        self._rows = wp.empty(faces, dtype=wp.vec2i, device=device)
        self._objects = wp.zeros(objects, dtype=wp.int32, device=device)
        self._first_face = wp.array(soup.first_face[:-1].astype(np.int32), device=device)
        self._count = wp.zeros(1, dtype=wp.int64, device=device)
        self._folded = wp.zeros(faces if settings.within else 0, dtype=wp.int32, device=device)
        self._folds = PairQueues(device, pairs=max(1024, faces // 4) if settings.within else 1)
        self._told = self._hosts = [self._count, self._objects, self._folds.counts]
        if device.is_cuda:
            self._hosts = [wp.zeros_like(x, device="cpu", pinned=True) for x in self._told]
        self._recorded: tuple[Any, ...] = ()
        self._ahead = device.is_cuda
        self._expected = 0  # faces, by the last answers
        self._copies: list[wp.array] | None = None

    def start(self, primitives: Any) -> None:
        """Gather what is left by the states of primitives; does not wait for the device."""
        pairs = neighbours_of(self.soup).pairs if self.settings.within else None
        about = (primitives.state, self._folds.generation, pairs)
        if not self._recorded or not all(map(operator.is_, about, self._recorded)):
            self._record(primitives, pairs)
            self._recorded = about
        self._objects.zero_()
        if self.settings.within:
            self._folded.zero_()
            self._folds.clear()
            self._fold.run()
        self._keep.run()
        wp.utils.array_scan(self._kept, self._places, inclusive=False)
        self._gather.run()
        self._box.run()
        if self.device.is_cuda:
            for host, array in zip(self._hosts, self._told, strict=True):
                wp.copy(host, array)

    def read(self) -> bool:
        """Learn how much there is; False when folds had no room and ``start`` must be repeated.

        The device must have finished.
        """
        self.count, self.fold_count = (int(self._hosts[k].numpy()[0]) for k in (0, 2))
        more = self.count + self.count // 4 + LEAST_EXPECTED
        self._expected = min(max(more, self._expected * 7 // 8), self.soup.face_count)
        return not self._folds.make_room({"pairs": self.fold_count})

    def copy_ahead(self) -> None:
        """On CUDA, begin to copy as much as is expected while the device is busy."""
        self._copies = None
        if self._ahead and self._expected:
            arrays = self._rows, self._boxes
            self._copies = [wp.clone(array[: self._expected]) for array in arrays]

    @property
    def rows(self) -> wp.array:
        """(n, 2) int32 Rows (object, face) that are left."""
        return self._copied(0, self._rows).view(wp.int32)

    @property
    def boxes(self) -> wp.array:
        """(n, 2) vec4f Their boxes, see ``box_kernel``."""
        return self._copied(1, self._boxes)

    def _copied(self, which: int, array: wp.array) -> wp.array:
        if self._copies is not None and self.count <= self._copies[which].shape[0]:
            return self._copies[which][: self.count]
        return wp.clone(array[: self.count])

    @property
    def fold_keys(self) -> wp.array:
        """(m,) int64 Keys of pairs of neighbours that may be folded over."""
        return wp.clone(self._folds["pairs"].keys[: self.fold_count])

    @property
    def objects(self) -> np.ndarray:
        """Objects of these faces, ascending."""
        return np.flatnonzero(self._hosts[1].numpy()).astype(np.int32)

    def _record(self, primitives: Any, neighbours: wp.array | None) -> None:
        soup, device = self.soup, self.device
        count = soup.face_count
        self._keep = Task(keep_kernel, count, [primitives, self._folded, self._kept], device)
        args = [self._kept, self._places, soup.object_of, self._first_face]
        args += [self._gathered, self._rows, self._objects, self._count]
        self._gather = Task(gather_kernel, count, args, device)
        with np.errstate(over="ignore"):  # beyond float32 everything is near
            around = np.nextafter(np.float32(self.settings.distance / 2), np.float32(np.inf))
        args = [soup.points, soup.faces, primitives, self._gathered, self._count]
        args += [float(around) if self.settings.distance else 0.0, self._boxes]
        self._box = Task(box_kernel, count, args, device)
        if neighbours is not None:
            args = [soup.view, soup.object_of, neighbours, self.settings.sharing]
            args += [layout_of(soup).bits, self._folded, self._folds["pairs"]]
            self._fold = Task(fold_kernel, neighbours.shape[0], args, device, grain=512)


def layout_of(soup: Soup) -> KeyLayout:
    """How pairs of the soup's faces are packed."""
    return KeyLayout.of(soup.face_count, soup.face_count)


def primitives_of(soup: Soup, level: Level, states: tuple[wp.array, wp.array], hidden: Any) -> Any:
    """The struct for kernels; ``states`` are those of objects and of faces."""
    out = Primitives()
    out.by_object = level is Level.OBJECT
    out.state = states[0] if out.by_object else states[1]
    out.hidden_first, out.hidden_second = hidden
    out.object_of = soup.object_of
    return out
