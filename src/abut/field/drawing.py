"""Lanes that draw together: the pixels of all their covers one after the other, a pixel a lane.

Each lane of a CUDA warp brings a cover, most of them small and many without a pixel; so covers are
lent to all lanes. Fragments that are to be looked at more closely are held back until there is one
for each lane. On the CPU a thread is alone and has all it needs. Nothing is stored: whoever needs a
fragment computes it. Positions are in cells of the field, and in float32.
"""

import warp as wp

from abut.field.picture import (
    HALF,
    PER_FACE,
    SNAP,
    ZERO,
    Cover,
    Lines,
    part_middle,
)
from abut.lanes import lane_count, rank_of_lane, wait_for_lanes

NOWHERE = wp.constant(wp.float32(-3.0e38))
HALF_WAY = wp.constant(wp.float32(-1.0e38))
Frame = wp.types.vector(length=7, dtype=wp.float32)
Held = wp.types.vector(length=6, dtype=wp.float32)


@wp.struct
class Patch:
    """A cover as lanes lend it."""

    lines: Lines
    frame: Frame  # depth at the first pixel, slopes, least and greatest depth, weight, 1 / width
    place: wp.vec4i  # low of the cover, width, axis
    start: wp.vec2i  # pixels of the covers before; the face


def _lending(kind: str, length: int, slots: int = 1) -> str:
    """Text of a room in shared memory with so many slots a lane, each for a vector."""
    return f"""
#if defined(__CUDA_ARCH__)
    __shared__ {kind} room[256 * {slots}][{length}];
    {kind}* slots = &room[{slots} * (threadIdx.x & ~31u)][0];
    for (int k = 0; k < {length} && to >= 0; ++k) slots[to * {length} + k] = mine.c[k];
    wp::vec_t<{length}, {kind}> found;
    for (int k = 0; k < {length}; ++k) found.c[k] = of >= 0 ? slots[of * {length} + k] : ({kind})0;
    return found;
#else
    return mine;
#endif
"""


@wp.func_native(_lending("double", 9))
def lend_lines(mine: Lines, to: wp.int32, of: wp.int32) -> Lines:
    """Lay ``mine`` into slot ``to``, or take what lies in slot ``of``; -1 for neither."""
    ...


@wp.func_native(_lending("float", 7))
def lend_frame(mine: Frame, to: wp.int32, of: wp.int32) -> Frame:
    """See lend_lines."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __shared__ int4 room[256];
    int4* slots = room + (threadIdx.x & ~31u);
    if (to >= 0) slots[to] = make_int4(mine.c[0], mine.c[1], mine.c[2], mine.c[3]);
    const int4 found = of >= 0 ? slots[of] : make_int4(0, 0, 0, 0);
    return wp::vec_t<4, wp::int32>(found.x, found.y, found.z, found.w);
#else
    return mine;
#endif
""")
def lend_place(mine: wp.vec4i, to: wp.int32, of: wp.int32) -> wp.vec4i:
    """See lend_lines."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __shared__ int2 room[256];
    int2* slots = room + (threadIdx.x & ~31u);
    if (to >= 0) slots[to] = make_int2(mine.c[0], mine.c[1]);
    const int2 found = of >= 0 ? slots[of] : make_int2(0, 0);
    return wp::vec_t<2, wp::int32>(found.x, found.y);
#else
    return mine;
#endif
""")
def lend_start(mine: wp.vec2i, to: wp.int32, of: wp.int32) -> wp.vec2i:
    """See lend_lines."""
    ...


@wp.func_native(_lending("float", 6, slots=2))
def hold_back(mine: Held, to: wp.int32, of: wp.int32) -> Held:
    """See lend_lines; a room of 64 slots for fragments to be looked at later."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned full = 0xffffffffu;
    const unsigned lane = threadIdx.x & 31u;
    const bool early = count > 0 && start < at;
    const bool now = count > 0 && start >= at && start < at + 32;
    unsigned begins = now ? 1u << (start - at) : 0u;
    #if __CUDA_ARCH__ >= 800
    begins = __reduce_or_sync(full, begins);
    #else
    for (int step = 16; step > 0; step /= 2) begins |= __shfl_xor_sync(full, begins, step);
    #endif
    return __popc(__ballot_sync(full, early)) + __popc(begins & (full >> (31u - lane))) - 1;
#else
    return 0;
#endif
""")
def slot_of(start: wp.int32, count: wp.int32, at: wp.int32) -> wp.int32:
    """The slot of the cover that this lane's pixel, of those from ``at`` on, belongs to.

    ``start``, ``count``: pixels of the covers before this lane's own, and of its own.
    """
    ...


