"""The kernel that bounds the depth of common points in each cell."""

import warp as wp

from abut.geometry.matrix_game import TABLEAU
from abut.point.nearest_face import NO_FACE, STACK
from abut.query.solids.depth_cells import (
    BOX,
    DROPPED,
    FAR,
    IN_A,
    IN_B,
    Cells,
    DepthBounds,
    Polytope,
    Scratch,
    SolidOperand,
    Verdict,
    add_face,
    ascend,
    away_from,
    find_nearest,
    heaviest_faces,
    inner_point,
    is_in,
    load_cell,
    make_scratch,
    shared_point,
    solve,
    squared_to,
    uphill,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ZERO = wp.constant(wp.float64(0.0))


@wp.func
def is_common(a: SolidOperand, b: SolidOperand, pose: wp.int32, p: wp.vec3d, known: wp.int32):
    """Whether p lies in both solids, unless that is known."""
    common = (known & IN_A) != 0
    if not common:
        common = is_in(a, pose, p)
    if common and (known & IN_B) == 0:
        common = is_in(b, pose, p)
    return common


@wp.func
def take_point(
    verdict: Verdict,
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    p: wp.vec3d,
    depth: wp.float64,
):
    """A verdict with the point p, whose distance to a's surface is given, if it is better."""
    out = verdict
    if depth > verdict.lower and is_common(a, b, pose, p, verdict.known):
        out.lower = depth
        out.point = p
    return out


@wp.func
def place_box(
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    verdict: Verdict,
    noise: wp.float64,
    scratch: Scratch,
):
    """Drop a box outside b; know if it is inside."""
    out = verdict
    reach = cell.radius + noise
    if (
        find_nearest(b, pose, cell.middle, -1, reach * reach, scratch.links, scratch.gaps).face
        == NO_FACE
    ):
        if is_in(b, pose, cell.middle):
            out.known = verdict.known | IN_B
        else:
            out.upper = DROPPED
    return out


@wp.func
def bound_cell(
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    slot: wp.int32,
    start: Verdict,
    limit: wp.float64,
    noise: wp.float64,
    allowed: wp.float64,
    scratch: Scratch,
):
    """DepthBounds of the depth of the common points in a cell.

    ``start`` has what the parent knows, and the depth below which points are of no interest. Ends
    early where the upper bound is below the ``limit``.
    """
    out = start
    guess = start.faces[0]
    if guess >= 0:
        out.upper = wp.sqrt(squared_to(a, pose, cell.middle, guess)) + cell.radius
        if out.upper <= limit:
            return out
    near = find_nearest(a, pose, cell.middle, guess, FAR, scratch.links, scratch.gaps)
    depth = wp.sqrt(near.squared)
    out.upper = depth + cell.radius
    if out.upper <= limit:
        return out
    if (out.known & IN_A) == 0 and depth > cell.radius + noise:
        if not is_in(a, pose, cell.middle):
            out.upper = DROPPED
            return out
        out.known = out.known | IN_A
    if slot == BOX and (out.known & IN_B) == 0:
        out = place_box(a, b, pose, cell, out, noise, scratch)
        if out.upper == DROPPED:
            return out
    if slot == BOX or cell.corners == 3:
        out = take_point(out, a, b, pose, cell.middle, depth)
    elif (out.known & IN_A) != 0:
        out.floor = depth - cell.radius - noise
    beside = wp.int32(-1)
    if slot == BOX:
        way = away_from(a, pose, cell.middle, near.face)
        steep = wp.vec4d(way[0], way[1], way[2], wp.float64(1.0))
        beside = ascend(a, pose, cell, depth, steep, noise, scratch)
        if beside == NO_FACE:
            out.upper = DROPPED
            return out
    count = add_face(a, pose, cell, near.face, allowed, 0, scratch)
    count = add_face(a, pose, cell, beside, allowed, count, scratch)
    for k in range(4):
        count = add_face(a, pose, cell, start.faces[k], allowed, count, scratch)
    out.upper = wp.min(out.upper, solve(cell, count, scratch))
    if out.upper > limit:
        p = wp.vec3d()
        inner = slot >= 0 and cell.corners == 8
        if inner:
            p = inner_point(b.faces, b.tree, pose, slot)
        else:
            p = shared_point(cell, scratch)
        if not inner or squared_to(a, pose, p, near.face) > out.lower * out.lower:
            deep = find_nearest(a, pose, p, near.face, FAR, scratch.links, scratch.gaps)
            out = take_point(out, a, b, pose, p, wp.sqrt(deep.squared))
            if not inner:
                count = add_face(a, pose, cell, deep.face, allowed, count, scratch)
                out.upper = wp.min(out.upper, solve(cell, count, scratch))
        if slot == BOX and out.upper > limit:
            climb = uphill(a, pose, cell.middle, count, scratch)
            if ascend(a, pose, cell, depth, climb, noise, scratch) == NO_FACE:
                out.upper = DROPPED
        out.faces = heaviest_faces(near.face, count, scratch)
    return out


@wp.kernel
def depth_bounds_kernel(
    # in
    span: wp.vec3i,
    a: SolidOperand,
    b: SolidOperand,
    cells: Cells,
    best: wp.array[wp.float64],
    floor: wp.array[wp.float64],
    tolerance: wp.float64,
    noise: wp.float64,
    # out
    bounds_out: DepthBounds,
    faces_out: wp.array[wp.vec4i],
    known_out: wp.array[wp.int32],
):
    """Bound the depth of every cell; ``faces`` and ``known`` are handed down to its parts."""
    payoff = wp.zeros(shape=(64,), dtype=wp.float64)
    tableau = wp.zeros(shape=(TABLEAU,), dtype=wp.float64)
    weights = wp.zeros(shape=(8,), dtype=wp.float64)
    shares = wp.zeros(shape=(8,), dtype=wp.float64)
    faces = wp.zeros(shape=(8,), dtype=wp.int32)
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    scratch = make_scratch(payoff, tableau, weights, shares, faces, links, gaps)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = cells.pose[i]
        slot = cells.slot[i]
        start = Verdict()
        start.known = cells.known[i]
        start.faces = cells.faces[i]
        start.lower = best[pose]
        limit = wp.max(best[pose] + tolerance, floor[pose])
        allowed = wp.float64(0.25) * tolerance
        cell = load_cell(cells, i, b)
        found = bound_cell(a, b, pose, cell, slot, start, limit, noise, allowed, scratch)
        bounds_out.upper[i] = found.upper
        bounds_out.lower[i] = wp.where(found.lower > best[pose], found.lower, ZERO)
        bounds_out.point[i] = found.point
        bounds_out.floor[i] = found.floor
        faces_out[i] = found.faces
        known_out[i] = found.known
