"""Patches: rows of pixels of a footprint, packed into 16 words, and the fragment at each pixel.

Fragments are computed where they are needed; none is stored. Positions are in cells of the field,
in float32.
"""

import warp as wp

from abut.sdf.orthographic_raster import (
    HALF,
    SUBDIVIDED,
    Footprint,
    area_vector,
    depth_plane,
    subtriangle_at,
    subtriangle_centroid,
    to_raster,
)
from abut.sdf.spans import RowSpans, next_patch_origin, row_spans, span_pixel

Patch = wp.types.vector(length=16, dtype=wp.int32)
FACE, WEIGHT = wp.constant(0), wp.constant(1)  # 4 * face + axis; fragment area [pixels]
# Along an axis. LOW: u and v in 16 bits each. DEPTH: at the first pixel, two slopes, bounds.
LOW, DEPTH, ENDS, SHIFTS = wp.constant(2), wp.constant(3), wp.constant(8), wp.constant(12)
# Subtriangles. EDGES: the first centroid, edges 01 and 12.
FIRST_SUBTRIANGLE, SUBDIVISION, SUBTRIANGLE_COUNT, SUBTRIANGLE_EDGES = (
    wp.constant(2),
    wp.constant(3),
    wp.constant(4),
    wp.constant(5),
)


@wp.struct
class PatchStep:
    """A patch of a footprint, and the pixel at which the next one begins."""

    patch: Patch
    next: wp.vec2i


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int4* words = (int4*)(patches.data + i);
    for (int k = 0; k < 4; ++k)
        words[k] = make_int4(patch.c[4 * k], patch.c[4 * k + 1], patch.c[4 * k + 2],
                             patch.c[4 * k + 3]);
#else
    patches.data[i] = patch;
#endif
""")
def store_patch(patches: wp.array[Patch], i: wp.int32, patch: Patch):
    """Write a patch by vectors of four words."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int4* words = (const int4*)(patches.data + i);
    wp::vec_t<16, wp::int32> patch;
    for (int k = 0; k < 4; ++k) {
        const int4 four = words[k];
        patch.c[4 * k] = four.x;
        patch.c[4 * k + 1] = four.y;
        patch.c[4 * k + 2] = four.z;
        patch.c[4 * k + 3] = four.w;
    }
    return patch;
#else
    return patches.data[i];
