"""Oriented boxes and swept spheres around moving vertices, edges or faces, for a whole step.

A leaf is fitted to its corners at the start and at the end: between them every point is a mean of
two of these, so a convex volume holds it.
"""

import numpy as np
import warp as wp

from abut.bounds.float32 import to_vec3f, to_vec4f
from abut.bvh.layout import Bvh, BvhView, leaf_face
from abut.bvh.node_obbs import (
    FaceShape,
    VolumeFit,
    add_shapes,
    axes_of_shape,
    fit_tasks,
    fit_upwards,
    shape_of_face,
    volume_fit,
    volume_rows,
)
from abut.bvh.swept_bvh import rounded_up
from abut.core.launch import Task
from abut.core.memory_access import store_vec4f
from abut.options import Bound

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

CORNERS = wp.constant(6)  # of a leaf: three at the start, three at the end


@wp.func
def shape_at(
    points: wp.array[wp.vec3d],
    feature: wp.vec3i,
    origin: wp.vec3d,
    at: wp.int32,
    corners: wp.array[wp.vec4f],
):
    """Return the shape of a feature at one time, and write its corners."""
    p0 = to_vec3f(points[feature[0]] - origin)
    p1 = to_vec3f(points[feature[1]] - origin)
    p2 = to_vec3f(points[feature[2]] - origin)
    store_vec4f(corners, at, to_vec4f(p0))
    store_vec4f(corners, at + 1, to_vec4f(p1))
    store_vec4f(corners, at + 2, to_vec4f(p2))
    return shape_of_face(p0, p1, p2)


@wp.func
def shape_of_step(start: FaceShape, end: FaceShape):
    """Return the shape of a feature at both times, which counts as one."""
    out = add_shapes(start, end)
    out.count = wp.float32(1.0)
    out.scatter = out.scatter * wp.float32(0.5)
    return out


@wp.kernel
def fit_swept_volumes_kernel(
    # in
    span: wp.vec3i,
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    features: wp.array[wp.vec3i],
    tree: BvhView,
    # out
    fit_out: VolumeFit,
):
    """Fit the volumes of all moving features and of the nodes above."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        feature = features[leaf_face(tree.nodes, tree.leaf_slots[k])]
        at = CORNERS * k
        start = shape_at(points_t0, feature, tree.origin, at, fit_out.corners)
        end = shape_at(points_t1, feature, tree.origin, at + 3, fit_out.corners)
        shape = shape_of_step(start, end)
        fit_upwards(tree, k, axes_of_shape(shape), shape, fit_out)


def fit_swept_volumes(
    tree: Bvh,
    points_t0: wp.array,
    points_t1: wp.array,
    features: wp.array,
    pad: float,
    bound: Bound,
) -> None:
    """Fit the volumes of all nodes of an up-to-date swept BVH, widened by ``pad``.

    Args:
        tree: A BVH of moving features (see swept_bvh).
        points_t0, points_t1: Where vertices are at the start and at the end of the step.
        features: Vertices of each feature, repeated where it has fewer than three.
        pad: Margin of the volumes.
        bound: OBB or RSS.
    """
    swept = bound is Bound.RSS
    volumes = tree.rss if swept else tree.obbs
    if volumes is None:
        volumes = volume_rows(tree)
    wide = rounded_up(pad)

    def make() -> list[Task]:
        fit = volume_fit(tree, int(CORNERS), volumes, swept, wide.value)
        arrays = [points_t0, points_t1, features]
        return fit_tasks(tree, fit_swept_volumes_kernel, arrays, fit)

    bits = int(np.float32(wide.value).view(np.int32))
    key = (points_t0.ptr, points_t1.ptr, volumes, bits)
    for task in tree.volume_tasks.get(key, make):
        task.run()
    if swept:
        tree.rss = volumes
    else:
        tree.obbs = volumes
