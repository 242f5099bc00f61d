"""The search for the deepest common point: cells are bounded, then dropped or divided."""

from typing import Any, NamedTuple

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, launch
from abut.point.nearest_face import STACK
from abut.query.solids.depth_bounds import depth_bounds_kernel
from abut.query.solids.depth_cells import (
    FAR,
    Cells,
    DepthBounds,
    Precision,
    SolidOperand,
    away_from,
    find_nearest,
)
from abut.query.solids.depth_parts import divide_cells

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ROOM = 1 << 19  # cells that are bounded at once
GRAIN = 16
UNKNOWN = wp.constant(UNKNOWN_COUNT)
ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class Deepest:
    """The search so far, for each pose."""

    best: wp.array[wp.float64]  # depth of ``point``
    point: wp.array[wp.vec3d]
    floor: wp.array[wp.float64]  # some common point is as deep
    upper: wp.array[wp.float64]  # no point of a cell that was dropped is deeper
    level_best: wp.array[wp.float64]  # of the present cells
    owner: wp.array[wp.int32]  # the first cell with ``level_best``


@wp.kernel
def level_best_kernel(
    # in
    span: wp.vec3i,
    cells: Cells,
    bounds: DepthBounds,
    # out
    level_best_out: wp.array[wp.float64],
    floor_out: wp.array[wp.float64],
):
    """The largest lower bounds of each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = cells.pose[i]
        if bounds.lower[i] > ZERO:
            wp.atomic_max(level_best_out, pose, bounds.lower[i])
        if bounds.floor[i] > ZERO:
            wp.atomic_max(floor_out, pose, bounds.floor[i])


@wp.kernel
def owner_kernel(
    # in
    span: wp.vec3i,
    cells: Cells,
    bounds: DepthBounds,
    level_best: wp.array[wp.float64],
    # out
    owner_out: wp.array[wp.int32],
):
    """The first cell with the best point of each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = cells.pose[i]
        if bounds.lower[i] > ZERO and bounds.lower[i] == level_best[pose]:
            wp.atomic_min(owner_out, pose, i)


@wp.kernel
def best_kernel(
    # in
    span: wp.vec3i,
    bounds: DepthBounds,
    # out
    deepest_out: Deepest,
):
    """Take over better points."""
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        if deepest_out.level_best[pose] > deepest_out.best[pose]:
            deepest_out.best[pose] = deepest_out.level_best[pose]
            deepest_out.point[pose] = bounds.point[deepest_out.owner[pose]]
        deepest_out.level_best[pose] = ZERO
        deepest_out.owner[pose] = UNKNOWN


@wp.kernel
def directions_kernel(
    # in
    span: wp.vec3i,
    a: SolidOperand,
    points: wp.array[wp.vec3d],
    # out
    direction_out: wp.array[wp.vec3d],
):
    """Unit vectors from points, one of each pose, to the nearest point of a surface."""
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        face = find_nearest(a, pose, points[pose], -1, FAR, links, gaps).face
        direction_out[pose] = -away_from(a, pose, points[pose], face)


def _rows(cells: Any, first: int, stop: int) -> Any:
    """Some of the cells."""
    out = Cells()
    for name in ("pose", "slot", "shape", "faces", "known"):
        setattr(out, name, getattr(cells, name)[first:stop])
    return out


class Waiting(NamedTuple):
    """Cells to bound.

    Attributes:
        cells: The cells.
        whole: The cells whose parts they are, with their bounds, faces and flags; None at first.
    """

    cells: Any
    whole: tuple[Any, Any, wp.array, wp.array] | None = None


