"""k-DOPs: polytopes with k fixed face normals, given by their reach along each normal.

Projections follow Raabe et al. 2006, section 3.2, as proved in design/fixed-point-kdop.md: where
an axis -L is a sum of three normals with weights that are not negative, no point of the k-DOP lies
below minus the weighted sum of its three reaches along L. Reaches are relative to a centre and in
units of its own BVH; here they are float32, in ``fixed.py`` integers.
"""

from functools import cache
from itertools import combinations

import numpy as np
import warp as wp

from abut.errors import OptionError

SIDES = (6, 14, 18, 24, 26)
PICK_BITS = wp.constant(5)  # an index of a normal, below 32
AXIS_COLUMNS = wp.constant(9)  # picks, three weights of a, three of b, two constants


@cache
def kdop_normals(k: int) -> np.ndarray:
    """Return (k / 2, 3) float64 normals, one of each slab; the others are opposite."""
    if k not in SIDES:
        raise OptionError(f"k must be one of {', '.join(map(str, SIDES))}, not {k}.")
    axes = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    edges = [(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, -1, 0), (1, 0, -1), (0, 1, -1)]
    corners = [(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)]
    chosen = {
        6: axes,
        14: axes + corners,
        18: axes + edges,
        24: axes + edges + corners[:3],
        26: axes + edges + corners,
    }[k]
    normals = np.array(chosen, dtype=np.float64)
    return normals / np.sqrt((normals**2).sum(axis=1, keepdims=True))


@cache
def normal_cones(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return triples of normals whose cones cover all directions, and maps from -L to weights.

    These are the facets of the convex hull of the normals: of all triples around a direction
    they give the tightest bound, and two normals of one are never more than 90 degrees apart, so
    that weights of a unit axis are at most 1 and add up to at most the square root of 3.

    Returns:
        (f, 3) int32 indices below k, and (f, 3, 3) float64 matrices.
    """
    normals = np.concatenate([kdop_normals(k), -kdop_normals(k)])
    triples, inverses = [], []
    for triple in combinations(range(k), 3):
        columns = normals[list(triple)].T
        if abs(np.linalg.det(columns)) < 1e-6 or (columns.T @ columns).min() < -1e-12:
            continue
        inverse = np.linalg.inv(columns)
        if (normals @ inverse.sum(axis=0)).max() < 1 + 1e-9:  # no normal is above its plane
            triples.append(triple)
            inverses.append(inverse)
    return np.array(triples, np.int32), np.array(inverses)


@cache
def axis_choices(k: int, count: int) -> np.ndarray:
    """Return (count, 2) int32 normals of a and b that make each axis; -1 for none of a side.

    First the coordinate axes of b, then those of a, the other normals in turn, then cross
    products. The first three bound where a leaf of a can be (see hardware).
    """
    half = k // 2
    alone = [(-1, i) for i in range(3)] + [(i, -1) for i in range(3)]
    alone += [pair for i in range(3, half) for pair in ((-1, i), (i, -1))]
    crossed = sorted(np.ndindex(half, half), key=lambda pair: (max(pair), pair))
    if not 3 <= count <= len(alone) + len(crossed):
        raise OptionError(f"{k}-DOPs have from 3 to {k + half**2} axes, not {count}.")
    return np.array((alone + crossed)[:count], np.int32)


@wp.func
def max_projection(
    direction: wp.vec3d,
    p0: wp.vec3d,
    p1: wp.vec3d,
    p2: wp.vec3d,
    centre: wp.vec3d,
    scale: wp.float64,
):
    """Return the largest scaled projection of three points relative to a centre, rounded."""
    at0 = wp.dot(direction, p0 - centre)
    at1 = wp.dot(direction, p1 - centre)
    at2 = wp.dot(direction, p2 - centre)
    return wp.max(wp.max(at0, at1), at2) * scale


@wp.func
def load_reaches(words: wp.array[wp.vec2i], at: wp.int32, pick: wp.int32, half: wp.int32):
    """Read the packed reaches along a normal and along the opposite one."""
    if pick < half:
        return words[at + pick]
    both = words[at + pick - half]
    return wp.vec2i(both[1], both[0])


@wp.func
def add_single(
    sums: wp.vec2f, words: wp.array[wp.vec2i], at: wp.int32, pick: wp.int32, half: wp.int32,
    weight: wp.float32,
):  # fmt: skip
    """Add a weighted reach to the first sum and its opposite to the second."""
    if weight == wp.float32(0.0):  # along a normal of the k-DOP itself, two of three
        return sums
    both = load_reaches(words, at, pick, half)
    return sums + weight * wp.vec2f(wp.cast(both[0], wp.float32), wp.cast(both[1], wp.float32))


@wp.func
def overlap_kdop(
    axes: wp.array2d[wp.float32],
    first: wp.int32,
    stop: wp.int32,
    half: wp.int32,
    words_a: wp.array[wp.vec2i],
    at_a: wp.int32,
    words_b: wp.array[wp.vec2i],
    at_b: wp.int32,
):
    """Return whether two float32 k-DOPs may overlap, by axes ``first`` to ``stop``.

    Guarantee:
        Conservative. False only when the k-DOPs, and all they bound, are apart: the constants of
        an axis cover the rounding of this sum.
    """
    zero = wp.float32(0.0)
    for axis in range(first, stop):
        picks = wp.cast(axes[axis, 0], wp.int32)
        on_a = wp.vec2f()
        on_b = wp.vec2f()
        for i in range(3):
            pick = (picks >> (PICK_BITS * i)) & 31
            on_a = add_single(on_a, words_a, at_a, pick, half, axes[axis, 1 + i])
        for i in range(3):
            pick = (picks >> (PICK_BITS * (3 + i))) & 31
            on_b = add_single(on_b, words_b, at_b, pick, half, axes[axis, 4 + i])
        if axes[axis, 7] + (on_a[0] + on_b[1]) > zero or axes[axis, 8] + (on_a[1] + on_b[0]) > zero:
            return False
    return True
