"""Dipole expansions of the faces below each node of a BVH, for winding numbers.

Seen from afar, the faces of a node act like a dipole at their centre (the sum of their area
vectors) with first moments; Barill et al. 2018, §3. Four rows a slot:

    centre, radius | area vector, area | xx, yy, zz, 2 xy | 2 yz, 2 zx, spread, 0

The moments are those of area vectors about the centre; only their symmetric part matters. The
spread is the second moment of the area, which bounds the truncation error.
"""

import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bvh.layout import Bvh, BvhView, leaf_face, parent_if_second
from abut.core.launch import launch
from abut.core.memory_access import load_l2_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

DIPOLE_ROWS = wp.constant(4)
ROUND_UP = wp.constant(wp.float32(1.0 + 2.0**-20))  # covers the roundings of a merge


@wp.struct
class Dipole:
    """The four rows of a slot."""

    at: wp.vec4f
    vector: wp.vec4f
    moments: wp.vec4f
    more: wp.vec4f


@wp.func
def fit_dipole(p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d, origin: wp.vec3d):
    """Return the dipole of a face about its centroid, where first moments vanish."""
    a = p0 - origin
    b = p1 - origin
    c = p2 - origin
    centre = (a + b + c) / wp.float64(3.0)
    vector = wp.cross(b - a, c - a) * wp.float64(0.5)
    area = wp.length(vector)
    far_a = wp.dot(a - centre, a - centre)
    far_b = wp.dot(b - centre, b - centre)
    far_c = wp.dot(c - centre, c - centre)
    radius = wp.sqrt(wp.max(far_a, wp.max(far_b, far_c)))
    spread = area * (far_a + far_b + far_c) / wp.float64(12.0)
    out = Dipole()
    out.at = wp.vec4f(
        wp.float32(centre[0]),
        wp.float32(centre[1]),
        wp.float32(centre[2]),
        wp.float32(radius) * ROUND_UP,
    )
    out.vector = wp.vec4f(
        wp.float32(vector[0]), wp.float32(vector[1]), wp.float32(vector[2]), wp.float32(area)
    )
    out.more = wp.vec4f(0.0, 0.0, wp.float32(spread), 0.0)
    return out


@wp.func
def recentre_dipole(d: Dipole, centre: wp.vec3f):
    """Return the expansion of the same faces about another centre."""
    off = row_xyz(d.at) - centre
    v = d.vector
    out = Dipole()
    radius = (d.at[3] + wp.length(off)) * ROUND_UP
    out.at = wp.vec4f(centre[0], centre[1], centre[2], radius)
    out.vector = v
    out.moments = d.moments + wp.vec4f(
        v[0] * off[0], v[1] * off[1], v[2] * off[2], v[0] * off[1] + v[1] * off[0]
    )
    out.more = d.more + wp.vec4f(
        v[1] * off[2] + v[2] * off[1],
        v[2] * off[0] + v[0] * off[2],
        v[3] * wp.dot(off, off),
        wp.float32(0.0),
    )
    return out


@wp.func
def merge_dipoles(a: Dipole, b: Dipole):
    """Return the dipole of two sets of faces, about the centroid of their areas."""
    area = a.vector[3] + b.vector[3]
    share = wp.float32(0.5)
    if area > wp.float32(0.0):
        share = b.vector[3] / area
    centre = row_xyz(a.at) + share * (row_xyz(b.at) - row_xyz(a.at))
    left = recentre_dipole(a, centre)
    right = recentre_dipole(b, centre)
    out = Dipole()
    out.at = wp.vec4f(centre[0], centre[1], centre[2], wp.max(left.at[3], right.at[3]))
    out.vector = left.vector + right.vector
    out.moments = left.moments + right.moments
    out.more = left.more + right.more
    return out


@wp.func
def store_dipole(rows: wp.array[wp.vec4f], slot: wp.int32, d: Dipole):
    """Write the rows of a slot."""
    rows[DIPOLE_ROWS * slot] = d.at
    rows[DIPOLE_ROWS * slot + 1] = d.vector
    rows[DIPOLE_ROWS * slot + 2] = d.moments
    rows[DIPOLE_ROWS * slot + 3] = d.more


@wp.func
def load_dipole(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read the rows that another thread wrote in this launch."""
    out = Dipole()
    out.at = load_l2_vec4f(rows, DIPOLE_ROWS * slot)
    out.vector = load_l2_vec4f(rows, DIPOLE_ROWS * slot + 1)
    out.moments = load_l2_vec4f(rows, DIPOLE_ROWS * slot + 2)
    out.more = load_l2_vec4f(rows, DIPOLE_ROWS * slot + 3)
    return out


@wp.kernel
def fit_dipoles_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    arrivals: wp.array[wp.int32],
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Fit the leaves and merge upwards; the second of two siblings to arrive continues."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        face = faces[leaf_face(tree.nodes, slot)]
        dipole = fit_dipole(points[face[0]], points[face[1]], points[face[2]], tree.origin)
        while slot >= 0:
            store_dipole(rows_out, slot, dipole)
            parent = parent_if_second(tree, slot, arrivals)
            if parent >= 0:
                other = load_dipole(rows_out, slot ^ 1)
                if slot % 2 == 0:  # the sum does not depend on the order of arrival
                    dipole = merge_dipoles(dipole, other)
                else:
                    dipole = merge_dipoles(other, dipole)
            slot = parent


def fit_dipoles(tree: Bvh, points: wp.array, faces: wp.array) -> wp.array:
    """Return the rows of dipoles for all slots of a BVH."""
    device = tree.nodes.device
    rows = wp.empty(DIPOLE_ROWS * (2 * tree.face_count - 1), dtype=wp.vec4f, device=device)
    args = [points, faces, tree.view(), tree.arrivals, rows]
    launch(fit_dipoles_kernel, tree.face_count, args, device, grain=512)
    return rows
