"""Box and FieldGrid: the samples of a distance field, and functions that interpolate them.

Beside each distance stands its gradient, the unit vector away from the closest point (towards it
inside). Unlike the direction to the closest point it does not flip at the surface, so neighbours
can be interpolated there. The closest point of p is p - distance * gradient.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.errors import CapacityError, MeshError, OptionError
from abut.options import number_from

GRADIENT_STEPS = 32767  # of a gradient component: an error of 1.6e-5 of the distance
PER_STEP = wp.constant(wp.float32(1.0 / GRADIENT_STEPS))
STEP_COUNT = wp.constant(wp.float64(GRADIENT_STEPS))
JUMP_BRICK_SIDE = wp.constant(8)  # samples
LEAST_GRADIENT = wp.constant(wp.float32(1e-3))  # a shorter mean gradient has no direction
USUAL = 256  # samples along the longest side
MOST = 1024
USUAL_MARGIN = 0.1  # of the longest side of the mesh

SHORTEST, LONGEST = 1e-15, 1e15  # longest sides of boxes: products of float32 are in range


@dataclass(frozen=True)
class Box:
    """A regular grid: samples at lower + spacing * (i, j, k)."""

    lower: np.ndarray
    spacing: float
    shape: tuple[int, int, int]

    @property
    def upper(self) -> np.ndarray:
        """The position of the last sample."""
        return self.lower + self.spacing * (np.array(self.shape) - 1)


def box_around(
    bounds: np.ndarray, resolution: int | None, spacing: float | None, margin: float | None
) -> Box:
    """Return the grid over a mesh's bounds and a margin, by resolution or spacing."""
    if resolution is not None and spacing is not None:
        raise OptionError("give resolution or spacing, not both: one follows from the other.")
    with np.errstate(over="ignore"):
        extent = bounds[1] - bounds[0]
    wide = USUAL_MARGIN * float(extent.max())
    if margin is not None:
        wide = number_from(margin, "margin", 0.0)
    sides = extent + 2.0 * wide
    longest = float(sides.max())
    if longest == 0.0:
        raise MeshError("the mesh is a single point; give the field a margin around it.")
    if not SHORTEST <= longest <= LONGEST:
        raise MeshError(
            f"a field holds distances in float32, for boxes from {SHORTEST:g} to {LONGEST:g} long, "
            f"not {longest:.6g}; scale the mesh."
        )
    if spacing is None:
        spacing = longest / (_checked(resolution) - 1)
    else:
        spacing = number_from(spacing, "spacing", 0.0)
        if not spacing > 0.0 or longest / spacing > MOST - 1:
            raise OptionError(
                f"spacing must be from {longest / (MOST - 1):.6g} up for a field this long, "
                f"not {spacing!r}."
            )
    counts = np.ceil(sides / spacing * (1.0 - 2.0**-40)).astype(np.int64)  # of cells
    counts = np.maximum(counts, 1)
    centre = 0.5 * (bounds[0] + bounds[1])
    nx, ny, nz = (int(n) + 1 for n in counts)
    return Box(centre - 0.5 * spacing * counts, spacing, (nx, ny, nz))


def _checked(resolution: int | None) -> int:
    if resolution is None:
        return USUAL
    try:
        whole = int(resolution) if resolution == int(resolution) else 0
    except (TypeError, ValueError, OverflowError):
        whole = 0
    if whole < 2:
        raise OptionError(f"resolution must be a whole number from 2 up, not {resolution!r}.")
    if whole > MOST:
        raise CapacityError(f"resolution {whole} is too fine; {MOST} is the most.")
    return whole


@wp.struct
class FieldGrid:
    """Samples at lower + spacing * (i, j, k)."""

    lower: wp.vec3d
    spacing: wp.float64
    shape: wp.vec3i  # samples along each axis, at least 2
    distance: wp.array3d[wp.float32]  # negative inside
    gradient: wp.array3d[wp.vec3s]  # in GRADIENT_STEPS; zero where the distance is clamped
    sign_jumps: wp.array3d[wp.uint8]  # bricks near a sign jump; empty if there is none


@wp.func
def sample_position(lower: wp.vec3d, spacing: wp.float64, i: wp.int32, j: wp.int32, k: wp.int32):
    """Return the position of a sample."""
    return lower + spacing * wp.vec3d(wp.float64(i), wp.float64(j), wp.float64(k))


@wp.func
def sample_indices(shape: wp.vec3i, n: wp.int32):
    """Return (i, j, k) of sample n in memory order."""
    plane = shape[1] * shape[2]
    i = n / plane
    j = (n - i * plane) / shape[2]
    return wp.vec3i(i, j, n - i * plane - j * shape[2])


