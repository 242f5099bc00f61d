"""Parts of cells: nodes and boxes of trees have those below, others are divided equally."""

from typing import Any

import warp as wp

from abut.bvh.layout import BvhView, is_leaf, link_of, load_node
from abut.bvh.wide import grandchild_slot
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.query.solids.depth_cells import (
    BOX,
    DROPPED,
    MEDIAL,
    TRIANGLE,
    Cells,
    DepthBounds,
    MedialTree,
    Precision,
    SolidOperand,
    node_of,
    upper_of,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

HALF = wp.constant(wp.float64(0.5))


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


def make_cells(count: int, device: wp.Device) -> Any:
    """Room for cells."""
    cells = Cells()
    cells.pose = wp.empty(count, dtype=wp.int32, device=device)
    cells.slot = wp.empty(count, dtype=wp.int32, device=device)
    cells.shape = wp.empty(count, dtype=wp.mat33d, device=device)
    cells.faces = wp.empty(count, dtype=wp.vec4i, device=device)
    cells.known = wp.empty(count, dtype=wp.int32, device=device)
    return cells


def divide_cells(
    b: Any,
    medial: Any,
    cells: Any,
    bounds: Any,
    faces: wp.array,
    known: wp.array,
    best: wp.array,
    floor: wp.array,
    precision: Any,
    upper: wp.array,
) -> tuple[wp.array, Any]:
    """Divide cells whose upper bounds are above the best depths and the tolerance.

    Args:
        b, medial: The operand whose nodes are cells, and the medial tree of the other.
        cells, bounds: Cells and their bounds.
        faces, known: Faces and flags that the parts of each cell inherit.
        best, floor: Depths found for each pose, and depths that exist.
        precision: Tolerance and errors.
        upper: (B,) raised to the upper bounds of cells that are not divided.

    Returns:
        (n + 1,) starts of the parts of each cell, and the parts, or None without any.
    """
    device, count = best.device, cells.pose.shape[0]
    counts = wp.empty(count, dtype=wp.int32, device=device)
    starts = wp.zeros(count + 1, dtype=wp.int32, device=device)
    args = [cells, bounds, b.tree, medial, best, floor, precision, upper, counts]
    launch(part_counts_kernel, count, args, device, grain=UNKNOWN_COUNT)
    wp.utils.array_scan(counts, starts[1:], inclusive=True)
    total = int(starts[count:].numpy()[0])
    if total == 0:
        return starts, None
    parts = make_cells(total, device)
    args = [b, medial, cells, starts, faces, known, best, precision, parts]
    launch(parts_kernel, count, args, device)
    return starts, parts
