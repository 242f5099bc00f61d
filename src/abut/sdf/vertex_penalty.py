"""The sums of penalty, damping and friction, divided among the vertices of the mesh.

Each fragment's share is divided by its barycentric weights in its face. The parts are whole steps
that add up to the share, so those of all vertices add up to the sums.
"""

from functools import cache

import warp as wp

from abut.core.atomics import atomic_add_int64
from abut.core.lanes import lane_count
from abut.sdf.draw_batches import Patches, batch_range, lane_pixels
from abut.sdf.field_pairs import FieldOperands
from abut.sdf.footprint import pixel_corners
from abut.sdf.grid_properties import DepthImages
from abut.sdf.orthographic_raster import barycentric_weights
from abut.sdf.penalty import (
    FragmentSums,
    fragment_inside,
    fragment_sums_for,
    round_to_integer,
    sum_unit,
)
from abut.sdf.pixel_patch import patch_face, patch_pixel

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

VERTEX_SUM_COUNT = wp.constant(6)  # force, torque
CornerSums = wp.types.vector(length=18, dtype=wp.float64)  # of three corners; integers below 2**53


@wp.func
def corner_sums(weights: wp.vec3d, share: FragmentSums):
    """Return the share of a fragment divided among the corners of its face."""
    out = CornerSums()
    for k in range(VERTEX_SUM_COUNT):
        one = round_to_integer(weights[0] * share[k])
        two = round_to_integer(weights[1] * share[k])
        out[k] = one
        out[VERTEX_SUM_COUNT + k] = two
        out[2 * VERTEX_SUM_COUNT + k] = share[k] - one - two
    return out


@wp.func
def add_to_vertices(
    sums: wp.array[wp.int64], first: wp.int32, corners: wp.vec3i, amount: CornerSums
):
    """Add the sums of the corners of a face; ``first`` is the first vertex of the pair."""
    for corner in range(3):
        row = (first + corners[corner]) * VERTEX_SUM_COUNT
        for k in range(VERTEX_SUM_COUNT):
            part = wp.int64(amount[corner * VERTEX_SUM_COUNT + k])
            if part != wp.int64(0):
                atomic_add_int64(sums, row + k, part)


@cache
def vertex_penalty_kernel_for(moving: bool, bending: bool) -> wp.Kernel:
    """Return the kernel for fragments as in ``fragment_sums_for``."""
    fragment_sums = fragment_sums_for(moving, bending)

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False},
    )
    def vertex_penalty_kernel(
        # in
        span: wp.vec3i,
        operands: FieldOperands,
        patches: Patches,
        columns: DepthImages,
        early: wp.int32,
        vertex_count: wp.int32,
        # out
        sums_out: wp.array[wp.int64],
    ):
        """Draw the patches, and divide the fragments inside among vertices."""
        thread = span[0] + wp.tid()
        mine = batch_range(patches, span, thread)
        for i in range(mine[0], mine[1]):
            work = lane_pixels(patches, i, mine[1], thread % lane_count())
            pair = operands.pairs[work.pair]
            grid = operands.fields[pair.field]
            face = patch_face(work.patch)
            corners = pixel_corners(operands, pair, face)
            cells_per_pixel = wp.float32(pair.cells_per_pixel)
            pixel = wp.vec2i(0, 0)
            total = CornerSums()
            for k in range(work.steps):
                pixel = patch_pixel(work.patch, work.first + k, pixel)
                held = fragment_inside(grid, work.patch, pixel, cells_per_pixel, columns, early)
                if work.is_valid and held[3] < wp.float32(0.0):
                    p = wp.vec3d(wp.vec3f(held[0], held[1], held[2])) / pair.cells_per_pixel
                    share = fragment_sums(operands, pair, grid, held)
                    total += corner_sums(barycentric_weights(corners, p), share)
            at = operands.meshes[pair.mesh].faces[face]
            add_to_vertices(sums_out, work.pair * vertex_count, at, total)

    return vertex_penalty_kernel


@wp.kernel
def vertex_rows_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    vertex_count: wp.int32,
    # out
    sums_out: wp.array[wp.int64],
    rows_out: wp.array[wp.float64],
):
    """Write the sums of each vertex of each pair; reset them for the next run."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pair = operands.pairs[i / (vertex_count * VERTEX_SUM_COUNT)]
        rows_out[i] = sum_unit(pair, i % VERTEX_SUM_COUNT) * wp.float64(sums_out[i])
        sums_out[i] = wp.int64(0)
