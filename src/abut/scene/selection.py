"""Part: the pairs of objects of a query about a part of a scene."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import AGAINST, BOTH_ROLES, WHICH
from abut.broad.few_objects import MOST_FEW
from abut.core.device import require_same_device
from abut.errors import OptionError
from abut.mesh import Mesh
from abut.scene.inputs import given_poses, is_one_pose
from abut.scene.objects import ALL_GROUPS, ObjectTable
from abut.scene.shape_pool import NO_SHAPE, ShapePool

Rows = Sequence[int] | np.ndarray
Side = tuple[int, int] | np.ndarray  # the first row and their number, or rows
MOST_EXTERNALS = 16  # meshes and scenes whose shapes a scene keeps


@dataclass(eq=False)
class Part:
    """A question about pairs of one object of ``which`` and one of ``against``.

    Attributes:
        objects: The objects to search: those of the scene, then external ones.
        which: Rows of objects of the scene; None: all.
        against: Rows of objects of the scene; None: all, or all external ones.
        first_external: Row of the first external object; 0 where there is none. Results
            name such objects by ``row - first_external``, in their second column.
    """

    objects: ObjectTable
    which: np.ndarray | None = None
    against: np.ndarray | None = None
    first_external: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all pairs of the scene are asked about."""
        return self.which is None and self.against is None and not self.first_external

    @cached_property
    def roles(self) -> Any:
        """(n,) int32, WHICH and AGAINST of each object; BOTH_ROLES where all have both."""
        if self.is_whole:
            return BOTH_ROLES
        roles = np.zeros(len(self.objects), np.int32)
        mine = slice(self.first_external or None) if self.which is None else self.which
        roles[mine] = int(WHICH)
        roles[slice(self.first_external, None) if self.against is None else self.against] |= int(
            AGAINST
        )
        return roles

    @cached_property
    def sides(self) -> tuple[Rows, Side]:
        """The rows of the smaller side, and the rows of the other, as ``FewSearch`` takes them."""
        mine, others = self._sides
        return (_rows(others), mine) if self.few_last else (_rows(mine), others)

    @cached_property
    def few_last(self) -> bool:
        """Whether the smaller side is ``against``."""
        mine, others = self._sides
        return _size(mine) > _size(others)

    @property
    def is_few(self) -> bool:
        """Whether one side is a few objects, for which there are faster searches."""
        return self.few is not None and self.objects.tracks_moves()

    @cached_property
    def few(self) -> tuple[Rows, bool] | None:
        """Rows of a few objects and whether they are those of ``against``; None: both are many."""
        if self.is_whole or not 0 < min(map(_size, self._sides)) <= MOST_FEW:
            return None
        return self.sides[0], self.few_last

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        count = len(self.objects) - self.first_external
        others = (self.first_external, count) if self.against is None else self.against
        return (0, self.first_external or count) if self.which is None else self.which, others

    @property
    def meshes(self) -> list[Mesh]:
        """The mesh of each object, also of external ones; one without faces where there is none."""
        return [self.objects.pool.mesh(shape) for shape in self.objects.shapes.tolist()]

    @property
    def own(self) -> np.ndarray:
        """Rows of objects that may be asked about against themselves."""
        return np.flatnonzero(np.broadcast_to(self.roles, len(self.objects)) == BOTH_ROLES)

    def ordered(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(which pairs (low, high) of rows are tested, which of all pairs change their order).

        The object of ``which`` comes first; where both may, the lower one.
        """
        low, high = np.broadcast_to(self.roles, len(self.objects))[pairs].T
        forth, back = ((a & WHICH != 0) & (b & AGAINST != 0) for a, b in ((low, high), (high, low)))
        return self.objects.tested(pairs) & (forth | back), ~forth & back


def _size(rows: Side) -> int:
    return rows[1] if isinstance(rows, tuple) else len(rows)


def _rows(rows: Side) -> Rows:
    return range(rows[0], rows[0] + rows[1]) if isinstance(rows, tuple) else rows


@dataclass(eq=False)
class ExternalObjects:
    """A mesh or another scene that a question is asked against, as it is now.

    Attributes:
        source: The Mesh or Scene.
        version: Differs where meshes, groups or masks do.
        meshes: Of each object; None where one was removed.
        group, mask: Bits of each. A mesh meets all groups.
        poses: (m,) matrices, a copy.
    """

    source: Any
    version: tuple[int, int]
    meshes: list[Mesh | None]
    group: np.ndarray
    mask: np.ndarray
    poses: np.ndarray

    @staticmethod
    def of(source: Any, pose: Any) -> "ExternalObjects | None":
        """The objects of a Mesh or a Scene; None for anything else."""
        if isinstance(source, Mesh):
            if not is_one_pose(pose):
                raise OptionError("pose must be one pose of the mesh, (4, 4).")
            every = np.array([ALL_GROUPS], np.int32)
            return ExternalObjects(source, (0, 0), [source], every, every, given_poses(pose))
        if pose is not None:
            raise OptionError(
                "pose is that of a mesh, against=mesh; poses= are those of all objects."
            )
        table = getattr(source, "_objects", None)
        if not isinstance(table, ObjectTable):
            return None
        with source.lock:
            version = (table.version, table.pool.version)
            gone = (table.shapes == NO_SHAPE).tolist()
            meshes = [None if no else m for m, no in zip(source.meshes, gone, strict=True)]
            poses = table.poses.numpy().reshape(-1, 4, 4).copy()
            return ExternalObjects(source, version, meshes, table.group, table.mask, poses)


class JoinedObjects:
    """The objects of a scene, and after them external ones, in one table.

    Attributes:
        source: The Mesh or Scene of the external objects.
        table: The objects. Static external ones are tested against static ones of the scene.
    """

    def __init__(self, pool: ShapePool, source: Any) -> None:
        self.source, self.table = source, ObjectTable(pool)
        self._pool, self._meshes, self._version = pool, [], None
        self._shapes = np.empty(0, np.int32)
        self._moves = -1  # of the scene that the table has followed

    def follow(self, host: ObjectTable, external: ExternalObjects) -> ObjectTable:
        """The table, brought up to date."""
        version = (host.version, external.version)
        if self._version != version:
            self._version = version
            self._take_meshes(external.meshes)
            self.table.replace(
                np.concatenate([host.shapes, self._shapes]),
                np.concatenate([host.group, external.group]),
                np.concatenate([host.mask, external.mask]),
            )
            self._moves = -1
        self._copy_poses(host)
        if len(external.poses):
            rows = np.arange(len(host), len(host) + len(external.poses))
            self.table.write_poses(rows, external.poses)
        return self.table

    def _copy_poses(self, host: ObjectTable) -> None:
        """Copy the poses of the scene if any may have changed."""
        self.table.exposed = not host.tracks_moves()
        moved = None if self._moves < 0 else host.moves.since(self._moves)
        self._moves = host.moves.count
        if len(host) and (self.table.exposed or moved is None or len(moved)):
            wp.copy(self.table.poses, host.poses, count=len(host))
            self.table.moves.add(np.arange(len(host)) if moved is None else np.array(moved))

    def release(self) -> None:
        """Let the shapes of the external objects go."""
        self._take_meshes([])

    def _take_meshes(self, meshes: list[Mesh | None]) -> None:
        if len(meshes) == len(self._meshes) and all(map(_is, meshes, self._meshes)):
            return
        before, add = self._shapes, self._pool.add
        shapes = [NO_SHAPE if mesh is None else add(mesh) for mesh in meshes]
        self._shapes, self._meshes = np.array(shapes, np.int32), meshes
        self._pool.use(self._shapes[self._shapes != NO_SHAPE])
        self._pool.release(before[before != NO_SHAPE])
        self._pool.version += 1  # ranges of arrays may be used again


def _is(a: Any, b: Any) -> bool:
    return a is b


class Selections:
    """Makes the Part of each question about a scene, and keeps recent external shapes."""

    def __init__(self, objects: ObjectTable) -> None:
        self.objects = objects
        self._joined: list[JoinedObjects] = []
        self._last: tuple[int, int, Part] | None = None  # version, object, its part

    def external(self, against: Any, pose: Any) -> ExternalObjects | None:
        """The external objects of ``against``; None where it names objects of the scene.

        Call this before the scene is locked: it locks the other scene.
        """
        if against is None and pose is None:
            return None
        return ExternalObjects.of(None if self._is_scene(against) else against, pose)

    def part(self, which: Any, against: Any, external: ExternalObjects | None) -> Part:
        """The part that is asked about."""
        if external is not None:
            return self._external_part(which, external)
        whole = against is None or self._is_scene(against)
        if which is None and whole:
            return Part(self.objects)
        if type(which) is int and whole:
            return self._part_of_one(which)
        return Part(self.objects, self._rows(which), None if whole else self._rows(against))

    def _part_of_one(self, index: int) -> Part:
        """One object against all; the last Part, where objects and question are the same."""
        version = self.objects.version
        if self._last is None or self._last[:2] != (version, index):
            self._last = (version, index, Part(self.objects, self._rows(index)))
        return self._last[2]

    def _is_scene(self, against: Any) -> bool:
        return getattr(against, "_objects", None) is self.objects

    def _external_part(self, which: Any, external: ExternalObjects) -> Part:
        require_same_device(self.objects, external.source)
        known = next((j for j in self._joined if j.source is external.source), None)
        if known is None:
            known = JoinedObjects(self.objects.pool, external.source)
        else:
            self._joined.remove(known)
        for old in self._joined[MOST_EXTERNALS - 1 :]:
            old.release()
        self._joined = [known, *self._joined[: MOST_EXTERNALS - 1]]
        table = known.follow(self.objects, external)
        return Part(table, self._rows(which), None, len(self.objects))

    def _rows(self, handles: Any) -> np.ndarray | None:
        if handles is None:
            return None
        rows = self.objects.rows(handles)
        return rows if len(rows) < 2 else np.unique(rows)
