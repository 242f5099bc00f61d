"""GLSL programs: fat boxes, coverage, and depths that are rounded outwards.

All coordinates are in the frame of a view: x and y in pixels of the whole viewport, z in the same
unit along the line of sight. Proofs are in design/visibility-gl.md.
"""

from typing import Any

from abut.visibility.gl.driver import Driver

BUFFERS = """
layout(std430, binding = 0) readonly buffer Corners { float corners[]; };
layout(std430, binding = 1) buffer Boxes { vec4 boxes[]; };  // nine to a face
layout(std430, binding = 2) readonly buffer Codes { uint codes[]; };  // face << 1 | drawn
uniform float pixels;
uniform ivec3 axes;  // axes of the scene that are x, y and z of the view
uniform float flipped;  // 1: the view looks against its axis

vec3 corner(uint face, uint k) {
    uint at = 9u * face + 3u * k;
    vec3 p = vec3(corners[at + axes.x], corners[at + axes.y], corners[at + axes.z]);
    p.z = mix(p.z, 1.0 - p.z, flipped);
    return p * (pixels * (1.0 - 2.0 * MARGIN)) + pixels * MARGIN;
}
"""

# The oriented box of a triangle and of all points within half a pixel, or ``reach``, of it: slabs
# |u . (p - c)| <= e for three directions u, and the range of z. Its silhouette lies in a rectangle
# along the longest projected edge, drawn ``coverage`` pixels around the triangle, and on the inner
# side of three lines n . (p - c) <= d along the edges.
BOXES = """
layout(local_size_x = 64) in;
uniform uint face_count;
uniform vec3 reach;  // half axes of the ball around every point
uniform float coverage;

vec3 across(vec3 u) {
    vec3 a = abs(u);
    if (a.x <= a.y && a.x <= a.z) return normalize(cross(u, vec3(1, 0, 0)));
    return normalize(cross(u, a.y <= a.z ? vec3(0, 1, 0) : vec3(0, 0, 1)));
}

void frame(vec3 p[3], out vec3 u0, out vec3 u1) {
    vec3 edges[3] = vec3[3](p[1] - p[0], p[2] - p[1], p[0] - p[2]);
    int longest = 0;
    for (int k = 1; k < 3; k++)
        if (dot(edges[k], edges[k]) > dot(edges[longest], edges[longest])) longest = k;
    vec3 along = edges[longest], other = edges[(longest + 1) % 3];
    float size = max(max(abs(along.x), abs(along.y)), abs(along.z));
    u0 = size > TINY * pixels ? normalize(along / size) : vec3(1, 0, 0);
    vec3 rest = other - u0 * dot(u0, other);
    if (length(rest) > THIN * size && size > TINY * pixels) {
        rest = normalize(rest);
        u1 = normalize(rest - u0 * dot(u0, rest));  // again: the first may have cancelled
    } else {
        u1 = across(u0);
    }
}

vec2 longest_seen(vec3 p[3]) {
    vec2 seen = vec2(1, 0);
    float most = TINY * pixels;
    for (int k = 0; k < 3; k++) {
        vec2 edge = p[(k + 1) % 3].xy - p[k].xy;
        float size = length(edge);
        if (size > most) {
            most = size;
            seen = edge / size;
        }
    }
    return seen;
}

vec3 line(vec3 p[3], vec2 c, int k) {
    vec2 edge = p[(k + 1) % 3].xy - p[k].xy;
    float size = length(edge);
    vec2 n = size > TINY * pixels ? vec2(edge.y, -edge.x) / size : vec2(0);
    if (dot(n, p[(k + 2) % 3].xy - p[k].xy) > 0.0) n = -n;  // away from the third corner
    float d = max(max(dot(n, p[0].xy - c), dot(n, p[1].xy - c)), dot(n, p[2].xy - c));
    d += 0.5 * (abs(n.x) + abs(n.y)) + length(n * reach.xy);
    return vec3(n, d + SLACK * (size + abs(d)) + ULP * pixels);
}

void main() {
    uint face = gl_GlobalInvocationID.x;
    if (face >= face_count) return;
    vec3 p[3] = vec3[3](corner(face, 0u), corner(face, 1u), corner(face, 2u));
    vec3 u[3];
    frame(p, u[0], u[1]);
    u[2] = normalize(cross(u[0], u[1]));
    vec3 c = p[0];
    for (int i = 0; i < 3; i++) {
        vec2 ends = vec2(dot(u[i], p[1] - p[0]), dot(u[i], p[2] - p[0]));
        c += u[i] * 0.5 * (max(max(ends.x, ends.y), 0.0) + min(min(ends.x, ends.y), 0.0));
    }
    vec2 a = longest_seen(p), b = vec2(-a.y, a.x);
    vec3 e = vec3(0);
    vec2 sides = vec2(0);
    for (int k = 0; k < 3; k++) {
        vec3 from = p[k] - c;
        e = max(e, abs(vec3(dot(u[0], from), dot(u[1], from), dot(u[2], from))));
        sides = max(sides, abs(vec2(dot(a, from.xy), dot(b, from.xy))));
    }
    for (int i = 0; i < 3; i++)
        e[i] += 0.5 * (abs(u[i].x) + abs(u[i].y)) + length(u[i] * reach);
    sides += coverage * (abs(a.x) + abs(a.y)) + vec2(length(a * reach.xy), length(b * reach.xy));
    e += SLACK * (e.x + e.y + e.z) + ULP * pixels;
    float low = min(min(p[0].z, p[1].z), p[2].z) - reach.z - ULP * pixels;
    float high = max(max(p[0].z, p[1].z), p[2].z) + reach.z + ULP * pixels;
    uint at = 9u * face;
    for (int i = 0; i < 3; i++) boxes[at + i] = vec4(u[i], e[i]);
    boxes[at + 3u] = vec4(c, 0);
    boxes[at + 4u] = vec4(low, high, 0, 0);
    boxes[at + 5u] = vec4(a, sides);
    for (int k = 0; k < 3; k++) boxes[at + 6u + k] = vec4(line(p, c.xy, k), 0);
}
"""

