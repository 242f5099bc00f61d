"""A mesh sampled at its vertices alone (``sampling="vertices"``): kernels and plans.

Fuhrmann, Sobottka, Gross 2003. One field sample per vertex, each with a third of the area of its
faces. Items are vertices in place of faces; nothing is drawn.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count, warp_all
from abut.core.launch import launch
from abut.core.pair_queue import NO_KEY, no_key
from abut.core.plan import Stage
from abut.geometry.poses import move_point
from abut.sdf.closest_sample import ClosestPlan
from abut.sdf.field_pairs import FieldOperands, pair_of_item
from abut.sdf.field_plan import FieldPlan
from abut.sdf.field_probe import (
    distance_key,
    interpolate_distance,
    is_in_box,
    key_distance,
    key_face,
    probe_field,
)
from abut.sdf.grid import last_cell, sample_at_cells
from abut.sdf.penalty import (
    SUM_COUNT,
    Fragment,
    FragmentSums,
    fragment_sums_for,
    response_rows_kernel,
    warp_add_sums,
)
from abut.sdf.response import MOST_COPIES

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PIXELS = 32  # along the box's longest side: units of weights
MOST_WEIGHT = wp.constant(wp.float32(2.0**16))  # of a vertex [pixels], so that sums stay exact


@wp.struct
class VertexSamples:
    """Faces around each vertex, and the area that it stands for."""

    starts: wp.array[wp.int32]  # of each vertex's faces
    faces: wp.array[wp.int32]
    weights: wp.array[wp.float32]  # area [pixels]


@wp.kernel
def vertex_weights_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    pixel: wp.float64,
    # out
    samples_out: VertexSamples,
):
    """Give each vertex a third of the area of its faces."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.float64(0.0)
        for k in range(samples_out.starts[i], samples_out.starts[i + 1]):
            v = faces[samples_out.faces[k]]
            a = points[v[0]]
            total += wp.length(wp.cross(points[v[1]] - a, points[v[2]] - a))
        weight = wp.float32(total / (wp.float64(6.0) * pixel * pixel))
        samples_out.weights[i] = wp.min(weight, MOST_WEIGHT)


@wp.func
def vertex_in_cells(operands: FieldOperands, pair_index: wp.int32, vertex: wp.int32):
    """Return a vertex in cells of the field."""
    pair = operands.pairs[pair_index]
    at = move_point(pair.to_pixels, operands.meshes[pair.mesh].points[vertex])
    return to_vec3f(pair.cells_per_pixel * at)


@cache
def vertex_forces_kernel_for(moving: bool, bending: bool) -> wp.Kernel:
    """Return the kernel with forces as in ``fragment_sums_for``."""
    fragment_sums = fragment_sums_for(moving, bending)

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def vertex_forces_kernel(
        # in
        span: wp.vec3i,
        operands: FieldOperands,
        samples: VertexSamples,
        copies: wp.int32,
        # out
        sums_out: wp.array[wp.int64],
    ):
        """Add up the vertices inside."""
        thread = span[0] + wp.tid()
        lane = thread % lane_count()
        copy = (thread / lane_count()) % copies
        vertex_count = samples.weights.shape[0]
        total = FragmentSums()
        load = wp.float32(0.0)
        row = wp.int32(-1)
        for item in range(thread, span[1], span[2]):
            pair_index = pair_of_item(operands, item)
            if pair_index != row and row >= 0:
                warp_add_sums(sums_out, row * copies + copy, total, lane)
                total = FragmentSums()
                load = wp.float32(0.0)
            row = pair_index
            vertex = item - operands.first_item[pair_index]
            if vertex < vertex_count:
                pair = operands.pairs[pair_index]
                grid = operands.fields[pair.field]
                c = vertex_in_cells(operands, pair_index, vertex)
                weight = samples.weights[vertex]
                if is_in_box(c, last_cell(grid)) and weight > wp.float32(0.0):
                    d = interpolate_distance(grid, c)
                    if d < wp.float32(0.0):
                        face = wp.cast(samples.faces[samples.starts[vertex]], wp.float32)
                        held = Fragment(c[0], c[1], c[2], d, weight, face)
                        total += fragment_sums(operands, pair, grid, held)
                        load += weight
            if not warp_all(load < MOST_WEIGHT):
                warp_add_sums(sums_out, row * copies + copy, total, lane)
                total = FragmentSums()
                load = wp.float32(0.0)
        if row >= 0:
            warp_add_sums(sums_out, row * copies + copy, total, lane)

    return vertex_forces_kernel


