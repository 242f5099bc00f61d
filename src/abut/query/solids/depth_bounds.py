"""The kernel that bounds the depth of common points in each cell."""

import warp as wp

from abut.geometry.matrix_game import TABLEAU
from abut.geometry.poses import move_point
from abut.operands.posed_mesh import pose_of
from abut.point.nearest_face import NO_FACE, STACK
from abut.query.solids.depth_cells import (
    BOX,
    DROPPED,
    FAR,
    IN_A,
    IN_B,
    MEDIAL,
    MIDDLE_OUT,
    SKEW,
    Cells,
    CellVerdict,
    DepthBounds,
    MedialTree,
    Polytope,
    Precision,
    Scratch,
    SolidOperand,
    find_nearest,
    inner_point,
    is_in,
    load_cell,
    make_scratch,
    squared_to,
    upper_of,
)
from abut.query.solids.depth_game import (
    fill_row,
    heaviest_faces,
    list_face,
    shared_point,
    solve,
)
from abut.query.solids.depth_samples import depth_range
from abut.query.solids.depth_slopes import climb_slope, has_slope

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ZERO = wp.constant(wp.float64(0.0))


@wp.func(inline=False)
def take_point(
    verdict: CellVerdict,
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    p: wp.vec3d,
    depth: wp.float64,
):
    """A verdict with p, whose distance to a's surface is given, if it is common and deeper."""
    out = verdict
    if depth > verdict.lower:
        common = (verdict.known & IN_A) != 0
        if not common:
            common = is_in(a, pose, p)
        if common and (verdict.known & IN_B) == 0:
            common = is_in(b, pose, p)
        if common:
            out.lower = depth
            out.point = p
    return out


@wp.func(inline=False)
def place_in_b(
    verdict: CellVerdict,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    noise: wp.float64,
    scratch: Scratch,
):
    """A verdict that drops a box outside b, and knows if it is inside."""
    out = verdict
    reach = cell.radius + noise
    depths = depth_range(b.samples, b.faces, pose, cell.middle, noise)
    if depths[1] < -reach:
        out.upper = DROPPED
    elif depths[0] > reach:
        out.known = verdict.known | IN_B
    elif (verdict.known & IN_B) == 0 and wp.max(depths[1], -depths[0]) > reach:
        near = find_nearest(b, pose, cell.middle, -1, reach * reach, scratch.links, scratch.gaps)
        if near.face == NO_FACE:
            if is_in(b, pose, cell.middle):
                out.known = verdict.known | IN_B
            else:
                out.upper = DROPPED
    return out


@wp.func
def bound_medial(
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    medial: MedialTree,
    index: wp.int32,
    start: CellVerdict,
    limit: wp.float64,
    noise: wp.float64,
    scratch: Scratch,
):
    """Bounds of the depth in a box of the medial tree, by the bounds that are known there."""
    out = start
    out.upper = upper_of(medial, index, noise)
    if out.upper <= limit:
        return out
    out.known = out.known | (medial.known[index] & IN_A)
    out.faces = medial.faces[index]
    out = place_in_b(out, b, pose, cell, noise, scratch)
    if out.upper != DROPPED and SKEW * medial.lower[index] > out.lower:
        p = move_point(pose_of(a.faces, pose), medial.point[index])
        near = find_nearest(a, pose, p, out.faces[0], FAR, scratch.links, scratch.gaps)
        out = take_point(out, a, b, pose, p, wp.sqrt(near.squared))
    return out


@wp.func
def place_in_a(
    verdict: CellVerdict,
    a: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    depth: wp.float64,
    noise: wp.float64,
):
    """A verdict by the side of a's surface on which the middle of a cell is.

    Its distance is ``depth``. If it is outside, points of the cell are so much less deep.
    """
    out = verdict
    if (verdict.known & IN_A) == 0:
        if not is_in(a, pose, cell.middle):
            out.upper = cell.radius - depth
            out.known = verdict.known | MIDDLE_OUT
            if out.upper < -noise:
                out.upper = DROPPED
        elif depth > cell.radius + noise:
            out.known = verdict.known | IN_A
    return out


