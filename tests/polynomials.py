"""Polynomials in time with whole coefficients, lowest first: their zeros in [0, 1], exactly.

A zero is the one zero of a square-free polynomial in an interval (low, high], or at ``low`` where
both are one. Ends of intervals are fractions with a power of two below.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from itertools import pairwise
from math import gcd


def trimmed(p):
    """Without leading zeros, as a tuple."""
    p = tuple(p)
    while p and p[-1] == 0:
        p = p[:-1]
    return p


def add(p, q, factor=1):
    """P + factor q."""
    size = max(len(p), len(q))
    p, q = (*p, *[0] * (size - len(p))), (*q, *[0] * (size - len(q)))
    return trimmed(x + factor * y for x, y in zip(p, q, strict=True))


def mul(p, q):
    """Product."""
    out = [0] * max(len(p) + len(q) - 1, 0)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            out[i + j] += x * y
    return trimmed(out)


def sign(x):
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


def sign_at(p, t):
    """Sign of the value at a fraction."""
    out, power = 0, 1
    for x in reversed(p):
        out = out * t.numerator + x * power
        power *= t.denominator
    return sign(out)


def primitive(p):
    """Without a common positive factor of the coefficients."""
    factor = reduce(gcd, p, 0)
    return tuple(x // factor for x in p) if factor else ()


def remainder(p, q):
    """Of the division of a positive multiple of p by q, without a common factor."""
    p = list(p)
    while len(p) >= len(q):
        shift, lead = len(p) - len(q), p[-1] * sign(q[-1])
        p = [x * abs(q[-1]) for x in p]
        for i, y in enumerate(q):
            p[i + shift] -= lead * y
        p = list(primitive(trimmed(p)))
    return tuple(p)


def divided(p, q):
    """P over a divisor of it, up to a positive factor."""
    out, p = [], list(p)
    while len(p) >= len(q):
        out = [x * abs(q[-1]) for x in out]
        out.append(p[-1] * sign(q[-1]))
        p = [x * abs(q[-1]) for x in p]
        for i, y in enumerate(q):
            p[i + len(p) - len(q)] -= out[-1] * y
        p.pop()
    return primitive(tuple(reversed(out)))


def common(p, q):
    """Greatest common divisor."""
    while q:
        p, q = q, remainder(p, q)
    return primitive(p)


@cache
def square_free(p):
    """A polynomial with the same zeros, each once; its sign may be the other."""
    slope = tuple(k * x for k, x in enumerate(p))[1:]
    return divided(p, common(p, slope)) if any(slope) else primitive(p)


@cache
def chain(p):
    """Sturm's chain of a square-free polynomial."""
    out = [p, trimmed([k * x for k, x in enumerate(p)][1:])]
    while out[-1]:
        out.append(tuple(-x for x in remainder(out[-2], out[-1])))
    return out[:-1]


def zeros_in(p, low, high):
    """Number of zeros of a square-free polynomial in (low, high]."""
    if len(p) < 2:
        return 0

    def changes(t):
        signs = [s for s in (sign_at(q, t) for q in chain(p)) if s]
        return sum(x != y for x, y in pairwise(signs))

    return changes(low) - changes(high)


@dataclass(frozen=True)
class Zero:
    """The one zero of ``p`` in (low, high]; ``low`` itself, where that is ``high``."""

    p: tuple
    low: Fraction
    high: Fraction

    def halved(self):
        """The same zero in half the interval."""
        middle = (self.low + self.high) / 2
        if zeros_in(self.p, self.low, middle):
            return Zero(self.p, self.low, middle)
        return Zero(self.p, middle, self.high)

    def sign_of(self, g):
        """Sign of a polynomial there."""
        if not g:
            return 0
        if self.low == self.high:
            return sign_at(g, self.low)
        if zeros_in(common(self.p, g), self.low, self.high):
            return 0
        here = self
        while zeros_in(square_free(g), here.low, here.high):
            here = here.halved()
        return sign_at(g, here.high)


def zeros_of(p, width):
    """All zeros in [0, 1], in order, in intervals no wider than ``width``."""
    p = square_free(p)
    start = Fraction(0)
    found = [Zero(p, start, start)] if sign_at(p, start) == 0 else []
    parts = [(start, Fraction(1))]
    while parts:
        low, high = parts.pop()
        count = zeros_in(p, low, high)
        if count == 1:
            zero = Zero(p, low, high)
            while zero.high - zero.low > width:
                zero = zero.halved()
            found.append(zero)
        elif count:
            middle = (low + high) / 2
            parts += [(middle, high), (low, middle)]
    return found
