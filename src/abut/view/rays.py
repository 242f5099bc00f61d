"""Ray casting: light baked into vertices, then rays through each pixel."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.view.body import GLOW
from abut.view.shading import RenderScene, background, opacity_along, shade_surface, to_display

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LAYERS = wp.constant(12)  # translucent surfaces along a ray
LAMP_SIZE = wp.constant(wp.float32(0.2))
BUSY = wp.constant(wp.float32(0.08))


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
    few: wp.int32  # samples of a uniform pixel
    many: wp.int32  # samples of a pixel whose samples differ


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
        for s in range(samples):
            ball = on_sphere(spread(s, shift))
            dark[0] += opacity_along(scene, p, wp.normalize(n + ball * 0.999), scene.extent)
            lamp = wp.normalize(scene.key + ball * LAMP_SIZE)
            dark[1] += opacity_along(scene, p, lamp, scene.extent * 3.0)
        light_out[i] = wp.vec2f(1.0) - dark / wp.float32(samples)


@wp.func
def trace(scene: RenderScene, lens: Lens, at: wp.vec2f):
    """Colour along the ray through a point of the picture, in pixels from its top left corner."""
    pixel = 2.0 * lens.tangent / wp.float32(lens.height)
    across = (at[0] - wp.float32(lens.width) * 0.5) * pixel
    upward = (wp.float32(lens.height) * 0.5 - at[1]) * pixel
    way = wp.normalize(lens.ahead + lens.right * across + lens.up * upward)
    color = wp.vec3f(0.0)
    through = wp.float32(1.0)
    reached = wp.float32(0.0)
    for _layer in range(LAYERS):
        hit = wp.mesh_query_ray(scene.mesh, lens.eye + way * reached, way, 1.0e6)
        if not hit.result or through < 0.01:
            break
        reached += hit.t
        surface = shade_surface(scene, hit.face, hit.u, hit.v, hit.normal, way, pixel * reached)
        share = through * surface[3]
        if scene.finish[hit.face] == GLOW:
            share = wp.sqrt(share)  # glass dims glowing surfaces less
        color += wp.vec3f(surface[0], surface[1], surface[2]) * share
        through *= 1.0 - surface[3]
        reached += scene.extent * 1.0e-4
    return color + background(1.0 - at[1] / wp.float32(lens.height)) * through


@wp.kernel
def picture_kernel(
    # in
    span: wp.vec3i,
    scene: RenderScene,
    lens: Lens,
    # out
    pixels_out: wp.array2d[wp.uint8],
):
    """Colour of each pixel; busy pixels take more samples."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.vec3f(0.0)
        low = wp.vec3f(2.0)
        high = wp.vec3f(0.0)
        taken = wp.int32(0)
        for s in range(lens.many):
            if s == lens.few and wp.max(high - low) < BUSY:
                break
            corner = wp.vec2f(wp.float32(i % lens.width), wp.float32(i / lens.width))
            color = to_display(trace(scene, lens, corner + spread(s, wp.vec2f(0.5))))
            total += color
            low = wp.min(low, color)
            high = wp.max(high, color)
            taken += 1
        total = total * (255.0 / wp.float32(taken)) + wp.vec3f(0.5)
        for c in range(3):
            pixels_out[i, c] = wp.uint8(total[c])


def bake(scene: Any, points: wp.array, normals: wp.array, samples: int) -> np.ndarray:
    """(n, 2): the share of the sky and of the main lamp that each vertex sees."""
    light = wp.empty(points.shape[0], dtype=wp.vec2f, device=points.device)
    args = [scene, points, normals, samples, light]
    launch(bake_kernel, points.shape[0], args, points.device, grain=256)
    return light.numpy()


def trace_picture(scene: Any, lens: Any) -> np.ndarray:
    """Cast all rays; returns the picture, (height, width, 3) uint8."""
    device = scene.points.device
    count = lens.width * lens.height
    pixels = wp.empty((count, 3), dtype=wp.uint8, device=device)
    launch(picture_kernel, count, [scene, lens, pixels], device, grain=lens.width)
    return pixels.numpy().reshape(lens.height, lens.width, 3)
