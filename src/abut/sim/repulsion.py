"""Repulsion: keep near faces of sheets a thickness apart during a step."""

import numpy as np
import warp as wp

from abut.core.atomics import atomic_add_int64
from abut.core.launch import launch
from abut.geometry.closest_point_tri import closest_point_tri
from abut.mesh import Mesh
from abut.query.within import within

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))
SWELLING = 10.0  # thicknesses per second at which near faces separate
QUANTUM = 2.0**-44  # of the sheet's extent: corrections are summed as integers of this unit


@wp.struct
class NearContact:
    """Nearest points of two near faces; the second face may belong to an obstacle."""

    a: wp.vec3i  # corners
    b: wp.vec3i  # -1 for obstacles
    weight_a: wp.vec3d  # barycentric coordinates
    weight_b: wp.vec3d
    normal: wp.vec3d  # unit vector from b to a
    still: wp.float64  # position of an obstacle's point along ``normal``, else 0


@wp.func
def barycentric_at(points: wp.array[wp.vec3d], corners: wp.vec3i, p: wp.vec3d):
    """Return the barycentric coordinates of a point of a face."""
    tri = wp.matrix_from_rows(points[corners[0]], points[corners[1]], points[corners[2]])
    foot = closest_point_tri(p, tri)
    return foot.weights


@wp.kernel
def near_contacts_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    pairs: wp.array2d[wp.int32],
    near: wp.array2d[wp.vec3d],
    obstacle: wp.bool,
    # out
    contact_out: wp.array[NearContact],
):
    """Make the contacts of near faces."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        contact = NearContact()
        p = near[i, 0]
        q = near[i, 1]
        contact.normal = wp.normalize(p - q)
        contact.a = faces[pairs[i, 0]]
        contact.weight_a = barycentric_at(points, contact.a, p)
        if obstacle:
            contact.b = wp.vec3i(-1)
            contact.still = wp.dot(contact.normal, q)
        else:
            contact.b = faces[pairs[i, 1]]
            contact.weight_b = barycentric_at(points, contact.b, q)
        contact_out[i] = contact


@wp.func
def point_of_face(points: wp.array[wp.vec3d], corners: wp.vec3i, weight: wp.vec3d):
    """Return the point of a face by its barycentric coordinates."""
    return (
        points[corners[0]] * weight[0]
        + points[corners[1]] * weight[1]
        + points[corners[2]] * weight[2]
    )


@wp.func
def inverse_mass_at(free: wp.array[wp.float64], corners: wp.vec3i, weight: wp.vec3d):
    """Return the effective inverse mass of a point of a face."""
    out = wp.float64(0.0)
    for k in range(3):
        out += free[corners[k]] * weight[k] * weight[k]
    return out


@wp.func
def push(
    free: wp.array[wp.float64],
    corners: wp.vec3i,
    weight: wp.vec3d,
    move: wp.vec3d,
    sums: wp.array[wp.int64],
):
    """Add a displacement of a point of a face to the sums of its corners, in integer units.

    The fourth sum of a vertex counts its displacements.
    """
    for k in range(3):
        i = corners[k]
        share = free[i] * weight[k]
        if share > wp.float64(0.05):
            for axis in range(3):
                atomic_add_int64(sums, 4 * i + axis, wp.int64(wp.rint(share * move[axis])))
            atomic_add_int64(sums, 4 * i + 3, wp.int64(1))


@wp.kernel
def repel_kernel(
    # in
    span: wp.vec3i,
    contacts: wp.array[NearContact],
    before: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    free: wp.array[wp.float64],
    thickness: wp.float64,
    swell: wp.float64,
    friction: wp.float64,
    unit: wp.float64,
    # out
    sums_out: wp.array[wp.int64],
):
    """Sum the displacements that separate faces which are too near, and friction.

    Such faces may not approach. They separate by at most ``swell``, so that they keep little speed.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        contact = contacts[i]
        p = point_of_face(points, contact.a, contact.weight_a)
        p_before = point_of_face(before, contact.a, contact.weight_a)
        slip = p - p_before
        gap_before = wp.dot(contact.normal, p_before) - contact.still
        give = inverse_mass_at(free, contact.a, contact.weight_a)
        gap = wp.dot(contact.normal, p) - contact.still
        if contact.b[0] >= 0:
            q = point_of_face(points, contact.b, contact.weight_b)
            q_before = point_of_face(before, contact.b, contact.weight_b)
            slip = slip - (q - q_before)
            gap_before -= wp.dot(contact.normal, q_before)
            give += inverse_mass_at(free, contact.b, contact.weight_b)
            gap -= wp.dot(contact.normal, q)
        lack = wp.min(thickness, gap_before + swell) - gap
        if lack > ZERO and give > ZERO:
            slip = slip - wp.dot(slip, contact.normal) * contact.normal
            rub = wp.min(wp.length(slip), friction * lack)
            move = contact.normal * lack
            if rub > ZERO:
                move = move - wp.normalize(slip) * rub
            move = move / (give * unit)
            push(free, contact.a, contact.weight_a, move, sums_out)
            if contact.b[0] >= 0:
                push(free, contact.b, contact.weight_b, -move, sums_out)


