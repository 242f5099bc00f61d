"""Ray casting of clashes: two parts, their common interior in red, faint surroundings."""

import warp as wp

from abut.coordination.pictures.picture_meshes import PictureParts
from abut.view.rays import spread
from abut.view.shading import background, to_display

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LAYERS = wp.constant(24)  # surfaces of the two parts along a ray
FAR = wp.constant(wp.float32(3.0e38))
STEP = wp.constant(wp.float32(2.0e-6))  # beyond a surface, over the distance from the eye
COINCIDENT = wp.constant(wp.float32(1.0e-4))  # surroundings this near a part are not drawn
GHOST = wp.constant(wp.float32(0.07))  # opacity of surroundings before the parts
BACKDROP = wp.constant(wp.float32(0.42))  # opacity of surroundings behind them
BUSY = wp.constant(wp.float32(0.1))
CLASH = wp.constant(wp.vec3f(0.70, 0.015, 0.02))  # linear colours
STONE = wp.constant(wp.vec3f(0.62, 0.65, 0.69))
LINE = wp.constant(wp.vec3f(0.05, 0.07, 0.12))


@wp.struct
class PictureViews:
    """Cameras of some pictures, and the colours of their two parts."""

    right: wp.array[wp.vec3f]
    up: wp.array[wp.vec3f]
    ahead: wp.array[wp.vec3f]
    opacity: wp.array2d[wp.float32]  # of parts a and b
    paint: wp.array[wp.vec3f]  # linear colours of a and b
    tangent: wp.float32
    width: wp.int32
    height: wp.int32
    samples: wp.int32  # of a pixel that differs from its neighbours
    world_up: wp.vec3f


@wp.struct
class Crossing:
    """The next surface of a part along a ray."""

    t: wp.float32
    face: wp.int32
    u: wp.float32
    v: wp.float32
    entering: wp.bool


@wp.func
def next_crossing(parts: PictureParts, slot: wp.int32, way: wp.vec3f, past: wp.float32):
    """The first surface of a part beyond a distance from the eye."""
    out = Crossing()
    out.t = FAR
    local = parts.turn[slot] * way
    hit = wp.mesh_query_ray(parts.mesh[slot], parts.eye[slot] + local * past, local, 1.0e8)
    if hit.result:
        out.t = past + hit.t
        out.face = hit.face
        out.u = hit.u
        out.v = hit.v
        out.entering = wp.dot(hit.normal, local) < 0.0
    return out


@wp.func
def beyond(t: wp.float32):
    """A distance a little beyond a surface."""
    return t * (1.0 + STEP) + 1.0e-30


@wp.func
def drawn_edge(parts: PictureParts, slot: wp.int32, hit: Crossing, width: wp.float32):
    """1 on a drawn edge, falling to 0 at ``width`` from it."""
    bits = parts.edges[parts.face[slot] + hit.face]
    if bits == 0:
        return wp.float32(0.0)
    a = wp.mesh_eval_position(parts.mesh[slot], hit.face, 1.0, 0.0)
    b = wp.mesh_eval_position(parts.mesh[slot], hit.face, 0.0, 1.0)
    c = wp.mesh_eval_position(parts.mesh[slot], hit.face, 0.0, 0.0)
    area = wp.length(wp.cross(b - a, c - a))
    off = FAR
    if (bits & 1) != 0:
        off = wp.min(off, hit.u * area / wp.length(c - b))
    if (bits & 2) != 0:
        off = wp.min(off, hit.v * area / wp.length(a - c))
    if (bits & 4) != 0:
        off = wp.min(off, (1.0 - hit.u - hit.v) * area / wp.length(b - a))
    return wp.clamp(1.5 - off / width, 0.0, 1.0)


@wp.func
def lit_surface(
    parts: PictureParts,
    views: PictureViews,
    k: wp.int32,
    slot: wp.int32,
    hit: Crossing,
    way: wp.vec3f,
    color: wp.vec3f,
):
    """Colour of a surface under a lamp beside the eye and the sky."""
    corner = 3 * (parts.face[slot] + hit.face)
    n = parts.normals[corner] * hit.u + parts.normals[corner + 1] * hit.v
    n += parts.normals[corner + 2] * (1.0 - hit.u - hit.v)
    n = wp.normalize(wp.transpose(parts.turn[slot]) * n)
    if wp.dot(n, way) > 0.0:
        n = -n
    key = wp.normalize(-0.7 * views.right[k] + 0.9 * views.up[k] - 0.8 * views.ahead[k])
    lamp = wp.max(wp.dot(n, key), 0.0)
    sky = 0.5 + 0.5 * wp.dot(n, views.world_up)
    facing = wp.max(-wp.dot(n, way), 0.0)
    shine = wp.pow(wp.max(wp.dot(n, wp.normalize(key - way)), 0.0), 60.0)
    light = 0.22 + 0.62 * lamp + 0.30 * sky + 0.12 * facing
    return color * light + wp.vec3f(0.10 * shine)


