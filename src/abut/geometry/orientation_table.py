"""A table of all orientation signs of the six corners of two triangles.

Tests between two triangles need orient3d of four corners (15 signs) and orient2d of three corners
along an axis (60 signs). Filling a table in one place keeps the code small where compilers inline
everything; the filter decides most signs cheaply. Points are numbered 0 to 5 and a set of points
is a mask of six bits. An entry of the table is one bit for positive and one for negative.
"""

from itertools import combinations
from typing import Any

import warp as wp

from abut.geometry.distance_tri_tri import scale_for
from abut.geometry.predicates import orient2d, orient3d


def _masks(count: int) -> Any:
    """The masks of ``count`` of six points."""
    masks = [sum(1 << i for i in points) for points in combinations(range(6), count)]
    return wp.types.vector(len(masks), wp.int32)(masks)


FOURS, THREES = wp.constant(_masks(4)), wp.constant(_masks(3))
FOUR_COUNT, THREE_COUNT = wp.constant(15), wp.constant(20)
SIGNS = wp.constant(75)  # of orient3d, then of orient2d along each axis
NEGATIVE = wp.constant(8)  # words of bits for positive signs, before those for negative ones
TABLE_SIZE = wp.constant(16)  # words
SMALL = wp.constant(wp.float64(2.0**-300))  # products of three differences are in range
LARGE = wp.constant(wp.float64(2.0**300))


@wp.func
def scale_exactly(points: wp.array[wp.vec3d]):
    """Scale six huge or tiny points by a power of two, which leaves all signs as they are.

    The filter then decides them. Points stay where a coordinate would lose digits.
    """
    size = wp.float64(0.0)
    for i in range(6):
        size = wp.max(size, wp.max(wp.abs(points[i])))
    if size == wp.float64(0.0) or (size > SMALL and size < LARGE):
        return
    scale = scale_for(size)
    exact = wp.bool(True)
    for i in range(6):
        exact = exact and (points[i] * scale) / scale == points[i]
    if exact:
        for i in range(6):
            points[i] = points[i] * scale


@wp.func
def next_point(mask: wp.int32, i: wp.int32):
    """Return the lowest point of ``mask`` above i."""
    j = i + 1
    while (mask >> j) & 1 == 0 and j < 6:
        j += 1
    return j


@wp.func
def orientation_of(points: wp.array[wp.vec3d], mask: wp.int32, kind: wp.int32):
    """Return orient3d (kind 0) of a mask of four points, or orient2d along axis ``kind - 1``."""
    i = next_point(mask, -1)
    j = next_point(mask, i)
    k = next_point(mask, j)
    if kind == 0:
        return orient3d(points[i], points[j], points[k], points[next_point(mask, k)])
    return orient2d(points[i], points[j], points[k], kind - 1)


@wp.func
def fill_orientation_table(
    points: wp.array[wp.vec3d], table: wp.array[wp.int32], lane: wp.int32, lanes: wp.int32
):
    """Compute every ``lanes``-th sign from ``lane`` on; all lanes together compute all.

    The entry of a mask is 64 kind + mask. Points are taken in ascending order.
    """
    for k in range(lane, SIGNS, lanes):
        kind = (k + THREE_COUNT - FOUR_COUNT) / THREE_COUNT
        mask = wp.int32(0)
        if kind == 0:
            mask = FOURS[k]
        else:
            mask = THREES[(k - FOUR_COUNT) % THREE_COUNT]
        sign = orientation_of(points, mask, kind)
        word = 2 * kind + (mask >> 5)
        bit = 1 << (mask & 31)
        if sign > 0:
            table[word] = table[word] | bit
        if sign < 0:
            table[NEGATIVE + word] = table[NEGATIVE + word] | bit


@wp.func
def sign_at(table: wp.array[wp.int32], entry: wp.int32):
    """Return the sign of an entry; 0 where none was computed."""
    word = entry >> 5
    bit = entry & 31
    return ((table[word] >> bit) & 1) - ((table[NEGATIVE + word] >> bit) & 1)


@wp.func
def orient3d_at(table: wp.array[wp.int32], i: wp.int32, j: wp.int32, k: wp.int32, m: wp.int32):
    """Return the side of the plane i, j, k on which m lies; 0 if two points are the same."""
    swaps = wp.int32(i > j) + wp.int32(i > k) + wp.int32(i > m)
    swaps += wp.int32(j > k) + wp.int32(j > m) + wp.int32(k > m)
    sign = sign_at(table, (1 << i) | (1 << j) | (1 << k) | (1 << m))
    return wp.where(swaps % 2 == 0, sign, -sign)


@wp.func
def orient2d_at(table: wp.array[wp.int32], axis: wp.int32, i: wp.int32, j: wp.int32, k: wp.int32):
    """Return the orientation of i, j, k seen along ``axis``; 0 if two points are the same."""
    swaps = wp.int32(i > j) + wp.int32(i > k) + wp.int32(j > k)
    sign = sign_at(table, 64 * (axis + 1) + ((1 << i) | (1 << j) | (1 << k)))
    return wp.where(swaps % 2 == 0, sign, -sign)


@wp.func
def projection_axis(table: wp.array[wp.int32], i: wp.int32, j: wp.int32, k: wp.int32):
    """Return an axis along which i, j, k do not project to a line, or -1 if they are collinear."""
    found = wp.int32(-1)
    for axis in range(3):
        if found < 0 and orient2d_at(table, axis, i, j, k) != 0:
            found = axis
    return found
