"""Stack of pairs to be tested.

An entry is one pair of slots, or two: the children of an opened node, which are adjacent, each with
the same slot of the other tree. The odd child is taken first.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import SLOT_BITS
from abut.hardware.rtl.lane import LUT_RAM

PAIR = data.StructLayout({"a": SLOT_BITS, "b": SLOT_BITS})
ENTRY = data.StructLayout({"a": SLOT_BITS, "b": SLOT_BITS, "opened_a": 1, "opened_b": 1})


class Stack(wiring.Component):
    """Last in, first out. A push takes precedence: no pop is allowed in its cycle.

    Ports:
        push, entry: Adds an entry.
        pop: Takes ``pair``, which must be valid.
        pair, filled: The next pair, and whether it is valid.
        overflow: An entry was lost since the last clear.
        deepest: Most entries held since the last clear.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        count = range(depth + 1)
        super().__init__(
            {
                "clear": In(1),
                "push": In(1),
                "entry": In(ENTRY),
                "pop": In(1),
                "pair": Out(PAIR),
                "filled": Out(1),
                "overflow": Out(1),
                "deepest": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Keep the top in a register too; after a pop the new top takes two more cycles to read.

        One write per cycle: the new entry, or the top with only its even child left.
        """
        m = Module()
        held = Signal(range(self.depth + 1))
        last = Signal(range(self.depth), init=self.depth - 1)  # held - 1
        top, stale = Signal(ENTRY), Signal(2)
        opened = top.opened_a | top.opened_b
        full = held == self.depth
        pushed, popped = self.push & ~full, self.pop & ~opened
        written, following = Signal(ENTRY), Signal.like(last)
        m.d.comb += [
            self.filled.eq((held != 0) & ~stale.any()),
            self.pair.a.eq(top.a | top.opened_a),
            self.pair.b.eq(top.b | top.opened_b),
            written.a.eq(Mux(self.push, self.entry.a, top.a)),
            written.b.eq(Mux(self.push, self.entry.b, top.b)),
            written.opened_a.eq(self.push & self.entry.opened_a),
            written.opened_b.eq(self.push & self.entry.opened_b),
            following.eq(Mux(pushed, held, Mux(popped, last - 1, last))),
        ]
        m.d.sync += [last.eq(following), stale.eq(stale[1])]
        put = pushed | (self.pop & opened)
        below = self._below(m, put, Mux(self.push, held, last), written, following, last)
        with m.If(pushed):
            m.d.sync += [top.eq(self.entry), stale.eq(0)]
        with m.Elif(stale == 1):
            m.d.sync += top.eq(below)
        with m.Elif(self.pop):
            m.d.sync += [top.opened_a.eq(0), top.opened_b.eq(0), stale.eq(Mux(opened, 0, 2))]
        with m.If(self.clear):
            m.d.sync += [held.eq(0), self.overflow.eq(0), self.deepest.eq(0)]
        with m.Elif(pushed):
            m.d.sync += held.eq(held + 1)
            with m.If(self.deepest == held):
                m.d.sync += self.deepest.eq(held + 1)
        with m.Elif(popped):
            m.d.sync += held.eq(last)
        with m.If(self.push & full & ~self.clear):
            m.d.sync += self.overflow.eq(1)
        return m

    def _below(
        self, m: Module, put: Value, place: Value, entry: Value, following: Value, last: Value
    ) -> Value:
        """The entry at ``following``, two cycles later.

        The memory has parts of sixteen entries, each with its own copy of the address.
        """
        puts, places, held = Signal(), Signal(range(self.depth)), Signal(ENTRY)
        m.d.sync += [puts.eq(put), places.eq(place), held.eq(entry)]  # written one cycle later
        rows, part_rows = [], min(self.depth, 16)
        row_bits = (part_rows - 1).bit_length()
        for n in range(-(-self.depth // part_rows)):
            part = memory.Memory(shape=ENTRY, depth=part_rows, init=[], attrs=LUT_RAM)
            m.submodules[f"entries_{n}"] = part
            write, read = part.write_port(), part.read_port(domain="comb")
            address, row = Signal(row_bits, init=n % part_rows), Signal(ENTRY.size)
            m.d.comb += [
                write.en.eq(puts & (places[row_bits:] == n)),
                write.addr.eq(places[:row_bits]),
                write.data.eq(held),
                read.addr.eq(address),
            ]
            m.d.sync += [address.eq(following[:row_bits]), row.eq(read.data)]
            rows.append(row)
        if len(rows) == 1:
            return rows[0]
        return Cat(*rows).word_select(last[row_bits:], len(rows[0]))
