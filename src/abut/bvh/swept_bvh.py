"""BVHs over moving vertices, edges or faces, whose boxes hold them for a whole step."""

import numpy as np
import warp as wp

from abut.bounds.swept import fit_swept
from abut.bvh.layout import Bvh, BvhView, leaf_face
from abut.bvh.lbvh import NO_SIBLING, allocate_bvh, merge_upwards
from abut.bvh.morton import cells_per_length, morton_code, sort_by_code
from abut.bvh.refit import refit_upwards
from abut.core.launch import Task, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def swept_code_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.array[wp.vec3i],
    lower: wp.vec3d,
    scale: wp.float64,
    # out
    codes_out: wp.array[wp.int32],
    order_out: wp.array[wp.int32],
):
    """Write the Morton code of the centre of each feature at the middle of the step."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        c = corners[i]
        start = points_t0[c[0]] + points_t0[c[1]] + points_t0[c[2]]
        end = points_t1[c[0]] + points_t1[c[1]] + points_t1[c[2]]
        codes_out[i] = morton_code(((start + end) / wp.float64(6.0) - lower) * scale)
        order_out[i] = i


@wp.kernel
def swept_build_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.array[wp.vec3i],
    pad: wp.float32,
    codes: wp.array[wp.int32],
    order: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Fit the box of every leaf and merge upwards."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        feature = order[k]
        lower, upper = fit_swept(points_t0, points_t1, corners[feature], tree_out.origin, pad)
        merge_upwards(k, feature, lower, upper, codes, far_ends, tree_out)


def build_swept(
    points_t0: wp.array,
    points_t1: wp.array,
    corners: wp.array,
    bounds: np.ndarray,
    origin: np.ndarray,
    pad: float,
) -> Bvh:
    """Build the BVH of features given by up to three vertices each.

    Args:
        points_t0, points_t1: Where vertices are at the start and at the end of the step.
        corners: Vertices of each feature, repeated where it has fewer than three.
        bounds: (2, 3), of all vertices at both times.
        origin: Origin of box coordinates.
        pad: Margin of boxes, rounded up.
    """
    device = corners.device
    count = corners.shape[0]
    codes = wp.empty(2 * count, dtype=wp.int32, device=device)  # the sort needs room for two
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    far_ends = wp.full(max(count - 1, 1), NO_SIBLING, dtype=wp.int32, device=device)
    tree = allocate_bvh(count, origin, device)
    moving = [points_t0, points_t1, corners]
    grid = [wp.vec3d(*bounds[0]), wp.float64(cells_per_length(bounds))]
    launch(swept_code_kernel, count, [*moving, *grid, codes, order], device)
    sort_by_code(codes, order)
    args = [*moving, rounded_up(pad), codes, order, far_ends, tree.view()]
    launch(swept_build_kernel, count, args, device)
    return tree


def rounded_up(pad: float) -> wp.float32:
    """Return a float32 that is not below a margin."""
    with np.errstate(over="ignore"):
        return wp.float32(np.nextafter(np.float32(pad), np.float32(np.inf)) if pad > 0 else 0.0)


@wp.kernel
def swept_refit_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.array[wp.vec3i],
    pad: wp.float32,
    arrivals: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Fit the box of every leaf and merge upwards."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree_out.leaf_slots[k]
        feature = leaf_face(tree_out.nodes, slot)
        lower, upper = fit_swept(points_t0, points_t1, corners[feature], tree_out.origin, pad)
        refit_upwards(slot, lower, upper, arrivals, tree_out)


def refit_swept(
    tree: Bvh, points_t0: wp.array, points_t1: wp.array, corners: wp.array, pad: float
) -> None:
    """Fit all boxes to another motion of the same features; the topology stays."""
    wide = rounded_up(pad)

    def make() -> Task:
        args = [points_t0, points_t1, corners, wide, tree.arrivals, tree.view()]
        return Task(swept_refit_kernel, tree.face_count, args, tree.nodes.device)

    bits = int(np.float32(wide.value).view(np.int32))
    tree.refit_tasks.get((points_t0.ptr, points_t1.ptr, corners.ptr, bits), make).run()
