"""Force and torque as functions of a pose that Warp's tape differentiates.

This is the one module with backward code. Samples are fixed points of the mesh, the centroids of
subtriangles (``sampling="faces"``): they move with the pose, so that sums over them have a
derivative wherever the field has one. The sums are those of ``response``, in float64.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.kernel_cache import without_messages
from abut.errors import DeviceError, OptionError
from abut.sdf.grid import GRADIENT_STEPS, FieldGrid

wp.set_module_options({"enable_backward": True, "fuse_fp": False})

ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
HALF = wp.constant(wp.float64(0.5))
PER_STEP = wp.constant(wp.float64(1.0 / GRADIENT_STEPS))
RUN = wp.constant(wp.int32(256))  # samples per thread


@wp.struct
class ContactLaw:
    """The parameters of a sample's force beside its position."""

    centre: wp.vec3d
    velocity: wp.vec3d  # of the field's object, at the frame's origin
    spin: wp.vec3d
    other_velocity: wp.vec3d  # of the mesh, at its frame's origin
    other_spin: wp.vec3d
    material: wp.vec4d  # stiffness, damping, friction, slip


@dataclass(frozen=True, eq=False)
class TapedResponse:
    """Force, torque and energy between a mesh and a field's object, recorded on the active tape.

    Attributes:
        force, torque: (B,) vec3d on the object, in the field's frame.
        energy: (B,) float64 of the springs.
    """

    force: wp.array
    torque: wp.array
    energy: wp.array


@wp.func
def lerp(a: wp.vec4d, b: wp.vec4d, share: wp.float64):
    """Interpolate linearly between a and b."""
    return a + share * (b - a)


@wp.func
def grid_sample(grid: FieldGrid, x: wp.int32, y: wp.int32, z: wp.int32):
    """Return distance and gradient of a sample."""
    g = grid.gradient[x, y, z]
    return wp.vec4d(
        wp.float64(grid.distance[x, y, z]),
        PER_STEP * wp.float64(g[0]),
        PER_STEP * wp.float64(g[1]),
        PER_STEP * wp.float64(g[2]),
    )


@wp.func
def interpolate(grid: FieldGrid, at: wp.vec3d):
    """Return distance and gradient, linear between samples, at a point in cells."""
    x = wp.clamp(wp.int32(at[0]), 0, grid.shape[0] - 2)
    y = wp.clamp(wp.int32(at[1]), 0, grid.shape[1] - 2)
    z = wp.clamp(wp.int32(at[2]), 0, grid.shape[2] - 2)
    w = at[2] - wp.float64(z)
    v = at[1] - wp.float64(y)
    b00 = lerp(grid_sample(grid, x, y, z), grid_sample(grid, x, y, z + 1), w)
    b01 = lerp(grid_sample(grid, x, y + 1, z), grid_sample(grid, x, y + 1, z + 1), w)
    b10 = lerp(grid_sample(grid, x + 1, y, z), grid_sample(grid, x + 1, y, z + 1), w)
    b11 = lerp(grid_sample(grid, x + 1, y + 1, z), grid_sample(grid, x + 1, y + 1, z + 1), w)
    return lerp(lerp(b00, b01, v), lerp(b10, b11, v), at[0] - wp.float64(x))


@wp.func
def is_in_field(grid: FieldGrid, at: wp.vec3d):
    """Return whether a point in cells lies in the field's box."""
    low = at[0] >= ZERO and at[1] >= ZERO and at[2] >= ZERO
    high = at[0] <= wp.float64(grid.shape[0] - 1) and at[1] <= wp.float64(grid.shape[1] - 1)
    return low and high and at[2] <= wp.float64(grid.shape[2] - 1)


@wp.func
def friction_of(law: ContactLaw, push: wp.float64, aside: wp.vec3d):
    """Return dynamic friction (equation 5); smooth at rest where ``slip`` is above 0."""
    speed = wp.length(aside)
    share = law.material[2] * wp.abs(push)
    if speed > law.material[3]:
        return (share / speed) * aside
    if law.material[3] > ZERO:
        return (share / law.material[3]) * aside
    return ZERO * aside


