"""The corners of pairs of faces of many objects, each pair as two meshes of one face."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.operands.posed_mesh import load_face, make_posed_mesh
from abut.operands.scene_pairs import Crowd, side_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def corner_kernel(
    # in
    span: wp.vec3i,
    crowd: Crowd,
    copy: wp.array[wp.int32],
    objects: wp.array2d[wp.int32],
    pairs: wp.array2d[wp.int32],
    # out
    a_out: wp.array[wp.vec3d],
    b_out: wp.array[wp.vec3d],
):
    """Corners where poses have put them; those of one object in its own frame."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        first = wp.int32(0)
        if copy.shape[0] > 0:
            first = copy[i] * crowd.object_count
        own = objects[i, 0] == objects[i, 1]
        body_a = crowd.forest.slices[crowd.body[objects[i, 0]]]
        body_b = crowd.forest.slices[crowd.body[objects[i, 1]]]
        a = load_face(side_of(crowd, body_a, first + objects[i, 0], own), pairs[i, 0], 0)
        b = load_face(side_of(crowd, body_b, first + objects[i, 1], own), pairs[i, 1], 0)
        for k in range(3):
            a_out[3 * i + k] = a[k]
            b_out[3 * i + k] = b[k]


class PairSides:
    """Pairs of faces where they are, for those who measure pairs of two meshes.

    Args:
        crowd: The crowd.
        objects, pairs: (n, 2), objects and faces of each pair.
        copy: (n,), the copy of the scene; None: there is one.
        poses: Poses at the time; None: those of the crowd.

    Attributes:
        a, b: Make the faces of the two sides; pair k is face k of each.
        pairs: (n, 2), k and k.
    """

    def __init__(
        self,
        crowd: Any,
        objects: wp.array,
        pairs: wp.array,
        copy: wp.array | None = None,
        poses: wp.array | None = None,
    ) -> None:
        device, count = pairs.device, pairs.shape[0]
        corners = [wp.empty(3 * count, dtype=wp.vec3d, device=device) for _ in range(2)]
        if count:
            if copy is None:
                copy = wp.empty(0, dtype=wp.int32, device=device)
            held = crowd.poses
            crowd.poses = held if poses is None else poses
            launch(corner_kernel, count, [crowd, copy, objects, pairs, *corners], device)
            crowd.poses = held
        numbers = np.arange(count, dtype=np.int32)
        faces = wp.array(
            np.arange(3 * count, dtype=np.int32).reshape(-1, 3), dtype=wp.vec3i, device=device
        )
        self.pairs = wp.array(np.stack([numbers, numbers], axis=1), device=device)
        self.a, self.b = (_later(points, faces) for points in corners)


def _later(points: wp.array, faces: wp.array) -> Callable[[], Any]:
    return lambda: make_posed_mesh(points, faces)