@wp.func
def first_item(i: wp.int32, group: wp.int32):
    """The item of the first lane, where the first lanes of each warp bring a face, a ``group``."""
    lanes = lane_count()
    return wp.where(lanes == 1, i, i / lanes * group)


@wp.func
def patch_of(cover: Cover, face: wp.int32, before: wp.int32, share: wp.float64):
    """A cover to be lent, after so many pixels of others; ``share``: cells of a pixel."""
    out = Patch()
    out.start = wp.vec2i(before, face)
    out.lines = cover.lines
    out.place = wp.vec4i(cover.low[0], cover.low[1], cover.size[0], cover.axis)
    x = wp.float64(cover.low[0]) + HALF
    y = wp.float64(cover.low[1]) + HALF
    depth = cover.plane[0] + cover.plane[1] * x + cover.plane[2] * y
    out.frame = Frame(
        wp.float32(depth * share),
        wp.float32(cover.plane[1] * share),
        wp.float32(cover.plane[2] * share),
        wp.float32(cover.depths[0] * share),
        wp.float32(cover.depths[1] * share),
        wp.float32(cover.weight),
        wp.float32(1.0) / wp.float32(wp.max(cover.size[0], 1)),
    )
    return out


@wp.func
def lent(mine: Patch, to: wp.int32, of: wp.int32):
    """Lay a patch into a slot, or take one; -1 for neither."""
    out = Patch()
    out.lines = lend_lines(mine.lines, to, of)
    out.frame = lend_frame(mine.frame, to, of)
    out.place = lend_place(mine.place, to, of)
    out.start = lend_start(mine.start, to, of)
    return out


@wp.func
def lay_out(mine: Patch, count: wp.int32):
    """Lend a patch of so many pixels to all lanes, which have done with earlier ones."""
    rank = rank_of_lane(count > 0)
    to = wp.where(count > 0, rank, -1)
    wait_for_lanes()
    lent(mine, to, -1)
    wait_for_lanes()


@wp.func
def is_left(c: wp.float64, x: wp.float64, y: wp.float64, u: wp.float64, v: wp.float64):
    """1 where a face owns a point, as the line of one edge has it; else 0."""
    return wp.where(c + x * u + y * v > ZERO, 1, 0)


@wp.func
def owns_pixel(n: Lines, x: wp.int32, y: wp.int32):
    """Whether a face owns the centre of a pixel; one branch, which is hard to foresee."""
    u = SNAP * wp.float64(x) + HALF * SNAP
    v = SNAP * wp.float64(y) + HALF * SNAP
    sides = is_left(n[0], n[1], n[2], u, v) + is_left(n[3], n[4], n[5], u, v)
    return sides + is_left(n[6], n[7], n[8], u, v) == 3


@wp.func
def pixel_above(frame: Frame, x: wp.float32, y: wp.float32):
    """The depth of a face at a pixel, from the first one."""
    return wp.clamp(frame[0] + frame[1] * x + frame[2] * y, frame[3], frame[4])


@wp.func
def pixel_of(patch: Patch, index: wp.int32, before: wp.vec2i):
    """Column and line of a pixel; a thread that is alone goes on from those ``before``, (-1, 0)."""
    width = patch.place[2]
    if lane_count() == 1:
        ends = before[0] + 1 == width
        return wp.vec2i(wp.where(ends, 0, before[0] + 1), wp.where(ends, before[1] + 1, before[1]))
    line = wp.int32((wp.float32(index) + wp.float32(0.5)) * patch.frame[6])
    return wp.vec2i(index - line * width, line)


@wp.func
def fragment(patch: Patch, at: wp.vec2i, share: wp.float32):
    """The fragment at a pixel of the patch; NOWHERE where there is none."""
    axis = patch.place[3]
    if axis == PER_FACE:
        p = part_middle(patch.lines, patch.place[1], patch.place[0] + at[0])
        return share * wp.vec3f(wp.float32(p[0]), wp.float32(p[1]), wp.float32(p[2]))
    x = patch.place[0] + at[0]
    y = patch.place[1] + at[1]
    if not owns_pixel(patch.lines, x, y):
        return wp.vec3f(NOWHERE)
    depth = pixel_above(patch.frame, wp.float32(at[0]), wp.float32(at[1]))
    u = share * (wp.float32(x) + wp.float32(0.5))
    v = share * (wp.float32(y) + wp.float32(0.5))
    along_x = wp.where(axis == 0, depth, wp.where(axis == 1, v, u))
    along_y = wp.where(axis == 0, u, wp.where(axis == 1, depth, v))
    along_z = wp.where(axis == 0, v, wp.where(axis == 1, u, depth))
    return wp.vec3f(along_x, along_y, along_z)


@wp.func
def is_somewhere(c: wp.vec3f):
    """Whether there is a fragment."""
    return c[0] > HALF_WAY
