"""Common corners of two faces, by position or by vertex index.

They are a 9-bit code: bit 3 i + j is set when corner i of ``a`` is corner j of ``b``. A face
may name a corner twice; equality is transitive, so two rows of the code are equal or disjoint.
"""

import warp as wp

SHARED_NONE = wp.constant(0)  # faces of two meshes: any common point counts
SHARED_BY_POSITION = wp.constant(1)  # of one mesh: corners at equal positions are shared
SHARED_BY_INDEX = wp.constant(2)  # of one mesh: corners with equal vertex indices are shared


@wp.func
def common_corners(
    sharing: wp.int32, a: wp.mat33d, b: wp.mat33d, index_a: wp.vec3i, index_b: wp.vec3i
):
    """Return the code of the corners that two faces share."""
    code = wp.int32(0)
    if sharing == SHARED_NONE:
        return code
    for i in range(3):
        for j in range(3):
            if sharing == SHARED_BY_POSITION:
                if a[i, 0] == b[j, 0] and a[i, 1] == b[j, 1] and a[i, 2] == b[j, 2]:
                    code = code | (1 << (3 * i + j))
            elif index_a[i] == index_b[j]:
                code = code | (1 << (3 * i + j))
    return code


@wp.func
def has_corner(sharing: wp.int32, t: wp.mat33d, index_t: wp.vec3i, p: wp.vec3d, index: wp.int32):
    """Return whether the corner p, vertex ``index``, is also a corner of ``t``."""
    if sharing == SHARED_NONE:
        return False
    if sharing == SHARED_BY_INDEX:
        return index_t[0] == index or index_t[1] == index or index_t[2] == index
    return t[0] == p or t[1] == p or t[2] == p


@wp.func
def same_corners(code: wp.int32):
    """Return whether two faces have the same set of corners."""
    rows = (code & 7) != 0 and (code & 56) != 0 and (code & 448) != 0
    columns = (code & 73) != 0 and (code & 146) != 0 and (code & 292) != 0
    return rows and columns


@wp.func
def first_common(code: wp.int32):
    """Return (corner of a, corner of b) of one common vertex; ``code`` must not be zero."""
    i = wp.int32(code & 7 == 0) + wp.int32(code & 63 == 0)
    row = (code >> (3 * i)) & 7
    return wp.vec2i(i, wp.int32(row & 1 == 0) + wp.int32(row & 3 == 0))


@wp.func
def remove_common(code: wp.int32, corner_b: wp.int32):
    """Return the code without the common vertex at ``corner_b``."""
    rows = (code >> corner_b) & 73  # the lowest bit of each row that has the vertex
    return code & ~(7 * rows)


@wp.func
def corner_first(t: wp.mat33d, corner: wp.int32):
    """Return ``t`` rotated so that ``corner`` comes first."""
    return wp.matrix_from_rows(t[corner], t[(corner + 1) % 3], t[(corner + 2) % 3])


@wp.func
def edge_first(t: wp.mat33d, first: wp.int32, second: wp.int32):
    """Return ``t`` with two of its corners first, in this order."""
    return wp.matrix_from_rows(t[first], t[second], t[3 - first - second])
