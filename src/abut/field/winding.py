"""What an open mesh's winding number can be within a brick of samples: most are decided together.

The number of a surface changes by at most 2 A / (4 pi R^3) a unit of length, A being its area and
R its distance. With the number at the middle of a brick this bounds it everywhere in the brick.
"""

import warp as wp

from abut.atomics import load_wide
from abut.faces import load_face
from abut.field.grid import FieldGrid, position_of
from abut.geometry.solid_angle import solid_angle
from abut.hierarchy.dipoles import DIPOLE_ROWS
from abut.hierarchy.tree import escape_of, face_of, is_leaf, link_of, load_node, reach_of, root_of
from abut.point.surface import Surface
from abut.point.winding import LEAST_FAR, MISPLACED, PER_SPHERE, Winding, add_dipole, winding_around

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

BRICK = wp.constant(4)  # samples along each axis
ROUND_UP = wp.constant(wp.float32(1.0 + 2.0**-18))
HOPELESS = wp.constant(wp.float32(1.0))  # so much doubt decides nothing


@wp.func
def variation(area: wp.float32, gap: wp.float32, radius: wp.float32):
    """How much the number of faces of some area may change within a ball."""
    out = wp.float32(HOPELESS)
    nearest = gap - radius
    if nearest > wp.float32(0.0):
        change = wp.float32(2.0) * PER_SPHERE * area * radius / (nearest * nearest * nearest)
        out = wp.min(change * ROUND_UP, HOPELESS)
    return out


@wp.func
def winding_near(c: wp.vec3d, radius: wp.float32, surface: Surface):
    """The winding number around a point, its doubt covering a ball about it."""
    tree = surface.tree
    at = c - tree.origin
    root = root_of(tree)
    blur = MISPLACED * wp.float32(wp.max(wp.abs(at)) + reach_of(load_node(tree.nodes, root)))
    total = Winding()
    slot = root
    while slot >= 0 and total.doubt < HOPELESS:
        node = load_node(tree.nodes, slot)
        place = load_wide(surface.dipoles, DIPOLE_ROWS * slot)
        y = wp.vec3f(
            wp.float32(wp.float64(place[0]) - at[0]),
            wp.float32(wp.float64(place[1]) - at[1]),
            wp.float32(wp.float64(place[2]) - at[2]),
        )
        away = wp.length(y)
        gap = away - place[3] - blur
        area = load_wide(surface.dipoles, DIPOLE_ROWS * slot + 1)[3]
        next_slot = escape_of(node)
        if away > LEAST_FAR * place[3] and gap > wp.float32(0.25) * away and gap > radius:
            total = add_dipole(total, surface.dipoles, slot, y, away, gap, blur)
            total.doubt += variation(area, gap, radius)
        elif is_leaf(node):
            total.number += solid_angle(c, load_face(surface.faces, face_of(node), 0))
            total.doubt += variation(area, gap, radius)
        else:
            next_slot = 2 * link_of(node)
        slot = next_slot
    return total


@wp.kernel
def winding_bricks_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    surface: Surface,
    # out
    number_out: wp.array3d[wp.vec2f],
):
    """(number, doubt) of a surface for each brick of samples."""
    half = wp.float64(0.5) * wp.float64(BRICK - 1) * grid.spacing
    radius = wp.float32(half * wp.float64(1.7321))
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        row = item / number_out.shape[2]
        k = item - row * number_out.shape[2]
        i = row / number_out.shape[1]
        j = row - i * number_out.shape[1]
        middle = position_of(grid, BRICK * i, BRICK * j, BRICK * k) + wp.vec3d(half, half, half)
        found = winding_near(middle, radius, surface)
        number_out[i, j, k] = wp.vec2f(
            wp.float32(found.number), found.doubt * ROUND_UP + wp.float32(1e-6)
        )


@wp.func
def is_wound(p: wp.vec3d, crossings: wp.int32, brick: wp.vec2f, mesh: Surface, closure: Surface):
    """Does a mesh wind around p more than half a time, either way?

    Args:
        p: A sample.
        crossings: Of its ray with the mesh and its closure.
        brick: Number of the closure (of the mesh itself where it has dipoles) and its doubt for the
            brick of the sample.
        mesh, closure: See point.surface.
    """
    number = wp.abs(wp.float64(brick[0]) - wp.float64(crossings))
    if wp.abs(number - wp.float64(0.5)) <= wp.float64(brick[1]):
        added = -wp.float64(crossings)
        if mesh.dipoles.shape[0] > 0:
            number = winding_around(p, mesh.faces, mesh.tree, mesh.dipoles, added)
        else:
            number = winding_around(p, closure.faces, closure.tree, closure.dipoles, added)
        number = wp.abs(number)
    return number > wp.float64(0.5)
