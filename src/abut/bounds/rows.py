"""Vectors in rows of four numbers, which are read at once, and in float64."""

import warp as wp


@wp.func
def vector_of(row: wp.vec4f):
    """The first three components."""
    return wp.vec3f(row[0], row[1], row[2])


@wp.func
def double_of(row: wp.vec4f):
    """The first three components in float64."""
    return wp.vec3d(wp.float64(row[0]), wp.float64(row[1]), wp.float64(row[2]))


@wp.func
def single_of(v: wp.vec3d):
    """Rounded to float32."""
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def padded(v: wp.vec3f):
    """Three components and a zero."""
    return wp.vec4f(v[0], v[1], v[2], wp.float32(0.0))
