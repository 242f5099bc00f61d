"""Rows of a scene's answers: environments, objects and faces, unpacked from keys."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import Task, launch
from abut.core.pair_queue import KeyLayout, PairQueues, unpack_pair
from abut.core.pair_sort import PaddedSort

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@dataclass(frozen=True, eq=False, repr=False)
class ObjectRows:
    """Rows of a result about pairs of objects.

    Attributes:
        objects: (n, 2) int32, the objects of each pair: one of ``which``, then one of ``against``;
            where both may come first, the lower one. Twice the same one where an object meets
            itself. Objects of another scene have their indices there; a mesh has 0.
    """

    objects: wp.array = field(kw_only=True)

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        rows: Any = super()
        return {"objects": self.objects.numpy(), **rows.numpy()}


@wp.struct
class Rows:
    """Environment, objects and faces of each pair of faces."""

    environments: wp.array[wp.int32]
    objects: wp.array2d[wp.int32]
    pairs: wp.array2d[wp.int32]


@wp.func
def write_row(
    rows: Rows,
    at: wp.int32,
    object_pair: wp.int64,
    faces: wp.vec3i,
    layouts: wp.vec4i,
    first_external: wp.int32,
):
    """Write the row of the key of an object pair and an unpacked key of faces."""
    pair = unpack_pair(object_pair, wp.vec2i(layouts[0], layouts[1]))
    rows.environments[at] = pair[0]
    rows.objects[at, 0] = pair[1]
    rows.objects[at, 1] = pair[2] - first_external
    rows.pairs[at, 0] = faces[1]
    rows.pairs[at, 1] = faces[2]


@wp.kernel
def row_kernel(
    # in
    span: wp.vec3i,
    object_pairs: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    count: wp.array[wp.int64],
    layouts: wp.vec4i,
    first_external: wp.int32,
    # out
    rows_out: Rows,
):
    """Unpack keys (rank of an object pair, faces), ``count`` of them where it is given.

    ``layouts`` as in ``layouts_of``.
    """
    stop = span[1]
    if count.shape[0] > 0:
        stop = wp.int32(wp.min(count[0], wp.int64(stop)))
    for i in range(span[0] + wp.tid(), stop, span[2]):
        row = unpack_pair(keys[i], wp.vec2i(layouts[2], layouts[3]))
        write_row(rows_out, i, object_pairs[row[0]], row, layouts, first_external)


class RowsAhead:
    """Sorts and unpacks hits on CUDA before the host knows how many there are.

    Args:
        queues: Queues of a search.
        objects, layout: Bits of keys that objects take, and faces.
        first_external: As in Part.
        size: Rows to make; more hits have to be unpacked anew.
    """

    def __init__(
        self,
        queues: PairQueues,
        objects: KeyLayout,
        layout: KeyLayout,
        first_external: int,
        size: int,
    ) -> None:
        self.size, self._device = size, queues.device
        object_pairs = queues["objects"].keys
        width = layout.width + max(object_pairs.shape[0] - 1, 1).bit_length()
        self._sort = PaddedSort(queues["hits"], size, width)
        sorted_hits = self._sort.queue
        args = [object_pairs, sorted_hits.keys, sorted_hits.count, layouts_of(objects, layout)]
        args += [first_external, empty_rows(0, self._device)]
        self._unpack = Task(row_kernel, size, args, self._device)

    def start(self) -> tuple[wp.array, wp.array, wp.array]:
        """(environments, objects, faces) of the rows, once the device has finished."""
        rows = empty_rows(self.size, self._device)
        self._sort.run()
        self._unpack.set_arg(5, rows)
        self._unpack.run()
        return rows.environments, rows.objects, rows.pairs


def layouts_of(objects: KeyLayout, layout: KeyLayout) -> wp.vec4i:
    """Bits of keys that objects take, and faces, as kernels take them."""
    return wp.vec4i(objects.bits_a, objects.bits_b, layout.bits_a, layout.bits_b)


def empty_rows(count: int, device: wp.Device) -> Any:
    """Allocate rows."""
    rows = Rows()
    rows.environments = wp.empty(count, dtype=wp.int32, device=device)
    rows.objects, rows.pairs = (
        wp.empty((count, 2), dtype=wp.int32, device=device) for _ in range(2)
    )
    return rows


def object_rows(
    object_pairs: wp.array,
    keys: Any,
    objects: KeyLayout,
    layout: KeyLayout,
    first_external: int,
    device: wp.Device,
) -> tuple[wp.array, wp.array, wp.array]:
    """((n,) environments, (n, 2) objects, (n, 2) faces) of keys, of NumPy or of the device."""
    count = len(keys)
    if isinstance(keys, np.ndarray):
        keys = wp.array(keys, dtype=wp.int64, device=device)
    rows = empty_rows(count, device)
    all_of_them = wp.empty(0, dtype=wp.int64, device=device)
    args = [object_pairs, keys, all_of_them, layouts_of(objects, layout), first_external, rows]
    launch(row_kernel, count, args, device, grain=1 << 15)
    return rows.environments, rows.objects, rows.pairs
