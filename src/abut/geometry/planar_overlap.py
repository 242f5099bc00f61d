"""Features of triangles that meet, told apart exactly: corners, open edges, open faces.

Triangles have positive area. A triangle in a plane is seen along an axis on which its projection
has area; ``way`` is the orientation of that projection.
"""

import warp as wp

from abut.geometry.predicates import orient2d, orient3d

# Functions are not inlined: copies of exact predicates would double the time to compile.


@wp.func(inline=False)
def seen_along(t: wp.mat33d):
    """Return the first axis along which the projection of a triangle has area."""
    if orient2d(t[0], t[1], t[2], 0) != 0:
        return 0
    if orient2d(t[0], t[1], t[2], 1) != 0:
        return 1
    return 2


@wp.func(inline=False)
def depths_in_tri(p: wp.vec3d, t: wp.mat33d, axis: wp.int32):
    """Return for each edge whether p, in the plane, is on the side of the triangle (1, 0, -1)."""
    way = orient2d(t[0], t[1], t[2], axis)
    out = wp.vec3i(0, 0, 0)
    for k in range(3):
        out[k] = way * orient2d(t[k], t[(k + 1) % 3], p, axis)
    return out


@wp.func(inline=False)
def segment_enters_tri(u: wp.vec3d, v: wp.vec3d, t: wp.mat33d, axis: wp.int32):
    """Return whether the open segment u v, in the plane, meets the closed triangle."""
    at_u = depths_in_tri(u, t, axis)
    at_v = depths_in_tri(v, t, axis)
    if wp.min(at_u) >= 0:  # it must not leave at once
        return leads_inside(at_u, at_v)
    if wp.min(at_v) >= 0:
        return leads_inside(at_v, at_u)
    low = wp.int32(1)
    high = wp.int32(-1)
    for k in range(3):
        if at_u[k] < 0 and at_v[k] < 0:
            return False
        side = orient2d(u, v, t[k], axis)
        low = wp.min(low, side)
        high = wp.max(high, side)
    return low <= 0 and high >= 0


@wp.func
def leads_inside(at_start: wp.vec3i, at_stop: wp.vec3i):
    """Return whether a segment that starts in a triangle stays in it for a while."""
    for k in range(3):
        if at_start[k] == 0 and at_stop[k] < 0:
            return False
    return True


@wp.func(inline=False)
def segment_enters_open_tri(u: wp.vec3d, v: wp.vec3d, t: wp.mat33d, axis: wp.int32):
    """Return whether the segment u v, in the plane, meets the open triangle."""
    at_u = depths_in_tri(u, t, axis)
    at_v = depths_in_tri(v, t, axis)
    low = wp.int32(1)
    high = wp.int32(-1)
    for k in range(3):
        if at_u[k] <= 0 and at_v[k] <= 0:
            return False
        side = orient2d(u, v, t[k], axis)
        low = wp.min(low, side)
        high = wp.max(high, side)
    return low < 0 and high > 0


@wp.func(inline=False)
def open_tris_overlap(a: wp.mat33d, b: wp.mat33d, axis: wp.int32):
    """Return whether two triangles of one plane overlap in an area."""
    for k in range(6):
        t = a
        other = b
        if k >= 3:
            t = b
            other = a
        way = orient2d(t[0], t[1], t[2], axis)
        i = k % 3
        beyond = wp.bool(True)
        for j in range(3):
            if way * orient2d(t[i], t[(i + 1) % 3], other[j], axis) > 0:
                beyond = False
        if beyond:
            return False
    return True


@wp.func
def corner_apart(sides: wp.vec3i):
    """Return the corner alone on its side of a plane; some must be above and some below."""
    above = wp.int32(0)
    for k in range(3):
        above += wp.int32(sides[k] > 0)
    wanted = wp.where(above == 1, 1, -1)
    for k in range(3):
        if sides[k] == wanted:
            return k
    return 0


@wp.func(inline=False)
def cross_properly(a: wp.mat33d, b: wp.mat33d, sides_a: wp.vec3i, sides_b: wp.vec3i):
    """Return whether the interiors of two triangles cross.

    ``sides_a`` are the sides of b's plane that the corners of a are on. Both triangles cut the line
    of the two planes in a segment; these must overlap in a length (Guigue and Devillers 2003).
    """
    if wp.min(sides_a) >= 0 or wp.max(sides_a) <= 0 or wp.min(sides_b) >= 0 or wp.max(sides_b) <= 0:
        return False
    i = corner_apart(sides_a)
    j = corner_apart(sides_b)
    a0 = a[i]
    a1 = a[(i + 1) % 3]
    a2 = a[(i + 2) % 3]
    b0 = b[j]
    b1 = b[(j + 1) % 3]
    b2 = b[(j + 2) % 3]
    if sides_a[i] < 0:  # turn b over, so that a0 is above it
        b1 = b[(j + 2) % 3]
        b2 = b[(j + 1) % 3]
    if sides_b[j] < 0:
        a1 = a[(i + 2) % 3]
        a2 = a[(i + 1) % 3]
    return orient3d(a1, b0, a0, b1) < 0 and orient3d(a0, b0, a2, b2) < 0


@wp.func(inline=False)
def corner_sides(t: wp.mat33d, of: wp.mat33d):
    """Return the sides of the plane of t that the corners of another triangle are on."""
    out = wp.vec3i(0, 0, 0)
    for k in range(3):
        out[k] = orient3d(t[0], t[1], t[2], of[k])
    return out


@wp.func(inline=False)
def edge_meets_tri(t: wp.mat33d, k: wp.int32, other: wp.mat33d, sides: wp.vec3i, axis: wp.int32):
    """Return whether the open edge k of t meets the other triangle, closed.

    ``sides`` are the sides of the other's plane that the corners of t are on.
    """
    u = t[k]
    v = t[(k + 1) % 3]
    if sides[k] == 0 and sides[(k + 1) % 3] == 0:
        return segment_enters_tri(u, v, other, axis)
    if sides[k] * sides[(k + 1) % 3] >= 0:
        return False
    low = wp.int32(1)
    high = wp.int32(-1)
    for i in range(3):
        side = orient3d(u, v, other[i], other[(i + 1) % 3])
        low = wp.min(low, side)
        high = wp.max(high, side)
    return low >= 0 or high <= 0


@wp.func(inline=False)
def open_tri_meets_flat_part(t: wp.mat33d, other: wp.mat33d, sides: wp.vec3i, axis: wp.int32):
    """Return whether the open t meets a corner or edge of another triangle in t's plane.

    ``sides`` are the sides of t's plane that the corners of the other are on.
    """
    for k in range(3):
        if sides[k] == 0:
            if wp.min(depths_in_tri(other[k], t, axis)) > 0:
                return True
            if sides[(k + 1) % 3] == 0:
                if segment_enters_open_tri(other[k], other[(k + 1) % 3], t, axis):
                    return True
    return False
