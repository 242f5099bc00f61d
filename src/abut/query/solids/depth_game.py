"""Upper bounds of the depth in a cell by several faces at once, as a matrix game."""

import warp as wp

from abut.geometry.closest_point_tri import closest_point_tri
from abut.geometry.matrix_game import COLUMNS, ROWS, solve_game
from abut.operands.posed_mesh import load_face
from abut.point.nearest_face import NO_FACE
from abut.query.solids.depth_cells import Polytope, Scratch, SolidOperand, corner_of
from abut.query.solids.support_plane import NO_PLANE, support_height

ZERO = wp.constant(wp.float64(0.0))


@wp.func
def list_face(face: wp.int32, count: wp.int32, scratch: Scratch):
    """Add a face to the list of a cell, if there is one; returns its length."""
    new = face >= 0 and face != NO_FACE and count < ROWS
    for i in range(count):
        if scratch.faces[i] == face:
            new = False
    if new:
        scratch.faces[count] = face
    return wp.where(new, count + 1, count)


@wp.func
def support_plane(
    solid: SolidOperand, pose: wp.int32, cell: Polytope, face: wp.int32, allowed: wp.float64
):
    """The plane of a face as (normal, height): the solid lies below the height near a cell.

    So the depth of a point of the cell at h above the plane is at most max(-h, 0) + height. The
    height is NO_PLANE if it would be more than allowed.
    """
    corners = load_face(solid.faces, face, pose)
    normal = wp.normalize(wp.cross(corners[1] - corners[0], corners[2] - corners[0]))
    above = wp.dot(cell.middle - corners[0], normal)
    foot = cell.middle - above * normal
    height = NO_PLANE
    radius = wp.float64(1.01) * cell.radius + wp.max(above, ZERO) + allowed
    if closest_point_tri(foot, corners).squared <= radius * radius:
        most = wp.min(allowed, wp.float64(0.1) * cell.radius)
        height = support_height(
            solid.faces, solid.tree, solid.wide, pose, foot, normal, radius, most
        )
    return wp.vec4d(normal[0], normal[1], normal[2], height)


@wp.func(inline=False)
def fill_row(
    solid: SolidOperand,
    pose: wp.int32,
    cell: Polytope,
    row: wp.int32,
    allowed: wp.float64,
    scratch: Scratch,
):
    """Write bounds of the depths of a cell's corners by one face of the list.

    They are distances to the plane of the face where the solid lies behind it, else to the face.
    """
    face = scratch.faces[row]
    corners = load_face(solid.faces, face, pose)
    plane = support_plane(solid, pose, cell, face, allowed)
    normal = wp.vec3d(plane[0], plane[1], plane[2])
    for j in range(cell.corners):
        p = corner_of(cell, j)
        distance = wp.max(wp.dot(corners[0] - p, normal), ZERO) + plane[3]
        if plane[3] == NO_PLANE:
            distance = wp.sqrt(closest_point_tri(p, corners).squared)
        scratch.payoff[COLUMNS * row + j] = distance


@wp.func(inline=False)
def solve(cell: Polytope, count: wp.int32, scratch: Scratch):
    """An upper bound of the depth in a cell by the first faces of the list."""
    return solve_game(
        scratch.payoff, count, cell.corners, scratch.tableau, scratch.weights, scratch.shares
    )


@wp.func
def shared_point(cell: Polytope, scratch: Scratch):
    """The point of a cell with the shares of the last game."""
    out = wp.vec3d()
    for j in range(cell.corners):
        out += scratch.shares[j] * corner_of(cell, j)
    return out


@wp.func
def heaviest_faces(first: wp.int32, count: wp.int32, scratch: Scratch):
    """``first`` and the three other faces with the largest weights; changes the weights."""
    out = wp.vec4i(first, -1, -1, -1)
    for k in range(1, 4):
        best = wp.int32(-1)
        for i in range(count):
            if scratch.faces[i] != first and scratch.weights[i] > ZERO:
                if best < 0:
                    best = i
                elif scratch.weights[i] > scratch.weights[best]:
                    best = i
        if best >= 0:
            out[k] = scratch.faces[best]
            scratch.weights[best] = ZERO
    return out
