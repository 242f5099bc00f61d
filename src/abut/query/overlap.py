"""abut.overlap: relation, depth, separation and common part of two solids."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.core.device import require_same_device
from abut.core.pickling import PicklableResult
from abut.errors import OptionError
from abut.geometry.poses import batch_size, checked_poses
from abut.mesh import Mesh, require_meshes
from abut.options import number_from
from abut.query.points import in_unit, unit_of
from abut.query.solids.closed_surface import closed_surface_of
from abut.query.solids.relation import RELATIONS, Relation, relations
from abut.query.steady import steady

if TYPE_CHECKING:
    from abut.query.solids.contact_regions import ContactRegions

COMMON = frozenset({Relation.CROSSING, Relation.A_IN_B, Relation.B_IN_A, Relation.EQUAL})

COMMON_CODES = [k for k, relation in enumerate(RELATIONS) if relation in COMMON]


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(PicklableResult):
    """The relation of two solids, and measures that are computed when they are first read.

    For a batch of B poses every array has a leading axis, and numbers become (B,) arrays.

    Attributes:
        relation: A ``Relation``; for a batch (B,) int32, indices into ``list(abut.Relation)``.
    """

    relation: Any
    _measure: Callable[[str], Any] = field(repr=False)

    def __bool__(self) -> bool:
        """Whether the solids have common interior, in any pose."""
        return bool(np.any(self.overlapping.numpy() if self._is_batch else self.overlapping))

    @property
    def _is_batch(self) -> bool:
        return isinstance(self.relation, wp.array)

    @property
    def overlapping(self) -> Any:
        """Whether the solids have common interior; (B,) bool for a batch."""
        if not self._is_batch:
            return self.relation in COMMON
        found = np.isin(self.relation.numpy(), COMMON_CODES)
        return wp.array(found, dtype=wp.bool, device=self.relation.device)

    @property
    def inside_a(self) -> Any:
        """The largest distance of a point of the common part from a's surface; 0 if none is inside.

        It lies within ``inside_bounds[0]``.
        """
        return self._depths[0]

    @property
    def inside_b(self) -> Any:
        """The largest distance of a point of the common part from b's surface."""
        return self._depths[1]

    @property
    def inside_bounds(self) -> Any:
        """(2, 2) float64: certified bounds of ``inside_a`` and ``inside_b``."""
        return self._depths[2]

    @property
    def deepest(self) -> Any:
        """(2, 3) float64: the common points that lie deepest in a and in b; NaN without any."""
        return self._depths[3]

    @property
    def direction(self) -> Any:
        """(2, 3) float64: unit vectors from the deepest points to a's and to b's surface."""
        return self._depths[4]

    @property
    def separation(self) -> Any:
        """(3,) float64: a translation of b after which the solids at most touch, exactly.

        It is locally shortest, or shortest along the direction asked for.
        """
        return self._separation[0]

    @property
    def separation_converged(self) -> Any:
        """Whether ``separation`` is locally shortest within the tolerance."""
        return self._separation[1]

    @property
    def separation_bound(self) -> Any:
        """No translation shorter than this separates the solids."""
        return self._separation[2]

    @property
    def volume(self) -> Any:
        """Volume of the common part; None unless asked for."""
        return self._common_part[0]

    @property
    def centroid(self) -> Any:
        """(3,) float64: centroid of the common part, NaN without volume; None unless asked for."""
        return self._common_part[1]

    @property
    def areas(self) -> Any:
        """(2,) float64: areas of both surfaces around the common part; None unless asked for."""
        return self._common_part[2]

    @cached_property
    def regions(self) -> "ContactRegions | list[ContactRegions]":
        """Connected regions of contact; for a batch a list with one entry per pose."""
        return self._measure("regions")

    @cached_property
    def _depths(self) -> tuple[Any, ...]:
        return self._measure("depths")

    @cached_property
    def _separation(self) -> tuple[Any, ...]:
        return self._measure("separation")

    @cached_property
    def _common_part(self) -> tuple[Any, ...]:
        return self._measure("common_part")

    def numpy(self) -> dict[str, Any]:
        """Return everything but the regions as NumPy arrays and numbers."""
        names = "relation inside_a inside_b inside_bounds deepest direction".split()
        names += ["separation", "separation_bound"]
        names += [] if self.volume is None else ["volume", "centroid", "areas"]
        values = {name: getattr(self, name) for name in names}
        return {n: v.numpy() if isinstance(v, wp.array) else v for n, v in values.items()}