LIMITS = """
const float MARGIN = 1.0 / 1024.0, TINY = 1.0e-20, THIN = 1.0 / 1024.0;
const float SLACK = 1.0 / 262144.0, ULP = 1.0 / 2097152.0, FLAT = 1.0 / 4096.0;
"""

TRIANGLE_VERTEX = """
uniform vec2 origin;  // of the tile
uniform float side;
flat out uint code;

void main() {
    code = codes[gl_VertexID / 3];
    vec3 p = corner(code >> 1, uint(gl_VertexID) % 3u);
    gl_Position = vec4((p.xy - origin) * (2.0 / side) - 1.0, 2.0 * p.z / pixels - 1.0, 1.0);
}
"""

# The rectangle that contains the silhouette of a box. Fragments outside the silhouette are
# discarded, and depth is computed per fragment: nothing depends on the rasteriser's interpolation.
BOX_VERTEX = """
uniform vec2 origin;
uniform float side;
flat out uint code;
flat out vec4 slab0, slab1, slab2;
flat out vec3 middle;
flat out vec2 range;
flat out vec3 line0, line1, line2;

const vec2 CORNERS[6] = vec2[6](
    vec2(-1, -1), vec2(1, -1), vec2(1, 1), vec2(-1, -1), vec2(1, 1), vec2(-1, 1));

void main() {
    code = codes[gl_VertexID / 6];
    uint at = 9u * (code >> 1);
    middle = boxes[at + 3u].xyz;
    if (gl_VertexID % 3 == 2) {  // flat outputs come from the last vertex
        slab0 = boxes[at];
        slab1 = boxes[at + 1u];
        slab2 = boxes[at + 2u];
        range = boxes[at + 4u].xy;
        line0 = boxes[at + 6u].xyz;
        line1 = boxes[at + 7u].xyz;
        line2 = boxes[at + 8u].xyz;
    }
    vec4 seen = boxes[at + 5u];
    vec2 way = CORNERS[gl_VertexID % 6] * seen.zw;
    vec2 p = middle.xy + way.x * seen.xy + way.y * vec2(-seen.y, seen.x);
    gl_Position = vec4((p - origin) * (2.0 / side) - 1.0, 0.0, 1.0);
}
"""

TRIANGLE_DEPTH = """
vec2 depths() { return gl_FragCoord.zz; }
"""