class DepthSearch:
    """The search for the deepest common points of two solids at ``pose_count`` poses.

    Args:
        a, b: The operands.
        medial: The medial tree of a, empty if there is none.
        pose_count: Number of poses.
        precision: Tolerance and errors.
        device: Where the operands live.
        start: Depth that counts as found at the beginning.
    """

    def __init__(
        self,
        a: Any,
        b: Any,
        medial: Any,
        pose_count: int,
        precision: Any,
        device: wp.Device,
        start: float = 0.0,
    ) -> None:
        self.a, self.b, self.medial, self.device = a, b, medial, device
        self.pose_count, self.precision = pose_count, precision
        self.deepest = Deepest()
        for name in ("best", "floor", "upper", "level_best"):
            values = wp.full(pose_count, start, dtype=wp.float64, device=device)
            setattr(self.deepest, name, values)
        self.deepest.point = wp.zeros(pose_count, dtype=wp.vec3d, device=device)
        self.deepest.owner = wp.full(pose_count, UNKNOWN_COUNT, dtype=wp.int32, device=device)

    def run(self, waiting: list[Waiting], most: int, enough: float = np.inf) -> list[Waiting]:
        """Search in cells until the bounds are tight or more than ``most`` cells are needed.

        With a depth that is ``enough`` the search ends where a point is deeper.

        Returns:
            The cells that are left.
        """
        while waiting and not self.reached(enough):
            cells, whole = waiting.pop()
            count = cells.pose.shape[0]
            if count > ROOM:
                waiting.append(Waiting(_rows(cells, ROOM, count), whole))
                cells = _rows(cells, 0, ROOM)
            if cells.pose.shape[0] > most:
                return [*waiting, Waiting(cells, whole)]
            most -= cells.pose.shape[0]
            bounded = cells, *self.bound(cells)
            self._take_best(cells, bounded[1])
            _, parts = self.divide(*bounded)
            if parts is not None:
                waiting.append(Waiting(parts, bounded))
        return waiting

    def reached(self, depth: float) -> bool:
        """Whether a point of some pose is deeper."""
        return depth < np.inf and float(self.deepest.best.numpy().max()) > depth

    def settle(self, waiting: list[Waiting]) -> None:
        """Take the bounds of cells, or of their wholes, as they are: the answer is uncertain."""
        loose = Precision()
        loose.noise, loose.margin = self.precision.noise, self.precision.margin
        loose.tolerance = float(FAR)
        for cells, whole in {id(row.whole or row): row for row in waiting}.values():
            self.divide(*(whole or (cells, *self.bound(cells))), precision=loose)

    def directions(self) -> np.ndarray:
        """(B, 3) unit vectors from the deepest points to the nearest points of a."""
        out = wp.empty(self.pose_count, dtype=wp.vec3d, device=self.device)
        args = [self.a, self.deepest.point, out]
        launch(directions_kernel, self.pose_count, args, self.device, grain=64)
        return out.numpy()

    def bound(self, cells: Any) -> tuple[Any, wp.array, wp.array]:
        """Bounds of the depth in each cell, with the faces and flags that its parts inherit."""
        device, count = self.device, cells.pose.shape[0]
        bounds = DepthBounds()
        for name in ("upper", "lower", "floor"):
            setattr(bounds, name, wp.empty(count, dtype=wp.float64, device=device))
        bounds.point = wp.empty(count, dtype=wp.vec3d, device=device)
        faces = wp.empty(count, dtype=wp.vec4i, device=device)
        known = wp.empty(count, dtype=wp.int32, device=device)
        limits = [self.deepest.best, self.deepest.floor, self.precision]
        args = [self.a, self.b, self.medial, cells, *limits, bounds, faces, known]
        launch(depth_bounds_kernel, count, args, device, grain=GRAIN)
        return bounds, faces, known

    def divide(
        self,
        cells: Any,
        bounds: Any,
        faces: wp.array,
        known: wp.array,
        precision: Any = None,
    ) -> tuple[wp.array, Any]:
        """Divide the cells that matter; see ``divide_cells``."""
        precision = self.precision if precision is None else precision
        limits = [self.deepest.best, self.deepest.floor, precision, self.deepest.upper]
        return divide_cells(self.b, self.medial, cells, bounds, faces, known, *limits)

    def _take_best(self, cells: Any, bounds: Any) -> None:
        """Update the best points by the bounds of cells; one thread, where atomics are plain."""
        deepest, count = self.deepest, cells.pose.shape[0]
        args = [cells, bounds, deepest.level_best, deepest.floor]
        launch(level_best_kernel, count, args, self.device, grain=UNKNOWN_COUNT)
        args = [cells, bounds, deepest.level_best, deepest.owner]
        launch(owner_kernel, count, args, self.device, grain=UNKNOWN_COUNT)
        launch(best_kernel, self.pose_count, [bounds, deepest], self.device)
