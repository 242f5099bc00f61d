"""Crossings of a mesh by the ray from each sample along x, one traversal per row of samples.

A face that the line of a row crosses is ahead of the samples up to some index and behind the rest.
Its sign is added at the last sample before it; summed from the far end of the row, these are the
crossings of the ray from each sample, the same as cross_ray_tri finds one by one.
"""

import warp as wp

from abut.bounds.float32 import difference_lower_bound
from abut.bvh.layout import BvhView, escape_of, face_of, is_leaf, link_of, load_node, root_of
from abut.core.launch import launch
from abut.geometry.predicates import orient3d
from abut.geometry.winding_tri import cross_line_tri
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.surface import Surface
from abut.sdf.grid import FieldGrid, sample_position

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

MOST_CROSSINGS = wp.constant(32767)  # that 16 bits hold


@wp.func
def row_sample(p: wp.vec3d, spacing: wp.float64, i: wp.int32):
    """Return sample i of the row that begins at p, to the bit as sample_position has it."""
    return wp.vec3d(p[0] + spacing * wp.float64(i), p[1], p[2])


@wp.func
def samples_before(p: wp.vec3d, spacing: wp.float64, most: wp.int32, t: wp.mat33d, way: wp.int32):
    """Return how many samples of a row have the face, which the row's line crosses, ahead."""
    n = wp.cross(t[1] - t[0], t[2] - t[0])
    ahead = -wp.dot(n, p - t[0]) / (n[0] * spacing)
    count = wp.int32(0)
    if ahead >= wp.float64(0.0):  # not for NaN
        count = wp.int32(wp.min(ahead, wp.float64(most - 1))) + 1
    while count < most and orient3d(t[0], t[1], t[2], row_sample(p, spacing, count)) == -way:
        count += 1
    searching = wp.bool(count > 0)
    while searching:
        searching = False
        if orient3d(t[0], t[1], t[2], row_sample(p, spacing, count - 1)) != -way:
            count -= 1
            searching = count > 0
    return count


@wp.func
def add_crossings(grid: FieldGrid, j: wp.int32, k: wp.int32, side: PosedMesh, tree: BvhView):
    """Add the crossings of a row's line with a mesh at the last samples before them."""
    p = sample_position(grid.lower, grid.spacing, 0, j, k)
    y = p[1] - tree.origin[1]
    z = p[2] - tree.origin[2]
    low_y = difference_lower_bound(y)
    high_y = -difference_lower_bound(-y)
    low_z = difference_lower_bound(z)
    high_z = -difference_lower_bound(-z)
    slot = root_of(tree)
    while slot >= 0:
        node = load_node(tree.nodes, slot)
        slot = escape_of(node)
        if (
            node.low[1] <= high_y
            and low_y <= node.high[1]
            and node.low[2] <= high_z
            and low_z <= node.high[2]
        ):
            if is_leaf(node):
                t = load_face(side, face_of(node), 0)
                way = cross_line_tri(p, t)
                if way != 0:
                    count = samples_before(p, grid.spacing, grid.shape[0], t, way)
                    if count > 0:
                        marks = grid.gradient[count - 1, j, k]
                        marks[0] = marks[0] + wp.int16(way)
                        grid.gradient[count - 1, j, k] = marks
            else:
                slot = 2 * link_of(node)


@wp.kernel
def ray_rows_kernel(
    # in
    span: wp.vec3i,
    mesh: Surface,
    closure: Surface,
    # out
    grid_out: FieldGrid,
):
    """Write the crossings of each row at the last samples before them, into the gradients."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        j = row / grid_out.shape[2]
        k = row - j * grid_out.shape[2]
        if mesh.dipoles.shape[0] == 0:
            add_crossings(grid_out, j, k, mesh.faces, mesh.tree)
        if closure.dipoles.shape[0] > 0:
            add_crossings(grid_out, j, k, closure.faces, closure.tree)


@wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
def sum_crossings_kernel(
    # in
    span: wp.vec3i,
    # out
    crossings_out: wp.array3d[wp.vec3s],
):
    """Add to the first component of each sample those of all later samples of its row."""
    count = crossings_out.shape[0]
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        j = row / crossings_out.shape[2]
        k = row - j * crossings_out.shape[2]
        total = wp.int32(0)
        for n in range(count):
            i = count - 1 - n
            own = wp.int32(crossings_out[i, j, k][0])
            total += own
            held = wp.clamp(total, -MOST_CROSSINGS, MOST_CROSSINGS)
            if held != own:  # most are zero and stay so
                crossings_out[i, j, k] = wp.vec3s(wp.int16(held), wp.int16(0), wp.int16(0))


def count_crossings(grid: FieldGrid, surfaces: tuple[Surface, Surface], device: wp.Device) -> None:
    """Write the crossings of each sample's ray into the first component of its gradient."""
    rows = grid.distance.shape[1] * grid.distance.shape[2]
    grid.gradient.zero_()
    launch(ray_rows_kernel, rows, [*surfaces, grid], device, grain=64)
    launch(sum_crossings_kernel, rows, [grid.gradient], device, grain=64)
