"""Keys of faces and of meetings as rows."""

from typing import Any

import numpy as np
import warp as wp

from abut.pairs import KeyLayout, unpack_pair
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def row_kernel(
    # in
    span: wp.vec3i,
    meetings: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    object_bits: wp.vec2i,
    bits: wp.vec2i,
    # out
    copy_out: wp.array[wp.int32],
    objects_out: wp.array2d[wp.int32],
    pairs_out: wp.array2d[wp.int32],
):
    """Unpack keys (rank of a meeting, faces)."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], bits)
        met = unpack_pair(meetings[row[0]], object_bits)
        copy_out[i] = met[0]
        objects_out[i, 0] = met[1]
        objects_out[i, 1] = met[2]
        pairs_out[i, 0] = row[1]
        pairs_out[i, 1] = row[2]


def object_rows(
    meetings: wp.array, keys: Any, objects: KeyLayout, layout: KeyLayout, device: wp.Device
) -> tuple[wp.array, wp.array, wp.array]:
    """((n,) copies, (n, 2) objects, (n, 2) faces) of keys, of NumPy or of the device."""
    count = len(keys)
    if isinstance(keys, np.ndarray):
        keys = wp.array(keys, dtype=wp.int64, device=device)
    copy = wp.empty(count, dtype=wp.int32, device=device)
    rows = [wp.empty((count, 2), dtype=wp.int32, device=device) for _ in range(2)]
    args = [meetings, keys, objects.bits, layout.bits, copy, *rows]
    launch(row_kernel, count, args, device, grain=1 << 15)
    return copy, rows[0], rows[1]
