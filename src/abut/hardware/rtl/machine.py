"""The whole machine: controller, pipelines, fetch unit, triangle unit, result queue."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, memory, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import SLOT_BITS, TAG_BITS, TRIANGLE_BITS, Machine
from abut.hardware.rtl.fetch import NODE, Fetch
from abut.hardware.rtl.lane import LUT_RAM, Lane
from abut.hardware.rtl.stack import ENTRY, PAIR, Stack
from abut.hardware.rtl.triangle import SHIFT_BITS, TriangleUnit

RESULT_DEPTH = 16
COUNTERS = ("cycles", "dop_tests", "axis_tests", "leaf_pairs", "records")
PASSING = data.StructLayout({"valid": 1, "tag": TAG_BITS, "last": 1})
# a pair, both leaves, and which of its nodes is to be opened
NODES = data.StructLayout({"a": NODE, "b": NODE, "both": 1, "open_a": 1})


class CollisionMachine(wiring.Component):
    """Finds the pairs of faces of two trees that may intersect.

    Ports:
        table_*: The host writes the axis table, one row of one pipeline at a time.
        root_a, root_b, turn, shift, slack: The query; constant while ``running``.
        go, running: Starts a query; high until it is answered.
        overflow: The stack was too small: the answer is incomplete.
        ask, ask_b, ask_slot, ask_ready, beat, beat_data, beat_ready: Memory of DOPs.
        ask_face, beat_face: Whether a request or a beat is of a triangle (shared bus alone);
            ``ask_ready`` holds for records, two triangles are always accepted.
        face_ask, face_ask_b, face, triangle_valid, triangle: Triangles (wide bus alone).
        result_valid, result, result_ready: Pairs of faces found.
        cycles, dop_tests, axis_tests, leaf_pairs, records: Counted since ``go``.
    """

    def __init__(self, machine: Machine, target: str | None = None) -> None:
        self.machine = machine
        self.target = target
        ports = {
            "table_write": In(1),
            "table_lane": In(range(max(machine.pipelines, 2))),
            "table_row": In(range(machine.table_depth)),
            "table_data": In(machine.axis_bits),
            "root_a": In(SLOT_BITS),
            "root_b": In(SLOT_BITS),
            "turn": In(TRIANGLE_BITS),
            "shift": In(3 * SHIFT_BITS),
            "slack": In(4),
            "go": In(1),
            "running": Out(1),
            "overflow": Out(1),
            "ask": Out(1),
            "ask_b": Out(1),
            "ask_slot": Out(SLOT_BITS),
            "ask_ready": In(1),
            "beat": In(1),
            "beat_data": In(machine.beat_bits),
            "beat_ready": Out(1),
            "result_valid": Out(1),
            "result": Out(PAIR),
            "result_ready": In(1),
        }
        if machine.shared_bus:
            ports |= {"ask_face": Out(1), "beat_face": In(1)}
        else:
            ports |= {
                "face_ask": Out(1),
                "face_ask_b": Out(1),
                "face": Out(SLOT_BITS),
                "triangle_valid": In(1),
                "triangle": In(TRIANGLE_BITS),
            }
        super().__init__(ports | {name: Out(32) for name in COUNTERS})

    def elaborate(self, platform: object) -> Module:
        """The blocks and their connections."""
        m = Module()
        m.submodules.stack = stack = Stack(self.machine.stack)
        m.submodules.fetch = fetch = Fetch(self.machine)
        lanes = [Lane(self.machine, self.target) for _ in range(self.machine.pipelines)]
        for n, lane in enumerate(lanes):
            m.submodules[f"lane_{n}"] = lane
        m.submodules.leaves = leaves = fifo.SyncFIFO(
            width=2 * SLOT_BITS, depth=self.machine.leaf_queue
        )
        m.d.comb += [
            stack.clear.eq(self.go),
            fetch.clear.eq(self.go),
            self.overflow.eq(stack.overflow),
            fetch.pair.eq(stack.pair),
            fetch.data.eq(self.beat_data),
        ]
        issuing, passing, tag, decided = self._issue(m, fetch, lanes)
        pushing = self._decide(m, fetch, lanes, stack, leaves, passing, tag, decided)
        roomy = Signal()
        m.d.sync += roomy.eq(leaves.level <= self.machine.leaf_room)
        take = stack.filled & fetch.room & ~pushing & roomy
        m.d.comb += [fetch.take.eq(take), stack.pop.eq(take)]
        quiet = ~stack.filled & fetch.idle & ~issuing & (tag == decided)
        unit = self._triangles(m, leaves, quiet)
        (self._share_bus if self.machine.shared_bus else self._use_wide_bus)(m, fetch, unit)
        self._count(m, fetch, leaves)
        return m

    def _issue(
        self, m: Module, fetch: Fetch, lanes: list[Lane]
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """Issue tests; their tags travel beside the pipelines."""
        steps = self.machine.steps
        self.issuing = issuing = Signal()
        self.step = step = Signal(range(self.machine.table_depth))
        tag, decided = Signal(TAG_BITS), Signal(TAG_BITS)
        banks = [Signal(name="issue_bank_a"), Signal(name="issue_bank_b")]
        self.stop = Signal()
        last = step == steps - 1
        following = Signal.like(step)
        m.d.comb += [
            fetch.start.eq(fetch.ready & ~issuing),
            following.eq(Mux(issuing, step + 1, 0)),
        ]
        m.d.sync += step.eq(following)
        with m.If(fetch.start):
            m.d.sync += [
                issuing.eq(1),
                tag.eq(tag + 1),
                banks[0].eq(fetch.bank_a),
                banks[1].eq(fetch.bank_b),
            ]
        with m.Elif(issuing):
            m.d.sync += issuing.eq(~last & ~self.stop)
        entering = Signal(PASSING)
        m.d.comb += [entering.valid.eq(issuing), entering.tag.eq(tag), entering.last.eq(last)]
        passing = entering
        for n in range(self.machine.depth):
            after = Signal(PASSING, name=f"passing{n}")
            m.d.sync += after.eq(passing)
            passing = after
        for n, lane in enumerate(lanes):
            m.d.comb += [
                lane.step.eq(following),
                lane.bank_a.eq(banks[0]),
                lane.bank_b.eq(banks[1]),
                lane.load_a.eq(fetch.load_a),
                lane.load_b.eq(fetch.load_b),
                lane.load_row.eq(fetch.load_row),
                lane.load_data.eq(fetch.load_data),
                lane.table_write.eq(self.table_write & (self.table_lane == n)),
                lane.table_row.eq(self.table_row),
                lane.table_data.eq(self.table_data),
            ]
        return issuing, passing, tag, decided

    def _decide(
        self,
        m: Module,
        fetch: Fetch,
        lanes: list[Lane],
        stack: Stack,
        leaves: fifo.SyncFIFO,
        passing: Signal,
        tag: Signal,
        decided: Signal,
    ) -> Signal:
        """Decide a pair at its first separating axis, or at its last; then push children."""
        m.submodules.nodes = nodes = memory.Memory(
            shape=NODES, depth=1 << TAG_BITS, init=[], attrs=LUT_RAM
        )
        put, get = nodes.write_port(), nodes.read_port(domain="comb")
        apart = Cat(*(lane.apart for lane in lanes)).any()
        head_a, head_b = fetch.node_a.head, fetch.node_b.head
        tested, started = Signal(NODES), Signal()
        m.d.sync += [  # in the first cycle of a test, long before its result
            started.eq(fetch.start),
            tested.a.eq(fetch.node_a),
            tested.b.eq(fetch.node_b),
            tested.both.eq(head_a.leaf & head_b.leaf),
            tested.open_a.eq(head_b.leaf | (~head_a.leaf & (head_a.size > head_b.size))),
        ]
        open_question = passing.valid & (passing.tag != decided)
        m.d.comb += [
            put.en.eq(started),
            put.addr.eq(tag),
            put.data.eq(tested),
            get.addr.eq(passing.tag),
            self.stop.eq(open_question & apart & (passing.tag == tag)),
        ]
        overlapping = Signal()
        pair = Signal(NODES)
        m.d.sync += [overlapping.eq(open_question & ~apart & passing.last), pair.eq(get.data)]
        with m.If(open_question & (apart | passing.last)):
            m.d.sync += decided.eq(passing.tag)
        a, b, both, open_a = pair.a, pair.b, pair.both, pair.open_a
        push, leaf = Signal(), Signal()
        entry, faces = Signal(ENTRY), Signal(2 * SLOT_BITS)
        m.d.sync += [
            push.eq((overlapping & ~both) | self.go),
            leaf.eq(overlapping & both),
            entry.a.eq(Mux(self.go, self.root_a, Mux(open_a, a.head.link, a.slot))),
            entry.b.eq(Mux(self.go, self.root_b, Mux(open_a, b.slot, b.head.link))),
            entry.opened_a.eq(~self.go & open_a),
            entry.opened_b.eq(~self.go & ~open_a),
            faces.eq(Cat(a.head.link, b.head.link)),
        ]
        m.d.comb += [
            stack.push.eq(push),
            stack.entry.eq(entry),
            leaves.w_en.eq(leaf),
            leaves.w_data.eq(faces),
        ]
        self.deciding = overlapping | push | leaf
        return push

    def _triangles(self, m: Module, leaves: fifo.SyncFIFO, quiet: Signal) -> TriangleUnit:
        """Leaf pairs through the triangle unit into the result queue; the end of the query."""
        m.submodules.triangles = unit = TriangleUnit(self.machine.triangle_beat_bits, self.target)
        m.submodules.results = results = fifo.SyncFIFO(width=2 * SLOT_BITS, depth=RESULT_DEPTH)
        m.d.comb += [
            unit.faces_valid.eq(leaves.r_rdy & (results.level < RESULT_DEPTH - 1)),
            Cat(unit.face_a, unit.face_b).eq(leaves.r_data),
            leaves.r_en.eq(unit.faces_taken),
            unit.turn.eq(self.turn),
            unit.shift.eq(self.shift),
            unit.slack.eq(self.slack),
            results.w_en.eq(unit.done & unit.meet),
            results.w_data.eq(Cat(unit.done_a, unit.done_b)),
            self.result_valid.eq(results.r_rdy),
            Cat(self.result.a, self.result.b).eq(results.r_data),
            results.r_en.eq(self.result_ready),
        ]
        settled = quiet & ~self.deciding & ~leaves.r_rdy & unit.idle & ~results.r_rdy
        with m.If(self.go):
            m.d.sync += self.running.eq(1)
        with m.Elif(settled):
            m.d.sync += self.running.eq(0)
        return unit

    def _share_bus(self, m: Module, fetch: Fetch, unit: TriangleUnit) -> None:
        """One port for records and triangles; requests of triangles go first."""
        m.d.comb += [
            self.ask.eq(fetch.ask | unit.ask),
            self.ask_face.eq(unit.ask),
            self.ask_b.eq(Mux(unit.ask, unit.ask_b, fetch.ask_b)),
            self.ask_slot.eq(Mux(unit.ask, unit.ask_face, fetch.ask_slot)),
            fetch.ask_ready.eq(self.ask_ready & ~unit.ask),
            unit.beat.eq(self.beat_data),
            unit.answer.eq(self.beat & self.beat_face),
            fetch.beat.eq(self.beat & ~self.beat_face),
            self.beat_ready.eq(Mux(self.beat_face, unit.answer_ready, fetch.beat_ready)),
        ]

    def _use_wide_bus(self, m: Module, fetch: Fetch, unit: TriangleUnit) -> None:
        """One port for records, another for triangles."""
        m.d.comb += [
            self.ask.eq(fetch.ask),
            self.ask_b.eq(fetch.ask_b),
            self.ask_slot.eq(fetch.ask_slot),
            fetch.ask_ready.eq(self.ask_ready),
            fetch.beat.eq(self.beat),
            self.beat_ready.eq(fetch.beat_ready),
            self.face_ask.eq(unit.ask),
            self.face_ask_b.eq(unit.ask_b),
            self.face.eq(unit.ask_face),
            unit.answer.eq(self.triangle_valid),
            unit.beat.eq(self.triangle),
        ]

    def _count(self, m: Module, fetch: Fetch, leaves: fifo.SyncFIFO) -> None:
        """Counters, cleared when a query starts."""
        left = self.machine.axis_count - (self.machine.steps - 1) * self.machine.pipelines
        tests = Mux(self.step == self.machine.steps - 1, left, self.machine.pipelines)
        amounts = {
            "cycles": self.running,
            "dop_tests": fetch.start,
            "axis_tests": Mux(self.issuing, tests, 0),
            "leaf_pairs": leaves.w_en,
            "records": fetch.ask & fetch.ask_ready,
        }
        for name, amount in amounts.items():
            counter = getattr(self, name)
            m.d.sync += counter.eq(Mux(self.go, 0, counter + amount))
