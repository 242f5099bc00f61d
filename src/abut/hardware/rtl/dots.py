"""Arithmetic of the triangle unit: dot products, axes scaled to 18 bits, gaps of projections."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.rtl.multiply import Multiplier

NUMBER = signed(18)
ADDEND = signed(36)
DOT = signed(38)
NORM_BITS = 20
SHADOW = signed(39)


class Dots(wiring.Component):
    """Three dot products of three numbers each, plus an addend; the latency is four cycles.

    The addend is sampled two cycles after the numbers.
    """

    x: In(NUMBER).array(3, 3)
    y: In(NUMBER).array(3, 3)
    addend: In(ADDEND).array(3)
    total: Out(DOT).array(3)

    def __init__(self, target: str | None = None) -> None:
        super().__init__()
        self.target = target

    def elaborate(self, platform: object) -> Module:
        """Nine multipliers, two levels of sums."""
        m = Module()
        for n in range(3):
            products = []
            for i in range(3):
                m.submodules[f"multiply_{n}{i}"] = multiplier = Multiplier(self.target)
                m.d.comb += [multiplier.x.eq(self.x[n][i]), multiplier.y.eq(self.y[n][i])]
                products.append(multiplier.product)
            first, second = Signal(DOT), Signal(DOT)
            m.d.sync += [
                first.eq(products[0] + products[1]),
                second.eq(products[2] + self.addend[n]),
                self.total[n].eq(first + second),
            ]
        return m


class Scale(wiring.Component):
    """Shifts a vector right until it fits 18 bits, in three cycles; its norm takes two more."""

    vector: In(DOT).array(3)
    axis: Out(NUMBER).array(3)
    norm: Out(NORM_BITS)

    def elaborate(self, platform: object) -> Module:
        """Stages: used bits, excess bits, shift, absolute values, their sum."""
        m = Module()
        spread, excess = Signal(DOT.width - 1), Signal(range(DOT.width))
        held = [[Signal(DOT, name=f"held{n}_{i}") for i in range(2)] for n in range(3)]
        sizes = [Signal(18, name=f"size{n}") for n in range(3)]
        for n in range(3):
            m.d.sync += [
                held[n][0].eq(self.vector[n]),
                held[n][1].eq(held[n][0]),
                self.axis[n].eq(held[n][1] >> excess),
                sizes[n].eq(Mux(self.axis[n][-1], -self.axis[n], self.axis[n])),
            ]
        parts = [v[:-1] ^ v[-1].replicate(len(v) - 1) for v in self.vector]
        used, highest = _highest(list(spread[17:]))
        m.d.sync += [
            spread.eq(parts[0] | parts[1] | parts[2]),
            excess.eq(Mux(used, highest + 1, 0)),
            self.norm.eq(sizes[0] + sizes[1] + sizes[2]),
        ]
        return m


class Gap(wiring.Component):
    """Tests whether the projections of two triangles are apart.

    Projections arrive alternately, a first. ``slack`` is sampled five cycles after the projection
    of b, and ``apart`` is valid one cycle after that.
    """

    shadow: In(DOT).array(3)
    slack: In(36)
    apart: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Stages: minimum and maximum of three, both gaps, their comparison."""
        m = Module()
        least, most = self._ends(m)
        names = ("least_a", "most_a", "over", "under")
        least_a, most_a, over, under = (Signal(SHADOW, name=name) for name in names)
        left, right = Signal(signed(40)), Signal(signed(40))
        m.d.sync += [
            least_a.eq(least),
            most_a.eq(most),
            over.eq(least_a - most),
            under.eq(least - most_a),
            left.eq(self.slack - over),
            right.eq(self.slack - under),
        ]
        m.d.comb += self.apart.eq(left[-1] | right[-1])
        return m

    def _ends(self, m: Module) -> tuple[Signal, Signal]:
        """Minimum and maximum of three, four cycles later."""
        names = ("first", "second", "third", "low", "high", "rest", "lower", "higher", "last")
        first, second, third, low, high, rest, lower, higher, last = (
            Signal(SHADOW, name=name) for name in names
        )
        least, most = Signal(SHADOW), Signal(SHADOW)
        ordered, rest_low, rest_high = Signal(), Signal(), Signal()
        s = self.shadow
        m.d.sync += [
            *(x.eq(y) for x, y in zip((first, second, third), s, strict=True)),
            ordered.eq(s[0] < s[1]),
            low.eq(Mux(ordered, first, second)),
            high.eq(Mux(ordered, second, first)),
            rest.eq(third),
            *(x.eq(y) for x, y in zip((lower, higher, last), (low, high, rest), strict=True)),
            rest_low.eq(rest < low),
            rest_high.eq(high < rest),
            least.eq(Mux(rest_low, last, lower)),
            most.eq(Mux(rest_high, last, higher)),
        ]
        return least, most


def _highest(bits: list[Value]) -> tuple[Value, Value]:
    """Whether any bit is set, and the index of the highest; bisection keeps the logic shallow."""
    if len(bits) == 1:
        return bits[0], Const(0, 1)
    half = 1 << ((len(bits) - 1).bit_length() - 1)
    low, high = _highest(bits[:half]), _highest(bits[half:])
    return low[0] | high[0], Mux(high[0], half + high[1], low[1])
