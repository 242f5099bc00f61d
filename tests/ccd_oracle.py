"""When moving features first touch, in whole numbers, written independently of the library.

Features touch when the polygon of differences of their corners holds the origin: a triangle, or the
four corners of a parallelogram, of any shape, flat ones too. A polygon is no farther than d from
the origin when one of its corners is, or one of its sides or diagonals at a point inside, or one of
the triangles of its corners. Each of these is a question of signs of polynomials in time, and the
first time at which the answer is yes is 0 or a zero of one of them.
"""

from fractions import Fraction
from itertools import combinations

from polynomials import Zero, add, mul, trimmed, zeros_of

WIDTH = Fraction(1, 2**44)  # of the intervals that hold a time


def minus(p, q):
    """Difference of vectors of polynomials."""
    return [add(x, y, -1) for x, y in zip(p, q, strict=True)]


def cross(p, q):
    """Vector product of vectors of polynomials."""
    return [add(mul(p[i], q[j]), mul(p[j], q[i]), -1) for i, j in ((1, 2), (2, 0), (0, 1))]


def dot(p, q):
    """Inner product of vectors of polynomials."""
    out = ()
    for x, y in zip(p, q, strict=True):
        out = add(out, mul(x, y))
    return out


def whole(start, end, gap):
    """Corners in time with whole coefficients, and the gap, all multiplied by one number."""
    numbers = [Fraction(float(x)) for row in (*start, *end, [gap]) for x in row]
    scale = max(x.denominator for x in numbers)
    lines = [
        [trimmed([int(x * scale), int((y - x) * scale)]) for x, y in zip(p, q, strict=True)]
        for p, q in zip(_exact(start), _exact(end), strict=True)
    ]
    return lines, int(Fraction(float(gap)) * scale)


def _exact(rows):
    return [[Fraction(float(x)) for x in row] for row in rows]


def polygon(kind, points):
    """Corners of the polygon of differences."""
    p, q, r, s = points
    if kind == "vertex_face":
        return [minus(p, q), minus(p, r), minus(p, s)]
    return [minus(p, r), minus(q, r), minus(q, s), minus(p, s)]


class Part:
    """A corner, segment or triangle of corners: near the origin when no sign is the wrong one.

    Attributes:
        size: Not 0 where the part is no smaller part.
        inside: Not negative where the nearest point of its line or plane is inside.
        near: Not positive where line or plane is no farther than the gap.
    """

    def __init__(self, corners, gap):
        square = (gap * gap,)
        if len(corners) == 1:
            self.size, self.inside = (1,), []
            self.near = add(dot(corners[0], corners[0]), square, -1)
        elif len(corners) == 2:
            p, q = corners
            along, moment = minus(q, p), cross(p, q)
            self.size = dot(along, along)
            self.inside = [dot(q, along), add((), dot(p, along), -1)]
            self.near = add(dot(moment, moment), mul(square, self.size), -1)
        else:
            moments = [cross(corners[i], corners[(i + 1) % 3]) for i in range(3)]
            normal = cross(minus(corners[1], corners[0]), minus(corners[2], corners[0]))
            volume = dot(moments[0], corners[2])
            self.size = dot(normal, normal)
            self.inside = [dot(moment, normal) for moment in moments]
            self.near = add(mul(volume, volume), mul(square, self.size), -1)
            self.plane = volume

    def touches(self, zero):
        """Whether the part is near the origin at a time."""
        if zero.sign_of(self.near) > 0 or zero.sign_of(self.size) == 0:
            return False
        return all(zero.sign_of(p) >= 0 for p in self.inside)


def first_contact(kind, start, end, gap=0.0):
    """An interval (low, high) that holds the first contact, as floats; or None."""
    points, gap = whole(start, end, gap)
    corners = polygon(kind, points)
    parts = [Part(c, gap) for n in (1, 2, 3) for c in combinations(corners, n)]
    for zero in _times(parts, gap):
        if any(part.touches(zero) for part in parts):
            return float(zero.low), float(zero.high)
    return None


def _times(parts, gap):
    """0 and the zeros at which an answer may change, in order of the intervals' starts."""
    cubic = next(part.plane for part in parts if hasattr(part, "plane"))
    if gap == 0 and cubic:  # all features touch in one plane
        found = {cubic}
    else:
        found = {p for part in parts for p in (part.near, part.size, *part.inside)}
    zeros = [zero for p in found if p for zero in zeros_of(p, WIDTH)]
    start = Zero((1,), Fraction(0), Fraction(0))
    return [start, *sorted(zeros, key=lambda zero: zero.low)]
