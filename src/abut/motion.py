"""Motion: a mesh that moves from one shape or pose to another over one step."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.launch import launch
from abut.core.unknown_options import explain_methods
from abut.errors import MeshError, OptionError, PoseError
from abut.geometry.poses import (
    checked_poses,
    move_point,
    poses_between,
    rotated_by,
    rotation_vectors,
)
from abut.geometry.rigid_path import MotionPath
from abut.mesh import Mesh, require_meshes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PIECE_DEVIATION = 2.0**-9  # share of the reach of a rotating mesh; impacts are then refined
POSE_ROUNDING = 2.0**-46  # share of the largest coordinate
MIX_ROUNDING = 2.0**-50
LEAST_RIGID = 1e-290  # coordinates of a rigid motion: below, bounds of its rounding vanish


@dataclass(frozen=True)
class Piece:
    """A part of a motion in which all vertices move in straight lines.

    Attributes:
        points_t0, points_t1: Vertices at its start and at its end.
        bounds: (2, 3), of both.
        deviation: Largest distance of the true path from the straight one.
        place: Identifies the position of a mesh at rest; None for one that moves.
    """

    points_t0: wp.array
    points_t1: wp.array
    bounds: np.ndarray
    deviation: float = 0.0
    place: tuple[int, bytes] | None = None


@explain_methods
class Motion:
    """A mesh that moves over one step, from time 0 to time 1.

    Without poses, vertices move in straight lines from their present positions to ``end``. With
    poses the mesh is rigid: its frame moves from ``start_pose`` to ``end_pose`` with constant
    linear velocity of the origin and constant angular velocity, by the smaller rotation.

    Args:
        mesh: The mesh; its present shape is kept, even if it deforms later.
        end: (n, 3) float32 or float64, vertices at the end of the step, which are copied. With
            ``mesh.vertices`` the mesh is at rest, and keeps its hierarchies from query to query.
        start_pose, end_pose: Rigid motions (4, 4); a missing one is the identity. With equal ones
            the mesh is at rest too.

    Raises:
        MeshError: ``end`` does not fit the mesh or is not finite; a rigid motion is too small.
        PoseError: A pose is not a rigid motion.
        OptionError: Both ``end`` and poses, or neither.
    """

    def __init__(
        self, mesh: Mesh, end: Any = None, *, start_pose: Any = None, end_pose: Any = None
    ) -> None:
        require_meshes(mesh=mesh)
        if (end is None) == (start_pose is None and end_pose is None):
            raise OptionError(
                "a motion needs either end= or start_pose= and end_pose=; end=mesh.vertices keeps "
                "a mesh at rest."
            )
        self.mesh = mesh
        self.device = mesh.device
        self._points, self._bounds, self._lease = mesh.points, mesh.bounds, mesh.lease
        self._start = mesh.points
        self._poses = None
        self._is_straight = end is not None
        self._place: tuple[int, bytes] | None = None
        if end is None:
            self._take_poses(_one_pose(start_pose, "start_pose"), _one_pose(end_pose, "end_pose"))
        else:
            self._take_end(end)
            if self._is_at_rest():
                self._place = mesh.version, b""

    def __repr__(self) -> str:
        """Mesh, and how it moves."""
        return f"Motion({self.mesh!r}, {'end' if self._is_straight else 'start_pose, end_pose'})"

    def __getstate__(self) -> dict[str, Any]:
        """The mesh at the start, and its end."""
        mesh, poses, end = self.mesh, self._poses, None
        if self._start is not mesh.points:
            mesh = Mesh(self._start.numpy(), mesh.faces.numpy(), self.device)
        if self._place is not None and self._place[1]:
            poses = (np.frombuffer(self._place[1]).reshape(4, 4),) * 2
        elif self._place is None and poses is None:
            end = self._end_lease.vertices().numpy()
        return {"mesh": mesh, "poses": poses, "end": end}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the motion on the device of the mesh."""
        mesh, poses, end = state["mesh"], state["poses"], state["end"]
        if poses is not None:
            self.__init__(mesh, start_pose=poses[0], end_pose=poses[1])
        else:
            self.__init__(mesh, mesh.points if end is None else end)

    @cached_property
    def piece_count(self) -> int:
        """Number of straight pieces that keep the deviation from the true path small."""
        if self._poses is None or self._angle == 0.0:
            return 1
        return max(1, int(np.ceil(self._angle / np.sqrt(8.0 * PIECE_DEVIATION))))

    def pieces(self, count: int) -> Iterator[Piece]:
        """The motion in ``count`` straight pieces of equal duration."""
        if self._place is not None:
            still = Piece(self._points, self._points, self._bounds, place=self._place)
            yield from repeat(still, count)
            return
        if self._poses is None:
            if count == 1:
                yield Piece(self._points, self._end, self._both_bounds)
                return
            times = np.linspace(0.0, 1.0, count + 1)
            shapes = (self._mixed(t) for t in times)
        else:
            shapes = (self._posed(t) for t in np.linspace(0.0, 1.0, count + 1))
        points, bounds = next(shapes)
        for points_next, bounds_next in shapes:
            both = _union(bounds, bounds_next)
            yield Piece(points, points_next, both, self._deviation(count))
            points, bounds = points_next, bounds_next

    @property
    def start_points(self) -> wp.array:
        """Vertices at the start of the step."""
        return self._points if self._poses is None else self._posed(0.0)[0]

    @property
    def rotates(self) -> bool:
        """Whether the mesh rotates, so that vertices leave straight lines."""
        return self._poses is not None and self._angle > 0.0

    def true_path(self) -> tuple[wp.array, wp.array, Any]:
        """Points at start and end (of a rigid mesh both in its own frame), and their MotionPath."""
        path = MotionPath()
        if self._poses is None:
            path.rounding = wp.float64(MIX_ROUNDING * float(np.abs(self._both_bounds).max()))
            return self._points, self._end, path
        start, end = self._poses
        path.rigid = True
        path.rotation = wp.mat33d(*start[:3, :3].flatten())
        path.angle = wp.float64(self._angle)
        path.axis = wp.vec3d(*(self._vector / (self._angle or 1.0)))
        path.shift_t0, path.shift_t1 = wp.vec3d(*start[:3, 3]), wp.vec3d(*end[:3, 3])
        path.deviation = wp.float64(self._reach * self._angle**2 / 8.0)
        path.rounding = wp.float64(POSE_ROUNDING * self._far + self._reach * self._skew)
        return self._points, self._points, path

    def arrive(self) -> None:
        """Deform the mesh to ``end``, which the motion must have been given."""
        assert self._poses is None
        self.mesh.set_shape(self._end_lease, self._end_bounds)

    @cached_property
    def _reach(self) -> float:
        """Upper bound of the distance of vertices from the origin of the frame."""
        return float(np.hypot.reduce(np.abs(self._bounds).max(axis=0)))

    def _take_poses(self, start: np.ndarray, end: np.ndarray) -> None:
        self._poses = start, end
        if np.array_equal(start, end):
            self._points, self._bounds = self._posed(0.0)
            self._end, self._both_bounds = self._points, self._bounds
            self._poses, self._place = None, (self.mesh.version, start.tobytes())
        else:
            require_rigid_range(self._far)

    def _take_end(self, end: Any) -> None:
        if end is self._points:  # points of the mesh itself are not copied
            self._end_lease, self._end_bounds = self._lease, self._bounds
        else:
            end = to_plain(end)
            shape = (self.mesh.vertex_count, 3)
            if tuple(end.shape) != shape:
                raise MeshError(
                    f"the mesh has {shape[0]} vertices, so end needs shape {shape}, "
                    f"not {tuple(end.shape)}."
                )
            self._end_lease, self._end_bounds = self.mesh.checked_points(end, "end")
        self._end = self._end_lease.points
        self._both_bounds = _union(self._bounds, self._end_bounds)

    def _is_at_rest(self) -> bool:
        """Whether vertices end where they start. Compares points only where bounds are equal."""
        if self._end is self._points:
            return True
        same_bounds = np.array_equal(self._bounds, self._end_bounds)
        return same_bounds and same_points(self._points, self._end)

    @cached_property
    def _vector(self) -> np.ndarray:
        """Rotation vector: axis times angle."""
        assert self._poses is not None
        start, end = self._poses
        return rotation_vectors(start[None], end[None])[0]

    @cached_property
    def _angle(self) -> float:
        """Angle of the rotation, in [0, pi]."""
        return float(np.linalg.norm(self._vector))

    @cached_property
    def _skew(self) -> float:
        """Difference of the end pose from the rotated start pose, due to rounding."""
        assert self._poses is not None
        start, end = self._poses
        return float(np.linalg.norm(rotated_by(start[None], self._vector[None])[0] - end[:3, :3]))

    def _deviation(self, count: int) -> float:
        """Deviation of a piece: the reach times an eighth of its angle squared, and rounding."""
        if self._poses is None:
            return MIX_ROUNDING * float(np.abs(self._both_bounds).max()) if count > 1 else 0.0
        if self._angle == 0.0 and count == 1:
            return 0.0
        rounding = POSE_ROUNDING * (self._reach + self._far)
        return self._reach * ((self._angle / count) ** 2 / 8.0 + self._skew) + rounding

    @cached_property
    def _far(self) -> float:
        """Upper bound of coordinates during the motion."""
        assert self._poses is not None
        return self._reach + float(np.abs(np.stack(self._poses)[:, :3, 3]).max())

    def _mixed(self, t: float) -> tuple[wp.array, np.ndarray]:
        if t in (0.0, 1.0):
            return (self._end if t else self._points), self._both_bounds
        return mixed_points(self._points, self._end, t), self._both_bounds

    def _posed(self, t: float) -> tuple[wp.array, np.ndarray]:
        assert self._poses is not None
        start, end = self._poses
        poses = poses_between(start[None], end[None], self._vector[None], t)
        points, pose = placed_points(self._points, poses), poses[0]
        corners = np.stack(np.meshgrid(*self._bounds.T, indexing="ij"), axis=-1).reshape(-1, 3)
        moved = corners @ pose[:3, :3].T + pose[:3, 3]
        slack = 2.0**-40 * np.abs(self._bounds).max() + 2.0**-40 * np.abs(moved).max()
        return points, np.array([moved.min(axis=0) - slack, moved.max(axis=0) + slack])