@wp.kernel
def vertex_distances_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    samples: VertexSamples,
    # out
    best_out: wp.array[wp.int64],
):
    """Lower the best key of each pair to the least (distance, vertex)."""
    least = no_key()
    row = wp.int32(-1)
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        pair_index = pair_of_item(operands, item)
        if pair_index != row and row >= 0:
            warp_atomic_min_int64(best_out, row, least)
            least = no_key()
        row = pair_index
        vertex = item - operands.first_item[pair_index]
        if vertex < samples.weights.shape[0]:
            if samples.starts[vertex] < samples.starts[vertex + 1]:
                pair = operands.pairs[pair_index]
                grid = operands.fields[pair.field]
                c = vertex_in_cells(operands, pair_index, vertex)
                distance = probe_field(grid, c, pair.margin).distance + wp.float32(0.0)
                least = wp.min(least, distance_key(distance, vertex))
    if row >= 0:
        warp_atomic_min_int64(best_out, row, least)


@wp.kernel
def closest_vertex_rows_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    samples: VertexSamples,
    # out
    best_out: wp.array[wp.int64],
    count_out: wp.array[wp.int64],
    rows_out: wp.array2d[wp.float64],
):
    """Write distance, face and both points of each pair; reset the keys for the next run."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pair_index = i / lane_count()
        if i % lane_count() == 0:
            pair = operands.pairs[pair_index]
            grid = operands.fields[pair.field]
            best = best_out[pair_index]
            vertex = key_face(best)
            at = move_point(pair.to_pixels, operands.meshes[pair.mesh].points[vertex])
            point = grid.lower + pair.pixel * at
            found = sample_at_cells(grid, to_vec3f(pair.cells_per_pixel * at))
            rows_out[pair_index, 0] = wp.float64(key_distance(best))
            rows_out[pair_index, 1] = wp.float64(samples.faces[samples.starts[vertex]])
            for x in range(3):
                way = wp.float64(found[0]) * wp.float64(found[1 + x])
                rows_out[pair_index, 2 + x] = point[x] - way
                rows_out[pair_index, 5 + x] = point[x]
            best_out[pair_index] = NO_KEY
            if pair_index == 0:
                for k in range(count_out.shape[0]):
                    rows_out[0, 8 + k] = wp.float64(0.0)


class VertexPlan(FieldPlan):
    """A plan whose items are vertices."""

    def __init__(
        self, field: Any, mesh: Any, pose_count: int, pixel: float, **options: Any
    ) -> None:
        corners = mesh.faces.numpy().reshape(-1, 3).ravel()
        counts = np.bincount(corners, minlength=mesh.vertex_count)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        around = (np.argsort(corners, kind="stable") // 3).astype(np.int32)
        self.samples = VertexSamples()
        self.samples.starts = wp.array(starts, dtype=wp.int32, device=mesh.device)
        self.samples.faces = wp.array(around, dtype=wp.int32, device=mesh.device)
        self.samples.weights = wp.zeros(mesh.vertex_count, dtype=wp.float32, device=mesh.device)
        pixel = field.box.spacing * (max(field.box.shape) - 1) / PIXELS
        super().__init__(field, mesh, pose_count, pixel, **options)

    def _items_of(self, mesh: Any) -> int:
        return mesh.vertex_count

    def _follow(self, mesh: Any) -> None:
        if mesh.points is not self._points:
            args = [mesh.points, mesh.faces, wp.float64(self.pixel), self.samples]
            launch(vertex_weights_kernel, mesh.vertex_count, args, self.device, grain=1024)
        super()._follow(mesh)


class VertexResponsePlan(VertexPlan):
    """Force and torque, summed over the vertices inside."""

    columns = SUM_COUNT

    def __init__(
        self, field: Any, *args: Any, vertex_velocities: bool, dissipative: bool, **options: Any
    ) -> None:
        self._variant = dissipative, vertex_velocities
        super().__init__(field, *args, vertex_velocities=vertex_velocities, **options)

    def stages(self) -> Iterable[Stage]:
        """Yield the stages."""
        copies = max(1, MOST_COPIES // max(self.pose_count, 1))
        self._sums = wp.zeros(
            self.pose_count * copies * SUM_COUNT, dtype=wp.int64, device=self.device
        )
        kernel = vertex_forces_kernel_for(*self._variant)
        yield "vertices", self.over_items(kernel, self.samples, copies, self._sums)
        yield "rows", self.over_rows(response_rows_kernel, SUM_COUNT, copies, self._sums)


class VertexClosestPlan(VertexPlan):
    """The vertex that is closest, or deepest inside."""

    columns = ClosestPlan.columns

    def stages(self) -> Iterable[Stage]:
        """Yield the stages."""
        self._best = wp.full(self.pose_count, int(NO_KEY), wp.int64, self.device)
        yield "vertices", self.over_items(vertex_distances_kernel, self.samples, self._best)
        yield "rows", self.over_rows(closest_vertex_rows_kernel, 1, self.samples, self._best)
