"""Soup: the posed faces of many meshes in one set of arrays."""

import math
import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import require_same_device
from abut.core.launch import Task, launch
from abut.errors import MeshError, PoseError
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh
from abut.motion import place_kernel
from abut.operands.posed_mesh import make_posed_mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROUNDING = 2.0**-50  # of a posed point, relative to the summands


@wp.kernel
def gather_faces_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    first_point: wp.int32,
    owner: wp.int32,
    # out
    faces_out: wp.array[wp.vec3i],
    object_out: wp.array[wp.int32],
):
    """Write the faces of one mesh as faces of the soup."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        f = faces[i]
        faces_out[i] = wp.vec3i(f[0] + first_point, f[1] + first_point, f[2] + first_point)
        object_out[i] = owner


class Soup:
    """Faces of many meshes in one frame. Face ``first_face[i] + f`` is face f of object i.

    It follows its meshes: one launch moves all points, and a mesh that deformed is copied again.

    Attributes:
        points: (n,) Corners as posed, float64.
        faces: (m,) Indices into ``points``.
        object_of: (m,) int32, the object of each face; ascending.
        first_face: (k + 1,) First face of each object, on the host.
        bounds: (2, 3) A box around all points.
        rounding: Upper bound of the distance of points from their exact positions; a power of two,
            or 0 where no object is posed.
        moves: Number of times that the points were rewritten.
    """

    def __init__(self, meshes: Sequence[Mesh]) -> None:
        self.device = device = require_same_device(*meshes)
        self._meshes = [weakref.ref(mesh) for mesh in meshes]
        self._versions = [-1] * len(meshes)
        self._first_point = np.cumsum([0, *(m.vertex_count for m in meshes)])
        self.first_face = np.cumsum([0, *(m.face_count for m in meshes)])
        point_count, face_count = int(self._first_point[-1]), int(self.first_face[-1])
        if max(point_count, face_count) >= 2**30:
            raise MeshError(f"{face_count} faces are too many to look at together.")
        self.points = wp.empty(point_count, dtype=wp.vec3d, device=device)
        self.faces = wp.empty(face_count, dtype=wp.vec3i, device=device)
        self.object_of = wp.empty(face_count, dtype=wp.int32, device=device)
        self._gather_faces(meshes)
        self.bounds = np.zeros((2, 3))
        self.rounding = 0.0
        self.moves = 0
        self._local_points = wp.empty(point_count, dtype=wp.vec3d, device=device)
        self._local_bounds = np.zeros((len(meshes), 2, 3))
        owners = np.repeat(np.arange(len(meshes), dtype=np.int32), np.diff(self._first_point))
        owners = wp.array(owners, dtype=wp.int32, device=device)
        self._poses = wp.zeros(len(meshes), dtype=wp.mat44d, device=device)
        self._last_poses: Any = ()  # as passed to the last call
        self._placement: tuple[np.ndarray, np.ndarray] | None = None
        args = [self._local_points, owners, self._poses, self.points]
        self._pose_task = Task(place_kernel, point_count, args, device)

    @property
    def meshes(self) -> list[Mesh | None]:
        """Its meshes; None for one that is gone."""
        return [known() for known in self._meshes]

    @property
    def object_count(self) -> int:
        """Number of objects."""
        return len(self.first_face) - 1

    @property
    def face_count(self) -> int:
        """Number of faces."""
        return self.faces.shape[0]

    @cached_property
    def view(self) -> Any:
        """The faces as kernels receive them, already posed."""
        return make_posed_mesh(self.points, self.faces)

    @cached_property
    def local_view(self) -> Any:
        """The faces, each in the frame of its object."""
        return make_posed_mesh(self._local_points, self.faces)

    def rows(self, faces: np.ndarray) -> np.ndarray:
        """Return (n, 2) int32 rows (object, face of it) of faces of the soup."""
        owners = np.searchsorted(self.first_face, faces, side="right") - 1
        return np.stack([owners, faces - self.first_face[owners]], axis=1).astype(np.int32)

    def pair_rows(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n, 2) objects, (n, 2) faces of them) int32 of pairs of faces of the soup."""
        sides = np.stack([self.rows(low), self.rows(high)], axis=2)
        return sides[:, 0], sides[:, 1]

    def update(self, meshes: Sequence[Mesh], poses: Any) -> None:
        """Take the present shapes of the meshes, and pose them."""
        known = self._at_poses(poses)
        placement = self._placement if known else _checked(poses, len(meshes))
        if self._copy_deformed(meshes) and known:
            return
        assert placement is not None
        if not known:
            self._placement = placement
            self._last_poses = None if poses is None else ()
            if isinstance(poses, np.ndarray):
                self._last_poses = poses.copy()
            self._poses.assign(placement[0])
        self.moves += 1
        self._pose_task.run()
        filled = np.diff(self._first_point) > 0
        boxes, motions, moved = (x[filled] for x in (self._local_bounds, *placement))
        self.bounds = _bounds(boxes, motions, moved)
        self.rounding = _rounding(boxes, motions)

    def _gather_faces(self, meshes: Sequence[Mesh]) -> None:
        for i, mesh in enumerate(meshes):
            faces = slice(*self.first_face[i : i + 2].tolist())
            if mesh.face_count:
                out = [self.faces[faces], self.object_of[faces]]
                args = [mesh.faces, int(self._first_point[i]), i, *out]
                launch(gather_faces_kernel, mesh.face_count, args, self.device)

    def _at_poses(self, poses: Any) -> bool:
        """Return whether the objects are at these poses already."""
        if isinstance(poses, np.ndarray) and isinstance(self._last_poses, np.ndarray):
            return np.array_equal(poses, self._last_poses)
        return poses is None and self._last_poses is None

    def _copy_deformed(self, meshes: Sequence[Mesh]) -> bool:
        """Copy the points of meshes that have deformed; return whether none has."""
        if self._versions == [mesh.version for mesh in meshes]:
            return True
        for i, mesh in enumerate(meshes):
            version = mesh.version  # before its points: another thread may deform it meanwhile
            if self._versions[i] != version:
                points = slice(*self._first_point[i : i + 2].tolist())
                if mesh.vertex_count:
                    wp.copy(self._local_points[points], mesh.points)
                self._local_bounds[i] = mesh.bounds
                self._versions[i] = version
        return False


