"""float32 numbers: rows of four, rounding downwards, and integers in the same order."""

import warp as wp

DIFFERENCE_ERROR = wp.constant(wp.float64(2.0**-52))  # covers the rounding of ``point - origin``


@wp.func
def next_float32_below(x: wp.float32):
    """Return the next float32 below x. There are no branches, which no processor could predict."""
    step = wp.where(x > wp.float32(0.0), -1, 1)
    zero = wp.int32(-2147483647)  # the smallest negative number
    bits = wp.where(x == wp.float32(0.0), zero, wp.cast(x, wp.int32) + step)
    return wp.cast(bits, wp.float32)


@wp.func
def round_down(x: wp.float64):
    """Return the largest float32 not above x."""
    nearest = wp.float32(x)
    return wp.where(wp.float64(nearest) > x, next_float32_below(nearest), nearest)


@wp.func
def difference_lower_bound(x: wp.float64):
    """Return a float32 not above the exact difference that was rounded to x."""
    return round_down(x - DIFFERENCE_ERROR * wp.abs(x))


@wp.func
def difference_lower_bounds(p: wp.vec3d):
    """Return lower bounds of three exact differences."""
    return wp.vec3f(
        difference_lower_bound(p[0]), difference_lower_bound(p[1]), difference_lower_bound(p[2])
    )


@wp.func
def row_xyz(row: wp.vec4f):
    """Return the first three components."""
    return wp.vec3f(row[0], row[1], row[2])


@wp.func
def row_xyz_float64(row: wp.vec4f):
    """Return the first three components in float64."""
    return wp.vec3d(wp.float64(row[0]), wp.float64(row[1]), wp.float64(row[2]))


@wp.func
def to_vec3f(v: wp.vec3d):
    """Round a vector to float32."""
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def to_vec4f(v: wp.vec3f):
    """Append a zero to three components."""
    return wp.vec4f(v[0], v[1], v[2], wp.float32(0.0))


@wp.func
def to_sortable(x: wp.float32):
    """Return an integer that is ordered as the float32 is."""
    bits = wp.cast(x, wp.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@wp.func
def from_sortable(i: wp.int32):
    """Return the float32 of a sortable integer."""
    return wp.cast(i ^ ((i >> 31) & 0x7FFFFFFF), wp.float32)
