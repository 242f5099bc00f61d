"""Volumes of common parts of tetrahedra with integer corners, in rational arithmetic."""

from fractions import Fraction
from itertools import combinations, pairwise


def cross(u, v):
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def sub(u, v):
    return (u[0] - v[0], u[1] - v[1], u[2] - v[2])


def planes(tet):
    """Four (n, d) with n . p <= d inside a tetrahedron; integers."""
    out = []
    for k in range(4):
        p, q, r = (tet[i] for i in range(4) if i != k)
        n = cross(sub(q, p), sub(r, p))
        d = dot(n, p)
        if dot(n, tet[k]) > d:
            n, d = tuple(-x for x in n), -d
        out.append((n, d))
    return out


def common_corners(a, b):
    """The corners of the common part of two tetrahedra, as sorted rational points."""
    half_spaces = planes(a) + planes(b)
    found = set()
    for (n0, d0), (n1, d1), (n2, d2) in combinations(half_spaces, 3):
        m = cross(n1, n2)
        det = dot(n0, m)
        if det == 0:
            continue
        u, v = cross(n2, n0), cross(n0, n1)
        p = tuple(d0 * m[i] + d1 * u[i] + d2 * v[i] for i in range(3))
        sign = 1 if det > 0 else -1
        if all(sign * dot(n, p) <= sign * d * det for n, d in half_spaces):
            found.add(tuple(Fraction(x, det) for x in p))
    return sorted(found)


def common_volume(a, b):
    """Six times the volume of the common part, and whether there is a common point."""
    corners = common_corners(a, b)
    if not corners:
        return Fraction(0), False
    total, apex = Fraction(0), corners[0]
    for n, d in {_reduced(n, d) for n, d in planes(a) + planes(b)}:
        flat = [p for p in corners if dot(n, p) == d]
        if len(flat) >= 3 and dot(n, apex) != d:
            total += _cone(apex, _around(flat, n))
    return total, True


def _reduced(n, d):
    """One spelling of a half-space."""
    from math import gcd

    g = gcd(gcd(abs(n[0]), abs(n[1])), gcd(abs(n[2]), abs(d))) or 1
    return tuple(x // g for x in n), d // g


def _around(points, n):
    """Convex coplanar points in order around their plane's normal (gift wrapping)."""
    start = points[0]
    order, current = [start], start
    while True:
        nearest = None
        for p in points:
            if p == current:
                continue
            if nearest is None:
                nearest = p
                continue
            turn = dot(cross(sub(nearest, current), sub(p, current)), n)
            farther = dot(sub(p, current), sub(p, current)) > dot(
                sub(nearest, current), sub(nearest, current)
            )
            if turn < 0 or (turn == 0 and farther):
                nearest = p
        if nearest == start or nearest is None or len(order) > len(points):
            return order
        order.append(nearest)
        current = nearest


def _cone(apex, polygon):
    """Six times the volume between a point and a polygon."""
    o = sub(polygon[0], apex)
    total = sum(
        (dot(o, cross(sub(p, apex), sub(q, apex))) for p, q in pairwise(polygon[1:])),
        Fraction(0),
    )
    return abs(total)


def volume(tet):
    """Six times the volume of a tetrahedron."""
    return abs(dot(sub(tet[1], tet[0]), cross(sub(tet[2], tet[0]), sub(tet[3], tet[0]))))


def relation_of_tets(a, b):
    """The relation of two lists of tetrahedra, each with disjoint interiors."""
    common, meets = Fraction(0), False
    for s in a:
        for t in b:
            v, touch = common_volume(s, t)
            common, meets = common + v, meets or touch
    if common == 0:
        return "touching" if meets else "apart"
    in_b, in_a = common == sum(map(volume, a)), common == sum(map(volume, b))
    return "equal" if in_a and in_b else "a_in_b" if in_b else "b_in_a" if in_a else "crossing"