@wp.func
def bound_by_faces(
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    slot: wp.int32,
    start: CellVerdict,
    listed: wp.int32,
    limit: wp.float64,
    tolerance: wp.float64,
    scratch: Scratch,
):
    """Bounds of the depth in a cell by several faces of a, and by a point that they suggest.

    So many faces are listed already, the one nearest to the middle first.
    """
    out = start
    inner = slot >= 0 and cell.corners == 8
    allowed = wp.float64(0.25) * tolerance
    near = scratch.faces[0]
    count = listed
    if not inner:
        for k in range(4):
            count = list_face(start.faces[k], count, scratch)
    for row in range(count):
        fill_row(a, pose, cell, row, allowed, scratch)
    out.upper = wp.min(out.upper, solve(cell, count, scratch))
    if out.upper <= limit:
        return out
    p = shared_point(cell, scratch)
    if inner:
        p = inner_point(b.faces, b.tree, pose, slot)
    if not inner or squared_to(a, pose, p, near) > out.lower * out.lower:
        deep = find_nearest(a, pose, p, near, FAR, scratch.links, scratch.gaps)
        out = take_point(out, a, b, pose, p, wp.sqrt(deep.squared))
        more = list_face(deep.face, count, scratch)
        if not inner and more > count:
            fill_row(a, pose, cell, count, allowed, scratch)
            count = more
            out.upper = wp.min(out.upper, solve(cell, count, scratch))
    out.faces = heaviest_faces(near, count, scratch)
    return out


@wp.func
def bound_cell(
    a: SolidOperand,
    b: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    slot: wp.int32,
    start: CellVerdict,
    limit: wp.float64,
    precision: Precision,
    scratch: Scratch,
):
    """Bounds of the depth of the common points in a cell.

    ``start`` has what the parent knows, and the depth below which points are of no interest. Ends
    early where the upper bound is not above the ``limit``.
    """
    out = start
    guess = start.faces[0]
    noise = precision.noise
    if guess >= 0:
        out.upper = wp.sqrt(squared_to(a, pose, cell.middle, guess)) + cell.radius
        if out.upper <= limit:
            return out
    near = find_nearest(a, pose, cell.middle, guess, FAR, scratch.links, scratch.gaps)
    depth = wp.sqrt(near.squared)
    out.upper = depth + cell.radius
    count = list_face(near.face, 0, scratch)
    if out.upper > limit:
        out = place_in_a(out, a, pose, cell, depth, noise)
    if slot == BOX and out.upper > limit:
        out = place_in_b(out, b, pose, cell, noise, scratch)
    if slot == BOX and out.upper > limit:
        count = climb_slope(a, pose, cell, depth, precision, scratch)
        if count == 1:
            if has_slope(a, pose, cell, depth, out.known, precision, scratch):
                count = 0
        if count == 0:
            out.upper = DROPPED
    if out.upper > limit:
        if slot == BOX or cell.corners == 3:
            if (out.known & MIDDLE_OUT) == 0:
                out = take_point(out, a, b, pose, cell.middle, depth)
        elif (out.known & IN_A) != 0:
            out.floor = depth - cell.radius - noise
        out = bound_by_faces(
            a, b, pose, cell, slot, out, count, limit, precision.tolerance, scratch
        )
    return out


@wp.kernel
def depth_bounds_kernel(
    # in
    span: wp.vec3i,
    a: SolidOperand,
    b: SolidOperand,
    medial: MedialTree,
    cells: Cells,
    best: wp.array[wp.float64],
    floor: wp.array[wp.float64],
    precision: Precision,
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
        start = CellVerdict()
        start.known = cells.known[i]
        start.faces = cells.faces[i]
        start.lower = best[pose]
        limit = wp.max(best[pose] + precision.tolerance, floor[pose])
        cell = load_cell(cells, i, a, b, medial)
        found = start
        depths = depth_range(a.samples, a.faces, pose, cell.middle, precision.noise)
        found.upper = depths[1] + cell.radius + precision.noise
        if depths[0] > cell.radius + precision.noise:
            start.known = start.known | IN_A
        if found.upper <= limit:
            found.upper = wp.where(found.upper < ZERO, DROPPED, found.upper)
        elif slot <= MEDIAL:
            index = MEDIAL - slot
            found = bound_medial(
                a, b, pose, cell, medial, index, start, limit, precision.noise, scratch
            )
        else:
            found = bound_cell(a, b, pose, cell, slot, start, limit, precision, scratch)
        bounds_out.upper[i] = found.upper
        bounds_out.lower[i] = wp.where(found.lower > best[pose], found.lower, ZERO)
        bounds_out.point[i] = found.point
        bounds_out.floor[i] = found.floor
        faces_out[i] = found.faces
        known_out[i] = found.known & (IN_A | IN_B)
