"""OnePoint: a mesh prepared for questions about its closest point to one point."""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import max_abs
from abut.bvh.layout import Bvh
from abut.core.call import Call
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import PairQueue, PairQueues
from abut.geometry.poses import is_rigid, translation_of
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Sign
from abut.point.each_face import least_distance_kernel, lowest_face_kernel
from abut.point.nearest_face import NO_FACE, nearest_face_kernel
from abut.point.signed_distance import closest_points_kernel
from abut.query.points import HIGH, empty_order, search_bound
from abut.query.signs import sign_launches
from abut.results import ClosestPoints

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FARTHEST = wp.constant(wp.float64(HIGH))


@wp.kernel
def check_one_point_kernel(
    # in
    span: wp.vec3i,
    given: wp.array[wp.vec3d],
    given_poses: wp.array[wp.mat44d],
    bound: wp.float64,
    # out
    points_out: wp.array[wp.vec3d],
    poses_out: wp.array[wp.mat44d],
    least_out: wp.array[wp.int64],
    undecided_out: PairQueue,
    face_out: wp.array2d[wp.int32],
    usual_out: wp.array[wp.int32],
):
    """Copy a point and a pose for the search, unless they are not finite, not rigid or huge."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        usual = wp.isfinite(given[i]) and max_abs(given[i]) <= FARTHEST
        if given_poses.shape[0] > 0:
            pose = given_poses[i]
            usual = usual and is_rigid(pose) and max_abs(translation_of(pose)) <= FARTHEST
            poses_out[i] = wp.identity(n=4, dtype=wp.float64)
            if usual:
                poses_out[i] = pose
        points_out[i] = wp.where(usual, given[i], wp.vec3d())
        least_out[i] = wp.cast(bound, wp.int64)
        undecided_out.count[i] = wp.int64(0)
        face_out[0, i] = NO_FACE
        usual_out[i] = wp.where(usual, 1, 0)


class OnePoint:
    """A mesh prepared for questions about its closest point to one point.

    Args:
        mesh: The mesh, in its present shape, ``needs_no_unit``.
        tree: Its hierarchy.
        wide: The wide nodes of the hierarchy.
        posed: Whether the mesh has a pose.
        upper_bound: Points farther away have no closest point.
        sign: Sign method; None for unsigned distances.
        each_face: Measure every face, many at once, instead of a search; None: on CUDA.
    """

    def __init__(
        self,
        mesh: Mesh,
        tree: Bvh,
        wide: wp.array,
        posed: bool,
        upper_bound: float = np.inf,
        sign: Sign | None = None,
        each_face: bool | None = None,
    ) -> None:
        self._device, self._sign = mesh.device, sign
        given, points = self._zeros(wp.vec3d), self._zeros(wp.vec3d)
        given_poses, poses = (self._zeros(wp.mat44d, int(posed)) for _ in range(2))
        side = make_posed_mesh(mesh.points, mesh.faces)
        if posed:
            side.poses, side.pose_count = poses, 1
        answer = self._zeros(wp.float64, 8)
        distance, point, weights, face, usual = _parts(answer)
        bound, least = search_bound(mesh, upper_bound), self._zeros(wp.int64)
        order, undecided = empty_order(self._device), PairQueues(self._device, points=1)["points"]
        check = [given, given_poses, bound, points, poses, least, undecided, face, usual]
        launches = [(check_one_point_kernel, 1, check)]
        if mesh.device.is_cuda if each_face is None else each_face:
            count = mesh.face_count
            launches.append((least_distance_kernel, count, [points, side, least]))
            launches.append((lowest_face_kernel, count, [points, side, least, face]))
        else:
            search = [points, order, side, wp.vec3d(*tree.origin), wide, bound, face]
            launches.append((nearest_face_kernel, 1, search))
        feet = [points, side, wp.float64(upper_bound), face, distance, point, weights]
        launches.append((closest_points_kernel, 1, feet))
        if sign is not None:
            found = face, weights, distance
            signing = sign_launches(mesh, points, order, side, sign, *found, undecided)
            launches += [(kernel, 1, args) for kernel, _, args in signing]
        tasks = [Task(k, n, args, self._device, grain=UNKNOWN_COUNT) for k, n, args in launches]
        self._call = Call(tasks, [given, given_poses] if posed else [given], [answer])
        self._point_view, *self._pose_view = (view[0] for view in self._call.inputs)
        self._numbers_view = self._call.outputs[0][:7]
        self._ints_view = self._call.outputs[0][7:].view(np.int32)

    def ask(self, point: np.ndarray, pose: np.ndarray | None) -> ClosestPoints | None:
        """Return the answer for a point; None if it, or the pose, is not a usual one."""
        self._point_view[:] = point
        for view in self._pose_view:
            view[:] = pose
        self._call.run()
        face, usual = self._ints_view.tolist()
        if not usual:
            return None
        distance, *numbers = self._numbers_view.tolist()
        rows = (distance,), numbers[:3], (face,), numbers[3:]
        return ClosestPoints(*rows, self._sign, self._device)

    def _zeros(self, dtype: Any, count: int = 1) -> wp.array:
        return wp.zeros(count, dtype=dtype, device=self._device)


def _parts(answer: wp.array) -> list[wp.array]:
    """Distance, point, weights, face and whether the question was usual, in eight float64."""
    assert answer.ptr is not None
    parts = [(wp.float64, 0, (1, 1)), (wp.vec3d, 8, (1, 1)), (wp.vec3d, 32, (1, 1))]
    parts += [(wp.int32, 56, (1, 1)), (wp.int32, 60, (1,))]
    return [
        wp.array(ptr=answer.ptr + at, dtype=dtype, shape=shape, device=answer.device)
        for dtype, at, shape in parts
    ]
