"""The solid near a point of its surface: which directions lead into it, exactly.

A point of the surface lies in an open face, in an open edge or at a vertex. Near it the solid is a
half-space, a wedge or a cone over its faces there. A direction is given by a point q to go to; it
leads inside (-1), outside (1) or along the surface (0). Derivation: design/overlap.md.
"""

import warp as wp

from abut.geometry.poses import move_point
from abut.geometry.predicates import orient2d, orient3d

INSIDE, OUTSIDE, ALONG = wp.constant(-1), wp.constant(1), wp.constant(0)

# Functions are not inlined: copies of exact predicates would double the time to compile.


@wp.struct
class SurfaceStars:
    """A closed surface, oriented outward, and the faces around each vertex.

    ``welded`` is the lowest vertex at the position of each vertex; ``star[start[v]:start[v + 1]]``
    are the faces around such a vertex.
    """

    points: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    welded: wp.array[wp.int32]
    start: wp.array[wp.int32]
    star: wp.array[wp.int32]


@wp.func
def rotated_corners(surface: SurfaceStars, face: wp.int32, vertex: wp.int32):
    """Return the welded corners of a face, beginning with one of them."""
    f = surface.faces[face]
    u = surface.welded[f[0]]
    v = surface.welded[f[1]]
    w = surface.welded[f[2]]
    out = wp.vec3i(u, v, w)
    if v == vertex:
        out = wp.vec3i(v, w, u)
    elif w == vertex:
        out = wp.vec3i(w, u, v)
    return out


@wp.func(inline=False)
def is_in_sector(v: wp.vec3d, x: wp.vec3d, y: wp.vec3d, q: wp.vec3d):
    """Return whether q, in the plane of a triangle v x y, lies in the angle x v y."""
    for axis in range(3):
        way = orient2d(v, x, y, axis)
        if way != 0:
            return way * orient2d(v, x, q, axis) >= 0 and way * orient2d(v, q, y, axis) >= 0
    return False


@wp.func(inline=False)
def half_plane_side(e0: wp.vec3d, e1: wp.vec3d, w: wp.vec3d, q: wp.vec3d):
    """Return 1 if w and q, coplanar with e0 e1, are on one side of this line, -1, or 0 on it."""
    for axis in range(3):
        way = orient2d(e0, e1, w, axis)
        if way != 0:
            return way * orient2d(e0, e1, q, axis)
    return 0


@wp.func(inline=False)
def side_at_edge(surface: SurfaceStars, motion: wp.mat44d, v0: wp.int32, v1: wp.int32, q: wp.vec3d):
    """Return where the direction to q leads from a point of the open edge of two welded vertices.

    The first face met by turning from q around the edge, counter-clockwise, tells.
    """
    e0 = move_point(motion, surface.points[v0])
    e1 = move_point(motion, surface.points[v1])
    nearest = q
    turn = wp.int32(3)  # of the nearest: 0 less than half, 1 half, 2 more than half
    side = wp.int32(ALONG)
    for i in range(surface.start[v0], surface.start[v0 + 1]):
        corners = rotated_corners(surface, surface.star[i], v0)
        if corners[1] == v1 or corners[2] == v1:
            ahead = corners[1] == v1  # the face runs along the edge
            w = move_point(motion, surface.points[wp.where(ahead, corners[2], corners[1])])
            way = orient3d(e0, e1, q, w)
            rank = 1 - way
            if way == 0:
                if half_plane_side(e0, e1, w, q) >= 0:
                    return wp.int32(ALONG)
            if rank < turn or (rank == turn and orient3d(e0, e1, w, nearest) > 0):
                turn = rank
                nearest = w
                side = wp.where(ahead, wp.int32(INSIDE), wp.int32(OUTSIDE))
    return side


@wp.func
def first_nonzero(a: wp.int32, b: wp.int32):
    """Return a, or b if a is 0."""
    return wp.where(a != 0, a, b)


@wp.func(inline=False)
def arc_crosses_face(
    v: wp.vec3d, q: wp.vec3d, m0: wp.vec3d, m1: wp.vec3d, x: wp.vec3d, y: wp.vec3d
):
    """Return whether the directions between q and m cross the angle x v y.

    m is the direction to m0, displaced towards m1 by an infinitesimal angle.
    """
    side_q = orient3d(v, x, y, q)
    if side_q == 0:
        return False
    side_m = first_nonzero(orient3d(v, x, y, m0), orient3d(v, x, y, m1))
    if side_m != -side_q:
        return False
    # a corner opposite to q is on either side; the arc does not come near it
    side_x = first_nonzero(first_nonzero(orient3d(v, q, m0, x), orient3d(v, q, m1, x)), 1)
    side_y = first_nonzero(first_nonzero(orient3d(v, q, m0, y), orient3d(v, q, m1, y)), 1)
    return side_x != side_y and side_x == side_m


@wp.func(inline=False)
def side_at_vertex(surface: SurfaceStars, motion: wp.mat44d, vertex: wp.int32, q: wp.vec3d):
    """Return where the direction to q leads from a welded vertex.

    Directions between q and one of the faces are followed; each other face that they cross changes
    the side.
    """
    v = move_point(motion, surface.points[vertex])
    reference = wp.int32(-1)
    side = wp.int32(ALONG)
    m0 = q
    m1 = q
    for i in range(surface.start[vertex], surface.start[vertex + 1]):
        corners = rotated_corners(surface, surface.star[i], vertex)
        x = move_point(motion, surface.points[corners[1]])
        y = move_point(motion, surface.points[corners[2]])
        way = orient3d(v, x, y, q)
        if way == 0:
            if is_in_sector(v, x, y, q):
                return wp.int32(ALONG)
        elif reference < 0:
            reference = i
            side = way
            m0 = x
            m1 = y
    if reference < 0:
        return wp.int32(ALONG)
    for i in range(surface.start[vertex], surface.start[vertex + 1]):
        if i != reference:
            corners = rotated_corners(surface, surface.star[i], vertex)
            x = move_point(motion, surface.points[corners[1]])
            y = move_point(motion, surface.points[corners[2]])
            if arc_crosses_face(v, q, m0, m1, x, y):
                side = -side
    return side
