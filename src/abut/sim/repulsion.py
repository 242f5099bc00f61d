"""Cushion: near faces of sheets are kept a thickness apart while a step is made."""

import numpy as np
import warp as wp

from abut.core.atomics import atomic_add_int64
from abut.core.launch import launch
from abut.geometry.closest_point_tri import closest_point_tri
from abut.mesh import Mesh
from abut.query.within import within

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))
SWELLING = 10.0  # thicknesses a second by which faces that are too near part
QUANTUM = 2.0**-44  # of the sheet's extent: corrections are summed as integers of this unit


@wp.struct
class Touch:
    """A point of one face near a point of another; the second may be of an obstacle.

    Attributes:
        a, b: Corners; those of obstacles are -1.
        weight_a, weight_b: Barycentric coordinates.
        normal: Unit vector from b to a.
        still: Along ``normal``, where the obstacle's point is; 0 without one.
    """

    a: wp.vec3i
    b: wp.vec3i
    weight_a: wp.vec3d
    weight_b: wp.vec3d
    normal: wp.vec3d
    still: wp.float64


@wp.func
def weights_at(points: wp.array[wp.vec3d], corners: wp.vec3i, p: wp.vec3d):
    """Barycentric coordinates of a point of a face."""
    tri = wp.matrix_from_rows(points[corners[0]], points[corners[1]], points[corners[2]])
    foot = closest_point_tri(p, tri)
    return foot.weights


@wp.kernel
def touch_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    pairs: wp.array2d[wp.int32],
    near: wp.array2d[wp.vec3d],
    obstacle: wp.bool,
    # out
    touch_out: wp.array[Touch],
):
    """What two near faces must keep."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        touch = Touch()
        p = near[i, 0]
        q = near[i, 1]
        touch.normal = wp.normalize(p - q)
        touch.a = faces[pairs[i, 0]]
        touch.weight_a = weights_at(points, touch.a, p)
        if obstacle:
            touch.b = wp.vec3i(-1)
            touch.still = wp.dot(touch.normal, q)
        else:
            touch.b = faces[pairs[i, 1]]
            touch.weight_b = weights_at(points, touch.b, q)
        touch_out[i] = touch


@wp.func
def mixed(points: wp.array[wp.vec3d], corners: wp.vec3i, weight: wp.vec3d):
    """A point of a face."""
    return (
        points[corners[0]] * weight[0]
        + points[corners[1]] * weight[1]
        + points[corners[2]] * weight[2]
    )


@wp.func
def give_of(free: wp.array[wp.float64], corners: wp.vec3i, weight: wp.vec3d):
    """How readily a point of a face moves."""
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
    """Note that a point of a face should move, in units of the sums; a fourth counts the pushes."""
    for k in range(3):
        i = corners[k]
        share = free[i] * weight[k]
        if share > wp.float64(0.05):
            for axis in range(3):
                atomic_add_int64(sums, 4 * i + axis, wp.int64(wp.rint(share * move[axis])))
            atomic_add_int64(sums, 4 * i + 3, wp.int64(1))


@wp.kernel
def keep_apart_kernel(
    # in
    span: wp.vec3i,
    touches: wp.array[Touch],
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
    """How far faces that are too near must move, and what friction takes from their slip.

    They may not come nearer, and part no faster than by ``swell``, so that they are not shot away.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        touch = touches[i]
        p = mixed(points, touch.a, touch.weight_a)
        p_before = mixed(before, touch.a, touch.weight_a)
        slip = p - p_before
        gap_before = wp.dot(touch.normal, p_before) - touch.still
        give = give_of(free, touch.a, touch.weight_a)
        gap = wp.dot(touch.normal, p) - touch.still
        if touch.b[0] >= 0:
            q = mixed(points, touch.b, touch.weight_b)
            q_before = mixed(before, touch.b, touch.weight_b)
            slip = slip - (q - q_before)
            gap_before -= wp.dot(touch.normal, q_before)
            give += give_of(free, touch.b, touch.weight_b)
            gap -= wp.dot(touch.normal, q)
        lack = wp.min(thickness, gap_before + swell) - gap
        if lack > ZERO and give > ZERO:
            slip = slip - wp.dot(slip, touch.normal) * touch.normal
            rub = wp.min(wp.length(slip), friction * lack)
            move = touch.normal * lack
            if rub > ZERO:
                move = move - wp.normalize(slip) * rub
            move = move / (give * unit)
            push(free, touch.a, touch.weight_a, move, sums_out)
            if touch.b[0] >= 0:
                push(free, touch.b, touch.weight_b, -move, sums_out)


