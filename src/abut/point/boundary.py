"""Winding numbers of open meshes, by a ray and the boundary alone.

Extend every boundary edge along -x to a strip without end. The strips close the mesh, and a ray
along +x meets none of them, so that its crossings with the mesh count how often the closed surface
winds around a point. The winding number of the mesh is that count less the share of the strips
(the antipodal method; Martens, Trettner and Bessmeltsev 2026).

A strip covers as much of the sphere as twice the argument of z = <a|b>, where |a> and |b> are the
directions to the ends of its edge as spinors (s, y + iz), s = length - x: a stereographic
projection from +x. The arguments are added up by a product of complex numbers, counting how often
it passes the negative real axis. So the sum is right up to rounding, and the number of whole turns
is exact: where a ray passes an edge closely, the predicate of ``cross_ray_tri`` tells the side.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.geometry.winding_tri import perturbed_orient2d
from abut.mesh import Mesh

ZERO = wp.constant(wp.float64(0.0))
ROUNDING = wp.constant(wp.float64(2.0**-50))  # of a difference of two products
TINY = wp.constant(wp.float64(2.0**-100))
HALF_TURN = wp.constant(wp.float64(2.0**-44))  # per corner: sums as near to a half turn are one
LANES = 4  # of the CPU's vectors


@wp.struct
class Boundary:
    """Closed loops of boundary edges."""

    corners: wp.array[wp.vec4d]  # along the loops; the fourth number is 0 where one begins
    rounded: wp.array[wp.vec4f]  # the same in float32 relative to ``origin``, see strips
    origin: wp.vec3d
    reach: wp.float64  # largest coordinate relative to the origin


@wp.func
def spinor(x: wp.float64, y: wp.float64, z: wp.float64):
    """(s, y, z) of a direction, up to a positive factor; without cancellation in s.

    A direction along +x is perturbed as in ``perturbed_orient2d``.
    """
    square = y * y + z * z
    length = wp.sqrt(x * x + square)
    out = wp.vec3d(length - x, y, z)
    if x > ZERO:
        out = wp.vec3d(square, (length + x) * y, (length + x) * z)
        if y == ZERO and z == ZERO:
            out = wp.vec3d(ZERO, ZERO, wp.float64(-1.0))
    return out


@wp.func
def normalising_power(x: wp.float64):
    """The power of two that brings a positive number to [1, 2)."""
    exponent = wp.cast(x, wp.int64) >> wp.int64(52)
    return wp.cast((wp.int64(2046) - exponent) << wp.int64(52), wp.float64)


@wp.func
def turned_past(im: wp.float64, by: wp.float64, re_after: wp.float64, im_after: wp.float64):
    """1 or -1 where a product of complex numbers has passed the negative real axis, else 0.

    ``im`` and ``by`` are the imaginary parts of the factors. The axis belongs to the upper half.
    """
    out = wp.int32(0)
    if im >= ZERO and by > ZERO and im_after < ZERO:
        out = 1
    elif im < ZERO and by < ZERO:
        if im_after > ZERO or (im_after == ZERO and re_after < ZERO):
            out = -1
    return out


@wp.func
def strip_half_turns(p: wp.vec3d, corners: wp.array[wp.vec4d]):
    """Twice the winding number of a mesh less its crossings with a ray, to the nearest even number.

    Where it is odd up to rounding, that odd number.
    """
    re = wp.float64(1.0)
    im = wp.float64(0.0)
    turns = wp.int32(0)
    start = wp.vec3d()
    start_spinor = wp.vec3d()
    for k in range(corners.shape[0]):
        row = corners[k]
        end = wp.vec3d(row[0], row[1], row[2])
        end_spinor = spinor(end[0] - p[0], end[1] - p[1], end[2] - p[2])
        if row[3] != ZERO:
            one = start_spinor[1] * end_spinor[2]
            two = start_spinor[2] * end_spinor[1]
            a = start_spinor[1] * end_spinor[1] + start_spinor[2] * end_spinor[2]
            a += start_spinor[0] * end_spinor[0]
            b = one - two
            if a <= ZERO and wp.abs(b) <= ROUNDING * (wp.abs(one) + wp.abs(two)):
                side = wp.float64(perturbed_orient2d(start, end, p))
                b = side * wp.max(wp.abs(b), -a * TINY)
            re_after = re * a - im * b
            im_after = re * b + im * a
            turns += turned_past(im, b, re_after, im_after)
            scale = normalising_power(wp.max(wp.abs(re_after), wp.abs(im_after)))
            re = re_after * scale
            im = im_after * scale
        start = end
        start_spinor = end_spinor
    out = -2 * turns
    if re < ZERO and wp.abs(im) <= -re * HALF_TURN * wp.float64(corners.shape[0]):
        out -= wp.where(im < ZERO, -1, 1)
    return out


def boundary_of(mesh: Mesh) -> Any:
    """The Boundary of a mesh in its present shape; an edge as often as faces are missing."""

    def make() -> Any:
        out, middle = Boundary(), mesh.bounds.mean(axis=0)
        rows = _rows(mesh.points.numpy(), boundary_loops(mesh.topology.boundary))
        out.corners = wp.array(rows, dtype=wp.vec4d, device=mesh.device)
        out.origin, out.reach = wp.vec3d(*middle), float(np.abs(mesh.bounds - middle).max())
        rows[:, :3] -= middle
        if mesh.device.is_cpu and len(rows):
            rows = _in_lanes(rows)
        out.rounded = wp.array(rows.astype(np.float32), dtype=wp.vec4f, device=mesh.device)
        return out

    return mesh.per_shape("boundary", make)


def boundary_loops(edges: np.ndarray) -> list[list[int]]:
    """Join directed edges (k, 2) to closed loops; as many must enter a vertex as leave it."""
    after = np.empty(len(edges), dtype=np.int64)
    after[np.argsort(edges[:, 1], kind="stable")] = np.argsort(edges[:, 0], kind="stable")
    following, starts, loops = after.tolist(), edges[:, 0].tolist(), []
    for first in range(len(edges)):
        loop, edge = [], first
        while following[edge] >= 0:
            loop.append(starts[edge])
            following[edge], edge = -1, following[edge]
        if loop:
            loops.append(loop)
    return loops


def _rows(points: np.ndarray, loops: list[list[int]]) -> np.ndarray:
    """(k, 4) corners of loops, each closed by its first one; see Boundary."""
    closed = [vertex for loop in loops for vertex in (*loop, loop[0])]
    lengths = [len(loop) + 1 for loop in loops]
    rows = np.ones((len(closed), 4))
    rows[:, :3] = points[np.array(closed, dtype=np.int64)]
    rows[np.cumsum([0, *lengths])[:-1], 3] = 0.0
    return rows


def _in_lanes(rows: np.ndarray) -> np.ndarray:
    """Corners in LANES equal parts side by side: x of each part, y, z, and where one begins."""
    steps = -(-len(rows) // LANES)
    at = np.arange(LANES * steps).reshape(LANES, steps)
    before = np.minimum(at[:, :1], len(rows)) - 1  # a part begins with the last corner of another
    at = np.minimum(np.concatenate([np.maximum(before, 0), at], axis=1), len(rows) - 1)
    parts = rows[at]
    parts[:, 0, 3] = 0.0
    parts[:, 1:, 3][at[:, 1:] == at[:, :-1]] = 0.0
    return parts.transpose(1, 2, 0).reshape(-1, LANES)
