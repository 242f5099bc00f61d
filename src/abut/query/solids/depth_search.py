"""The search for the deepest common point: cells are bounded, then dropped or divided."""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import BvhView, is_leaf, link_of, load_node
from abut.bvh.wide import grandchild_slot
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.point.nearest_face import STACK
from abut.query.solids.depth_bounds import depth_bounds_kernel
from abut.query.solids.depth_cells import (
    BOX,
    DROPPED,
    FAR,
    MEDIAL,
    TRIANGLE,
    Cells,
    DepthBounds,
    MedialTree,
    Precision,
    SolidOperand,
    away_from,
    find_nearest,
    node_of,
    upper_of,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ROOM = 1 << 19  # cells that are bounded at once
GRAIN = 16
UNKNOWN = wp.constant(UNKNOWN_COUNT)
HALF = wp.constant(wp.float64(0.5))
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


@wp.func
def divided_axes(half: wp.vec3d):
    """Bits of the axes along which a box is divided: those not much shorter than the longest."""
    longest = wp.max(half)
    bits = wp.int32(0)
    for axis in range(3):
        if half[axis] > wp.float64(0.7) * longest:
            bits = bits | (1 << axis)
    return bits


@wp.func
def bit_count(bits: wp.int32):
    """The number of bits set among three."""
    return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1)


@wp.func
def inner_box(slot: wp.int32, medial: MedialTree):
    """The index of a box of the medial tree that has parts; -1 for other cells."""
    out = wp.int32(-1)
    if slot <= MEDIAL:
        if medial.count[MEDIAL - slot] > 0:
            out = MEDIAL - slot
    return out


@wp.func
def box_of(cells: Cells, i: wp.int32, medial: MedialTree):
    """The centre and half extents of a box."""
    slot = cells.slot[i]
    out = cells.shape[i]
    if slot <= MEDIAL:
        out = medial.shape[MEDIAL - slot]
    return out


@wp.func
def part_count(cells: Cells, i: wp.int32, tree: BvhView, medial: MedialTree):
    """The number of parts into which a cell is divided that is no inner box of a medial tree."""
    slot = cells.slot[i]
    count = wp.int32(0)
    if slot >= 0:
        node = load_node(tree.nodes, slot)
        for column in range(4):
            if is_leaf(node):
                count += 1
            elif grandchild_slot(tree.nodes, link_of(node), column) >= 0:
                count += 1
    elif slot == TRIANGLE:
        count = wp.int32(4)
    else:
        count = 1 << bit_count(divided_axes(box_of(cells, i, medial)[1]))
    return count


@wp.kernel
def part_counts_kernel(
    # in
    span: wp.vec3i,
    cells: Cells,
    bounds: DepthBounds,
    tree: BvhView,
    medial: MedialTree,
    best: wp.array[wp.float64],
    floor: wp.array[wp.float64],
    precision: Precision,
    # out
    upper_out: wp.array[wp.float64],
    count_out: wp.array[wp.int32],
):
    """The number of parts of each cell: none if it cannot hold a point that matters."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = cells.pose[i]
        upper = bounds.upper[i]
        limit = best[pose] + precision.tolerance
        inner = inner_box(cells.slot[i], medial)
        count = wp.int32(0)
        if upper == DROPPED or upper < floor[pose]:
            count = wp.int32(0)
        elif upper <= limit:
            wp.atomic_max(upper_out, pose, upper)
        elif inner < 0:
            count = part_count(cells, i, tree, medial)
        else:
            for k in range(medial.count[inner]):
                most = upper_of(medial, medial.first[inner] + k, precision.noise)
                if most > limit:
                    count += 1
                else:
                    wp.atomic_max(upper_out, pose, most)
        count_out[i] = count


@wp.func
def split_longest(t: wp.mat33d, second: wp.bool):
    """One half of a triangle, cut at its longest edge."""
    edge = wp.int32(0)
    longest = wp.float64(-1.0)
    for k in range(3):
        side = t[(k + 1) % 3] - t[k]
        length = wp.dot(side, side)
        if length > longest:
            longest = length
            edge = k
    p = t[edge]
    q = t[(edge + 1) % 3]
    r = t[(edge + 2) % 3]
    middle = HALF * (p + q)
    out = wp.matrix_from_rows(p, middle, r)
    if second:
        out = wp.matrix_from_rows(middle, q, r)
    return out


@wp.func
def part_of_box(box: wp.mat33d, part: wp.int32):
    """Part ``part`` of a box, given by its centre and half extents."""
    centre = box[0]
    half = box[1]
    axes = divided_axes(half)
    bits = part
    for axis in range(3):
        if (axes >> axis & 1) != 0:
            half[axis] = HALF * half[axis]
            centre[axis] = centre[axis] + wp.where((bits & 1) != 0, half[axis], -half[axis])
            bits = bits >> 1
    return wp.matrix_from_rows(centre, half, wp.vec3d())


@wp.kernel
def parts_kernel(
    # in
    span: wp.vec3i,
    b: SolidOperand,
    medial: MedialTree,
    cells: Cells,
    starts: wp.array[wp.int32],
    faces: wp.array[wp.vec4i],
    known: wp.array[wp.int32],
    best: wp.array[wp.float64],
    precision: Precision,
    # out
    parts_out: Cells,
):
    """Divide cells: nodes and medial boxes into those below, others into equal parts."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        first = starts[i]
        count = starts[i + 1] - first
        pose = cells.pose[i]
        slot = cells.slot[i]
        above = inner_box(slot, medial)
        inner = wp.bool(False)
        if slot >= 0:
            inner = not is_leaf(load_node(b.tree.nodes, slot))
        to = wp.int32(first)
        if count == 0:
            continue
        elif inner:
            for column in range(4):
                split = link_of(load_node(b.tree.nodes, slot))
                part = grandchild_slot(b.tree.nodes, split, column)
                if part >= 0:
                    parts_out.slot[to] = part
                    to += 1
        elif above >= 0:
            for k in range(medial.count[above]):
                part = medial.first[above] + k
                limit = best[pose] + precision.tolerance
                if upper_of(medial, part, precision.noise) > limit:
                    parts_out.slot[to] = MEDIAL - part
                    to += 1
        elif slot <= BOX:
            box = box_of(cells, i, medial)
            for k in range(count):
                parts_out.slot[to + k] = BOX
                parts_out.shape[to + k] = part_of_box(box, k)
        else:
            triangle = cells.shape[i]
            if slot >= 0:
                triangle = node_of(b.faces, b.tree, pose, slot).rows
            for k in range(count):
                half = split_longest(triangle, (k & 1) != 0)
                parts_out.slot[to + k] = TRIANGLE
                parts_out.shape[to + k] = split_longest(half, (k & 2) != 0)
        for k in range(count):
            parts_out.pose[first + k] = pose
            parts_out.faces[first + k] = faces[i]
            parts_out.known[first + k] = known[i]


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


