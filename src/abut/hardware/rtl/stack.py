"""The stack of pairs that are still to be tested.

An entry stands for one pair of slots, or for two: the children of an opened node, which lie side
by side, each with the same slot of the other tree. The odd child is taken first.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import SLOT_BITS
from abut.hardware.rtl.lane import LUT_RAM

PAIR = data.StructLayout({"a": SLOT_BITS, "b": SLOT_BITS})
ENTRY = data.StructLayout({"a": SLOT_BITS, "b": SLOT_BITS, "opened_a": 1, "opened_b": 1})


class Stack(wiring.Component):
    """Last in, first out. A push takes precedence: nothing may be popped in its cycle.

    Ports:
        push, entry: Adds an entry.
        pop: Takes ``pair``, which must be there.
        pair, filled: What comes next, if there is anything.
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
        """The top lies in a register as well; after it was taken it is read anew in the next cycle.

        One write a cycle: the new entry, or the top with only its even child left.
        """
        m = Module()
        m.submodules.entries = entries = memory.Memory(
            shape=ENTRY, depth=self.depth, init=[], attrs=LUT_RAM
        )
        write, read = entries.write_port(), entries.read_port(domain="comb")
        held, last = Signal(range(self.depth + 1)), Signal(range(self.depth))  # last: held - 1
        top, stale = Signal(ENTRY), Signal()
        opened = top.opened_a | top.opened_b
        full = held == self.depth
        pushed = self.push & ~full
        m.d.comb += [
            read.addr.eq(last),
            self.filled.eq((held != 0) & ~stale),
            self.pair.a.eq(top.a | top.opened_a),
            self.pair.b.eq(top.b | top.opened_b),
            write.addr.eq(Mux(self.push, held, last)),
            write.en.eq(pushed | (self.pop & opened)),
            write.data.a.eq(Mux(self.push, self.entry.a, top.a)),
            write.data.b.eq(Mux(self.push, self.entry.b, top.b)),
            write.data.opened_a.eq(self.push & self.entry.opened_a),
            write.data.opened_b.eq(self.push & self.entry.opened_b),
        ]
        m.d.sync += stale.eq(0)
        with m.If(pushed):
            m.d.sync += top.eq(self.entry)
        with m.Elif(stale):
            m.d.sync += top.eq(read.data)
        with m.Elif(self.pop):
            m.d.sync += [top.opened_a.eq(0), top.opened_b.eq(0), stale.eq(~opened)]
        with m.If(self.clear):
            m.d.sync += [held.eq(0), self.overflow.eq(0), self.deepest.eq(0)]
        with m.Elif(pushed):
            m.d.sync += [held.eq(held + 1), last.eq(held)]
            with m.If(self.deepest == held):
                m.d.sync += self.deepest.eq(held + 1)
        with m.Elif(self.pop & ~opened):
            m.d.sync += [held.eq(last), last.eq(last - 1)]
        with m.If(self.push & full & ~self.clear):
            m.d.sync += self.overflow.eq(1)
        return m
