"""Ray casting: light baked into vertices, then rays through each pixel."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.view.body import GLOW, SHADOW
from abut.view.coplanar import LEVEL
from abut.view.shading import RenderScene, background, opacity_along, shade_surface, to_display

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LAYERS = wp.constant(64)  # translucent surfaces along a ray
LAMP_SIZE = wp.constant(wp.float32(0.2))
BUSY = wp.constant(wp.float32(0.1))
FAINT = wp.constant(wp.float32(0.04))  # share of light that is left out
SHINE = wp.constant(wp.float32(0.7))  # least share of a line behind translucent surfaces
HALF_LEVEL = wp.constant(wp.float32(0.5 * LEVEL))


@wp.struct
class Lens:
    """The camera, for kernels."""

    eye: wp.vec3f
    right: wp.vec3f
    up: wp.vec3f
    ahead: wp.vec3f
    tangent: wp.float32
    width: wp.int32
    height: wp.int32
    samples: wp.int32  # of a pixel that differs from its neighbours
    line_color: wp.vec3f  # as displayed


@wp.func
def spread(sample: wp.int32, shift: wp.vec2f):
    """Points of the unit square, evenly spread for any number of samples (the R2 sequence)."""
    step = wp.float32(sample)
    return wp.vec2f(wp.frac(shift[0] + step * 0.7548777), wp.frac(shift[1] + step * 0.5698403))


@wp.func
def on_sphere(at: wp.vec2f):
    """Map the unit square to the unit sphere, preserving area ratios."""
    z = 1.0 - 2.0 * at[0]
    r = wp.sqrt(wp.max(1.0 - z * z, 0.0))
    return wp.vec3f(r * wp.cos(wp.TAU * at[1]), r * wp.sin(wp.TAU * at[1]), z)


@wp.kernel
def bake_kernel(
    # in
    span: wp.vec3i,
    scene: RenderScene,
    points: wp.array[wp.vec3f],
    normals: wp.array[wp.vec3f],
    samples: wp.int32,
    # out
    light_out: wp.array[wp.vec2f],
):
    """Share of the sky and of the main lamp that each vertex sees."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        random = wp.rand_init(7, i)
        shift = wp.vec2f(wp.randf(random), wp.randf(random))
        n = normals[i]
        p = points[i] + n * (scene.extent * 2.0e-3)
        dark = wp.vec2f(0.0)
        facing = wp.dot(n, scene.key) > -LAMP_SIZE
        for s in range(samples):
            ball = on_sphere(spread(s, shift))
            dark[0] += opacity_along(scene, p, wp.normalize(n + ball * 0.999), scene.extent)
            if facing:
                lamp = wp.normalize(scene.key + ball * LAMP_SIZE)
                dark[1] += opacity_along(scene, p, lamp, scene.extent * 3.0)
        light_out[i] = wp.vec2f(1.0) - dark / wp.float32(samples)


@wp.func
def ray_of(lens: Lens, at: wp.vec2f):
    """Direction of the ray through a point of the picture, in pixels from its top left corner."""
    pixel = 2.0 * lens.tangent / wp.float32(lens.height)
    across = (at[0] - wp.float32(lens.width) * 0.5) * pixel
    upward = (wp.float32(lens.height) * 0.5 - at[1]) * pixel
    return wp.normalize(lens.ahead + lens.right * across + lens.up * upward)


@wp.func
def trace(scene: RenderScene, lens: Lens, i: wp.int32, at: wp.vec2f):
    """Displayed colour of a point of pixel i, from its top left corner."""
    corner = wp.vec2f(wp.float32(i % lens.width), wp.float32(i / lens.width))
    way = ray_of(lens, corner + at)
    pixel = 2.0 * lens.tangent / wp.float32(lens.height)
    color = wp.vec3f(0.0)
    through = wp.float32(1.0)
    reached = wp.float32(0.0)
    last = wp.int32(-1)
    for _layer in range(LAYERS):
        if through < FAINT:
            break
        hit = wp.mesh_query_ray(scene.mesh, lens.eye + way * reached, way, 1.0e6)
        if not hit.result:
            break
        reached += hit.t
        if hit.face == last:  # met again, by rounding
            reached += scene.extent * 1.0e-4
        else:
            surface = shade_surface(scene, hit.face, hit.u, hit.v, hit.normal, way, pixel * reached)
            share = through * surface[3]
            if scene.finish[hit.face] == GLOW:
                share = wp.sqrt(share)  # glass dims glowing surfaces less
            color += wp.vec3f(surface[0], surface[1], surface[2]) * share
            through *= 1.0 - surface[3]
            last = hit.face
            reached += reached * HALF_LEVEL
    height = 1.0 - (corner[1] + at[1]) / wp.float32(lens.height)
    return to_display(color + background(height) * through)


