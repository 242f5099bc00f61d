"""All orientation signs of six points, so that exact logic becomes look-ups.

Any test between two triangles asks for the sides of four of their six corners (15 signs) and the
turns of three of them seen along an axis (60 signs). Filling a table from one place keeps the
code small where compilers inline everything; most signs come out of the filter, at no great cost.
Points are numbered 0 to 5 and a set of them is a mask of six bits.
"""

import warp as wp

from abut.geometry.predicates import orient2d, orient3d

TABLE_SIZE = wp.constant(256)  # 64 masks for sides, then 64 for turns along each axis


@wp.func
def first_after(mask: wp.int32, i: wp.int32):
    """The lowest point of ``mask`` above i."""
    j = i + 1
    while (mask >> j) & 1 == 0 and j < 6:
        j += 1
    return j


@wp.func
def point_count(mask: wp.int32):
    """How many points a mask holds."""
    count = wp.int32(0)
    for i in range(6):
        count += (mask >> i) & 1
    return count


@wp.func
def fill_table(points: wp.array[wp.vec3d], table: wp.array[wp.int32]):
    """Compute the signs of all masks of three and four points, taken in ascending order."""
    for mask in range(64):
        count = point_count(mask)
        if count == 3 or count == 4:
            i = first_after(mask, -1)
            j = first_after(mask, i)
            k = first_after(mask, j)
            if count == 4:
                m = first_after(mask, k)
                table[mask] = orient3d(points[i], points[j], points[k], points[m])
            else:
                for axis in range(3):
                    sign = orient2d(points[i], points[j], points[k], axis)
                    table[64 * (axis + 1) + mask] = sign


@wp.func
def side(table: wp.array[wp.int32], i: wp.int32, j: wp.int32, k: wp.int32, m: wp.int32):
    """Side of the plane i, j, k on which point m lies; 0 when two of them are the same."""
    swaps = wp.int32(i > j) + wp.int32(i > k) + wp.int32(i > m)
    swaps += wp.int32(j > k) + wp.int32(j > m) + wp.int32(k > m)
    sign = table[(1 << i) | (1 << j) | (1 << k) | (1 << m)]
    return wp.where(swaps % 2 == 0, sign, -sign)


@wp.func
def turn(table: wp.array[wp.int32], axis: wp.int32, i: wp.int32, j: wp.int32, k: wp.int32):
    """Turn of i, j, k seen along ``axis``; 0 when two of them are the same."""
    swaps = wp.int32(i > j) + wp.int32(i > k) + wp.int32(j > k)
    sign = table[64 * (axis + 1) + ((1 << i) | (1 << j) | (1 << k))]
    return wp.where(swaps % 2 == 0, sign, -sign)


@wp.func
def axis_across(table: wp.array[wp.int32], i: wp.int32, j: wp.int32, k: wp.int32):
    """An axis along which i, j, k are not seen on one line, or -1 when they are on one."""
    found = wp.int32(-1)
    for axis in range(3):
        if found < 0 and turn(table, axis, i, j, k) != 0:
            found = axis
    return found