@wp.kernel
def place_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    owners: wp.array[wp.int32],
    poses: wp.array[wp.mat44d],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Move each point by the pose of its owner, or all by the first pose where none is named."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        owner = wp.int32(0)
        if owners.shape[0] > 0:
            owner = owners[i]
        points_out[i] = move_point(poses[owner], points[i])


def placed_points(points: wp.array, poses: np.ndarray, owners: wp.array | None = None) -> wp.array:
    """Points moved by poses (k, 4, 4): each by the one of its owner, or all by the only one."""
    device, out = points.device, wp.empty_like(points)
    if owners is None:
        owners = wp.empty(0, dtype=wp.int32, device=device)
    motions = wp.array(poses, dtype=wp.mat44d, device=device)
    launch(place_kernel, points.shape[0], [points, owners, motions, out], device)
    return out


@wp.kernel
def mix_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    t: wp.float64,
    # out
    points_out: wp.array[wp.vec3d],
):
    """Interpolate points, rounded; not beyond either end."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        points_out[i] = (wp.float64(1.0) - t) * points_t0[i] + t * points_t1[i]


def mixed_points(points_t0: wp.array, points_t1: wp.array, t: float) -> wp.array:
    """Positions at a time of points that move in straight lines."""
    points = wp.empty_like(points_t0)
    args = [points_t0, points_t1, wp.float64(t), points]
    launch(mix_kernel, points.shape[0], args, points.device)
    return points


@wp.kernel
def differ_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    others: wp.array[wp.vec3d],
    # out
    differ_out: wp.array[wp.int32],
):
    """Set a flag where any two points differ."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if not (points[i] == others[i]):
            differ_out[0] = 1


def same_points(points: wp.array, others: wp.array) -> bool:
    """Whether two arrays hold the same points. Waits for the device."""
    differ = wp.zeros(1, dtype=wp.int32, device=points.device)
    launch(differ_kernel, points.shape[0], [points, others, differ], points.device)
    return not differ.numpy()[0]


def require_rigid_range(largest: float) -> None:
    """Refuse a rigid motion whose largest coordinate is tiny."""
    if 0.0 < largest < LEAST_RIGID:
        raise MeshError(
            f"rigid motions need coordinates from {LEAST_RIGID:g} up, not {largest:.6g}; "
            "scale the mesh."
        )


def _one_pose(pose: Any, name: str) -> np.ndarray:
    poses = checked_poses(pose, name)
    if poses is None:
        return np.eye(4)
    if len(poses) != 1:
        raise PoseError(f"{name} must be one pose (4, 4), not a batch of {len(poses)}.")
    return poses[0]


def _union(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])
