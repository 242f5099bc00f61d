"""The corners of pairs of faces of many objects, each pair as two meshes of one face."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.crowd import Crowd, meeting_at, search_of
from abut.faces import load_face, posed_faces
from abut.pairs import unpack_pair
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def corner_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    keys: wp.array[wp.int64],
    # out
    a_out: wp.array[wp.vec3d],
    b_out: wp.array[wp.vec3d],
):
    """Corners where poses have put them."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], crowd.bits)
        search = search_of(crowd, meeting_at(crowd, row[0]))
        a = load_face(search.a, row[1], 0)
        b = load_face(search.b, row[2], 0)
        for k in range(3):
            a_out[3 * i + k] = a[k]
            b_out[3 * i + k] = b[k]


class PairSides:
    """Pairs of faces where they are now, for those who measure pairs of two meshes.

    Args:
        crowd: The crowd, whose meetings and poses may be others by now.
        meetings: The sorted keys of meetings when the pairs were found.
        keys: The pairs.
        poses: Poses at that time; None: they are the same.

    Attributes:
        a, b: Make the faces of the two sides; pair k is face k of each.
        pairs: (n, 2), k and k.
    """

    def __init__(
        self, crowd: Any, meetings: wp.array, keys: Any, poses: wp.array | None = None
    ) -> None:
        device, count = meetings.device, len(keys)
        corners = [wp.empty(3 * count, dtype=wp.vec3d, device=device) for _ in range(2)]
        if count:
            held = wp.array(keys, dtype=wp.int64, device=device)
            then = crowd.meetings.keys, crowd.poses
            crowd.meetings.keys, crowd.poses = meetings, then[1] if poses is None else poses
            launch(corner_kernel, count, [crowd, held, *corners], device)
            crowd.meetings.keys, crowd.poses = then
        numbers = np.arange(count, dtype=np.int32)
        faces = wp.array(
            np.arange(3 * count, dtype=np.int32).reshape(-1, 3), dtype=wp.vec3i, device=device
        )
        self.pairs = wp.array(np.stack([numbers, numbers], axis=1), device=device)
        self.a, self.b = (_later(points, faces) for points in corners)


def _later(points: wp.array, faces: wp.array) -> Callable[[], Any]:
    return lambda: posed_faces(points, faces)
