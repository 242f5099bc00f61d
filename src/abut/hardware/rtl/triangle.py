"""Triangle unit: tests two triangles along eleven axes.

Corners of a are rotated into b's frame; then the axes are computed (two normals, nine cross
products of edges), each scaled to 18 bits by a shift, and all six corners are projected onto each.
Any axis is sound, so that only projections need error bounds: triangles are apart where the gap
between their projections is more than the slack of corners times five quarters of the sum of the
axis' components.

Three dot products per cycle, counted from the first rotation: rotations in cycles 0 to 2, cross
products in 9 to 19, projections in 20 to 41; the result for axis n comes in cycle 32 + 2 n.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import SLOT_BITS, TRIANGLE_BITS
from abut.hardware.rtl.dots import NORM_BITS, NUMBER, Dots, Gap, Scale
from abut.hardware.rtl.lane import LUT_RAM

SHIFT_BITS = 36
TURN_BITS = 16
AXIS_COUNT = 11
FIRST_CROSS, FIRST_PROJECTION, FIRST_VERDICT = 9, 20, 32
LAST_CYCLE = FIRST_VERDICT + 2 * (AXIS_COUNT - 1)
TURN_DONE, CROSS_DONE, NORM_DONE = 5, 8, 10  # cycles from an operation to its result


class TriangleUnit(wiring.Component):
    """Tests one pair of faces after the other.

    Ports:
        faces_valid, face_a, face_b, faces_taken: Pairs to test.
        ask, ask_b, ask_face: Requests a triangle from the memory, which always accepts it.
        answer, beat, answer_ready: The response of the memory, in order: nine coordinates.
        turn, shift, slack: The pose, constant during a query.
        done, meet, done_a, done_b: A test is done; whether the faces may intersect; the faces.
        idle: No test is under way.
    """

    def __init__(self, beat_bits: int = TRIANGLE_BITS, target: str | None = None) -> None:
        self.beat_bits = beat_bits
        self.target = target
        super().__init__(
            {
                "faces_valid": In(1),
                "face_a": In(SLOT_BITS),
                "face_b": In(SLOT_BITS),
                "faces_taken": Out(1),
                "ask": Out(1),
                "ask_b": Out(1),
                "ask_face": Out(SLOT_BITS),
                "answer": In(1),
                "beat": In(beat_bits),
                "answer_ready": Out(1),
                "turn": In(TRIANGLE_BITS),
                "shift": In(3 * SHIFT_BITS),
                "slack": In(4),
                "done": Out(1),
                "meet": Out(1),
                "done_a": Out(SLOT_BITS),
                "done_b": Out(SLOT_BITS),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Fetch two triangles, run the schedule, end with a result."""
        m = Module()
        m.submodules.dots = dots = Dots(self.target)
        m.submodules.scale = scale = Scale()
        m.submodules.gap = gap = Gap()
        cycle, following = (Signal(range(LAST_CYCLE + 2), name=n) for n in ("cycle", "following"))
        a, b = ([_vector(f"{side}{i}") for i in range(3)] for side in "ab")
        m.d.comb += [scale.vector[n].eq(dots.total[n]) for n in range(3)]
        m.d.comb += [gap.shadow[n].eq(dots.total[n]) for n in range(3)]
        self._sequence(m, cycle, following, gap, a, b)
        self._keep_turned(m, following, dots, a)
        axis = self._axes(m, following, scale, gap)
        self._operate(m, following, dots, axis, a, b)
        return m

    def _sequence(
        self, m: Module, cycle: Signal, following: Signal, gap: Gap, a: list, b: list
    ) -> None:
        """The sequence of states, from a pair to its result."""
        apart, testing, judging, last = Signal(), Signal(), Signal(), Signal()
        beats = -(-TRIANGLE_BITS // self.beat_bits)
        count = Signal(range(beats))
        with m.If(self.answer & self.answer_ready):
            m.d.sync += count.eq(Mux(count == beats - 1, 0, count + 1))
        m.d.comb += [
            apart.eq(gap.apart & judging),
            following.eq(Mux(testing, cycle + 1, 0)),
        ]
        m.d.sync += [
            cycle.eq(following),
            judging.eq((following >= FIRST_VERDICT) & ~following[0]),
            last.eq(following == LAST_CYCLE),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.faces_taken.eq(self.faces_valid)]
                m.d.sync += [self.done_a.eq(self.face_a), self.done_b.eq(self.face_b)]
                with m.If(self.faces_valid):
                    m.next = "ASK A"
            with m.State("ASK A"):
                m.d.comb += [self.ask.eq(1), self.ask_face.eq(self.done_a)]
                m.next = "ASK B"
            with m.State("ASK B"):
                m.d.comb += [self.ask.eq(1), self.ask_b.eq(1), self.ask_face.eq(self.done_b)]
                m.next = "GET A"
            with m.State("GET A"):
                m.d.comb += self.answer_ready.eq(1)
                with m.If(self.answer):
                    self._receive(m, a, count)
                    with m.If(count == beats - 1):
                        m.next = "GET B"
            with m.State("GET B"):
                m.d.comb += self.answer_ready.eq(1)
                with m.If(self.answer):
                    self._receive(m, b, count)
                    with m.If(count == beats - 1):
                        m.next = "TEST"
            with m.State("TEST"):
                with m.If(apart | last):
                    m.d.comb += [self.done.eq(1), self.meet.eq(~apart)]
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += testing.eq(1)

    def _receive(self, m: Module, corners: list, count: Signal) -> None:
        """Store a beat of a triangle."""
        word = Cat(*(Cat(*corner) for corner in corners))
        for n, start in enumerate(range(0, TRIANGLE_BITS, self.beat_bits)):
            with m.If(count == n):
                m.d.sync += word[start : start + self.beat_bits].eq(self.beat)

    def _keep_turned(self, m: Module, following: Signal, dots: Dots, a: list) -> None:
        """Replace the corners of a by the rotated ones."""
        for i in range(3):
            keep = Signal(name=f"keep{i}")
            m.d.sync += keep.eq(following == TURN_DONE + i)
            with m.If(keep):
                m.d.sync += [
                    a[i][n].eq(dots.total[n][TURN_BITS : TURN_BITS + 18]) for n in range(3)
                ]

    def _axes(self, m: Module, following: Signal, scale: Scale, gap: Gap) -> list:
        """Store scaled axes and their norms; returns the axis to project on, and sets the slack."""
        m.submodules.axes = axes = memory.Memory(shape=54, depth=16, init=[], attrs=LUT_RAM)
        m.submodules.norms = norms = memory.Memory(
            shape=NORM_BITS, depth=16, init=[], attrs=LUT_RAM
        )
        put, get = axes.write_port(), axes.read_port(domain="comb")
        put_norm, get_norm = norms.write_port(), norms.read_port(domain="comb")
        slack = Signal(36)
        for port, start in ((put, FIRST_CROSS + CROSS_DONE), (put_norm, FIRST_CROSS + NORM_DONE)):
            now, place = Signal(), Signal(4)
            m.d.sync += [
                now.eq((following >= start) & (following < start + AXIS_COUNT)),
                place.eq(following - start),
            ]
            m.d.comb += [port.en.eq(now), port.addr.eq(place)]
        for port, start in ((get, FIRST_PROJECTION), (get_norm, FIRST_VERDICT - 2)):
            place = Signal(4)
            m.d.sync += place.eq((following - start)[1:5])
            m.d.comb += port.addr.eq(place)
        m.d.comb += [
            put.data.eq(Cat(*scale.axis)),
            put_norm.data.eq(scale.norm + (scale.norm >> 2) + 1),
            gap.slack.eq(slack),
        ]
        m.d.sync += slack.eq(get_norm.data << self.slack)
        return [get.data[18 * n : 18 * n + 18].as_signed() for n in range(3)]

    def _operate(
        self, m: Module, following: Signal, dots: Dots, axis: list, a: list, b: list
    ) -> None:
        """Select the operands of every cycle: a rotation, a cross product or a projection.

        The choice is computed in the cycle before.
        """
        edges_a, edges_b = (_edges(m, corners, n) for corners, n in ((a, "a"), (b, "b")))
        pairs = [(edges_a[0], edges_a[1]), (edges_b[0], edges_b[1])]
        pairs += [(x, y) for x in edges_a for y in edges_b]
        lefts = {FIRST_CROSS + n: x for n, (x, _) in enumerate(pairs)}
        rights = {i: a[i] for i in range(3)} | {
            FIRST_CROSS + n: y for n, (_, y) in enumerate(pairs)
        }
        left = _chosen(m, following, lefts, "left", otherwise=axis)
        right = _chosen(m, following, rights, "right")
        shadows = [_vector(f"shadow{i}") for i in range(3)]
        of_b, now_turning, now_crossing = Signal(), Signal(), Signal()
        turning, crossing, turned = Signal(), Signal(), [Signal(name=f"turned{n}") for n in "01"]
        m.d.sync += [
            of_b.eq(following[0]),
            now_turning.eq(following < 3),
            now_crossing.eq((following >= FIRST_CROSS) & (following < FIRST_PROJECTION)),
            turning.eq(now_turning),
            crossing.eq(now_crossing),
            turned[0].eq(turning),
            turned[1].eq(turned[0]),
        ]
        for i in range(3):
            both = zip(shadows[i], a[i], b[i], strict=True)
            m.d.sync += [shadow.eq(Mux(of_b, y, x)) for shadow, x, y in both]
        for n in range(3):
            n1, n2 = (n + 1) % 3, (n + 2) % 3
            row = [self.turn[54 * n + 18 * i : 54 * n + 18 * i + 18].as_signed() for i in range(3)]
            crossed = (left[n1], -left[n2], 0), (right[n2], right[n1], 0)
            with m.If(turning):
                m.d.comb += [*_set(dots.x[n], row), *_set(dots.y[n], right)]
            with m.Elif(crossing):
                m.d.comb += [*_set(dots.x[n], crossed[0]), *_set(dots.y[n], crossed[1])]
            with m.Else():
                m.d.comb += [*_set(dots.x[n], left), *_set(dots.y[n], shadows[n])]
            constant = self.shift[SHIFT_BITS * n : SHIFT_BITS * (n + 1)].as_signed()
            m.d.comb += dots.addend[n].eq(Mux(turned[1], constant, 0))


def _vector(name: str) -> list[Signal]:
    return [Signal(NUMBER, name=f"{name}{n}") for n in "xyz"]


def _set(vector: list, value: list) -> list:
    return [x.eq(y) for x, y in zip(vector, value, strict=True)]


def _chosen(
    m: Module, following: Signal, choices: dict[int, list], name: str, otherwise: list | None = None
) -> list[Signal]:
    """Select a vector by the cycle, one cycle later; one wire per vector replaces a decoder."""
    vectors, cycles = [], []
    for cycle, vector in choices.items():
        known = next((n for n, other in enumerate(vectors) if other is vector), None)
        if known is None:
            vectors.append(vector)
            cycles.append([cycle])
        else:
            cycles[known].append(cycle)
    wires = [Signal(name=f"{name}_is_{n}") for n in range(len(vectors) + 1)]
    for wire, some in zip(wires, cycles, strict=False):
        m.d.sync += wire.eq(following.matches(*some))
    m.d.sync += wires[-1].eq(~following.matches(*choices))
    out = _vector(name)
    for n in range(3):
        parts = [w.replicate(18) & v[n] for w, v in zip(wires, vectors, strict=False)]
        if otherwise is not None:
            parts.append(wires[-1].replicate(18) & otherwise[n])
        m.d.sync += out[n].eq(_any(parts))
    return out


def _any(parts: list[Value]) -> Value:
    """Bitwise or, as a balanced tree."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _any(parts[:half]) | _any(parts[half:])


def _edges(m: Module, corners: list, name: str) -> list[list[Signal]]:
    """Edges of a triangle, one cycle later."""
    edges = [_vector(f"edge_{name}{i}") for i in range(3)]
    for i in range(3):
        ends = zip(edges[i], corners[(i + 1) % 3], corners[i], strict=True)
        m.d.sync += [edge.eq(end - start) for edge, end, start in ends]
    return edges