def make_cells(count: int, device: wp.Device) -> Any:
    """Room for cells."""
    cells = Cells()
    cells.pose = wp.empty(count, dtype=wp.int32, device=device)
    cells.slot = wp.empty(count, dtype=wp.int32, device=device)
    cells.shape = wp.empty(count, dtype=wp.mat33d, device=device)
    cells.faces = wp.empty(count, dtype=wp.vec4i, device=device)
    cells.known = wp.empty(count, dtype=wp.int32, device=device)
    return cells


def _rows(cells: Any, first: int, stop: int) -> Any:
    """Some of the cells."""
    out = Cells()
    for name in ("pose", "slot", "shape", "faces", "known"):
        setattr(out, name, getattr(cells, name)[first:stop])
    return out


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

    def run(self, cells: Any) -> None:
        """Search in cells until the bounds are tight; the last cells of too many wait."""
        waiting = [cells]
        while waiting:
            cells = waiting.pop()
            count = cells.pose.shape[0]
            if count > ROOM:
                waiting.append(_rows(cells, ROOM, count))
                cells = _rows(cells, 0, ROOM)
            bounds = self.bound(cells)
            self._take_best(cells, bounds[0])
            _, parts = self.divide(cells, *bounds)
            if parts is not None:
                waiting.append(parts)

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
        self, cells: Any, bounds: Any, faces: wp.array, known: wp.array
    ) -> tuple[wp.array, Any]:
        """Divide the cells that matter: (n + 1,) starts of their parts, and the parts or None."""
        device, count, best = self.device, cells.pose.shape[0], self.deepest.best
        counts = wp.empty(count, dtype=wp.int32, device=device)
        starts = wp.zeros(count + 1, dtype=wp.int32, device=device)
        trees = [self.b.tree, self.medial]
        limits = [best, self.deepest.floor, self.precision]
        args = [cells, bounds, *trees, *limits, self.deepest.upper, counts]
        launch(part_counts_kernel, count, args, device, grain=UNKNOWN_COUNT)
        wp.utils.array_scan(counts, starts[1:], inclusive=True)
        total = int(starts[count:].numpy()[0])
        if total == 0:
            return starts, None
        parts = make_cells(total, device)
        args = [self.b, self.medial, cells, starts, faces, known, best, self.precision, parts]
        launch(parts_kernel, count, args, device)
        return starts, parts

    def _take_best(self, cells: Any, bounds: Any) -> None:
        """Update the best points by the bounds of cells; one thread, where atomics are plain."""
        deepest, count = self.deepest, cells.pose.shape[0]
        args = [cells, bounds, deepest.level_best, deepest.floor]
        launch(level_best_kernel, count, args, self.device, grain=UNKNOWN_COUNT)
        args = [cells, bounds, deepest.level_best, deepest.owner]
        launch(owner_kernel, count, args, self.device, grain=UNKNOWN_COUNT)
        launch(best_kernel, self.pose_count, [bounds, deepest], self.device)
