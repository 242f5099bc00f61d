"""The face nearest to every sample: bricks of samples search together, best first down the tree."""

import warp as wp

from abut.atomics import load_wide
from abut.bounds.probe import gaps_squared
from abut.field.brick import (
    NO_FACE,
    STORE,
    WIDE,
    begin_brick,
    found_face,
    lane_of,
    limit_of,
    nothing_yet,
    scan_plate,
)
from abut.field.plates import PLATE_ROWS
from abut.hierarchy.tree import TreeView, root_of
from abut.hierarchy.wide import BLOCK, BLOCK_LINKS, BOX_LINKS, NOTHING, WIDE_ROWS, wide_root
from abut.lanes import lane_count
from abut.point.nearest_face import any_lane, nearest_first, picked, pushed

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(96)  # a tree is at most 30 + 31 deep, half of that in wide nodes


@wp.struct
class Hunt:
    """What a search for nearest faces needs to know of a mesh and of a grid."""

    tree: TreeView
    wide: wp.array[wp.vec4f]
    plates: wp.array[wp.vec4f]
    corner: wp.vec3d  # the first sample, in the frame of the tree
    spacing: wp.float64
    shape: wp.vec3i
    bricks: wp.vec3i  # along each axis
    deep: wp.int32  # layers of a brick along x
    start: wp.float32  # nothing farther counts, squared
    error: wp.float32  # of the distances of plates


@wp.func
def four_along(hunt: Hunt, axis: wp.int32, first: wp.int32):
    """Coordinates of four samples in a row along an axis, the last one again beyond the grid."""
    out = wp.vec4f()
    for n in range(4):
        i = wp.min(first + n, hunt.shape[axis] - 1)
        out[n] = wp.float32(hunt.corner[axis] + hunt.spacing * wp.float64(i))
    return out


@wp.func
def scan_link(hunt: Hunt, link: wp.int32, p: wp.vec4f, best: wp.vec2f, store: wp.array[wp.float32]):
    """Look at the faces of a block, or at a single one."""
    names = wp.vec4f(wp.cast(link, wp.float32))
    count = wp.int32(1)
    if link >= BLOCK:
        names = load_wide(hunt.wide, WIDE_ROWS * (link - BLOCK) + BLOCK_LINKS)
        count = 4
    out = best
    for k in range(count):
        name = wp.cast(picked(names, k), wp.int32)
        if name != NOTHING:
            face = -1 - name
            out = scan_plate(hunt.plates, PLATE_ROWS * face, face, p, out, store)
    return out


