"""Forest: the trees of many meshes side by side, built or refitted all at once.

A body is a mesh in the forest. Its faces, leaves and splits begin at ``first_face`` of their arrays
and its slots at twice that, so that one number places it. All that a body holds is relative to its
own beginning, as in a tree of its own (see tree): slices of the arrays are such a tree.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.rows import vector_of
from abut.bvh.layout import BvhView, leaf_face, load_node, root_of, with_integer
from abut.bvh.lbvh import NOBODY, join_siblings, slot_after
from abut.bvh.morton import morton_code
from abut.bvh.refit import fit_upwards
from abut.core.launch import Task, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CELLS = wp.constant(wp.float64(1024.0))
CODE_BITS = 30
CODE = wp.constant(wp.int64(2**30 - 1))


@wp.struct
class MeshSlice:
    """Where a mesh lies in the forest, and what its boxes are relative to."""

    first_face: wp.int32
    face_count: wp.int32
    first_point: wp.int32
    point_count: wp.int32
    origin: wp.vec3d


@wp.struct
class BatchedBvh:
    """Arrays of all bodies; faces name points of their own body."""

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    nodes: wp.array[wp.vec4f]
    leaf_slots: wp.array[wp.int32]
    split_slots: wp.array[wp.int32]
    arrivals: wp.array[wp.int32]  # scratch of refits
    slices: wp.array[MeshSlice]


@wp.func
def bvh_at(forest: BatchedBvh, body: MeshSlice):
    """The tree of a body."""
    first = body.first_face
    stop = first + body.face_count
    out = BvhView()
    out.nodes = forest.nodes[4 * first : 4 * stop - 2]
    out.leaf_slots = forest.leaf_slots[first:stop]
    out.split_slots = forest.split_slots[first:stop]
    out.origin = body.origin
    return out


@wp.func
def load_corners(forest: BatchedBvh, body: MeshSlice, face: wp.int32):
    """Corners of a face of a body in its own frame, one a row."""
    corners = forest.faces[body.first_face + face]
    return wp.matrix_from_rows(
        forest.points[body.first_point + corners[0]],
        forest.points[body.first_point + corners[1]],
        forest.points[body.first_point + corners[2]],
    )


@wp.func
def slice_of_item(starts: wp.array[wp.int32], item: wp.int32):
    """Which part an item belongs to, of parts that begin at ``starts``; the last one is the end."""
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
def code_kernel(
    # in
    span: wp.vec3i,
    forest: BatchedBvh,
    which: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    grids: wp.array[wp.vec4d],
    # out
    keys_out: wp.array[wp.int64],
    order_out: wp.array[wp.int32],
):
    """Key of each face: its body, then the Morton code of its centre."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i)
        body = forest.slices[which[part]]
        face = forest.faces[body.first_face + i - starts[part]]
        p = forest.points[body.first_point + face[0]]
        q = forest.points[body.first_point + face[1]]
        r = forest.points[body.first_point + face[2]]
        grid = grids[part]
        centre = (p + q + r) / wp.float64(3.0)
        code = morton_code((centre - wp.vec3d(grid[0], grid[1], grid[2])) * grid[3])
        keys_out[i] = (wp.int64(part) << wp.int64(30)) | wp.int64(code)
        order_out[i] = i - starts[part]


@wp.kernel
def clear_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    # out
    codes_out: wp.array[wp.int32],
    far_ends_out: wp.array[wp.int32],
):
    """Codes alone; nobody has arrived anywhere."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        codes_out[i] = wp.int32(keys[i] & CODE)
        far_ends_out[i] = NOBODY


@wp.kernel
def build_batched_kernel(
    # in
    span: wp.vec3i,
    which: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    codes: wp.array[wp.int32],
    order: wp.array[wp.int32],
    far_ends: wp.array[wp.int32],
    # out
    forest_out: BatchedBvh,
):
    """Fit the box of every leaf and climb, as in lbvh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i)
        first = starts[part]
        body = forest_out.slices[which[part]]
        stop = first + body.face_count
        tree = bvh_at(forest_out, body)
        corners = load_corners(forest_out, body, order[i])
        lower, upper = fit_aabb(corners[0], corners[1], corners[2], body.origin)
        join_siblings(
            i - first,
            order[i],
            lower,
            upper,
            codes[first:stop],
            far_ends[first:stop],
            tree.nodes,
            tree.leaf_slots,
            tree.split_slots,
        )
        forest_out.arrivals[body.first_face + i - first] = 0