def soup_of(meshes: Sequence[Mesh], poses: Any = None) -> Soup:
    """Return the posed faces of meshes, cached with the first mesh.

    Args:
        meshes: Meshes on one device, at least one.
        poses: A rigid motion or None for each; (n, 4, 4) moves all.
    """
    cached: list[Soup] = meshes[0].cache.setdefault("soups", [])
    soup = next((known for known in cached if known.meshes == [*meshes]), None)  # by identity
    if soup is None:
        soup = Soup(meshes)
        cached[:] = [soup, *cached[:1]]
    soup.update(meshes, poses)
    return soup


def _checked(poses: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n, 4, 4) poses, (n,) whether each object has one)."""
    motions = np.tile(np.eye(4), (count, 1, 1))
    moved = np.zeros(count, dtype=bool)
    if poses is None:
        return motions, moved
    if len(poses) != count:
        raise PoseError(f"there are {count} objects but {len(poses)} poses.")
    if isinstance(poses, list | tuple):
        moved[:] = [pose is not None for pose in poses]
        poses = [pose for pose in poses if pose is not None]
    else:
        moved[:] = True
    if moved.any():
        motions[moved] = checked_poses(poses, "poses")
    return motions, moved


def _bounds(boxes: np.ndarray, poses: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return a box around posed boxes, including the rounding of posed points."""
    if not len(boxes):
        return np.zeros((2, 3))
    with np.errstate(over="ignore", invalid="ignore"):
        centre, half = boxes[:, 0] / 2 + boxes[:, 1] / 2, boxes[:, 1] / 2 - boxes[:, 0] / 2
        at = np.einsum("nij,nj->ni", poses[:, :3, :3], centre) + poses[:, :3, 3]
        reach = np.einsum("nij,nj->ni", np.abs(poses[:, :3, :3]), half)
        reach += ROUNDING * _sizes(boxes, poses)
        posed = np.nan_to_num(np.stack([at - reach, at + reach], axis=1))
    boxes = np.where(moved[:, None, None], posed, boxes)
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def _sizes(boxes: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(n, 3) upper bounds of the summands of posed coordinates."""
    return np.abs(boxes).max(axis=(1, 2))[:, None] * 4 + np.abs(poses[:, :3, 3])


def _rounding(boxes: np.ndarray, poses: np.ndarray) -> float:
    """A power of two above the distance by which rounding moves posed points."""
    posed = (poses != np.eye(4)).any(axis=(1, 2))
    if not posed.any():
        return 0.0
    with np.errstate(over="ignore"):
        most = float(np.minimum(2.0 * ROUNDING * _sizes(boxes[posed], poses[posed]), 1e300).max())
    return 2.0 ** math.frexp(most)[1]
