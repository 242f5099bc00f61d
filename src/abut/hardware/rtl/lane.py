"""Lane: a pipeline that tests one axis per cycle.

step -> table -> rows -> selection -> operands -> products -> three levels of sums (five) -> sign

The axis table and the reaches are in LUT RAM, one copy per read port. A row holds a reach and its
opposite, both of which an axis needs; two banks let the next pair load while one is tested.
Constants include the correction for rounded weights and the strict test: the pipeline multiplies,
adds and tests signs.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import Machine
from abut.hardware.rtl.multiply import LATENCY, Multiplier

LUT_RAM = {"ram_style": "distributed"}  # block RAM is slower, and there is less of it


class Lane(wiring.Component):
    """One pipeline with its share of the axis table.

    Ports:
        table_*: Writes a row of the axis table.
        load_*: Writes four reaches of a or b: two adjacent slabs, each with its opposite.
        step: The test to start in the next cycle.
        bank_a, bank_b: Banks of the test that starts in this cycle.
        apart: Whether the test started ``machine.depth`` cycles ago separates its DOPs.
    """

    low_bits = 17  # of the lower part of a wide number

    def __init__(self, machine: Machine, target: str | None = None) -> None:
        self.machine = machine
        self.target = target
        rows = (machine.table_depth - 1).bit_length()
        super().__init__(
            {
                "table_write": In(1),
                "table_row": In(rows),
                "table_data": In(machine.axis_bits),
                "load_a": In(1),
                "load_b": In(1),
                "load_row": In(4),
                "load_data": In(4 * machine.width),
                "step": In(rows),
                "bank_a": In(1),
                "bank_b": In(1),
                "apart": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The stages in order."""
        m = Module()
        width, bits = self.machine.weight_bits, self.machine.constant_bits
        axis = self._axis(m)
        picks = [axis[5 * i : 5 * i + 5] for i in range(6)]
        weights = [axis[30 + width * i : 30 + width * (i + 1)].as_signed() for i in range(6)]
        base = 30 + 6 * width
        constants = [axis[base + bits * i : base + bits * (i + 1)].as_signed() for i in range(2)]
        banks = [_later(m, bank, 2) for bank in (self.bank_a, self.bank_b)]
        loads = [_later(m, load, 1) for load in (self.load_a, self.load_b)]  # long wires, or wide
        rows, words = _copies(m, [self.load_row], "load_row"), _later(m, self.load_data, 1)
        pairs = [
            self._select(m, i, picks[i], banks[i // 3], loads[i // 3], rows[i // 3], words)
            for i in range(6)
        ]
        weights = [_later(m, weight, 2) for weight in weights]
        # along L: reaches of a, opposite ones of b; against it the other way round
        before = [pairs[i][0] if i < 3 else pairs[i][1] for i in range(6)]
        behind = [pairs[i][1] if i < 3 else pairs[i][0] for i in range(6)]
        signs = [
            self._sum(m, weights, reaches, _later(m, constant, 2 + LATENCY))
            for reaches, constant in ((before, constants[0]), (behind, constants[1]))
        ]
        m.d.comb += self.apart.eq(~(signs[0] & signs[1]))
        return m

    def _axis(self, m: Module) -> Value:
        """The row of the axis table for this step, one cycle later.

        The table has four parts, each with its own copy of the step: one register that drives all
        of them would be the critical path.
        """
        bits, depth = self.machine.axis_bits, self.machine.table_depth
        put, row, word = (
            _later(m, x, 1) for x in (self.table_write, self.table_row, self.table_data)
        )
        steps = _copies(m, [self.step], "step")
        steps = _copies(m, steps, "step")
        part_bits = -(-bits // len(steps))
        parts = []
        for n, step in enumerate(steps):
            start, stop = n * part_bits, min((n + 1) * part_bits, bits)
            table = memory.Memory(shape=stop - start, depth=depth, init=[], attrs=LUT_RAM)
            m.submodules[f"table_{n}"] = table
            write, read = table.write_port(), table.read_port(domain="comb")
            part = Signal(stop - start)
            m.d.comb += [
                write.en.eq(put),
                write.addr.eq(row),
                write.data.eq(word[start:stop]),
                read.addr.eq(step),
            ]
            m.d.sync += part.eq(read.data)
            parts.append(part)
        return Cat(*parts)

    def _select(
        self,
        m: Module,
        port: int,
        pick: Value,
        bank: Value,
        load: Value,
        load_row: Value,
        load_data: Value,
    ) -> tuple[Value, Value]:
        """A reach and its opposite, two cycles later: read both memories, then select."""
        width = self.machine.width
        row, odd, swapped = pick[:3], pick[3], pick[4]
        halves = []
        for part in range(2):
            store = memory.Memory(shape=2 * width, depth=16, init=[], attrs=LUT_RAM)
            m.submodules[f"reaches_{port}_{part}"] = store
            write, read = store.write_port(), store.read_port(domain="comb")
            held = Signal(2 * width)
            m.d.comb += [
                write.en.eq(load),
                write.addr.eq(load_row),
                write.data.eq(load_data.word_select(part, 2 * width)),
                read.addr.eq(Cat(row, bank)),
            ]
            m.d.sync += held.eq(read.data)
            halves.append(held)
        odd, swapped = _later(m, odd, 1), _later(m, swapped, 1)
        pair = Mux(odd, halves[1], halves[0])
        first, second = pair[:width], pair[width:]
        chosen = Mux(swapped, second, first), Mux(swapped, first, second)
        return tuple(_later(m, reach.as_signed(), 1) for reach in chosen)

    def _sum(self, m: Module, weights: list[Value], reaches: list[Value], constant: Value) -> Value:
        """The sign of the sum of products and constant."""
        low_bits, constant = self.low_bits, self._with_ones(constant)
        if not self.machine.split:
            terms = [self._multiply(m, w, r) for w, r in zip(weights, reaches, strict=True)]
            return self._tree(m, [*terms, constant])[-1]
        # four products each; separate sums keep carry chains short
        constant = _extended(constant, 2 * low_bits + 1)
        lows, middles = [constant[: 2 * low_bits]], []
        highs = [constant[2 * low_bits :].as_signed()]
        for weight, reach in zip(weights, reaches, strict=True):
            w_low, w_high = _halves(weight, low_bits)
            r_low, r_high = _halves(reach, low_bits)
            lows.append(self._multiply(m, w_low, r_low)[: 2 * low_bits])
            middles.append(self._multiply(m, w_low, r_high))
            middles.append(self._multiply(m, w_high, r_low))
            highs.append(self._multiply(m, w_high, r_high))
        low, middle, high = (self._tree(m, terms) for terms in (lows, middles, highs))
        bits = self._sum_bits
        upper, lower = Signal(signed(bits - 2 * low_bits)), Signal(2 * low_bits)
        total = Signal(signed(bits - low_bits))
        m.d.sync += [
            upper.eq(high + low[2 * low_bits :]),
            lower.eq(low),
            total.eq(Cat(lower[low_bits:], upper).as_signed() + middle),
        ]
        return total[-1]

    @property
    def _sum_bits(self) -> int:
        bits = self.machine.sum_bits
        return max(bits, 2 * self.low_bits + 2) if self.machine.split else bits

    def _with_ones(self, constant: Value) -> Value:
        """The constant with ones below it, so that the sign of the sum is the strict test."""
        shift = self.machine.constant_shift
        return Cat(Const(2**shift - 1, shift), constant).as_signed()

    def _multiply(self, m: Module, x: Value, y: Value) -> Value:
        multiplier = Multiplier(self.target)
        m.submodules += multiplier
        m.d.comb += [multiplier.x.eq(x), multiplier.y.eq(y)]
        return multiplier.product

    def _tree(self, m: Module, terms: list[Value]) -> Value:
        """Sum pairwise, one level per cycle."""
        most = self._sum_bits
        while len(terms) > 1:
            sums = []
            for x, y in zip(terms[::2], [*terms[1::2], None], strict=False):
                total = x if y is None else x + y
                shape = total.shape()
                level = Signal(Shape(min(shape.width, most), shape.signed))
                m.d.sync += level.eq(total)
                sums.append(level)
            terms = sums
        return terms[0]


def _halves(x: Value, low_bits: int) -> tuple[Value, Value]:
    """The low bits, not negative, and the rest."""
    x = _extended(x, low_bits + 1)
    return Cat(x[:low_bits], Const(0, 1)).as_signed(), x[low_bits:].as_signed()


def _extended(x: Value, bits: int) -> Value:
    """A signed number of at least some bits."""
    return Cat(x, x[-1].replicate(max(bits - len(x), 0))).as_signed()


def _copies(m: Module, signals: list[Signal], name: str) -> list[Signal]:
    """Two registers per signal; different initial values keep synthesis from merging them."""
    copies = []
    for n, signal in enumerate(signals):
        for init in (0, 2 ** len(signal) - 1):
            copy = Signal(len(signal), init=init, name=f"{name}_{n}_{init}")
            m.d.sync += copy.eq(signal)
            copies.append(copy)
    return copies


def _later(m: Module, x: Value, cycles: int) -> Value:
    """``x`` delayed by some cycles."""
    for _ in range(cycles):
        held = Signal.like(x, name="later")
        m.d.sync += held.eq(x)
        x = held
    return x
