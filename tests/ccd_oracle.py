"""When moving features first touch, in rational arithmetic, written independently of the library.

Contact needs a zero of the coplanarity cubic. Zeros are isolated by Sturm's theorem, and what else
must hold there (a point inside a face, inside two edges) is the sign of a polynomial at a zero,
found by refining the interval until the polynomial has no zero in it, or by a common divisor.
"""

from fractions import Fraction
from itertools import pairwise

UNKNOWN = "unknown"  # one plane throughout, or a face or pair of edges that degenerates on contact


def trimmed(p):
    """Without leading zeros; lowest degree first."""
    while p and p[-1] == 0:
        p = p[:-1]
    return p


def add(p, q, factor=1):
    """P + factor q."""
    size = max(len(p), len(q))
    p, q = p + [Fraction(0)] * (size - len(p)), q + [Fraction(0)] * (size - len(q))
    return trimmed([x + factor * y for x, y in zip(p, q, strict=True)])


def mul(p, q):
    """Product."""
    out = [Fraction(0)] * max(len(p) + len(q) - 1, 0)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            out[i + j] += x * y
    return trimmed(out)


def divided(p, q):
    """Quotient and remainder."""
    quotient, p = [Fraction(0)] * max(len(p) - len(q) + 1, 0), list(p)
    while len(p) >= len(q):
        shift, factor = len(p) - len(q), p[-1] / q[-1]
        quotient[shift] = factor
        p = trimmed([x - factor * (q[i - shift] if i >= shift else 0) for i, x in enumerate(p)])
        if not p:
            break
    return trimmed(quotient), p


def at(p, t):
    """Value."""
    out = Fraction(0)
    for x in reversed(p):
        out = out * t + x
    return out


def slope(p):
    """Derivative."""
    return trimmed([k * x for k, x in enumerate(p)][1:])


def common(p, q):
    """Greatest common divisor, with leading coefficient 1."""
    while q:
        p, q = q, divided(p, q)[1]
    return [x / p[-1] for x in p]


def chain(p):
    """Sturm's chain."""
    out = [p, slope(p)]
    while out[-1]:
        out.append([-x for x in divided(out[-2], out[-1])[1]])
    return out[:-1]


def zeros_in(p, low, high):
    """Number of different zeros in (low, high]."""
    if len(p) < 2:
        return 0
    links = chain(p)

    def changes(t):
        signs = [v > 0 for v in (at(q, t) for q in links) if v != 0]
        return sum(x != y for x, y in pairwise(signs))

    return changes(low) - changes(high)


def isolated(p, low, high, width):
    """Intervals (low, high], one zero of p in each, in order."""
    count = zeros_in(p, low, high)
    if count == 0:
        return []
    if count == 1 and high - low <= width:
        return [(low, high)]
    middle = (low + high) / 2
    return isolated(p, low, middle, width) + isolated(p, middle, high, width)


def sign_at_zero(g, p, low, high):
    """Sign of g at the one zero of p in (low, high]."""
    if not g:
        return 0
    shared = common(p, g)
    if zeros_in(shared, low, high):
        return 0
    while zeros_in(g, low, high) or at(g, high) == 0:
        middle = (low + high) / 2
        low, high = (low, middle) if zeros_in(p, low, middle) else (middle, high)
    value = at(g, high)
    return (value > 0) - (value < 0)


def line(start, end):
    """Components of a point that goes straight, as polynomials in time."""
    start, end = [Fraction(float(x)) for x in start], [Fraction(float(x)) for x in end]
    return [trimmed([x, y - x]) for x, y in zip(start, end, strict=True)]


def minus(p, q):
    """Difference of vectors of polynomials."""
    return [add(x, y, -1) for x, y in zip(p, q, strict=True)]


def cross(p, q):
    """Vector product of vectors of polynomials."""
    return [add(mul(p[i], q[j]), mul(p[j], q[i]), -1) for i, j in ((1, 2), (2, 0), (0, 1))]


def dot(p, q):
    """Inner product of vectors of polynomials."""
    out = []
    for x, y in zip(p, q, strict=True):
        out = add(out, mul(x, y))
    return out


def conditions(kind, points):
    """The cubic, the squared normal, and polynomials that are not negative at a contact."""
    if kind == "vertex_face":
        p, a, b, c = points
        u, v, x = minus(b, a), minus(c, a), minus(p, a)
        n = cross(u, v)
        first, second = dot(cross(x, v), n), dot(cross(u, x), n)
        size = dot(n, n)
        return dot(n, x), size, [first, second, add(add(size, first, -1), second, -1)]
    a0, a1, b0, b1 = points
    u, v, x = minus(a1, a0), minus(b1, b0), minus(b0, a0)
    n = cross(u, v)
    first, second = dot(cross(x, v), n), dot(cross(x, u), n)
    size = dot(n, n)
    return dot(n, x), size, [first, add(size, first, -1), second, add(size, second, -1)]


def first_contact(kind, start, end, width=Fraction(1, 2**40)):
    """An interval of at most ``width`` that holds the first contact; None; or UNKNOWN."""
    points = [line(p, q) for p, q in zip(start, end, strict=True)]
    f, size, inside = conditions(kind, points)
    if not f:
        return UNKNOWN
    p = divided(f, common(f, slope(f)))[0] if slope(f) else f
    zeros = [(Fraction(0), Fraction(0))] if at(p, Fraction(0)) == 0 else []
    zeros += isolated(p, Fraction(0), Fraction(1), width)
    for low, high in zeros:
        if low == high:
            signs = [at(g, low) for g in inside]
            degenerate = at(size, low) == 0
        else:
            signs = [sign_at_zero(g, p, low, high) for g in inside]
            degenerate = sign_at_zero(size, p, low, high) == 0
        if degenerate:
            return UNKNOWN
        if all(s >= 0 for s in signs):
            return float(low), float(high)
    return None
