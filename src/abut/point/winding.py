"""Generalised winding numbers, fast and with a bound on their error.

Far nodes of the tree are taken as dipoles with first moments (Barill et al. 2018); near faces by
their solid angles. For faces of total area A about a centre, seen from a distance R beyond their
radius r, what is left out is at most 3 S / (4 pi (R - r)^4), S being the second moment of the
area: third derivatives of 1/R are at most 6/R^4, and a remainder has half of them. The sum of
these bounds decides whether the number is certain to be above or below one half. If not, it is
summed again with fewer nodes as dipoles, at last with none.
"""

import warp as wp

from abut.bounds.float32 import row_xyz_float64, to_vec3f
from abut.bvh.dipoles import DIPOLE_ROWS
from abut.bvh.layout import (
    BvhView,
    face_of,
    is_leaf,
    load_node,
    max_abs_coordinate,
    next_slot,
    root_of,
)
from abut.core.memory_access import load_readonly_vec4f
from abut.geometry.winding_tri import solid_angle
from abut.operands.posed_mesh import PosedMesh, load_face

PER_SPHERE = wp.constant(wp.float32(0.07957747154594767))  # 1 / (4 pi)
LEAST_FAR = wp.constant(wp.float32(2.5))  # radii: nodes beyond are dipoles
MOST_FAR = wp.constant(wp.float32(1e6))
ROUNDING = wp.constant(wp.float32(2.0**-17))  # of a float32 product, generously
MISPLACED = wp.constant(wp.float32(2.0**-20))  # of a float32 centre, in shares of coordinates


@wp.struct
class Winding:
    """A winding number and a bound of its error."""

    number: wp.float64
    error: wp.float32


@wp.func
def add_dipole(
    total: Winding,
    dipoles: wp.array[wp.vec4f],
    slot: wp.int32,
    y: wp.vec3f,
    away: wp.float32,
    gap: wp.float32,
    blur: wp.float32,
):
    """Add a node as a dipole.

    ``y`` leads to its centre, ``away`` is the length of ``y``, ``gap`` the part of it beyond the
    node's radius, and ``blur`` bounds the error of the centre.
    """
    vector = load_readonly_vec4f(dipoles, DIPOLE_ROWS * slot + 1)
    m = load_readonly_vec4f(dipoles, DIPOLE_ROWS * slot + 2)
    more = load_readonly_vec4f(dipoles, DIPOLE_ROWS * slot + 3)
    near = wp.float32(1.0) / away
    along = vector[0] * y[0] + vector[1] * y[1] + vector[2] * y[2]
    trace = m[0] + m[1] + m[2]
    across = (
        m[0] * y[0] * y[0]
        + m[1] * y[1] * y[1]
        + m[2] * y[2] * y[2]
        + m[3] * y[0] * y[1]
        + more[0] * y[1] * y[2]
        + more[1] * y[2] * y[0]
    )
    value = near * near * near * (along + trace - wp.float32(3.0) * across * near * near)
    left_out = wp.float32(3.0) * more[2] / (gap * gap * gap * gap)
    rounded = vector[3] * near * near * (ROUNDING + wp.float32(4.0) * blur * near)
    out = Winding()
    out.number = total.number + wp.float64(PER_SPHERE * value)
    out.error = total.error + PER_SPHERE * (left_out + rounded)
    return out


@wp.func
def winding_from(
    p: wp.vec3d, side: PosedMesh, tree: BvhView, dipoles: wp.array[wp.vec4f], far: wp.float32
):
    """The winding number of an unmoved mesh around p; nodes beyond ``far`` radii are dipoles."""
    at = p - tree.origin
    blur = MISPLACED * wp.float32(
        wp.max(wp.abs(at)) + max_abs_coordinate(load_node(tree.nodes, root_of(tree)))
    )
    total = Winding()
    slot = root_of(tree)
    while slot >= 0:
        node = load_node(tree.nodes, slot)
        place = load_readonly_vec4f(dipoles, DIPOLE_ROWS * slot)
        y = to_vec3f(row_xyz_float64(place) - at)
        away = wp.length(y)
        gap = away - place[3] - blur
        is_far = away > far * place[3] and gap > wp.float32(0.25) * away
        if is_far:
            total = add_dipole(total, dipoles, slot, y, away, gap, blur)
        elif is_leaf(node):
            total.number += solid_angle(p, load_face(side, face_of(node), 0))
        slot = next_slot(node, not is_far)
    return total


@wp.func
def winding_around(
    p: wp.vec3d, side: PosedMesh, tree: BvhView, dipoles: wp.array[wp.vec4f], added: wp.float64
):
    """``added`` and the winding number of an unmoved mesh around p.

    Guarantee:
        On the right side of 1/2 and of -1/2, up to the rounding of float64 sums.
    """
    far = wp.float32(LEAST_FAR)
    found = winding_from(p, side, tree, dipoles, far)
    while (
        wp.abs(wp.abs(found.number + added) - wp.float64(0.5)) <= wp.float64(found.error)
        and far < MOST_FAR
    ):
        far = far * wp.float32(2.0)
        found = winding_from(p, side, tree, dipoles, far)
    return found.number + added
