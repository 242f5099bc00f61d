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
        """One write a cycle: the new entry, or the top with only its even child left."""
        m = Module()
        m.submodules.entries = entries = memory.Memory(
            shape=ENTRY, depth=self.depth, init=[], attrs=LUT_RAM
        )
        write, read = entries.write_port(), entries.read_port(domain="comb")
        held = Signal(range(self.depth + 1))
        top = Signal(ENTRY)
        opened = top.opened_a | top.opened_b
        full = held == self.depth
        m.d.comb += [
            read.addr.eq(held - 1),
            top.eq(read.data),
            self.filled.eq(held != 0),
            self.pair.a.eq(top.a | top.opened_a),
            self.pair.b.eq(top.b | top.opened_b),
            write.addr.eq(Mux(self.push, held, held - 1)),
            write.en.eq((self.push & ~full) | (self.pop & opened)),
            write.data.a.eq(Mux(self.push, self.entry.a, top.a)),
            write.data.b.eq(Mux(self.push, self.entry.b, top.b)),
            write.data.opened_a.eq(self.push & self.entry.opened_a),
            write.data.opened_b.eq(self.push & self.entry.opened_b),
        ]
        with m.If(self.clear):
            m.d.sync += [held.eq(0), self.overflow.eq(0), self.deepest.eq(0)]
        with m.Elif(self.push):
            with m.If(full):
                m.d.sync += self.overflow.eq(1)
            with m.Else():
                m.d.sync += held.eq(held + 1)
                with m.If(self.deepest == held):
                    m.d.sync += self.deepest.eq(held + 1)
        with m.Elif(self.pop & ~opened):
            m.d.sync += held.eq(held - 1)
        return m
