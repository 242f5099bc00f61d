"""Batched BVHs: the BVHs of many meshes in one set of arrays, built or refitted in one launch.

The faces, leaves and splits of a mesh slice begin at ``first_face`` of their arrays and its node
slots at twice that. Indices inside a slice are relative to its beginning, as in a BVH of its own
(see layout): a slice of the arrays is a BVH.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bvh.layout import BvhView, leaf_face, load_node, root_of
from abut.bvh.lbvh import NO_SIBLING, merge_upwards
from abut.bvh.morton import morton_code
from abut.bvh.refit import refit_upwards
from abut.core.launch import Task, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CELLS = wp.constant(wp.float64(1024.0))
CODE_BITS = 30
CODE = wp.constant(wp.int64(2**30 - 1))


@wp.struct
class MeshSlice:
    """The range of one mesh in the batched arrays, and the origin of its boxes."""

    first_face: wp.int32
    face_count: wp.int32
    first_point: wp.int32
    point_count: wp.int32
    origin: wp.vec3d


@wp.struct
class BatchedBvh:
    """Arrays of all mesh slices; faces index the points of their own slice."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    nodes: wp.array[wp.vec4f]
    leaf_slots: wp.array[wp.int32]
    split_slots: wp.array[wp.int32]
    arrivals: wp.array[wp.int32]  # scratch of refits
    rss: wp.array[wp.vec4f]  # swept spheres, four rows a slot, or empty
    slices: wp.array[MeshSlice]


@wp.func
def bvh_at(bvhs: BatchedBvh, mesh_slice: MeshSlice):
    """Return the BVH of a mesh slice."""
    first = mesh_slice.first_face
    stop = first + mesh_slice.face_count
    out = BvhView()
    out.nodes = bvhs.nodes[4 * first : 4 * stop - 2]
    out.leaf_slots = bvhs.leaf_slots[first:stop]
    out.split_slots = bvhs.split_slots[first:stop]
    if bvhs.rss.shape[0] > 0:
        out.rss = bvhs.rss[8 * first : 8 * stop - 4]
    out.origin = mesh_slice.origin
    return out


@wp.func
def load_corners(bvhs: BatchedBvh, mesh_slice: MeshSlice, face: wp.int32):
    """Return the corners of a face of a slice in its own frame, one a row."""
    corners = bvhs.faces[mesh_slice.first_face + face]
    return wp.matrix_from_rows(
        bvhs.points[mesh_slice.first_point + corners[0]],
        bvhs.points[mesh_slice.first_point + corners[1]],
        bvhs.points[mesh_slice.first_point + corners[2]],
    )


@wp.func
def slice_of_item(starts: wp.array[wp.int32], item: wp.int32):
    """Find the range that holds ``item``; they begin at ``starts``, whose last entry is the end."""
    low = wp.int32(0)
    high = starts.shape[0] - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= item:
            low = middle
        else:
            high = middle
    return low


@wp.kernel
def batched_morton_kernel(
    # in
    span: wp.vec3i,
    bvhs: BatchedBvh,
    indices: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    grids: wp.array[wp.vec4d],
    # out
    keys_out: wp.array[wp.int64],
    order_out: wp.array[wp.int32],
):
    """Compute the key of each face: its item, then the Morton code of its centroid."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        item = slice_of_item(starts, i)
        mesh_slice = bvhs.slices[indices[item]]
        face = bvhs.faces[mesh_slice.first_face + i - starts[item]]
        p = bvhs.points[mesh_slice.first_point + face[0]]
        q = bvhs.points[mesh_slice.first_point + face[1]]
        r = bvhs.points[mesh_slice.first_point + face[2]]
        grid = grids[item]
        centre = (p + q + r) / wp.float64(3.0)
        code = morton_code((centre - wp.vec3d(grid[0], grid[1], grid[2])) * grid[3])
        keys_out[i] = (wp.int64(item) << wp.int64(30)) | wp.int64(code)
        order_out[i] = i - starts[item]


@wp.kernel
def batched_codes_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    # out
    codes_out: wp.array[wp.int32],
    far_ends_out: wp.array[wp.int32],
):
    """Extract the codes from sorted keys and clear ``far_ends``."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        codes_out[i] = wp.int32(keys[i] & CODE)
        far_ends_out[i] = NO_SIBLING