@steady
def overlap(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    tolerance: float = 1e-6,
    along: Any = None,
    volume: bool = False,
) -> Overlap:
    """Find the relation of two solids, their depths, a separation and their common part.

    Args:
        a, b: Closed meshes on one device, which do not intersect themselves.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
            The answer is about the moved coordinates, rounded to float64.
        tolerance: Of depths and separations, relative to the size of the smaller solid.
        along: (3,) A direction; ``separation`` is then the shortest translation of b along it.
        volume: Also measure volume, centroid and areas of the common part.

    Returns:
        The relation; the other measures are computed when they are first read.

    Raises:
        MeshError: A mesh is open or cannot be oriented.
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or the batches differ in size.
        OptionError: ``along`` is no direction, or the tolerance no positive number.

    Guarantee:
        ``relation`` is exact. The true depths lie within ``inside_bounds``, at most the tolerance
        apart.
        ``separation`` was verified exactly. ``volume`` and ``areas`` are accurate to rounding.
    """
    require_meshes(a=a, b=b)
    require_same_device(a, b)
    tolerance = number_from(tolerance, "tolerance", 0.0)
    along = None if along is None else _unit_direction(along)
    batch = batch_size(pose_a, pose_b)
    poses = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    solids = closed_surface_of(a, "a"), closed_surface_of(b, "b")
    pair = SolidPair(solids[0].mesh, solids[1].mesh, *poses, batch)
    length = tolerance * min(solid.size for solid in solids)
    codes = pair.relations()
    relation = RELATIONS[codes[0]] if batch is None else pair.wrapped(codes)
    measures = {
        "depths": partial(pair.depths, length),
        "separation": partial(pair.separation, length, along),
        "common_part": pair.common_part if volume else lambda: (None, None, None),
        "regions": pair.regions,
    }
    if batch == 0:
        return Overlap(relation, partial(no_rows, device=a.device, volume=volume))
    return Overlap(relation, lambda name: measures[name]())


def no_rows(name: str, device: wp.Device, volume: bool) -> Any:
    """Return a measure of no pairs."""
    shapes: dict[str, list[tuple[int, ...]]] = {
        "depths": [(0,), (0,), (0, 2, 2), (0, 2, 3), (0, 2, 3)],
        "separation": [(0, 3), (0,), (0,)],
        "common_part": [(0,), (0, 3), (0, 2)] if volume else [],
        "regions": [],
    }
    if not shapes[name]:
        return [] if name == "regions" else (None, None, None)
    return tuple(wp.empty(shape, dtype=wp.float64, device=device) for shape in shapes[name])


