"""Soup: the posed faces of many meshes side by side on one device."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import require_same_device
from abut.core.launch import Task, launch
from abut.errors import MeshError, PoseError
from abut.geometry.poses import checked_poses, move_point
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROUNDING = 2.0**-50  # of a moved point, relative to the numbers it is the sum of


@wp.kernel
def shift_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    first_point: wp.int32,
    owner: wp.int32,
    # out
    faces_out: wp.array[wp.vec3i],
    object_out: wp.array[wp.int32],
):
    """Faces of one mesh as faces of the soup."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        f = faces[i]
        faces_out[i] = wp.vec3i(f[0] + first_point, f[1] + first_point, f[2] + first_point)
        object_out[i] = owner


@wp.kernel
def move_kernel(
    # in
    span: wp.vec3i,
    locals: wp.array[wp.vec3d],
    owners: wp.array[wp.int32],
    moved: wp.array[wp.bool],
    poses: wp.array[wp.mat44d],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Points where their object's pose puts them."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = locals[i]
        owner = owners[i]
        if moved[owner]:
            p = move_point(poses[owner], p)
        points_out[i] = p


@dataclass
class Soup:
    """Faces of many objects in one frame. Face ``first_face[i] + f`` is face f of object i.

    Attributes:
        points: (n,) Corners as posed, float64.
        faces: (m,) Indices into ``points``.
        object_of: (m,) int32, the object of each face; ascending.
        first_face: (k + 1,) On the host, where each object's faces begin.
        bounds: (2, 3) A box around all points.
        moves: How often points were put somewhere else.
    """

    device: wp.Device
    points: wp.array
    faces: wp.array
    object_of: wp.array
    first_face: np.ndarray
    bounds: np.ndarray = field(default_factory=lambda: np.zeros((2, 3)))
    moves: int = 0

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
        """What kernels see: faces that are not moved any more."""
        return make_posed_mesh(self.points, self.faces)

    def rows(self, faces: np.ndarray) -> np.ndarray:
        """(n, 2) int32 rows (object, face of it) of faces of the soup."""
        owners = np.searchsorted(self.first_face, faces, side="right") - 1
        return np.stack([owners, faces - self.first_face[owners]], axis=1).astype(np.int32)


class Gathered(Soup):
    """A soup that follows its meshes: moved by one launch, copied anew where a mesh deformed."""

    def __init__(self, meshes: Sequence[Mesh]) -> None:
        device = require_same_device(*meshes)
        self.known = [weakref.ref(mesh) for mesh in meshes]
        self.versions = [-1] * len(meshes)
        first_point = np.cumsum([0, *(m.vertex_count for m in meshes)])
        first_face = np.cumsum([0, *(m.face_count for m in meshes)])
        counts = int(first_point[-1]), int(first_face[-1])
        if max(counts) >= 2**30:
            raise MeshError(f"{counts[1]} faces are too many to look at together.")
        self.first_point = first_point
        self.locals = wp.empty(counts[0], dtype=wp.vec3d, device=device)
        owners = np.repeat(np.arange(len(meshes), dtype=np.int32), np.diff(first_point))
        self.owners = wp.array(owners, dtype=wp.int32, device=device)
        super().__init__(
            device,
            wp.empty(counts[0], dtype=wp.vec3d, device=device),
            wp.empty(counts[1], dtype=wp.vec3i, device=device),
            wp.empty(counts[1], dtype=wp.int32, device=device),
            first_face,
        )
        for i, mesh in enumerate(meshes):
            part = slice(*first_face[i : i + 2].tolist())
            if mesh.face_count:
                out = [self.faces[part], self.object_of[part]]
                args = [mesh.faces, int(first_point[i]), i, *out]
                launch(shift_kernel, mesh.face_count, args, device)
        self.moved = wp.zeros(len(meshes), dtype=wp.bool, device=device)
        self.poses = wp.zeros(len(meshes), dtype=wp.mat44d, device=device)
        self.given: Any = ()  # poses as they came last
        self.placed: tuple[np.ndarray, np.ndarray] | None = None
        self.boxes = np.zeros((len(meshes), 2, 3))
        args = [self.locals, self.owners, self.moved, self.poses, self.points]
        self.moving = Task(move_kernel, counts[0], args, device)

    def is_of(self, meshes: Sequence[Mesh]) -> bool:
        """Whether these are its meshes."""
        return [known() for known in self.known] == [*meshes]  # equal meshes are the same

    def take(self, meshes: Sequence[Mesh], poses: Any) -> None:
        """Follow the meshes' shapes, and put them where the poses say."""
        known = self._known(poses)
        placed = self.placed if known else _checked(poses, len(meshes))  # or refused, unchanged
        if self._follow(meshes) and known:
            return
        if not known:
            self.placed = placed
            self.given = None if poses is None else ()
            if isinstance(poses, np.ndarray):
                self.given = poses.copy()
            self.poses.assign(self.placed[0])
            self.moved.assign(self.placed[1])
        assert self.placed is not None
        self.moves += 1
        self.moving.run()
        filled = np.diff(self.first_point) > 0
        self.bounds = _bounds(*(x[filled] for x in (self.boxes, *self.placed)))

    def _known(self, poses: Any) -> bool:
        """Whether the objects are at these poses already."""
        if isinstance(poses, np.ndarray) and isinstance(self.given, np.ndarray):
            return np.array_equal(poses, self.given)
        return poses is None and self.given is None

    def _follow(self, meshes: Sequence[Mesh]) -> bool:
        """Copy the points of meshes that have deformed; True when none has."""
        if self.versions == [mesh.version for mesh in meshes]:
            return True
        for i, mesh in enumerate(meshes):
            if self.versions[i] != mesh.version:
                part = slice(*self.first_point[i : i + 2].tolist())
                if mesh.vertex_count:
                    wp.copy(self.locals[part], mesh.points)
                self.boxes[i] = mesh.bounds
                self.versions[i] = mesh.version
        return False


def soup_of(meshes: Sequence[Mesh], poses: Any = None) -> Soup:
    """The posed faces of meshes; kept with the first of them, so that asking again is cheap.

    Args:
        meshes: Meshes on one device, at least one.
        poses: A rigid motion or None for each; (n, 4, 4) moves all.
    """
    held: list[Gathered] = meshes[0].cache.setdefault("soups", [])
    soup = next((known for known in held if known.is_of(meshes)), None)
    if soup is None:
        soup = Gathered(meshes)
        held[:] = [soup, *held[:1]]
    soup.take(meshes, poses)
    return soup


def _checked(poses: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """((n, 4, 4) poses, (n,) whether each moves its object)."""
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
    """A box around boxes as moved, rounding of moved points included."""
    if not len(boxes):
        return np.zeros((2, 3))
    with np.errstate(over="ignore", invalid="ignore"):
        centre, half = boxes[:, 0] / 2 + boxes[:, 1] / 2, boxes[:, 1] / 2 - boxes[:, 0] / 2
        at = np.einsum("nij,nj->ni", poses[:, :3, :3], centre) + poses[:, :3, 3]
        reach = np.einsum("nij,nj->ni", np.abs(poses[:, :3, :3]), half)
        size = np.abs(boxes).max(axis=(1, 2))[:, None] * 4 + np.abs(poses[:, :3, 3])
        reach += ROUNDING * size
        posed = np.nan_to_num(np.stack([at - reach, at + reach], axis=1))
    boxes = np.where(moved[:, None, None], posed, boxes)
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])