@wp.func
def hunt_down(
    hunt: Hunt,
    lower: wp.vec4f,
    upper: wp.vec4f,
    start: wp.vec2f,
    store: wp.array[wp.float32],
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """The best of the lane's sample, or of the store's.

    Guarantee:
        No face is left out whose plate is as near as the best found.
    """
    p = wp.vec4f(lower[0], lower[1], lower[2], hunt.error)
    best = start
    within = limit_of(best, hunt.error)
    link = wide_root(hunt.tree.nodes, root_of(hunt.tree))
    depth = wp.int32(0)
    searching = wp.bool(True)
    while searching:
        found = wp.bool(False)
        if link < 0 or link >= BLOCK:
            best = scan_link(hunt, link, p, best, store)
            within = limit_of(best, hunt.error)
        else:
            apart = gaps_squared(lower, upper, hunt.wide, WIDE_ROWS * link)
            below = load_wide(hunt.wide, WIDE_ROWS * link + BOX_LINKS)
            order = nearest_first(apart, True)
            for k in range(3):  # the farthest first
                which = (order >> (6 - 2 * k)) & 3
                gap = picked(apart, which)
                link = wp.cast(picked(below, which), wp.int32)
                depth = pushed(links, gaps, depth, link, gap, any_lane(gap <= within, True))
            which = order & 3
            link = wp.cast(picked(below, which), wp.int32)
            found = any_lane(picked(apart, which) <= within, True)
        while not found and depth > 0:
            depth -= 1
            link = links[depth]
            found = any_lane(gaps[depth] <= within, True)
        searching = found
    return best


@wp.struct
class Brick:
    """Where the samples of a brick are, and the lane's own on CUDA."""

    first: wp.vec3i
    x: wp.vec4f
    y: wp.vec4f
    z: wp.vec4f
    lower: wp.vec4f  # box of the lane's samples
    upper: wp.vec4f


@wp.func
def brick_at(hunt: Hunt, brick: wp.int32, lane: wp.int32):
    """The samples of a brick."""
    row = brick / hunt.bricks[2]
    layer = row / hunt.bricks[1]
    out = Brick()
    out.first = wp.vec3i(
        hunt.deep * layer,
        WIDE * (row - layer * hunt.bricks[1]),
        WIDE * (brick - row * hunt.bricks[2]),
    )
    x = four_along(hunt, 0, out.first[0])
    y = four_along(hunt, 1, out.first[1])
    z = four_along(hunt, 2, out.first[2])
    out.lower = wp.vec4f(x[0], y[0], z[0], 0.0)
    out.upper = wp.vec4f(x[3], y[3], z[3], 0.0)
    if lane_count() > 1:
        out.lower = wp.vec4f(
            picked(x, lane / 16), picked(y, (lane / 4) % 4), picked(z, lane % 4), 0.0
        )
        out.upper = out.lower
    out.x = x
    out.y = y
    out.z = z
    return out


@wp.func
def write_faces(
    hunt: Hunt,
    first: wp.vec3i,
    lane: wp.int32,
    best: wp.vec2f,
    store: wp.array[wp.float32],
    faces: wp.array3d[wp.float32],
):
    """Write what was found for the lane's samples."""
    for n in range(16 * hunt.deep / lane_count()):
        sample = wp.max(n, lane)
        i = first[0] + sample / 16
        j = first[1] + (sample / 4) % 4
        k = first[2] + sample % 4
        if i < hunt.shape[0] and j < hunt.shape[1] and k < hunt.shape[2]:
            faces[i, j, k] = wp.cast(found_face(best, store, sample), wp.float32)


@wp.kernel(cuda_max_registers=128)
def search_kernel(
    # in
    span: wp.vec3i,
    hunt: Hunt,
    # out
    face_out: wp.array3d[wp.float32],
):
    """The bits of the nearest face of every sample; NO_FACE where none is near enough.

    On CUDA 32 items are a brick, of which each lane of a warp takes a sample; on the CPU an item is
    a brick.
    """
    store = wp.zeros(shape=(STORE,), dtype=wp.float32)
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    lane = lane_of()
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        brick = brick_at(hunt, item / lane_count(), lane)
        begin_brick(store, brick.x, brick.y, brick.z, hunt.start, NO_FACE, hunt.error)
        best = nothing_yet(hunt.start, NO_FACE, hunt.error)
        best = hunt_down(hunt, brick.lower, brick.upper, best, store, links, gaps)
        write_faces(hunt, brick.first, lane, best, store, face_out)


@wp.kernel
def search_all_kernel(
    # in
    span: wp.vec3i,
    hunt: Hunt,
    # out
    face_out: wp.array3d[wp.float32],
):
    """The same by looking at every face."""
    store = wp.zeros(shape=(STORE,), dtype=wp.float32)
    lane = lane_of()
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        brick = brick_at(hunt, item / lane_count(), lane)
        p = brick.lower
        p[3] = hunt.error
        begin_brick(store, brick.x, brick.y, brick.z, hunt.start, NO_FACE, hunt.error)
        best = nothing_yet(hunt.start, NO_FACE, hunt.error)
        for face in range(hunt.plates.shape[0] / PLATE_ROWS):
            best = scan_plate(hunt.plates, PLATE_ROWS * face, face, p, best, store)
        write_faces(hunt, brick.first, lane, best, store, face_out)