@wp.kernel
def fragment_forces_kernel(
    # in
    points: wp.array[wp.vec3d],
    areas: wp.array[wp.float64],
    poses: wp.array[wp.transformd],
    grid: FieldGrid,
    law: ContactLaw,
    # out
    force_out: wp.array2d[wp.vec3d],
    torque_out: wp.array2d[wp.vec3d],
    energy_out: wp.array2d[wp.float64],
):
    """Write the force, torque and energy of each sample, for each pose."""
    b = wp.tid() / points.shape[0]
    i = wp.tid() % points.shape[0]
    pose = poses[b]
    p = wp.transform_point(pose, points[i])
    at = (p - grid.lower) / grid.spacing
    if is_in_field(grid, at):
        found = interpolate(grid, at)
        if found[0] < ZERO:
            g = wp.normalize(wp.vec3d(found[1], found[2], found[3]))
            q = p - found[0] * g
            rel = law.other_velocity + wp.cross(
                law.other_spin, p - wp.transform_get_translation(pose)
            )
            rel = rel - law.velocity - wp.cross(law.spin, q)
            along = wp.dot(rel, g)
            push = -law.material[0] * found[0] - law.material[1] * along
            force = areas[i] * (friction_of(law, push, rel - along * g) - push * g)
            force_out[b, i] = force
            torque_out[b, i] = wp.cross(q - law.centre, force)
            energy_out[b, i] = HALF * areas[i] * law.material[0] * found[0] * found[0]


@wp.kernel
def sum_runs_kernel(
    # in
    force: wp.array2d[wp.vec3d],
    torque: wp.array2d[wp.vec3d],
    energy: wp.array2d[wp.float64],
    # out
    force_out: wp.array2d[wp.vec3d],
    torque_out: wp.array2d[wp.vec3d],
    energy_out: wp.array2d[wp.float64],
):
    """Sum runs of samples, in a fixed order."""
    b = wp.tid() / force_out.shape[1]
    r = wp.tid() % force_out.shape[1]
    total_force = wp.vec3d()
    total_torque = wp.vec3d()
    total_energy = wp.float64(0.0)
    for i in range(r * RUN, wp.min((r + 1) * RUN, force.shape[1])):
        total_force += force[b, i]
        total_torque += torque[b, i]
        total_energy += energy[b, i]
    force_out[b, r] = total_force
    torque_out[b, r] = total_torque
    energy_out[b, r] = total_energy


def subdivided_samples(
    points: np.ndarray, faces: np.ndarray, pixel: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return centroids and areas of all subtriangles, as ``subdivided_footprint`` has them."""
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1) / 2
    sides = np.maximum(np.floor(np.sqrt(area) / pixel + 0.5), 1).astype(np.int64)
    counts = sides**2
    which = np.repeat(np.arange(len(faces)), counts)
    index = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    row = np.floor(np.sqrt(index + 0.5))
    place = index - row**2
    share = (1 + place % 2) / 3
    down = ((row + 1 - share) / sides[which])[:, None]
    aside = ((place // 2 + share) / sides[which])[:, None]
    a, b, c = (corners[which, k] for k in range(3))
    return a + down * (b - a) + aside * (c - b), (area / counts)[which]


def record_response(
    grid: Any, points: np.ndarray, areas: np.ndarray, poses: wp.array, law: Any
) -> TapedResponse:
    """Launch the kernels so that an active tape records them."""
    if not (isinstance(poses, wp.array) and poses.dtype is wp.transformd):
        raise OptionError("pose must be a Warp array of wp.transformd, one for each pose.")
    device, shape = grid.distance.device, (poses.shape[0], len(points))
    if poses.device != device:
        raise DeviceError(f"pose lives on {poses.device}, the field on {device}.")
    arrays = _room(shape, device)
    samples = [wp.array(x, t, device=device) for x, t in ((points, wp.vec3d), (areas, wp.float64))]
    inputs = [*samples, poses, grid, law]
    with without_messages():  # the first launch loads the module
        wp.launch(fragment_forces_kernel, shape[0] * shape[1], inputs, list(arrays), device=device)
    while arrays[0].shape[1] > 1:
        shape = (shape[0], -(-arrays[0].shape[1] // int(RUN)))
        sums = _room(shape, device)
        wp.launch(sum_runs_kernel, shape[0] * shape[1], list(arrays), list(sums), device=device)
        arrays = sums
    return TapedResponse(*(array.reshape((shape[0],)) for array in arrays))


def _room(shape: tuple[int, int], device: wp.Device) -> tuple[wp.array, wp.array, wp.array]:
    force, torque, energy = (
        wp.zeros(shape, dtype=dtype, device=device, requires_grad=True)
        for dtype in (wp.vec3d, wp.vec3d, wp.float64)
    )
    return force, torque, energy
