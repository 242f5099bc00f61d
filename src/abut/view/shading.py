"""Shading: soft studio light, glassy translucence, thin edges."""

import warp as wp

from abut.view.body import GLOW, SHADOW

SUN = wp.constant(wp.vec3f(0.98, 0.94, 0.88))
SKY = wp.constant(wp.vec3f(0.44, 0.47, 0.52))
BOUNCE = wp.constant(wp.vec3f(0.16, 0.18, 0.23))


@wp.struct
class RenderScene:
    """Surfaces and lamps of a picture. Light is (sky, key lamp) on the front, then on the back."""

    mesh: wp.uint64
    points: wp.array[wp.vec3f]
    faces: wp.array[wp.vec3i]
    normals: wp.array2d[wp.vec3f]  # for each corner of each face
    light: wp.array[wp.vec4f]
    paint: wp.array[wp.vec4f]  # linear red, green, blue; opacity
    finish: wp.array[wp.int32]
    key: wp.vec3f  # directions to the lamps
    fill: wp.vec3f
    extent: wp.float32
    wire: wp.float32  # darkness of edges, 0 to 1


@wp.func
def opacity_along(scene: RenderScene, p: wp.vec3f, way: wp.vec3f, reach: wp.float32):
    """Opacity of the first surface that a ray hits; 0 without one."""
    hit = wp.mesh_query_ray(scene.mesh, p, way, reach)
    out = wp.float32(0.0)
    if hit.result:
        out = scene.paint[hit.face][3]
    return out


@wp.func
def edge_share(scene: RenderScene, face: wp.int32, u: wp.float32, v: wp.float32, width: wp.float32):
    """1 on an edge of the face, falling to 0 at ``width`` from it; 0 for narrow faces."""
    corners = scene.faces[face]
    a = scene.points[corners[0]]
    b = scene.points[corners[1]]
    c = scene.points[corners[2]]
    area = wp.length(wp.cross(b - a, c - a))
    off = wp.min(u / wp.length(c - b), v / wp.length(a - c))
    off = wp.min(off, (1.0 - u - v) / wp.length(b - a)) * area
    longest = wp.max(wp.length(c - b), wp.max(wp.length(a - c), wp.length(b - a)))
    wide = wp.clamp(0.25 * area / (longest * width) - 0.25, 0.0, 1.0)
    return wide * wp.clamp(1.0 - off / width, 0.0, 1.0)


@wp.func
def lit(scene: RenderScene, color: wp.vec3f, n: wp.vec3f, way: wp.vec3f, light: wp.vec2f):
    """Colour of a matte surface with a faint gloss and a pale rim."""
    key = light[1] * wp.max(wp.dot(n, scene.key), 0.0)
    fill = light[0] * wp.max(wp.dot(n, scene.fill), 0.0)
    sky = light[0] * (0.65 + 0.35 * n[2])
    out = wp.cw_mul(color, SUN * key + SKY * sky + BOUNCE * fill)
    shine = wp.dot(n, wp.normalize(scene.key - way))
    gloss = wp.float32(0.0)
    if shine > 0.8:
        gloss = 0.30 * light[1] * wp.pow(shine, 70.0)
    graze = 1.0 - wp.abs(wp.dot(n, way))
    rim = 0.10 * light[0] * graze * graze * graze * graze
    return out + wp.vec3f(gloss + rim)


@wp.func
def shade_surface(
    scene: RenderScene,
    face: wp.int32,
    u: wp.float32,
    v: wp.float32,
    flat: wp.vec3f,
    way: wp.vec3f,
    pixel: wp.float32,
):
    """Colour and opacity of a point of a face; ``pixel`` is the size of a pixel there."""
    w = 1.0 - u - v
    corners = scene.faces[face]
    n = scene.normals[face, 0] * u + scene.normals[face, 1] * v + scene.normals[face, 2] * w
    n = wp.normalize(n)
    light = scene.light[corners[0]] * u + scene.light[corners[1]] * v + scene.light[corners[2]] * w
    side = wp.vec2f(light[0], light[1])
    facing = -wp.dot(flat, way)
    if facing < 0.0:
        n = -n
        side = wp.vec2f(light[2], light[3])
    paint = scene.paint[face]
    color = wp.vec3f(paint[0], paint[1], paint[2])
    opacity = paint[3]
    if scene.finish[face] == GLOW:
        color = color * (0.75 + 0.45 * wp.abs(facing))
    elif scene.finish[face] == SHADOW:
        opacity *= 1.0 - 0.45 * side[0] - 0.55 * side[1]
    else:
        color = lit(scene, color, n, way, side)
        wire = scene.wire * edge_share(scene, face, u, v, pixel / wp.max(wp.abs(facing), 0.3))
        color = color * (1.0 - wire)
        if opacity < 1.0:
            graze = 1.0 - wp.abs(wp.dot(n, way))
            opacity = wp.max(opacity + (1.0 - opacity) * 0.75 * graze * graze * graze, wire)
    return wp.vec4f(color[0], color[1], color[2], opacity)


@wp.func
def background(height: wp.float32):
    """Studio backdrop, from the bottom (0) to the top (1) of the picture."""
    return wp.lerp(wp.vec3f(0.97, 0.97, 0.975), wp.vec3f(0.78, 0.84, 0.92), height * height)


@wp.func
def tone_map(x: wp.float32):
    """Tone-map a linear value: a soft shoulder, then sRGB."""
    y = wp.max(x, 0.0)
    if y > 0.8:
        y = 1.0 - 0.2 * wp.exp((0.8 - y) * 5.0)
    if y < 0.0031308:
        y = 12.92 * y
    else:
        y = 1.055 * wp.pow(y, 1.0 / 2.4) - 0.055
    return y


@wp.func
def to_display(color: wp.vec3f):
    """Convert a linear colour to sRGB in [0, 1]."""
    return wp.vec3f(tone_map(color[0]), tone_map(color[1]), tone_map(color[2]))