@wp.kernel
def build_batched_kernel(
    # in
    span: wp.vec3i,
    indices: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    codes: wp.array[wp.int32],
    order: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    # out
    bvhs_out: BatchedBvh,
):
    """Fit the box of every leaf and merge upwards, as in lbvh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        item = slice_of_item(starts, i)
        first = starts[item]
        mesh_slice = bvhs_out.slices[indices[item]]
        stop = first + mesh_slice.face_count
        tree = bvh_at(bvhs_out, mesh_slice)
        corners = load_corners(bvhs_out, mesh_slice, order[i])
        lower, upper = fit_aabb(corners[0], corners[1], corners[2], mesh_slice.origin)
        merge_upwards(
            i - first, order[i], lower, upper, codes[first:stop], far_ends[first:stop], tree
        )
        bvhs_out.arrivals[mesh_slice.first_face + i - first] = 0


@wp.kernel
def refit_batched_kernel(
    # in
    span: wp.vec3i,
    indices: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    # out
    bvhs_out: BatchedBvh,
):
    """Refit the box of every leaf and merge upwards, as in refit."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        item = slice_of_item(starts, i)
        mesh_slice = bvhs_out.slices[indices[item]]
        tree = bvh_at(bvhs_out, mesh_slice)
        slot = tree.leaf_slots[i - starts[item]]
        corners = load_corners(bvhs_out, mesh_slice, leaf_face(tree.nodes, slot))
        lower, upper = fit_aabb(corners[0], corners[1], corners[2], mesh_slice.origin)
        arrivals = bvhs_out.arrivals[
            mesh_slice.first_face : mesh_slice.first_face + mesh_slice.face_count
        ]
        refit_upwards(slot, lower, upper, arrivals, tree)


@wp.kernel
def morton_grid_kernel(
    # in
    span: wp.vec3i,
    bvhs: BatchedBvh,
    sources: wp.array[wp.int32],
    # out
    grids_out: wp.array[wp.vec4d],
):
    """Compute the lower corner and cells per length of the root box of each source."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        mesh_slice = bvhs.slices[sources[i]]
        tree = bvh_at(bvhs, mesh_slice)
        box = load_node(tree.nodes, root_of(tree))
        size = box.high - box.low
        most = wp.float64(wp.max(wp.max(size[0], size[1]), size[2]))
        scale = CELLS / most
        if not (scale < wp.float64(1e300)):
            scale = wp.float64(0.0)
        low = box.low
        grids_out[i] = wp.vec4d(
            wp.float64(low[0]) + mesh_slice.origin[0],
            wp.float64(low[1]) + mesh_slice.origin[1],
            wp.float64(low[2]) + mesh_slice.origin[2],
            scale,
        )


@dataclass
class SliceBatch:
    """Mesh slices to be handled in one launch.

    Attributes:
        indices: Slice of each item.
        starts: First leaf of each item among the leaves of all, and the number of all leaves.
        leaf_count: Leaves of all items.
    """

    indices: wp.array
    starts: wp.array
    leaf_count: int

    @staticmethod
    def of(slices: np.ndarray, face_counts: np.ndarray, device: wp.Device) -> "SliceBatch":
        """Return the batch of some slices with at least one face each."""
        starts = np.concatenate([[0], np.cumsum(face_counts)]).astype(np.int32)
        indices = wp.array(np.asarray(slices, np.int32), device=device)
        return SliceBatch(indices, wp.array(starts, device=device), int(starts[-1]))


def morton_grids(bvhs: BatchedBvh, slices: np.ndarray, device: wp.Device) -> wp.array:
    """Return Morton grids over the present root boxes of some slices."""
    grids = wp.empty(len(slices), dtype=wp.vec4d, device=device)
    indices = wp.array(np.asarray(slices, np.int32), device=device)
    launch(morton_grid_kernel, len(slices), [bvhs, indices, grids], device)
    return grids


def build_batched(bvhs: BatchedBvh, batch: SliceBatch, grids: wp.array, device: wp.Device) -> None:
    """Build the BVHs of some slices; ``grids`` are lower corners and cells per length."""
    count = batch.leaf_count
    keys = wp.empty(2 * count, dtype=wp.int64, device=device)  # the sort needs room for two
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    codes, far_ends = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    items = [batch.indices, batch.starts]
    launch(batched_morton_kernel, count, [bvhs, *items, grids, keys, order], device)
    bits = CODE_BITS + (batch.indices.shape[0] - 1).bit_length()
    wp.utils.radix_sort_pairs(keys, order, count, 0, bits)
    launch(batched_codes_kernel, count, [keys, codes, far_ends], device)
    launch(build_batched_kernel, count, [*items, codes, order, far_ends, bvhs], device)


def refit_batched(bvhs: BatchedBvh, batch: SliceBatch, device: wp.Device) -> Task:
    """Return a task that refits the boxes of some slices to their present points."""
    args = [batch.indices, batch.starts, bvhs]
    return Task(refit_batched_kernel, batch.leaf_count, args, device)
