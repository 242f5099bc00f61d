"""Results of queries: frozen dataclasses of Warp arrays, one row per answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.errors import OptionError
from abut.options import number_from

Rows = wp.array | np.ndarray | tuple[Any, ...]  # numbers become a Warp array when they are read


@dataclass(frozen=True, eq=False, repr=False)
class Contacts(PicklableResult):
    """Pairs of faces that meet, sorted.

    Attributes:
        pose: (n,) int32, the pose of each pair; None without a batch of poses.
        colliding: Whether there is contact; for a batch of B poses a (B,) array.
        contained: With ``solid=True``, whether one mesh lies inside the other and no faces meet, in
            the form of ``colliding``; else None. In a scene (k, 2) int32, such pairs of objects.
    """

    row_name = "pairs"

    _pairs: Rows = field(repr=False)
    pose: wp.array | None
    colliding: Any
    contained: Any = None
    _make_segments: Callable[[wp.array, wp.array | None], tuple[wp.array, wp.array]] | None = field(
        default=None, repr=False
    )
    _device: wp.Device | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._pairs)

    @property
    def pairs(self) -> wp.array:
        """(n, 2) int32; faces of a and b, or the lower and higher face of one mesh."""
        return _array(self, "_pairs", (-1, 2), wp.int32)

    def __bool__(self) -> bool:
        """Whether there is any contact."""
        if isinstance(self.colliding, bool):
            return self.colliding
        return bool(self.colliding.numpy().any())

    @property
    def segments(self) -> wp.array:
        """(n, 2, 3) float64: the segment in which each pair meets, computed at first access.

        A point of contact is a segment of length zero. Faces that overlap in a plane meet in an
        area; their segment lies across it.
        """
        return self._segments[0]

    @property
    def coplanar(self) -> wp.array:
        """(n,) bool: pairs that overlap in a common plane, or in a common line."""
        return self._segments[1]

    @cached_property
    def _segments(self) -> tuple[wp.array, wp.array]:
        assert self._make_segments is not None
        return self._make_segments(self.pairs, self.pose)

    def curves(self) -> list[np.ndarray]:
        """Return the intersection as polylines (k, 3): segments joined where faces share an edge.

        Closed curves repeat their first point. Coplanar pairs have no curve and are left out.
        For a batch, call it on the result of a single pose.
        """
        from abut.geometry.polylines import join_segments

        segments, coplanar = (array.numpy() for array in self._segments)
        return join_segments(segments[~coplanar])

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the rows as NumPy arrays."""
        out = {"pairs": self.pairs.numpy(), "colliding": _plain(self.colliding)}
        if self.pose is not None:
            out["pose"] = self.pose.numpy()
        if self.contained is not None:
            out["contained"] = _plain(self.contained)
        return out


@dataclass(frozen=True, eq=False, repr=False)
class ClosestPoints(PicklableResult):
    """The point of a mesh closest to each query point; with a batch of poses a leading axis.

    Attributes:
        sign: Method of the signs, ``"pseudonormal"`` or ``"winding"``; None without signs.
    """

    row_name = "rows"

    _distance: Rows = field(repr=False)
    _point: Rows = field(repr=False)
    _face: Rows = field(repr=False)
    _barycentric: Rows = field(repr=False)
    sign: str | None = None
    _device: wp.Device | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Number of rows; number of poses for a batch."""
        return len(self._distance)

    @property
    def distance(self) -> wp.array:
        """(n,) float64, negative inside if signs were requested; inf beyond the bound."""
        return _array(self, "_distance", (-1,), wp.float64)

    @property
    def point(self) -> wp.array:
        """(n, 3) float64, on the mesh; NaN beyond the bound."""
        return _array(self, "_point", (-1, 3), wp.float64)

    @property
    def face(self) -> wp.array:
        """(n,) int32, the lowest of the nearest faces; -1 beyond the bound."""
        return _array(self, "_face", (-1,), wp.int32)

    @property
    def barycentric(self) -> wp.array:
        """(n, 3) float64, of the point in its face; exactly 0 or 1 on edges and corners."""
        return _array(self, "_barycentric", (-1, 3), wp.float64)

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the rows as NumPy arrays."""
        names = ("distance", "point", "face", "barycentric")
        return {name: getattr(self, name).numpy() for name in names}


class ImpactKind(IntEnum):
    """The kinds of the two ``features``, in this order."""

    VERTEX_FACE = 0  # a vertex of a, a face of b
    EDGE_EDGE = 1  # an edge of a, an edge of b: rows of ``Mesh.edges``
    FACE_VERTEX = 2  # a face of a, a vertex of b; only between two motions