@wp.kernel
def apply_pushes_kernel(
    # in
    span: wp.vec3i,
    unit: wp.float64,
    # out
    sums_out: wp.array[wp.int64],
    points_out: wp.array[wp.vec3d],
):
    """Move each vertex by the mean of its displacements, and reset the sums."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = sums_out[4 * i + 3]
        if count > wp.int64(0):
            share = unit / wp.float64(count)
            move = wp.vec3d()
            for axis in range(3):
                move[axis] = wp.float64(sums_out[4 * i + axis]) * share
                sums_out[4 * i + axis] = wp.int64(0)
            sums_out[4 * i + 3] = wp.int64(0)
            points_out[i] = points_out[i] + move


class Repulsion:
    """The near faces of a sheet, kept apart.

    Args:
        sheet, obstacle: Meshes on one device; there may be no obstacle.
        free: (n,) 1 for vertices that may move and 0 for others.
        thickness: Distance to keep [mesh length unit].
        friction: Slip removed, over the depth by which the thickness is missed.
    """

    def __init__(
        self, sheet: Mesh, obstacle: Mesh | None, free: wp.array, thickness: float, friction: float
    ) -> None:
        self.sheet, self.obstacle, self.free = sheet, obstacle, free
        self.thickness, self.friction = thickness, friction
        self.unit = QUANTUM * float(np.ptp(sheet.bounds, axis=0).max())
        self.sums = wp.zeros(4 * sheet.vertex_count, dtype=wp.int64, device=sheet.device)
        self.contacts: list[wp.array] = []
        self.close = self._keys(within(sheet, None, thickness).pairs)  # at rest, as in a tip

    def find(self, reach: float) -> int:
        """Find faces within ``reach`` of each other in the present shape; returns the count.

        Faces of the sheet that were nearer than the thickness to begin with are ignored.
        """
        others = [None] if self.obstacle is None else [None, self.obstacle]
        self.contacts = [self._found(other, reach) for other in others]
        return sum(contact.shape[0] for contact in self.contacts)

    def _found(self, other: Mesh | None, reach: float) -> wp.array:
        sheet, rows = self.sheet, within(self.sheet, other, reach)
        pairs, near = rows.pairs, rows.points.view(wp.vec3d)
        if other is None and len(self.close):
            apart = np.flatnonzero(~np.isin(self._keys(pairs), self.close)).astype(np.int32)
            chosen = wp.array(apart, device=sheet.device)
            pairs, near = pairs[chosen].contiguous(), near[chosen].contiguous()
        contacts = wp.empty(pairs.shape[0], dtype=NearContact, device=sheet.device)
        if pairs.shape[0]:
            args = [sheet.points, sheet.faces, pairs, near, other is not None, contacts]
            launch(near_contacts_kernel, pairs.shape[0], args, sheet.device, grain=512)
        return contacts

    def _keys(self, pairs: wp.array) -> np.ndarray:
        return pairs.numpy().astype(np.int64) @ [self.sheet.face_count, 1]

    def apply(self, before: wp.array, points: wp.array, seconds: float) -> None:
        """Separate points that were at ``before`` when the substep of ``seconds`` began."""
        device = points.device
        swell = SWELLING * self.thickness * seconds
        for contacts in self.contacts:
            if contacts.shape[0]:
                lengths = [wp.float64(x) for x in (self.thickness, swell, self.friction, self.unit)]
                args = [contacts, before, points, self.free, *lengths, self.sums]
                launch(repel_kernel, contacts.shape[0], args, device, grain=1024)
        if any(contacts.shape[0] for contacts in self.contacts):
            args = [wp.float64(self.unit), self.sums, points]
            launch(apply_pushes_kernel, points.shape[0], args, device)
