"""How often a mesh winds around each sample: rays along x, one for a whole row of samples.

A face that the line of a row crosses is ahead of the samples up to some index and behind the rest.
Its way is noted at the last sample before it; summed from the far end of the row, the notes are
the crossings of the ray from each sample, the same as cross_ray_tri finds one by one.
"""

import warp as wp

from abut.bounds.aabb import lower_bound
from abut.bvh.layout import BvhView, escape_of, face_of, is_leaf, link_of, load_node, root_of
from abut.core.launch import launch
from abut.geometry.cross_ray_tri import cross_line_tri
from abut.geometry.predicates import orient3d
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.surface import Surface
from abut.sdf.grid import FieldGrid, sample_position
from abut.sdf.notes import sum_crossings_kernel

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.func
def row_sample(p: wp.vec3d, spacing: wp.float64, i: wp.int32):
    """Sample i of the row that begins at p, to the bit as position_of has it."""
    return wp.vec3d(p[0] + spacing * wp.float64(i), p[1], p[2])


@wp.func
def samples_before(p: wp.vec3d, spacing: wp.float64, most: wp.int32, t: wp.mat33d, way: wp.int32):
    """How many samples of a row have the face, which the row's line crosses, ahead of them."""
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
    """Add the crossings of a row's line with a mesh to the notes of its samples."""
    p = sample_position(grid.lower, grid.spacing, 0, j, k)
    y = p[1] - tree.origin[1]
    z = p[2] - tree.origin[2]
    low_y = lower_bound(y)
    high_y = -lower_bound(-y)
    low_z = lower_bound(z)
    high_z = -lower_bound(-z)
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
                        note = grid.gradient[count - 1, j, k]
                        note[0] = note[0] + wp.int16(way)
                        grid.gradient[count - 1, j, k] = note
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
    """Note the crossings of each row at the last samples before them, in their gradients."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        j = row / grid_out.shape[2]
        k = row - j * grid_out.shape[2]
        if mesh.dipoles.shape[0] == 0:
            add_crossings(grid_out, j, k, mesh.faces, mesh.tree)
        if closure.dipoles.shape[0] > 0:
            add_crossings(grid_out, j, k, closure.faces, closure.tree)


def count_crossings(grid: FieldGrid, surfaces: tuple[Surface, Surface], device: wp.Device) -> None:
    """Leave the crossings of each sample's ray in the first component of its gradient."""
    rows = grid.distance.shape[1] * grid.distance.shape[2]
    grid.gradient.zero_()
    launch(ray_rows_kernel, rows, [*surfaces, grid], device, grain=64)
    launch(sum_crossings_kernel, rows, [grid.gradient], device, grain=64)