# Depths at which the line of sight through the centre of the pixel enters and leaves the box.
BOX_DEPTH = """
flat in vec4 slab0, slab1, slab2;
flat in vec3 middle;
flat in vec2 range;
flat in vec3 line0, line1, line2;
uniform vec2 origin;
uniform float pixels;

bool beyond(vec3 line, vec2 at) { return dot(line.xy, at) > line.z; }

void clip(vec4 slab, vec2 at, inout vec2 ends) {
    if (abs(slab.z) < FLAT) return;
    float inverse = 1.0 / slab.z;
    float centre = middle.z - dot(slab.xy, at) * inverse;
    float reach = slab.w * abs(inverse);
    ends = vec2(max(ends.x, centre - reach), min(ends.y, centre + reach));
}

vec2 depths() {
    vec2 at = floor(gl_FragCoord.xy) + 0.5 + origin - middle.xy;
    if (beyond(line0, at) || beyond(line1, at) || beyond(line2, at)) discard;
    vec2 ends = range;
    clip(slab0, at, ends);
    clip(slab1, at, ends);
    clip(slab2, at, ends);
    ends += vec2(-1, 1) * ULP * pixels;
    if (ends.x > ends.y) discard;
    return clamp(ends / pixels, 0.0, MOST);
}
"""

# The fixed pipeline compares and stores; an occlusion query counts.
QUERY_FRAGMENT = {
    False: "void main() {}",
    True: """
flat in uint code;
void main() {
    vec2 ends = depths();
    gl_FragDepth = (code & 1u) == 1u ? ends.x : ends.y;
}
""",
}

# An image holds the nearest depth so far, a buffer the flag of each face.
FLAG_FRAGMENT = """
flat in uint code;
layout(binding = 0, r32ui) uniform coherent uimage2D nearest;
layout(std430, binding = 3) buffer Flags { uint flags[]; };
uniform bool strict;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec2 ends = depths();
    uint near = floatBitsToUint(ends.x), far = floatBitsToUint(ends.y);
    bool drawn = (code & 1u) == 1u;
    BEGIN
    if (drawn) {
        DRAW
    } else {
        uint before = imageLoad(nearest, at).x;
        if (far > before || (far == before && !strict)) flags[code >> 1] = 1u;
    }
    END
}
"""
ATOMIC = {"BEGIN": "", "END": "", "DRAW": "imageAtomicMin(nearest, at, near);"}
ORDERED = {
    "DRAW": "imageStore(nearest, at, uvec4(min(near, imageLoad(nearest, at).x)));",
}
MOST = "const float MOST = 0.99999;\n"
HEADER = "#version 430 core\n"


def box_program(driver: Driver) -> Any:
    """The compute program that fits boxes to faces, compiled once per driver."""

    def make() -> Any:
        source = HEADER + LIMITS + BUFFERS + BOXES
        return driver.context.compute_shader(source)

    return _cached(driver, "boxes", make)


def query_program(driver: Driver, fat: bool) -> Any:
    """Draws triangles or fat boxes for occlusion queries of the fixed pipeline."""
    fragment = HEADER + _depths(fat) + QUERY_FRAGMENT[fat]
    return _cached(driver, ("query", fat), lambda: _program(driver, fat, fragment))


def flag_program(driver: Driver, fat: bool, in_order: bool) -> Any:
    """Draws triangles or fat boxes and compares depths in the shader.

    ``in_order``: one draw for all batches; the driver keeps the fragments of a pixel in order.
    """

    def make() -> Any:
        header, parts = HEADER, ATOMIC
        if in_order:
            assert driver.interlock is not None
            suffix = driver.interlock.split("_")[1]  # ARB or NV
            header += f"#extension {driver.interlock} : require\n"
            header += "layout(pixel_interlock_ordered) in;\n"
            calls = {"BEGIN": "begin", "END": "end"}
            waits = {key: f"{verb}InvocationInterlock{suffix}();" for key, verb in calls.items()}
            parts = ORDERED | waits
        source = FLAG_FRAGMENT
        for name, code in parts.items():
            source = source.replace(name, code)
        return _program(driver, fat, header + _depths(fat) + source)

    return _cached(driver, ("flag", fat, in_order), make)


def _depths(fat: bool) -> str:
    limits = LIMITS + MOST
    return limits + (BOX_DEPTH if fat else TRIANGLE_DEPTH)


def _program(driver: Driver, fat: bool, fragment: str) -> Any:
    vertex = BOX_VERTEX if fat else TRIANGLE_VERTEX
    program = driver.context.program(
        vertex_shader=HEADER + LIMITS + BUFFERS + vertex, fragment_shader=fragment
    )
    return program, driver.context.vertex_array(program, [])


def _cached(driver: Driver, name: Any, make: Any) -> Any:
    if name not in driver.programs:
        driver.programs[name] = make()
    return driver.programs[name]
