"""The face nearest to every sample: bricks of samples descend the tree together, best first."""

from functools import cache

import warp as wp

from abut.bvh.node_obbs import OBB_ROWS
from abut.bvh.triangle_frames import TRIANGLE_FRAME_ROWS
from abut.bvh.wide import BLOCK, BLOCK_LINKS, NO_CHILD, WIDE_ROWS, wide_root
from abut.core.lanes import lane_count, lane_index
from abut.core.memory_access import load_readonly_vec4f
from abut.point.descent import step_back, step_down
from abut.point.nearest_face import select_component
from abut.sdf.brick import (
    BRICK_SAMPLES,
    BRICK_SIDE,
    EVERY_GROUP,
    NO_FACE,
    STORE,
    begin_brick,
    box_gap_limit,
    found_face,
    groups_within,
    initial_best,
    scan_triangle,
)
from abut.sdf.grid import sample_indices

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BRICKS_PER_THREAD = wp.constant(8)
STACK = wp.constant(96)  # a tree is at most 30 + 31 deep, half of that in wide nodes


@wp.struct
class Bricks:
    """Positions of the samples in the frame of a tree, and the radius of their searches.

    It has no arrays: structs with arrays live in memory, not in registers.
    """

    corner: wp.vec3d  # the first sample
    spacing: wp.float64
    shape: wp.vec3i
    counts: wp.vec3i  # bricks along each axis
    start: wp.float32  # radius, squared
    error: wp.float32  # of float32 distances


@wp.struct
class Brick:
    """Positions of the samples of a brick, and on CUDA of the lane's two."""

    first: wp.vec3i
    x: wp.vec4f
    y: wp.vec4f
    z: wp.vec4f
    lower: wp.vec4f  # box of the lane's samples
    upper: wp.vec4f


@wp.func
def sample_coordinates(corner: wp.float64, spacing: wp.float64, first: wp.int32, count: wp.int32):
    """Return coordinates of four consecutive samples; beyond the grid the last one repeats."""
    out = wp.vec4f()
    for n in range(4):
        i = wp.min(first + n, count - 1)
        out[n] = wp.float32(corner + spacing * wp.float64(i))
    return out


@wp.func
def brick_at(bricks: Bricks, brick: wp.int32, lane: wp.int32):
    """Return a brick by its index."""
    place = BRICK_SIDE * sample_indices(bricks.counts, brick)
    x = sample_coordinates(bricks.corner[0], bricks.spacing, place[0], bricks.shape[0])
    y = sample_coordinates(bricks.corner[1], bricks.spacing, place[1], bricks.shape[1])
    z = sample_coordinates(bricks.corner[2], bricks.spacing, place[2], bricks.shape[2])
    out = Brick()
    out.first = place
    out.x = x
    out.y = y
    out.z = z
    out.lower = wp.vec4f(x[0], y[0], z[0], 0.0)
    out.upper = wp.vec4f(x[3], y[3], z[3], 0.0)
    if lane_count() > 1:
        layer_x = 2 * (lane / 16)
        own_y = select_component(y, (lane / 4) % 4)
        own_z = select_component(z, lane % 4)
        out.lower = wp.vec4f(select_component(x, layer_x), own_y, own_z, 0.0)
        out.upper = wp.vec4f(select_component(x, layer_x + 1), own_y, own_z, 0.0)
    return out


@wp.func
def lane_samples(brick: Brick):
    """Return x of the lane's two samples, y and z, for scan_triangle."""
    return wp.vec4f(brick.lower[0], brick.upper[0], brick.lower[1], brick.lower[2])


@wp.func
def scan_link(
    wide: wp.array[wp.vec4f],
    frames: wp.array[wp.vec4f],
    obbs: wp.array[wp.vec4f],
    slots: wp.array[wp.int32],
    link: wp.int32,
    p: wp.vec4f,
    error: wp.float32,
    best: wp.vec4f,
    store: wp.array[wp.float32],
):
    """Measure the faces of a block if its box is near enough, or a single face."""
    out = best
    if link >= BLOCK:
        split = link - BLOCK
        groups = groups_within(obbs, OBB_ROWS * slots[split], p, error, best, store)
        if groups != 0:
            names = load_readonly_vec4f(wide, WIDE_ROWS * split + BLOCK_LINKS)
            for k in range(4):
                name = wp.cast(select_component(names, k), wp.int32)
                if name != NO_CHILD:
                    face = -1 - name
                    row = TRIANGLE_FRAME_ROWS * face
                    out = scan_triangle(frames, row, face, p, error, out, groups, store)
    else:
        face = -1 - link
        row = TRIANGLE_FRAME_ROWS * face
        out = scan_triangle(frames, row, face, p, error, out, EVERY_GROUP, store)
    return out


