"""Winding numbers of samples of open meshes: most bricks are decided as a whole.

The winding number of a surface changes by at most 2 A / (4 pi R^3) per unit of length, where A is
its area and R its distance. With the number at the middle of a brick this bounds it in the brick.
"""

import warp as wp

from abut.bounds.float32 import row_xyz_float64, to_vec3f
from abut.bvh.dipoles import DIPOLE_ROWS
from abut.bvh.layout import (
    face_of,
    is_leaf,
    load_node,
    max_abs_coordinate,
    next_slot,
    root_of,
)
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.memory_access import load_readonly_vec4f
from abut.core.pair_queue import PairQueue, PairQueues, push_pair, team_stop
from abut.geometry.winding_tri import solid_angle
from abut.operands.posed_mesh import load_face
from abut.point.surface import Surface, is_inside
from abut.point.winding import LEAST_FAR, MISPLACED, PER_SPHERE, Winding, add_dipole, winding_around
from abut.sdf.brick import BRICK_SAMPLES, BRICK_SIDE
from abut.sdf.grid import FieldGrid, sample_indices, sample_position

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

SURE = wp.constant(wp.float32(1e-5))  # rounding of the number
ROUND_UP = wp.constant(wp.float32(1.0 + 2.0**-18))
HOPELESS = wp.constant(wp.float32(1.0))  # error that leaves the sign open


@wp.func
def winding_variation(area: wp.float32, gap: wp.float32, radius: wp.float32):
    """Return how much the winding number of faces of some area may change within a ball."""
    out = wp.float32(HOPELESS)
    nearest = gap - radius
    if nearest > wp.float32(0.0):
        change = wp.float32(2.0) * PER_SPHERE * area * radius / (nearest * nearest * nearest)
        out = wp.min(change * ROUND_UP, HOPELESS)
    return out


@wp.func
def winding_in_ball(c: wp.vec3d, radius: wp.float32, surface: Surface):
    """Return the winding number at a point; its error holds for a ball around it."""
    tree = surface.tree
    at = c - tree.origin
    root = root_of(tree)
    blur = MISPLACED * wp.float32(
        wp.max(wp.abs(at)) + max_abs_coordinate(load_node(tree.nodes, root))
    )
    total = Winding()
    slot = root
    while slot >= 0 and total.error < HOPELESS:
        node = load_node(tree.nodes, slot)
        place = load_readonly_vec4f(surface.dipoles, DIPOLE_ROWS * slot)
        y = to_vec3f(row_xyz_float64(place) - at)
        away = wp.length(y)
        gap = away - place[3] - blur
        area = load_readonly_vec4f(surface.dipoles, DIPOLE_ROWS * slot + 1)[3]
        is_far = away > LEAST_FAR * place[3] and gap > wp.float32(0.25) * away and gap > radius
        if is_far:
            total = add_dipole(total, surface.dipoles, slot, y, away, gap, blur)
            total.error += winding_variation(area, gap, radius)
        elif is_leaf(node):
            total.number += solid_angle(c, load_face(surface.faces, face_of(node), 0))
            total.error += winding_variation(area, gap, radius)
        slot = next_slot(node, not is_far)
    return total


@wp.kernel
def winding_bricks_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    surface: Surface,
    # out
    number_out: wp.array3d[wp.float32],
    undecided_out: PairQueue,
):
    """Write the winding number of each brick of samples; queue undecided bricks.

    Ray crossings shift the number by an integer, so only its distance from one half matters.
    """
    shape = wp.vec3i(number_out.shape[0], number_out.shape[1], number_out.shape[2])
    half = wp.float64(0.5) * wp.float64(BRICK_SIDE - 1) * grid.spacing
    radius = wp.float32(half * wp.float64(1.7321))
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        b = sample_indices(shape, item)
        s = BRICK_SIDE * b
        first = sample_position(grid.lower, grid.spacing, s[0], s[1], s[2])
        found = winding_in_ball(first + wp.vec3d(half, half, half), radius, surface)
        number = wp.float32(found.number)
        number_out[b[0], b[1], b[2]] = number
        rest = wp.abs(number - wp.floor(number) - wp.float32(0.5))
        if not rest > found.error * ROUND_UP + SURE:
            push_pair(undecided_out, wp.int64(item))


@wp.kernel
def undecided_bricks_kernel(
    # in
    span: wp.vec3i,
    undecided: PairQueue,
    shape: wp.vec3i,
    surface: Surface,
    # out
    grid_out: FieldGrid,
):
    """Write 1 inside, -1 outside for every sample of the queued bricks."""
    stop = team_stop(undecided, BRICK_SAMPLES, span[1])
    for n in range(span[0] + wp.tid(), stop, span[2]):
        item = wp.int32(undecided.keys[n / BRICK_SAMPLES])
        within = sample_indices(wp.vec3i(BRICK_SIDE, BRICK_SIDE, BRICK_SIDE), n % BRICK_SAMPLES)
        s = BRICK_SIDE * sample_indices(shape, item) + within
        i = s[0]
        j = s[1]
        k = s[2]
        if i < grid_out.shape[0] and j < grid_out.shape[1] and k < grid_out.shape[2]:
            marks = grid_out.gradient[i, j, k]
            p = sample_position(grid_out.lower, grid_out.spacing, i, j, k)
            added = -wp.float64(marks[0])
            number = winding_around(p, surface.faces, surface.tree, surface.dipoles, added)
            marks[1] = wp.where(wp.abs(number) > wp.float64(0.5), wp.int16(1), wp.int16(-1))
            grid_out.gradient[i, j, k] = marks


@wp.kernel(
    module="unique",
    module_options={"enable_backward": False, "fuse_fp": False, "max_unroll": 0},
)
def sample_signs_kernel(
    # in
    span: wp.vec3i,
    mesh: Surface,
    closure: Surface,
    # out
    grid_out: FieldGrid,
):
    """Decide every sample by itself: 1 inside, -1 outside in the second gradient component."""
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid_out.shape, n)
        p = sample_position(grid_out.lower, grid_out.spacing, s[0], s[1], s[2])
        sign = wp.where(is_inside(p, mesh, closure), wp.int16(1), wp.int16(-1))
        grid_out.gradient[s[0], s[1], s[2]] = wp.vec3s(wp.int16(0), sign, wp.int16(0))


def brick_windings(grid: FieldGrid, surface: Surface, device: wp.Device) -> wp.array:
    """Return the winding numbers of bricks; samples of undecided bricks get a sign."""
    shape = tuple(-(-n // BRICK_SIDE) for n in grid.distance.shape)
    numbers = wp.empty(shape, dtype=wp.float32, device=device)
    undecided = PairQueues(device, bricks=numbers.size)["bricks"]
    args = [grid, surface, numbers, undecided]
    launch(winding_bricks_kernel, numbers.size, args, device, grain=64)
    left = UNKNOWN_COUNT if device.is_cuda else int(undecided.count.numpy()[0]) * BRICK_SAMPLES
    launch(
        undecided_bricks_kernel,
        left,
        [undecided, wp.vec3i(*shape), surface, grid],
        device,
        grain=64,
    )
    return numbers