@wp.func
def surroundings(
    parts: PictureParts,
    views: PictureViews,
    k: wp.int32,
    way: wp.vec3f,
    start: wp.float32,
    stop: wp.float32,
    opacity: wp.float32,
    layers: wp.int32,
    pixel: wp.float32,
):
    """Colour and opacity of other parts between two distances from the eye."""
    color = wp.vec3f(0.0)
    through = wp.float32(1.0)
    reached = start
    for _layer in range(layers):
        nearest = Crossing()
        nearest.t = stop
        found = wp.int32(-1)
        for slot in range(parts.first[k] + 2, parts.first[k + 1]):
            hit = next_crossing(parts, slot, way, reached)
            if hit.t < nearest.t:
                nearest = hit
                found = slot
        if found < 0:
            break
        share = opacity
        edge = 0.45 * drawn_edge(parts, found, nearest, pixel * nearest.t)
        surface = lit_surface(parts, views, k, found, nearest, way, STONE)
        surface = wp.lerp(surface, LINE, edge)
        share = wp.max(share, 0.55 * edge)
        color += surface * (share * through)
        through *= 1.0 - share
        reached = beyond(nearest.t)
    return wp.vec4f(color[0], color[1], color[2], 1.0 - through)


@wp.func
def trace_clash(parts: PictureParts, views: PictureViews, k: wp.int32, i: wp.int32, at: wp.vec2f):
    """Displayed colour of a point of pixel i of picture k, from its top left corner."""
    pixel = 2.0 * views.tangent / wp.float32(views.height)
    x = wp.float32(i % views.width) + at[0]
    y = wp.float32(i / views.width) + at[1]
    way = views.ahead[k] + views.right[k] * ((x - 0.5 * wp.float32(views.width)) * pixel)
    way = wp.normalize(way + views.up[k] * ((0.5 * wp.float32(views.height) - y) * pixel))
    slot_a = parts.first[k]
    a = next_crossing(parts, slot_a, way, 0.0)
    b = next_crossing(parts, slot_a + 1, way, 0.0)
    front = wp.min(a.t, b.t)
    in_a = a.t < FAR and not a.entering
    in_b = b.t < FAR and not b.entering
    color = wp.vec3f(0.0)
    through = wp.float32(1.0)
    red = wp.vec3f(0.0)
    red_share = wp.float32(0.0)
    last = front
    for _layer in range(LAYERS):
        t = wp.min(a.t, b.t)
        if t >= FAR or (through < 0.02 and red_share > 0.0):
            break
        last = t
        side = wp.int32(0)
        hit = a
        if b.t < a.t:
            side = 1
            hit = b
        slot = slot_a + side
        both = in_a and in_b
        if side == 0:
            in_a = hit.entering
            a = next_crossing(parts, slot, way, beyond(t))
        else:
            in_b = hit.entering
            b = next_crossing(parts, slot, way, beyond(t))
        now_both = in_a and in_b
        if now_both and not both:
            ahead = wp.min(a.t, b.t)
            if red_share == 0.0 and ahead - t > 4.0 * STEP * t:
                red = lit_surface(parts, views, k, slot, hit, way, CLASH)
                red_share = 0.45 + 0.5 * through
        share = views.opacity[k, side]
        surface = lit_surface(parts, views, k, slot, hit, way, views.paint[side])
        edge = drawn_edge(parts, slot, hit, pixel * t)
        surface = wp.lerp(surface, LINE, 0.55 * edge)
        if share < 1.0:
            share = wp.max(share, 0.6 * edge)
        color += surface * (share * through)
        through *= 1.0 - share
    behind = wp.vec4f(0.0)
    if through > 0.02:
        start = wp.float32(0.0)
        if front < FAR:
            start = last * (1.0 + COINCIDENT)
        behind = surroundings(parts, views, k, way, start, FAR, BACKDROP, 2, pixel)
    height = 1.0 - y / wp.float32(views.height)
    back = wp.vec3f(behind[0], behind[1], behind[2]) + background(height) * (1.0 - behind[3])
    color += back * through
    color = wp.lerp(color, red, red_share)
    if front < FAR:
        before = surroundings(
            parts, views, k, way, 0.0, front * (1.0 - COINCIDENT), GHOST, 1, pixel
        )
        color = wp.vec3f(before[0], before[1], before[2]) + color * (1.0 - before[3])
    return to_display(color)


@wp.kernel
def clash_sample_kernel(
    # in
    span: wp.vec3i,
    parts: PictureParts,
    views: PictureViews,
    # out
    colors_out: wp.array[wp.vec3f],
):
    """Colour of the middle of each pixel of each picture."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = views.width * views.height
        colors_out[i] = trace_clash(parts, views, i / count, i % count, wp.vec2f(0.5))


@wp.kernel
def clash_picture_kernel(
    # in
    span: wp.vec3i,
    parts: PictureParts,
    views: PictureViews,
    colors: wp.array[wp.vec3f],
    # out
    pixels_out: wp.array2d[wp.uint8],
):
    """Colour of each pixel; those that differ from their neighbours take more samples."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        count = views.width * views.height
        k = i / count
        at = i % count
        color = colors[i]
        if contrast_in(colors, k * count, at, views.width, views.height) > BUSY:
            for s in range(1, views.samples):
                shift = spread(s, wp.vec2f(0.5))
                color += trace_clash(parts, views, k, at, shift)
            color = color / wp.float32(views.samples)
        for c in range(3):
            pixels_out[i, c] = wp.uint8(color[c] * 255.0 + 0.5)


@wp.func
def contrast_in(
    colors: wp.array[wp.vec3f],
    first: wp.int32,
    i: wp.int32,
    width: wp.int32,
    height: wp.int32,
):
    """Largest difference of a channel between a pixel and its neighbours in one picture."""
    most = wp.float32(0.0)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            x = wp.clamp(i % width + dx, 0, width - 1)
            y = wp.clamp(i / width + dy, 0, height - 1)
            most = wp.max(most, wp.max(wp.abs(colors[first + i] - colors[first + y * width + x])))
    return most