@wp.func
def descend(
    root: wp.int32,
    wide: wp.array[wp.vec4f],
    frames: wp.array[wp.vec4f],
    obbs: wp.array[wp.vec4f],
    slots: wp.array[wp.int32],
    error: wp.float32,
    brick: Brick,
    start: wp.vec4f,
    store: wp.array[wp.float32],
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """Return the best of the lane's samples, or of the store's, from the link ``root`` down.

    Guarantee:
        No face is left out whose float32 distance is at most the best found.
    """
    p = lane_samples(brick)
    best = start
    within = box_gap_limit(best, error)
    link = root
    depth = wp.int32(0)
    while depth >= 0:
        step = wp.vec2i()
        if link < 0 or link >= BLOCK:
            best = scan_link(wide, frames, obbs, slots, link, p, error, best, store)
            within = box_gap_limit(best, error)
            step = step_back(within, links, gaps, depth, True)
        else:
            step = step_down(brick.lower, brick.upper, within, wide, link, links, gaps, depth, True)
        link = step[0]
        depth = step[1]
    return best


@wp.func
def write_faces(
    bricks: Bricks,
    first: wp.vec3i,
    lane: wp.int32,
    best: wp.vec4f,
    store: wp.array[wp.float32],
    faces: wp.array3d[wp.float32],
):
    """Write the faces found for the lane's samples."""
    for n in range(BRICK_SAMPLES / lane_count()):
        sample = n
        if lane_count() > 1:
            sample = 32 * (lane / 16) + 16 * n + lane % 16
        i = first[0] + sample / 16
        j = first[1] + (sample / 4) % 4
        k = first[2] + sample % 4
        if i < bricks.shape[0] and j < bricks.shape[1] and k < bricks.shape[2]:
            faces[i, j, k] = wp.cast(found_face(best, store, sample), wp.float32)


@cache
def search_kernel_for(cuda: bool, brute: bool) -> wp.Kernel:
    """Return the search kernel of a kind of device; only the CPU's has a store.

    On CUDA 32 items are BRICKS_PER_THREAD bricks, of which each lane of a warp takes two samples;
    on the CPU an item is BRICKS_PER_THREAD bricks. ``brute`` measures every face, for reference.
    """
    held = 1 if cuda else int(STORE)

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def search_kernel(
        # in
        span: wp.vec3i,
        bricks: Bricks,
        wide: wp.array[wp.vec4f],
        frames: wp.array[wp.vec4f],
        obbs: wp.array[wp.vec4f],
        slots: wp.array[wp.int32],
        # out
        face_out: wp.array3d[wp.float32],
    ):
        """Write the bits of the nearest face of every sample; NO_FACE where none is near enough.

        A thread takes consecutive bricks, and measures the nearest face of the last one first.
        """
        store = wp.zeros(shape=(wp.static(held),), dtype=wp.float32)
        links = wp.zeros(shape=(STACK,), dtype=wp.int32)
        gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
        lane = lane_index()
        root = wide_root(wide)
        error = bricks.error
        count = bricks.counts[0] * bricks.counts[1] * bricks.counts[2]
        for item in range(span[0] + wp.tid(), span[1], span[2]):
            last = wp.int32(NO_FACE)
            first = (item / lane_count()) * BRICKS_PER_THREAD
            for n in range(wp.min(BRICKS_PER_THREAD, count - first)):
                brick = brick_at(bricks, first + n, lane)
                p = lane_samples(brick)
                begin_brick(store, brick.x, brick.y, brick.z, bricks.start, NO_FACE, error)
                best = initial_best(bricks.start, NO_FACE, error)
                if wp.static(brute):
                    for face in range(frames.shape[0] / TRIANGLE_FRAME_ROWS):
                        row = TRIANGLE_FRAME_ROWS * face
                        best = scan_triangle(frames, row, face, p, error, best, EVERY_GROUP, store)
                else:
                    if last != NO_FACE:
                        row = TRIANGLE_FRAME_ROWS * last
                        best = scan_triangle(frames, row, last, p, error, best, EVERY_GROUP, store)
                    best = descend(
                        root, wide, frames, obbs, slots, error, brick, best, store, links, gaps
                    )
                    last = found_face(best, store, 0)
                write_faces(bricks, brick.first, lane, best, store, face_out)

    return search_kernel