@wp.kernel
def apply_kernel(
    # in
    span: wp.vec3i,
    unit: wp.float64,
    # out
    sums_out: wp.array[wp.int64],
    points_out: wp.array[wp.vec3d],
):
    """Move each vertex by the mean of its pushes, and forget them."""
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


class Cushion:
    """The near faces of a sheet, and what it has to keep them apart.

    Args:
        sheet, obstacle: Meshes on one device; there may be no obstacle.
        free: (n,) 1 for vertices that may move and 0 for others.
        thickness: Distance to keep [mesh length unit].
        friction: Slip taken away, over the depth by which the thickness is missed.
    """

    def __init__(
        self, sheet: Mesh, obstacle: Mesh | None, free: wp.array, thickness: float, friction: float
    ) -> None:
        self.sheet, self.obstacle, self.free = sheet, obstacle, free
        self.thickness, self.friction = thickness, friction
        self.unit = QUANTUM * float(np.ptp(sheet.bounds, axis=0).max())
        self.sums = wp.zeros(4 * sheet.vertex_count, dtype=wp.int64, device=sheet.device)
        self.touches: list[wp.array] = []
        self.close = self._keys(within(sheet, None, thickness).pairs)  # by nature, as in a tip

    def find(self, reach: float) -> int:
        """Look for faces within ``reach`` of each other in the sheet's present shape.

        Faces of the sheet that were nearer than the thickness to begin with are left alone.
        """
        others = [None] if self.obstacle is None else [None, self.obstacle]
        self.touches = [self._found(other, reach) for other in others]
        return sum(touch.shape[0] for touch in self.touches)

    def _found(self, other: Mesh | None, reach: float) -> wp.array:
        sheet, rows = self.sheet, within(self.sheet, other, reach)
        pairs, near = rows.pairs, rows.points.view(wp.vec3d)
        if other is None and len(self.close):
            apart = np.flatnonzero(~np.isin(self._keys(pairs), self.close)).astype(np.int32)
            chosen = wp.array(apart, device=sheet.device)
            pairs, near = pairs[chosen].contiguous(), near[chosen].contiguous()
        touches = wp.empty(pairs.shape[0], dtype=Touch, device=sheet.device)
        if pairs.shape[0]:
            args = [sheet.points, sheet.faces, pairs, near, other is not None, touches]
            launch(touch_kernel, pairs.shape[0], args, sheet.device, grain=512)
        return touches

    def _keys(self, pairs: wp.array) -> np.ndarray:
        return pairs.numpy().astype(np.int64) @ [self.sheet.face_count, 1]

    def keep(self, before: wp.array, points: wp.array, seconds: float) -> None:
        """Move points, which were elsewhere ``seconds`` before, out of each other's way."""
        device = points.device
        swell = SWELLING * self.thickness * seconds
        for touches in self.touches:
            if touches.shape[0]:
                lengths = [wp.float64(x) for x in (self.thickness, swell, self.friction, self.unit)]
                args = [touches, before, points, self.free, *lengths, self.sums]
                launch(keep_apart_kernel, touches.shape[0], args, device, grain=1024)
        if any(touches.shape[0] for touches in self.touches):
            args = [wp.float64(self.unit), self.sums, points]
            launch(apply_kernel, points.shape[0], args, device)