@dataclass(frozen=True, eq=False, repr=False)
class Impacts(PicklableResult):
    """Pairs of moving features that touch during a step, sorted by kind and features.

    Attributes:
        time: (n,) float64 in [0, 1], when each pair first touches; never later.
        kind: (n,) int32, see ImpactKind.
        features: (n, 2) int32, vertices, edges or faces according to the kind.
        converged: (n,) bool. False: the search stopped early, and the contact, if any, may be later
            than ``time`` by more than the tolerance.
        first: The earliest time; infinity without an impact.
    """

    row_name = "impacts"

    time: wp.array = field(repr=False)
    kind: wp.array = field(repr=False)
    features: wp.array = field(repr=False)
    converged: wp.array = field(repr=False)
    first: float
    _measure: Callable[["Impacts"], Any] | None = field(default=None, repr=False)

    @cached_property
    def initial_distance(self) -> Any:
        """Least distance, at the start, of features with an impact at time 0; inf without any.

        If it is below ``min_distance``, features were closer than that from the start, and no step
        is safe. Computed at first access; with ``first=True`` for the one row.
        """
        return float("inf") if self._measure is None else self._measure(self)

    def __len__(self) -> int:
        """Number of impacts."""
        return self.time.shape[0]

    def __bool__(self) -> bool:
        """Whether there is any impact."""
        return len(self) > 0

    @property
    def safe_step(self) -> float:
        """The share of the step that is free of contact, at most 1."""
        return min(self.first, 1.0)

    def rescaled_step(self, share: float = 0.9) -> float:
        """A step that stops short of contact, for solvers whose barriers must stay finite.

        Args:
            share: Of the time until the earliest impact, above 0 and below 1.

        Returns:
            ``share * first``; 1 without an impact.

        Guarantee:
            At the end of the step every pair of features is farther apart than ``min_distance``,
            unless some pair already was not at its start: then the step is 0.
        """
        return min(share_below_one(share) * self.first, 1.0)

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the rows as NumPy arrays."""
        names = ("time", "kind", "features", "converged")
        return {name: getattr(self, name).numpy() for name in names}


def share_below_one(share: float) -> float:
    """Return a share of a step, or refuse it."""
    share = number_from(share, "share", 0.0)
    if not 0.0 < share < 1.0:
        raise OptionError(f"share must be above 0 and below 1, not {share!r}.")
    return share


@dataclass(frozen=True, eq=False, repr=False)
class Distances(PicklableResult):
    """The distance of two meshes, for one pose or for each of a batch.

    Attributes:
        distance: The smallest distance, a float; (B,) float64 for a batch. 0 exactly if the meshes
            meet, infinity if no faces are within ``upper_bound``.
    """

    distance: Any
    _faces: np.ndarray = field(repr=False)
    _device: wp.Device = field(repr=False)
    _measure: Callable[[], wp.array] = field(repr=False)

    @cached_property
    def faces(self) -> wp.array:
        """(2,) int32, the nearest faces of a and b; (B, 2) for a batch.

        -1 if no faces are within the bound. Of equally near pairs the lowest; if the meshes meet,
        any pair that meets.
        """
        return _on_device(self._faces, wp.int32, self._device)

    @cached_property
    def points(self) -> wp.array:
        """(2, 3) or (B, 2, 3) float64: the nearest point of each mesh, computed at first access.

        If the meshes meet both are one common point; NaN if no faces are within the bound.
        """
        return self._measure()

    @property
    def value(self) -> Any:
        """An alias of ``distance``."""
        return self.distance

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the answer as NumPy arrays; ``value`` is the same as ``distance``."""
        distance = _plain(self.distance)
        rows = {"faces": self._faces, "points": self.points.numpy()}
        return {"distance": distance, "value": distance, **rows}


@dataclass(frozen=True, eq=False, repr=False)
class Gaps(PicklableResult):
    """Pairs of faces within a distance of each other, sorted.

    Attributes:
        pose: (n,) int32, the pose of each pair; None without a batch of poses.
    """

    row_name = "pairs"

    _pairs: Rows = field(repr=False)
    pose: wp.array | None
    _distance: Rows = field(repr=False)
    _measure: Callable[[], wp.array] = field(repr=False)
    _device: wp.Device | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._pairs)

    @property
    def pairs(self) -> wp.array:
        """(n, 2) int32; faces of a and b, or the lower and higher face of one mesh."""
        return _array(self, "_pairs", (-1, 2), wp.int32)

    @property
    def distance(self) -> wp.array:
        """(n,) float64; 0 exactly if a pair meets."""
        return _array(self, "_distance", (-1,), wp.float64)

    @cached_property
    def points(self) -> wp.array:
        """(n, 2, 3) float64: the nearest points of each pair, computed at first access.

        If a pair meets both are one common point.
        """
        return self._measure()

    def numpy(self) -> dict[str, np.ndarray]:
        """Return the rows as NumPy arrays."""
        out = {"pairs": self.pairs.numpy(), "distance": self.distance.numpy()}
        if self.pose is not None:
            out["pose"] = self.pose.numpy()
        return out | {"points": self.points.numpy()}


def _plain(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, wp.array) else np.asarray(value)


def _array(result: Any, name: str, shape: tuple[int, ...], dtype: Any) -> wp.array:
    """Return the rows of a field; numbers become an array on the device of the result."""
    rows = getattr(result, name)
    if not isinstance(rows, wp.array):
        numbers = np.array(rows, dtype=wp.dtype_to_numpy(dtype)).reshape(shape)
        rows = vars(result)[name] = _on_device(numbers, dtype, result._device)
    return rows


def _on_device(numbers: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """Return an array of numbers; on the CPU it shares their memory, which is faster."""
    return wp.array(numbers, dtype=dtype, device=device, copy=device.is_cuda)