@wp.func
def quantized(g: wp.vec3d):
    """Return a unit vector in integer steps."""
    s = STEP_COUNT * g
    return wp.vec3s(wp.int16(wp.rint(s[0])), wp.int16(wp.rint(s[1])), wp.int16(wp.rint(s[2])))


@wp.func
def unit_normal(t: wp.mat33d):
    """Return the unit normal of a triangle, zero where it has none."""
    normal = wp.cross(t[1] - t[0], t[2] - t[0])
    size = wp.length(normal)
    out = wp.vec3d(wp.float64(0.0))
    if size > wp.float64(0.0):
        out = normal / size
    return out


@wp.func
def to_cells(grid: FieldGrid, p: wp.vec3d):
    """Return a point in cells from the first sample."""
    return to_vec3f((p - grid.lower) / grid.spacing)


@wp.func
def interpolate_sample(grid: FieldGrid, at: wp.vec3f):
    """Return distance and gradient, linear between samples, at a point in cells in the box."""
    x = wp.min(wp.int32(at[0]), grid.shape[0] - 2)
    y = wp.min(wp.int32(at[1]), grid.shape[1] - 2)
    z = wp.min(wp.int32(at[2]), grid.shape[2] - 2)
    u = at[0] - wp.float32(x)
    v = at[1] - wp.float32(y)
    w = at[2] - wp.float32(z)
    total = wp.vec4f(0.0)
    for corner in range(8):
        a = corner >> 2
        b = (corner >> 1) & 1
        c = corner & 1
        share = (
            wp.where(a == 1, u, wp.float32(1.0) - u)
            * wp.where(b == 1, v, wp.float32(1.0) - v)
            * wp.where(c == 1, w, wp.float32(1.0) - w)
        )
        g = PER_STEP * wp.vec3f(grid.gradient[x + a, y + b, z + c])
        d = grid.distance[x + a, y + b, z + c]
        total += share * wp.vec4f(d, g[0], g[1], g[2])
    return total


@wp.func
def length_in_float64(v: wp.vec3f):
    """Return the length of a vector, whose squares may be out of the range of float32."""
    return wp.float32(wp.length(wp.vec3d(v)))


@wp.func
def extrapolated(blend: wp.vec4f, beyond: wp.vec3f):
    """Normalize the gradient of a sample; ``beyond`` leads from the box to the point.

    Outside the box the result is the distance from the closest point of the nearest point of the
    box, as the samples there say. A gradient that cancels (halfway between two sides of an object)
    is zero.
    """
    distance = blend[0]
    g = wp.vec3f(blend[1], blend[2], blend[3])
    size = wp.length(g)
    if size > LEAST_GRADIENT:
        g = g / size
    else:
        g = wp.vec3f(0.0)
    if not (beyond == wp.vec3f(0.0)):
        away = length_in_float64(beyond)
        way = beyond + distance * g
        reach = length_in_float64(way)
        if size > LEAST_GRADIENT and reach > wp.float32(0.0):
            distance = reach
            g = way / distance
        else:
            distance = distance + away
            g = beyond / away
    return wp.vec4f(distance, g[0], g[1], g[2])


@wp.func
def last_cell(grid: FieldGrid):
    """Return the far corner of the box, in cells."""
    return wp.vec3f(grid.shape - wp.vec3i(1))


@wp.func
def sample_at_cells(grid: FieldGrid, at: wp.vec3f):
    """Return (distance, gradient) at a point in cells from the first sample, see sample_field."""
    held = wp.min(wp.max(at, wp.vec3f(0.0)), last_cell(grid))
    beyond = wp.float32(grid.spacing) * (at - held)
    return extrapolated(interpolate_sample(grid, held), beyond)


@wp.func
def sample_field(grid: FieldGrid, p: wp.vec3d):
    """Return (distance, gradient) at p, linear between samples.

    The gradient is a unit vector, away from the closest point outside and towards it inside, or
    zero where neighbouring samples cancel: p - distance * gradient is the closest point. Outside
    the box the closest point is that of the nearest point of the box.

    Guarantee:
        Approximate. Inside the box within a cell's diagonal of the true distance.
    """
    return sample_at_cells(grid, to_cells(grid, p))


def make_grid(box: Box, distance: wp.array, gradient: wp.array) -> FieldGrid:
    """Return the struct for kernels."""
    grid = FieldGrid()
    grid.lower = wp.vec3d(*box.lower)
    grid.spacing = box.spacing
    grid.shape = wp.vec3i(*box.shape)
    grid.distance = distance
    grid.gradient = gradient
    grid.sign_jumps = wp.empty((0, 0, 0), dtype=wp.uint8, device=distance.device)
    return grid
