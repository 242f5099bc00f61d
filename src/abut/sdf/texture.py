"""A field in textures: texture units interpolate samples; on the CPU Warp does so in software.

Texture units of CUDA devices interpolate with weights in 256ths that add up to one; the eight of a
cell together were measured to be off by up to 6.5/256 (H200). Samples of a cell differ by at most
its diagonal, so that a distance is off by at most half of 7/256 of that: 0.024 of a cell.
"""

import warp as wp

from abut.core.launch import launch
from abut.core.timing import stage
from abut.sdf.grid import FieldGrid, extrapolated, last_cell, to_cells

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class FieldTextures:
    """Distances, and gradients with an unused fourth channel."""

    distance: wp.Texture3D
    gradient: wp.Texture3D


@wp.func
def sample_textures(grid: FieldGrid, textures: FieldTextures, p: wp.vec3d):
    """Return (distance, gradient) at p by texture units, see sample_field."""
    at = to_cells(grid, p)
    held = wp.min(wp.max(at, wp.vec3f(0.0)), last_cell(grid))
    texel = wp.vec3f(held[2], held[1], held[0]) + wp.vec3f(0.5)  # the last index is the width
    distance = wp.texture_sample(textures.distance, texel, dtype=float)
    g = wp.texture_sample(textures.gradient, texel, dtype=wp.vec4f)
    blend = wp.vec4f(distance, g[0], g[1], g[2])
    return extrapolated(blend, wp.float32(grid.spacing) * (at - held))


@wp.kernel
def pad_kernel(
    # in
    span: wp.vec3i,
    gradient: wp.array[wp.vec3s],
    # out
    padded_out: wp.array[wp.vec4s],
):
    """Add a fourth channel to gradients: textures have one, two or four."""
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        g = gradient[n]
        padded_out[n] = wp.vec4s(g[0], g[1], g[2], wp.int16(0))


@wp.kernel
def sample_textures_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    textures: FieldTextures,
    points: wp.array[wp.vec3d],
    # out
    distance_out: wp.array[wp.float32],
    direction_out: wp.array[wp.vec3f],
    gradient_out: wp.array[wp.vec3f],
):
    """Sample the field at each point."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        found = sample_textures(grid, textures, points[i])
        g = wp.vec3f(found[1], found[2], found[3])
        distance_out[i] = found[0]
        gradient_out[i] = g
        direction_out[i] = wp.where(found[0] < wp.float32(0.0), g, -g)


def textures_of(grid: FieldGrid, device: wp.Device) -> FieldTextures:
    """Copy a grid's samples for texture units, 12 bytes a sample."""
    size = grid.distance.size
    padded_item_count = wp.empty(size, dtype=wp.vec4s, device=device)
    with stage("textures", device):
        launch(pad_kernel, size, [grid.gradient.flatten(), padded_item_count], device)
        textures = FieldTextures()
        textures.distance = _texture(grid.distance, device)
        shape = (*grid.distance.shape, 4)
        textures.gradient = _texture(padded_item_count.view(wp.int16).reshape(shape), device)
    return textures


def _texture(data: wp.array, device: wp.Device) -> wp.Texture3D:
    linear = wp.TextureFilterMode.LINEAR
    return wp.Texture3D(data, filter_mode=linear, normalized_coords=False, device=device)
