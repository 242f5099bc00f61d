"""Corners of pairs of faces of a scene."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.operands.posed_mesh import load_face, make_posed_mesh
from abut.operands.posed_pairs import ScenePairs, object_mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def corner_kernel(
    # in
    span: wp.vec3i,
    pairs: ScenePairs,
    environment: wp.array[wp.int32],
    objects: wp.array2d[wp.int32],
    faces: wp.array2d[wp.int32],
    first_b: wp.int32,
    # out
    a_out: wp.array[wp.vec3d],
    b_out: wp.array[wp.vec3d],
):
    """Corners of pairs of faces at their poses; of faces of one object, in its own frame."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        first = wp.int32(0)
        if environment.shape[0] > 0:
            first = environment[i] * pairs.object_count
        object_a = objects[i, 0]
        object_b = objects[i, 1] + first_b
        posed = object_a != object_b
        slice_a = pairs.bvhs.slices[pairs.mesh[object_a]]
        slice_b = pairs.bvhs.slices[pairs.mesh[object_b]]
        a = load_face(object_mesh(pairs, slice_a, first + object_a, posed), faces[i, 0], 0)
        b = load_face(object_mesh(pairs, slice_b, first + object_b, posed), faces[i, 1], 0)
        for k in range(3):
            a_out[3 * i + k] = a[k]
            b_out[3 * i + k] = b[k]


class PairSides:
    """Pairs of faces of a scene as two meshes whose faces correspond, at the poses of the time.

    Args:
        view: ScenePairs.
        objects, faces: (n, 2), objects and faces of each pair.
        environment: (n,), environment of each pair; None where there is one.
        poses: Poses of all objects; None takes those of the view.
        first_b: Object that the second column counts from.

    Attributes:
        a, b: Make the PosedMesh of each side; pair k is face k of both.
        pairs: (n, 2), k and k.
    """

    def __init__(
        self,
        view: Any,
        objects: wp.array,
        faces: wp.array,
        environment: wp.array | None = None,
        poses: wp.array | None = None,
        first_b: int = 0,
    ) -> None:
        device, count = faces.device, faces.shape[0]
        corners = [wp.empty(3 * count, dtype=wp.vec3d, device=device) for _ in range(2)]
        if count:
            if environment is None:
                environment = wp.empty(0, dtype=wp.int32, device=device)
            held = view.poses
            view.poses = held if poses is None else poses
            args = [view, environment, objects, faces, first_b, *corners]
            launch(corner_kernel, count, args, device)
            view.poses = held
        rows = np.arange(3 * count, dtype=np.int32)
        indices = wp.array(rows.reshape(-1, 3), dtype=wp.vec3i, device=device)
        self.pairs = wp.array(np.stack([rows[:count], rows[:count]], axis=1), device=device)
        self.a, self.b = (partial(make_posed_mesh, points, indices) for points in corners)