class SolidPair:
    """Two closed surfaces at poses, in the shape that they had at the time of the query."""

    def __init__(
        self,
        a: Mesh,
        b: Mesh,
        pose_a: np.ndarray | None,
        pose_b: np.ndarray | None,
        batch: int | None,
    ) -> None:
        self._meshes, self._batch = (a, b), batch
        self._shapes = tuple((mesh.lease, mesh.version) for mesh in self._meshes)
        self.poses = pose_a, pose_b
        self._found: dict[str, Any] = {}

    @cached_property
    def unit(self) -> float:
        """A power of two; in units of it, products of coordinates stay in the range of float64."""
        a, b, pose_a, pose_b = self.operands
        return max(unit_of(a, b.bounds, pose_a), unit_of(b, a.bounds, pose_b))

    @property
    def scaled(self) -> tuple[Mesh, Mesh, np.ndarray | None, np.ndarray | None]:
        """The operands with lengths in units of ``unit``."""
        a, b, *poses = self.operands
        if self.unit == 1.0:
            return self.operands
        lengths = np.ones((4, 4))
        lengths[:3, 3] = self.unit
        pose_a, pose_b = (None if p is None else p / lengths for p in poses)
        return in_unit(a, self.unit), in_unit(b, self.unit), pose_a, pose_b

    @property
    def operands(self) -> tuple[Mesh, Mesh, np.ndarray | None, np.ndarray | None]:
        """The two meshes and their poses."""
        a, b = map(_shape_at, self._meshes, self._shapes)
        return a, b, *self.poses

    def wrapped(self, rows: np.ndarray, power: int = 0) -> Any:
        """Return rows of a batch on the device; of one pose a number, or an array.

        Rows that are lengths, areas or volumes in units of ``unit`` have a power of 1, 2 or 3.
        """
        device = self._meshes[0].device
        if power and self.unit != 1.0:
            with np.errstate(over="ignore", under="ignore"):
                for _ in range(power):
                    rows = rows * self.unit
        if self._batch is not None:
            dtype = wp.dtype_from_numpy(rows.dtype)
            return wp.array(np.ascontiguousarray(rows), dtype=dtype, device=device)
        if rows.ndim == 1:
            return rows[0].item()
        return wp.array(rows[0], dtype=wp.dtype_from_numpy(rows.dtype), device=device)

    def relations(self) -> np.ndarray:
        """(B,) indices into RELATIONS."""
        if self._batch == 0:
            return np.zeros(0, np.int32)
        if "relations" not in self._found:
            self._found["relations"] = relations(*self.operands)
        return self._found["relations"]

    def depths(self, tolerance: float) -> tuple[Any, ...]:
        """Depth in a and in b, their bounds, deepest points and directions."""
        found = self._inside(tolerance)
        depths = [self.wrapped(side.depth, 1) for side in found]
        bounds, deepest, way = (np.stack([f[k] for f in found], axis=1) for k in range(1, 4))
        return *depths, self.wrapped(bounds, 1), self.wrapped(deepest, 1), self.wrapped(way)

    def separation(self, tolerance: float, along: np.ndarray | None) -> tuple[Any, ...]:
        """Translation, whether it is locally shortest, and a bound of the shortest one."""
        from abut.query.solids.separating_translation import separate, separate_along

        if along is None:
            translation, converged = separate(*self.scaled, tolerance / self.unit)
        else:
            lengths = separate_along(*self.scaled, along, tolerance / self.unit)
            translation, converged = lengths[:, None] * along, np.ones(len(lengths), bool)
        inside = self._inside(tolerance)
        bound = np.maximum(inside[0].bounds[:, 0], inside[1].bounds[:, 0])
        return self.wrapped(translation, 1), self.wrapped(converged), self.wrapped(bound, 1)

    def common_part(self) -> tuple[Any, ...]:
        """Volume, centroid and areas of the common part."""
        from abut.query.solids.common_part import common_parts

        found = common_parts(*self.scaled)
        areas = np.stack([found.area_a, found.area_b], axis=1)
        parts = (found.volume, 3), (found.centroid, 1), (areas, 2)
        return tuple(self.wrapped(rows, power) for rows, power in parts)

    def regions(self) -> Any:
        """Regions of contact, for a batch a list."""
        from abut.query.solids.contact_regions import contact_regions

        a, b, *poses = self.scaled
        count = 1 if self._batch is None else self._batch
        found = [
            contact_regions(
                a, b, *(p if p is None or len(p) == 1 else p[k : k + 1] for p in poses)
            ).scaled(self.unit)
            for k in range(count)
        ]
        return found[0] if self._batch is None else found

    def _inside(self, tolerance: float) -> tuple[Any, Any]:
        """Depths in a and in b; only poses with common interior are searched."""
        from abut.query.solids.inside_depth import inside_depths, no_depths

        if "inside" not in self._found:
            a, b, *poses = self.scaled
            rows = np.flatnonzero(np.isin(self.relations(), COMMON_CODES))
            pose_a, pose_b = (p if p is None or len(p) == 1 else p[rows] for p in poses)
            length = tolerance / self.unit
            sides = (a, b, pose_a, pose_b), (b, a, pose_b, pose_a)
            out = no_depths(len(self.relations())), no_depths(len(self.relations()))
            for answer, side in zip(out, sides, strict=True):
                if len(rows):
                    for all_rows, some in zip(answer, inside_depths(*side, length), strict=True):
                        all_rows[rows] = some
            self._found["inside"] = out
        return self._found["inside"]


def _shape_at(mesh: Mesh, shape: tuple[Any, int]) -> Mesh:
    """Return a mesh in an earlier shape; itself if it has not deformed since."""
    lease, version = shape
    if mesh.version == version:
        return mesh
    return Mesh(lease.vertices(), mesh.faces, mesh.device)


def _unit_direction(along: Any) -> np.ndarray:
    direction = np.asarray(along, dtype=np.float64)
    length = np.linalg.norm(direction)
    if direction.shape != (3,) or not np.isfinite(length) or length == 0.0:
        raise OptionError(f"along must be three numbers, not all zero; not {along!r}.")
    return direction / length
