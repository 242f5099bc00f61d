"""The face nearest to a point, for the lanes of a CUDA warp that search from neighbouring points.

They open a node when one of them needs it, as in nearest_face, but measure faces in float32 alone
(see plates) and put off what may be nearest. In float64 each lane then measures its own few. What
comes out is the same: every face is measured that may be as near as the nearest.
"""

import warp as wp

from abut.bounds.probe import Probe, gaps_squared, limit
from abut.faces import Faces, load_face
from abut.geometry.closest_point_tri import closest_point_tri
from abut.hierarchy.plates import PLATE_ROWS
from abut.hierarchy.tree import TreeView, root_of
from abut.hierarchy.wide import BLOCK, BLOCK_LINKS, BOX_LINKS, NOTHING, WIDE_ROWS, wide_root
from abut.loads import load_wide
from abut.point.nearest_face import (
    NO_FACE,
    STACK,
    Nearest,
    any_lane,
    make_probe_at,
    nearer,
    nearest_first,
    picked,
    pushed,
)
from abut.point.pending import (
    PENDING,
    limit_from,
    margin_of,
    plate_squared,
    reach_past,
    still_pending,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NO_ROOM = wp.constant(PENDING - 4)  # for another block


@wp.func
def measured_pending(
    best: Nearest,
    point: wp.vec3d,
    side: Faces,
    pose: wp.int32,
    faces: wp.array[wp.int32],
    squares: wp.array[wp.float32],
    count: wp.int32,
    most: wp.float32,
):
    """The nearest of the best so far and of what was put off and is not farther than ``most``."""
    out = Nearest()
    out.squared = best.squared
    out.face = best.face
    for k in range(count):
        if squares[k] <= most:
            foot = closest_point_tri(point, load_face(side, faces[k], pose))
            out = nearer(out, foot.squared, faces[k])
    return out


@wp.func
def nearest_together(
    probe: Probe,
    side: Faces,
    pose: wp.int32,
    root: wp.int32,
    wide: wp.array[wp.vec4f],
    plates: wp.array[wp.vec4f],
    bound: wp.float64,
    last: wp.int32,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
    faces: wp.array[wp.int32],
    squares: wp.array[wp.float32],
):
    """The nearest face, if one is within ``bound``, squared, from the link ``root`` down.

    ``last`` is a face that may be near, or NO_FACE.

    Guarantee:
        As ``nearest_face``: of all faces, the one with the least (squared distance, index).
    """
    best = Nearest()
    best.squared = bound
    best.face = NO_FACE
    margin = margin_of(probe)
    within = wp.float32(limit(probe, best.squared))
    most = reach_past(within, margin)
    middle = wp.float32(0.5) * (probe.lower + probe.upper)
    link = root
    depth = wp.int32(0)
    count = wp.int32(0)
    if last != NO_FACE:
        faces[0] = last
        squares[0] = plate_squared(plates, PLATE_ROWS * last, middle)
        count = wp.where(squares[0] <= most, 1, 0)
        within = wp.min(within, limit_from(squares[0], margin))
        most = reach_past(within, margin)
    searching = wp.bool(True)
    while searching:
        found = wp.bool(False)
        if link < 0 or link >= BLOCK:
            names = wp.vec4f(wp.cast(link, wp.float32))
            places = wp.int32(1)
            if link >= BLOCK:
                names = load_wide(wide, WIDE_ROWS * (link - BLOCK) + BLOCK_LINKS)
                places = 4
            for k in range(places):
                name = wp.cast(picked(names, k), wp.int32)
                if name != NOTHING:
                    face = -1 - name
                    squared = plate_squared(plates, PLATE_ROWS * face, middle)
                    if squared <= most:
                        faces[count] = face
                        squares[count] = squared
                        count += 1
                        within = wp.min(within, limit_from(squared, margin))
                        most = reach_past(within, margin)
        else:
            apart = gaps_squared(probe.lower, probe.upper, wide, WIDE_ROWS * link)
            below = load_wide(wide, WIDE_ROWS * link + BOX_LINKS)
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
        if count > NO_ROOM:
            count = still_pending(faces, squares, count, most)
        if count > NO_ROOM or not searching:  # in one place, for registers are scarce
            best = measured_pending(best, probe.point, side, pose, faces, squares, count, most)
            within = wp.min(within, wp.float32(limit(probe, best.squared)))
            most = reach_past(within, margin)
            count = 0
    return best


@wp.kernel(cuda_max_registers=80)
def nearest_together_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: Faces,
    tree: TreeView,
    wide: wp.array[wp.vec4f],
    plates: wp.array[wp.vec4f],
    bound: wp.float64,
    turns: wp.int32,
    # out
    face_out: wp.array2d[wp.int32],
):
    """The nearest face of every (pose, point), see nearest_face_kernel."""
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    faces = wp.zeros(shape=(PENDING,), dtype=wp.int32)
    squares = wp.zeros(shape=(PENDING,), dtype=wp.float32)
    root = wide_root(tree.nodes, root_of(tree))
    count = points.shape[0]
    last = wp.int32(NO_FACE)
    for run in range(span[0] + wp.tid(), span[1], span[2]):
        work = (run / 32) * 32 * turns + run % 32
        for _turn in range(turns):
            if work < face_out.shape[0] * count:
                pose = work / count
                i = work - pose * count
                if order.shape[0] > 0:
                    i = order[i]
                probe = make_probe_at(points[i], side, pose, tree)
                best = nearest_together(
                    probe, side, pose, root, wide, plates, bound, last, links, gaps, faces, squares
                )
                last = best.face
                face_out[pose, i] = best.face
            work += 32