#endif
""")
def load_patch(patches: wp.array[Patch], i: wp.int32) -> Patch:
    """Read a patch by vectors of four words."""
    ...


@wp.func
def patch_float(patch: Patch, k: wp.int32):
    """Return a word of a patch as float32."""
    return wp.cast(patch[k], wp.float32)


@wp.func
def float_bits(x: wp.float64):
    """Return a number as a word of a patch."""
    return wp.cast(wp.float32(x), wp.int32)


@wp.func
def patch_of(
    footprint: Footprint, at: wp.vec2i, spans: RowSpans, face: wp.int32, cells_per_pixel: wp.float64
):
    """Return the patch of a footprint that begins ``at`` a pixel."""
    out = Patch()
    out[FACE] = 4 * face + footprint.axis
    low = footprint.low + at
    out[LOW] = (low[0] & 65535) | (low[1] << 16)
    x = wp.float64(low[0]) + HALF
    y = wp.float64(low[1]) + HALF
    plane = depth_plane(footprint)
    out[DEPTH] = float_bits(cells_per_pixel * (plane[0] + plane[1] * x + plane[2] * y))
    out[DEPTH + 1] = float_bits(cells_per_pixel * plane[1])
    out[DEPTH + 2] = float_bits(cells_per_pixel * plane[2])
    a = wp.float32(cells_per_pixel * to_raster(footprint.corners[0], footprint.axis)[0])
    b = wp.float32(cells_per_pixel * to_raster(footprint.corners[1], footprint.axis)[0])
    c = wp.float32(cells_per_pixel * to_raster(footprint.corners[2], footprint.axis)[0])
    out[DEPTH + 3] = wp.cast(wp.min(a, wp.min(b, c)), wp.int32)
    out[DEPTH + 4] = wp.cast(wp.max(a, wp.max(b, c)), wp.int32)
    slopes = wp.vec3f(wp.float32(1.0), wp.float32(plane[1]), wp.float32(plane[2]))
    out[WEIGHT] = wp.cast(wp.length(slopes), wp.int32)
    for k in range(2):
        out[ENDS + k] = wp.int32(spans.ends.low >> wp.uint64(32 * k))
        out[ENDS + 2 + k] = wp.int32(spans.ends.high >> wp.uint64(32 * k))
        out[SHIFTS + k] = wp.int32(spans.shifts.low >> wp.uint64(32 * k))
        out[SHIFTS + 2 + k] = wp.int32(spans.shifts.high >> wp.uint64(32 * k))
    return out


@wp.func
def subdivided_patch(footprint: Footprint, face: wp.int32, cells_per_pixel: wp.float64):
    """Return the patch of a run of subtriangles."""
    out = Patch()
    out[FACE] = 4 * face + SUBDIVIDED
    parts = wp.float64(footprint.low[1]) * wp.float64(footprint.low[1])
    out[WEIGHT] = float_bits(HALF * wp.length(area_vector(footprint.corners)) / parts)
    out[FIRST_SUBTRIANGLE] = footprint.low[0]
    out[SUBDIVISION] = footprint.low[1]
    out[SUBTRIANGLE_COUNT] = footprint.size[0]
    first = subtriangle_centroid(footprint, footprint.low[0])
    down = footprint.corners[1] - footprint.corners[0]
    aside = footprint.corners[2] - footprint.corners[1]
    for x in range(3):
        out[SUBTRIANGLE_EDGES + x] = float_bits(cells_per_pixel * first[x])
        out[SUBTRIANGLE_EDGES + 3 + x] = float_bits(cells_per_pixel * down[x])
        out[SUBTRIANGLE_EDGES + 6 + x] = float_bits(cells_per_pixel * aside[x])
    return out


@wp.func
def patch_from(footprint: Footprint, at: wp.vec2i, face: wp.int32, cells_per_pixel: wp.float64):
    """Return the patch that begins ``at`` a pixel of a footprint, and where the next begins."""
    out = PatchStep()
    if footprint.axis == SUBDIVIDED:
        out.patch = subdivided_patch(footprint, face, cells_per_pixel)
        out.next = footprint.size
    else:
        spans = row_spans(footprint, at)
        out.patch = patch_of(footprint, at, spans, face, cells_per_pixel)
        out.next = next_patch_origin(footprint, at, spans.rows)
    return out


@wp.func
def patch_axis(patch: Patch):
    """Return the axis a patch is drawn along, or SUBDIVIDED."""
    return patch[FACE] & 3


@wp.func
def patch_face(patch: Patch):
    """Return the face of a patch."""
    return patch[FACE] >> 2


@wp.func
def patch_pixel_count(patch: Patch):
    """Return the number of fragments of a patch."""
    return wp.where(
        patch_axis(patch) == SUBDIVIDED, patch[SUBTRIANGLE_COUNT], patch[ENDS + 3] >> 24
    )


@wp.func
def patch_pixel(patch: Patch, index: wp.int32, before: wp.vec2i):
    """Return column and row of a fragment by its index; a subtriangle's index. See span_pixel."""
    if patch_axis(patch) == SUBDIVIDED:
        return wp.vec2i(index, 0)
    ends = wp.vec4i(patch[ENDS], patch[ENDS + 1], patch[ENDS + 2], patch[ENDS + 3])
    shifts = wp.vec4i(patch[SHIFTS], patch[SHIFTS + 1], patch[SHIFTS + 2], patch[SHIFTS + 3])
    return span_pixel(ends, shifts, index, before[1])


@wp.func
def subtriangle_sample(patch: Patch, index: wp.int32):
    """Return the centroid of a subtriangle, counted from the patch's first."""
    first = subtriangle_at(patch[FIRST_SUBTRIANGLE], patch[SUBDIVISION])
    at = subtriangle_at(patch[FIRST_SUBTRIANGLE] + index, patch[SUBDIVISION])
    down = wp.float32(at[0] - first[0])
    aside = wp.float32(at[1] - first[1])
    out = wp.vec3f()
    for x in range(3):
        on = down * patch_float(patch, SUBTRIANGLE_EDGES + 3 + x) + aside * patch_float(
            patch, SUBTRIANGLE_EDGES + 6 + x
        )
        out[x] = patch_float(patch, SUBTRIANGLE_EDGES + x) + on
    return out


@wp.func
def patch_origin(patch: Patch):
    """Return the first pixel of a patch."""
    return wp.vec2i((patch[LOW] << 16) >> 16, patch[LOW] >> 16)


@wp.func
def fragment_at(patch: Patch, at: wp.vec2i, cells_per_pixel: wp.float32):
    """Return the fragment at a pixel of a patch."""
    axis = patch_axis(patch)
    if axis == SUBDIVIDED:
        return subtriangle_sample(patch, at[0])
    x = wp.float32(at[0])
    y = wp.float32(at[1])
    depth = patch_float(patch, DEPTH) + patch_float(patch, DEPTH + 1) * x
    depth += patch_float(patch, DEPTH + 2) * y
    depth = wp.clamp(depth, patch_float(patch, DEPTH + 3), patch_float(patch, DEPTH + 4))
    low = patch_origin(patch)
    u = cells_per_pixel * (wp.float32(low[0] + at[0]) + wp.float32(0.5))
    v = cells_per_pixel * (wp.float32(low[1] + at[1]) + wp.float32(0.5))
    along_x = wp.where(axis == 0, depth, wp.where(axis == 1, v, u))
    along_y = wp.where(axis == 0, u, wp.where(axis == 1, depth, v))
    along_z = wp.where(axis == 0, v, wp.where(axis == 1, u, depth))
    return wp.vec3f(along_x, along_y, along_z)