@wp.kernel
def escape_kernel(
    # in
    span: wp.vec3i,
    which: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    # out
    forest_out: BatchedBvh,
):
    """Where a walk goes on after each slot."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i >> 1)
        body = forest_out.slices[which[part]]
        tree = bvh_at(forest_out, body)
        slot = i - 2 * starts[part]
        if slot <= root_of(tree):
            high = tree.nodes[2 * slot + 1]
            after = slot_after(slot, root_of(tree), tree.split_slots)
            tree.nodes[2 * slot + 1] = with_integer(vector_of(high), after)


@wp.kernel
def refit_batched_kernel(
    # in
    span: wp.vec3i,
    which: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    # out
    forest_out: BatchedBvh,
):
    """Fit the box of every leaf to where its face is now and climb, as in refit."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        part = slice_of_item(starts, i)
        body = forest_out.slices[which[part]]
        tree = bvh_at(forest_out, body)
        slot = tree.leaf_slots[i - starts[part]]
        corners = load_corners(forest_out, body, leaf_face(tree.nodes, slot))
        lower, upper = fit_aabb(corners[0], corners[1], corners[2], body.origin)
        arrivals = forest_out.arrivals[body.first_face : body.first_face + body.face_count]
        fit_upwards(slot, lower, upper, tree.split_slots, arrivals, tree.nodes)


@wp.kernel
def grid_kernel(
    # in
    span: wp.vec3i,
    forest: BatchedBvh,
    sources: wp.array[wp.int32],
    # out
    grids_out: wp.array[wp.vec4d],
):
    """Lower corner and cells per length of the box of each source."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        body = forest.slices[sources[i]]
        tree = bvh_at(forest, body)
        box = load_node(tree.nodes, root_of(tree))
        size = box.high - box.low
        most = wp.float64(wp.max(wp.max(size[0], size[1]), size[2]))
        scale = CELLS / most
        if not (scale < wp.float64(1e300)):
            scale = wp.float64(0.0)
        low = box.low
        grids_out[i] = wp.vec4d(
            wp.float64(low[0]) + body.origin[0],
            wp.float64(low[1]) + body.origin[1],
            wp.float64(low[2]) + body.origin[2],
            scale,
        )


@dataclass
class Parts:
    """Bodies to be handled together: which, and where the leaves of each begin among all."""

    which: wp.array
    starts: wp.array
    leaf_count: int

    @staticmethod
    def of(bodies: np.ndarray, face_counts: np.ndarray, device: wp.Device) -> "Parts":
        """Parts of bodies with at least one face each."""
        starts = np.concatenate([[0], np.cumsum(face_counts)]).astype(np.int32)
        which = wp.array(np.asarray(bodies, np.int32), device=device)
        return Parts(which, wp.array(starts, device=device), int(starts[-1]))


def grids_of(forest: BatchedBvh, sources: np.ndarray, device: wp.Device) -> wp.array:
    """Grids for Morton codes over the boxes that these bodies have now."""
    grids = wp.empty(len(sources), dtype=wp.vec4d, device=device)
    held = wp.array(np.asarray(sources, np.int32), device=device)
    launch(grid_kernel, len(sources), [forest, held, grids], device)
    return grids


def build_batched(forest: BatchedBvh, parts: Parts, grids: wp.array, device: wp.Device) -> None:
    """Build the trees of bodies; ``grids`` are lower corners and cells per length."""
    count = parts.leaf_count
    keys = wp.empty(2 * count, dtype=wp.int64, device=device)  # the sort needs room for two
    order = wp.empty(2 * count, dtype=wp.int32, device=device)
    codes, far_ends = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    about = [parts.which, parts.starts]
    launch(code_kernel, count, [forest, *about, grids, keys, order], device)
    bits = CODE_BITS + (parts.which.shape[0] - 1).bit_length()
    wp.utils.radix_sort_pairs(keys, order, count, 0, bits)
    launch(clear_kernel, count, [keys, codes, far_ends], device)
    launch(build_batched_kernel, count, [*about, codes, order, far_ends, forest], device)
    launch(escape_kernel, 2 * count, [*about, forest], device)


def refit_batched(forest: BatchedBvh, parts: Parts, device: wp.Device) -> Task:
    """Fits the boxes of bodies to where their points are, whenever it is run."""
    args = [parts.which, parts.starts, forest]
    return Task(refit_batched_kernel, parts.leaf_count, args, device)