@wp.kernel
def sample_kernel(
    # in
    span: wp.vec3i,
    scene: RenderScene,
    lens: Lens,
    # out
    colors_out: wp.array[wp.vec3f],
):
    """Colour of the middle of each pixel."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        colors_out[i] = trace(scene, lens, i, wp.vec2f(0.5))


@wp.func
def contrast(colors: wp.array[wp.vec3f], i: wp.int32, width: wp.int32, height: wp.int32):
    """Largest difference of a channel between a pixel and its neighbours."""
    most = wp.float32(0.0)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            x = wp.clamp(i % width + dx, 0, width - 1)
            y = wp.clamp(i / width + dy, 0, height - 1)
            most = wp.max(most, wp.max(wp.abs(colors[i] - colors[y * width + x])))
    return most


@wp.func
def line_share(scene: RenderScene, lens: Lens, i: wp.int32, line: wp.vec2f):
    """Share of a line in pixel i: its coverage, less behind glass, 0 behind an opaque surface."""
    corner = wp.vec2f(wp.float32(i % lens.width), wp.float32(i / lens.width))
    way = ray_of(lens, corner + wp.vec2f(0.5))
    share = wp.float32(1.0)
    reached = wp.float32(0.0)
    for _layer in range(LAYERS):
        hit = wp.mesh_query_ray(scene.mesh, lens.eye + way * reached, way, line[1] - reached)
        if not hit.result:
            break
        if scene.finish[hit.face] != SHADOW:
            share *= wp.sqrt(1.0 - scene.paint[hit.face][3])
            if share == 0.0:
                break
            share = wp.max(share, SHINE)
        reached = (reached + hit.t) * (1.0 + HALF_LEVEL)
    return line[0] * share


@wp.kernel
def picture_kernel(
    # in
    span: wp.vec3i,
    scene: RenderScene,
    lens: Lens,
    colors: wp.array[wp.vec3f],
    lines: wp.array[wp.vec2f],
    # out
    pixels_out: wp.array2d[wp.uint8],
):
    """Colour of each pixel; those that differ from their neighbours take more samples."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        color = colors[i]
        if contrast(colors, i, lens.width, lens.height) > BUSY:
            for s in range(1, lens.samples):
                color += trace(scene, lens, i, spread(s, wp.vec2f(0.5)))
            color = color / wp.float32(lens.samples)
        if lines.shape[0] > 0:
            if lines[i][0] > 0.0:
                color = wp.lerp(color, lens.line_color, line_share(scene, lens, i, lines[i]))
        for c in range(3):
            pixels_out[i, c] = wp.uint8(color[c] * 255.0 + 0.5)


def bake(scene: Any, points: wp.array, normals: wp.array, samples: int) -> np.ndarray:
    """(n, 2): the share of the sky and of the main lamp that each vertex sees."""
    light = wp.empty(points.shape[0], dtype=wp.vec2f, device=points.device)
    args = [scene, points, normals, samples, light]
    launch(bake_kernel, points.shape[0], args, points.device, grain=256)
    return light.numpy()


def trace_picture(scene: Any, lens: Any, lines: np.ndarray) -> np.ndarray:
    """Cast all rays; returns the picture, (height, width, 3) uint8.

    ``lines`` is the coverage and depth of lines in each pixel (pixels, 2), or empty.
    """
    device = scene.points.device
    count = lens.width * lens.height
    layer = wp.array(lines, dtype=wp.vec2f, device=device)
    colors = wp.empty(count, dtype=wp.vec3f, device=device)
    pixels = wp.empty((count, 3), dtype=wp.uint8, device=device)
    launch(sample_kernel, count, [scene, lens, colors], device, grain=lens.width)
    launch(picture_kernel, count, [scene, lens, colors, layer, pixels], device, grain=lens.width)
    return pixels.numpy().reshape(lens.height, lens.width, 3)
