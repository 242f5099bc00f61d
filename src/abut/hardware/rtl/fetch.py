"""Fetch unit: loads the DOPs of the next pairs while one is tested.

Two pairs are under way: a wanted one, whose records are being requested, and a loading one. A
record that a bank still holds is not requested again. Each tree has two banks; the new records of
a pair go into the bank that the pair before it does not use, so no record is overwritten while it
is read.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import HEAD_BITS, SIZE_BITS, SLOT_BITS, Machine
from abut.hardware.rtl.stack import PAIR

HEAD = data.StructLayout({"link": SLOT_BITS, "leaf": 1, "size": signed(SIZE_BITS)})
NODE = data.StructLayout({"slot": SLOT_BITS, "head": HEAD})


class Fetch(wiring.Component):
    """Fetch unit.

    Ports:
        pair, take: A pair to fetch, and whether it is taken in this cycle (``room``: it may be).
        ask, ask_b, ask_slot, ask_ready: Requests a record of a or b from the memory.
        beat, data, beat_ready: The response of the memory, in the order of requests.
        load_a, load_b, load_row: Address at which the pipelines store ``load_data``.
        load_data: Four reaches, of this beat and maybe the one before.
        ready, start: A pair is loaded; its test starts in this cycle.
        node_a, node_b, bank_a, bank_b: The loaded pair.
        idle: No pair is under way.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__(
            {
                "clear": In(1),
                "pair": In(PAIR),
                "take": In(1),
                "room": Out(1),
                "ask": Out(1),
                "ask_b": Out(1),
                "ask_slot": Out(SLOT_BITS),
                "ask_ready": In(1),
                "beat": In(1),
                "data": In(machine.beat_bits),
                "beat_ready": Out(1),
                "load_a": Out(1),
                "load_b": Out(1),
                "load_row": Out(4),
                "load_data": Out(4 * machine.width),
                "ready": Out(1),
                "start": In(1),
                "node_a": Out(NODE),
                "node_b": Out(NODE),
                "bank_a": Out(1),
                "bank_b": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """State of the wanted pair, requests, state of the loading pair."""
        m = Module()
        sides = [_Side(name) for name in "ab"]
        wanted, looking, loading = Signal(), Signal(), Signal()
        count = Signal(range(self.machine.beats))
        asking = looking | sides[0].ask | sides[1].ask
        move = Signal()
        m.d.comb += [
            self.room.eq(~wanted),
            self.ask.eq(sides[0].ask | sides[1].ask),
            self.ask_b.eq(~sides[0].ask),
            self.ask_slot.eq(Mux(sides[0].ask, sides[0].slot, sides[1].slot)),
            move.eq(wanted & ~asking & ~loading),
            self.beat_ready.eq(loading & (sides[0].wait | sides[1].wait)),
            self.ready.eq(loading & ~sides[0].wait & ~sides[1].wait),
            self.idle.eq(~wanted & ~loading),
        ]
        m.d.sync += looking.eq(self.take)
        with m.If(self.take):
            m.d.sync += [wanted.eq(1), sides[0].next.eq(self.pair.a), sides[1].next.eq(self.pair.b)]
        with m.Elif(move):
            m.d.sync += [wanted.eq(0), loading.eq(1), count.eq(0)]
        with m.If(self.start):
            m.d.sync += loading.eq(0)
        with m.If(self.ask & self.ask_ready):
            with m.If(sides[0].ask):
                m.d.sync += sides[0].ask.eq(0)
            with m.Else():
                m.d.sync += sides[1].ask.eq(0)
        for side in sides:
            with m.If(looking):
                side.look(m)
            with m.Elif(move):
                side.load(m)
        self._receive(m, sides, count)
        ports = ((self.node_a, self.bank_a), (self.node_b, self.bank_b))
        for side, (node, bank) in zip(sides, ports, strict=True):
            m.d.comb += [
                node.slot.eq(Mux(side.load_bank, side.slots[1], side.slots[0])),
                node.head.eq(Mux(side.load_bank, side.heads[1], side.heads[0])),
                bank.eq(side.load_bank),
            ]
        with m.If(self.clear):
            m.d.sync += [wanted.eq(0), looking.eq(0), loading.eq(0)]
            m.d.sync += [known.eq(0) for side in sides for known in side.known]
        return m

    def _receive(self, m: Module, sides: list["_Side"], count: Signal) -> None:
        """Receive the head, then rows of four reaches, each in one beat or in two."""
        a, b = sides
        machine = self.machine
        taken = self.beat & self.beat_ready
        reaches, row, values = taken & (count != 0), count - 1, self.data[: 4 * machine.width]
        if machine.row_beats == 2:
            half = Signal(2 * machine.width)
            with m.If(taken):
                m.d.sync += half.eq(self.data)
            reaches, row = reaches & ~count[0], (count >> 1) - 1
            values = Cat(half, self.data[: len(half)])
        m.d.comb += [
            self.load_a.eq(reaches & a.wait),
            self.load_b.eq(reaches & ~a.wait),
            self.load_data.eq(values),
            self.load_row[:3].eq(row),
            self.load_row[3].eq(Mux(a.wait, a.load_bank, b.load_bank)),
        ]
        with m.If(taken):
            m.d.sync += count.eq(Mux(count == self.machine.beats - 1, 0, count + 1))
            for side, this in ((a, a.wait), (b, ~a.wait)):
                with m.If(this & (count == 0)):
                    for bank in range(2):
                        with m.If(side.load_bank == bank):
                            m.d.sync += side.heads[bank].eq(self.data[:HEAD_BITS])
                with m.If(this & (count == self.machine.beats - 1)):
                    m.d.sync += side.wait.eq(0)


class _Side:
    """State for one tree: records in its banks, the wanted bank, the loading bank."""

    def __init__(self, name: str) -> None:
        self.next = Signal(SLOT_BITS, name=f"next_{name}")  # slot to look for
        self.known = [Signal(name=f"known_{name}{bank}") for bank in range(2)]
        self.slots = [Signal(SLOT_BITS, name=f"slot_{name}{bank}") for bank in range(2)]
        self.bank = Signal(name=f"bank_{name}")
        self.fresh = Signal(name=f"fresh_{name}")  # the wanted record is not in a bank
        self.ask = Signal(name=f"ask_{name}")
        self.wait = Signal(name=f"wait_{name}")
        self.load_bank = Signal(name=f"load_bank_{name}")
        self.heads = [Signal(HEAD, name=f"head_{name}{bank}") for bank in range(2)]

    @property
    def slot(self) -> Value:
        """Slot of the wanted record."""
        return Mux(self.bank, self.slots[1], self.slots[0])

    def look(self, m: Module) -> None:
        """Look up a record; it is requested unless a bank holds it."""
        slot = self.next
        held = [known & (slot == at) for known, at in zip(self.known, self.slots, strict=True)]
        fresh = ~held[0] & ~held[1]
        bank = Mux(held[0], 0, Mux(held[1], 1, ~self.bank))
        m.d.sync += [self.bank.eq(bank), self.fresh.eq(fresh), self.ask.eq(fresh)]
        for n in range(2):
            with m.If(fresh & (self.bank != n)):
                m.d.sync += [self.known[n].eq(1), self.slots[n].eq(slot)]

    def load(self, m: Module) -> None:
        """Make the wanted record the loading one."""
        m.d.sync += [self.load_bank.eq(self.bank), self.wait.eq(self.fresh)]
