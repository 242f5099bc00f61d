"""Cycle model: the control of the machine, cycle by cycle; ``model`` has its arithmetic.

Mirrors the registers of ``rtl``: pairs, their order, counters and cycles are equal.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from abut.errors import CapacityError
from abut.hardware.memory_model import RECORDS, Memory, TriangleUnitModel
from abut.hardware.model import TRIANGLE_AXES, AxisTable, triangle_apart
from abut.hardware.program import Program
from abut.hardware.record_cache import RecordCache, parents_of

STALE = 2  # cycles to read the new top of the stack, see rtl/stack.py


@dataclass(frozen=True)
class Run:
    """Result of a query on the machine.

    Attributes:
        pairs: (n, 2) int32 faces that may intersect, in the order found.
        cycles: Cycles from start to end.
        dop_tests, axis_tests: Pairs of DOPs tested, and axes tested for them.
        leaf_pairs: Pairs tested by the triangle unit.
        bursts: Memory bursts for DOPs.
    """

    pairs: np.ndarray
    cycles: int
    dop_tests: int
    axis_tests: int
    leaf_pairs: int
    bursts: int

    def counters(self) -> dict[str, int]:
        """The counters by name."""
        return {name: value for name, value in vars(self).items() if name != "pairs"}


@dataclass
class _Side:
    """State of the fetch unit for one tree."""

    slots: list[int] = field(default_factory=lambda: [-1, -1])
    bank: int = 0
    fresh: bool = False
    ask: bool = False
    wait: bool = False
    loading: int = -1

    def look(self, slot: int) -> None:
        """Look up a record; it is requested unless a bank holds it."""
        self.fresh = self.ask = slot not in self.slots
        self.bank = 1 - self.bank if self.fresh else self.slots.index(slot)
        self.slots[self.bank] = slot


_Entry = tuple[int, int, bool, bool]
_Opened = tuple[_Entry | None, tuple[int, int] | None]  # for the stack, for the triangle unit


class CycleModel:
    """State of the machine during one query."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.machine = program.machine
        self.memory = Memory(self.machine)
        self.triangle_memory = self.memory if self.machine.shared_bus else Memory(self.machine)
        parents_a, parents_b = (parents_of(t.links, t.leaves) for t in (program.a, program.b))
        self.cache = RecordCache(self.machine, (parents_a, parents_b))
        self.table = AxisTable(program.axes, self.machine.constant_shift, self.machine.sides)
        self.stack = [(program.a.root, program.b.root, False, False)]
        self.sides = _Side(), _Side()
        self.wanted = self.loading = False
        self.looking: tuple[int, int] | None = None  # slots of a pair just taken off the stack
        self.stale = 0  # cycles until the top of the stack has been read
        self.issuing: tuple[int, np.ndarray] | None = None  # tag, and result of every step
        self.step = self.tag = self.decided = 0
        self.nodes: dict[int, tuple[int, int]] = {}
        self.passing: deque[tuple[int, int, bool, bool]] = deque()  # cycle out, tag, apart, last
        self.overlapping: tuple[int, int] | None = None
        self.opened: _Opened = (None, None)
        self.leaves: deque[tuple[int, int]] = deque()
        self.roomy = True  # the queue of leaf pairs was below leaf_room in the cycle before
        self.units = [TriangleUnitModel(n) for n in range(self.machine.triangle_units)]
        self.results_out = 0  # cycle in which the queue of results is empty
        self.found: list[tuple[int, int]] = []
        self.counts = dict.fromkeys(("dop_tests", "axis_tests", "leaf_pairs", "bursts"), 0)

    def split(self, parts: int, least: int) -> tuple[int, list[list[_Entry]]]:
        """Test pairs breadth first until ``least`` wait, and divide these among several machines.

        Returns:
            The DOP tests made, and the stack that each machine begins with.
        """
        waiting, tests = deque([(self.program.a.root, self.program.b.root)]), 0
        while waiting and len(waiting) < least:
            i, j = waiting.popleft()
            tests += 1
            if self._steps(i, j).any():
                continue
            entry, faces = self._opened(i, j)
            if faces is not None:
                waiting.append((i, j))
                break
            assert entry is not None
            a, b, opened_a, opened_b = entry
            waiting += [(a, b), (a | opened_a, b | opened_b)]
        pairs = [(i, j, False, False) for i, j in waiting]
        return tests, [pairs[n::parts] for n in range(parts)]

    def run(self, stack: list[_Entry] | None = None) -> Run:
        """Run the query to its end, from the roots or from a stack of pairs."""
        cycle = 0
        if stack is None:
            self._push(*self.stack.pop())
        else:
            self.stack = list(stack)
        while True:
            cycle += 1
            if self._finished(cycle):
                break
            self._cycle(cycle)
        pairs = np.array(self.found, dtype=np.int32).reshape(-1, 2)
        return Run(pairs, cycle + 1, **self.counts)

    def _finished(self, cycle: int) -> bool:
        quiet = not (self.stack or self.wanted or self.loading or self.issuing)
        done = self.tag == self.decided and not self.leaves
        done = done and all(unit.idle for unit in self.units)
        done = done and self.overlapping is None and self.opened == (None, None)
        return quiet and done and cycle >= self.results_out

    def _cycle(self, cycle: int) -> None:
        """Simulate one cycle: decide by the registers at its beginning, then update them."""
        a, b = self.sides
        push, leaf = self.opened
        self.opened = (None, None)
        if self.overlapping is not None:
            self.opened = self._opened(*self.overlapping)
        self.overlapping = None
        take = bool(
            self.stack and not self.stale and not self.wanted and push is None
            and self.roomy
        )  # fmt: skip
        looking, self.roomy = self.looking, len(self.leaves) <= self.machine.leaf_room
        asking = next((unit for unit in self.units if unit.asking), None)
        ask = (a.ask or b.ask) and self.memory.ready()
        ask = ask and not (self.machine.shared_bus and asking)  # triangles first
        move = self.wanted and not (looking or a.ask or b.ask) and not self.loading
        beat = self.loading and (a.wait or b.wait) and self.memory.offers(cycle, RECORDS)
        start = self.loading and not (a.wait or b.wait) and self.issuing is None
        idle = next((unit for unit in self.units if unit.idle), None) if self.leaves else None
        stop = self._decide(cycle)

        if ask:
            n, side = (0, a) if a.ask else (1, b)
            side.ask = False
            slot = side.slots[side.bank]
            self.counts["bursts"] += self.memory.ask_cache(cycle, self.cache, n, slot)
        if beat and self.memory.take(cycle):
            (a if a.wait else b).wait = False
        for unit in self.units:
            if not unit.idle and unit.proceed(cycle, self.triangle_memory, unit is asking):
                self._end_test(cycle, unit)
        if idle is not None:
            faces = self.leaves.popleft()
            idle.start(faces, triangle_apart(self.program, *faces))
        self._issue(cycle, stop)
        if start:
            self._start(a, b)
        if move:
            self.wanted, self.loading = False, True
            for side in self.sides:
                side.loading, side.wait = side.slots[side.bank], side.fresh
        self.looking, self.stale = None, max(self.stale - 1, 0)
        if looking:
            a.look(looking[0])
            b.look(looking[1])
        if take:
            self._take()
        if push is not None:
            self._push(*push)
        if leaf is not None:
            self.leaves.append(leaf)
            self.counts["leaf_pairs"] += 1

    def _take(self) -> None:
        """Pop the next pair, the odd child of an opened node first."""
        slot_a, slot_b, opened_a, opened_b = self.stack.pop()
        if opened_a or opened_b:
            self.stack.append((slot_a, slot_b, False, False))
        else:
            self.stale = STALE
        self.wanted = True
        self.looking = (slot_a | opened_a, slot_b | opened_b)

    def _push(self, a: int, b: int, opened_a: bool, opened_b: bool) -> None:
        if len(self.stack) == self.machine.stack:
            raise CapacityError(f"the stack of {self.machine.stack} pairs is too small.")
        self.stack.append((a, b, opened_a, opened_b))
        self.stale = 0

    def _start(self, a: _Side, b: _Side) -> None:
        """Start the test of the loaded pair."""
        self.loading = False
        self.tag = (self.tag + 1) % 16
        self.step = 0
        self.nodes[self.tag] = (a.loading, b.loading)
        self.issuing = (self.tag, self._steps(a.loading, b.loading))
        self.counts["dop_tests"] += 1

    def _steps(self, slot_a: int, slot_b: int) -> np.ndarray:
        """Whether the axes of each step separate two nodes."""
        program, machine = self.program, self.machine
        reaches = program.a.reaches[slot_a], program.b.reaches[slot_b]
        apart = np.zeros(machine.steps * machine.pipelines, dtype=bool)
        apart[: machine.axis_count] = self.table.separations(*reaches)
        return np.any(apart.reshape(machine.steps, machine.pipelines), axis=1)

    def _issue(self, cycle: int, stop: bool) -> None:
        """Send one step into the pipelines."""
        if self.issuing is None:
            return
        tag, apart = self.issuing
        last = self.step == self.machine.steps - 1
        out = cycle + self.machine.depth
        self.passing.append((out, tag, bool(apart[self.step]), last))
        first = self.step * self.machine.pipelines
        self.counts["axis_tests"] += min(self.machine.pipelines, self.machine.axis_count - first)
        self.step += 1
        if last or stop:
            self.issuing = None

    def _decide(self, cycle: int) -> bool:
        """Evaluate the result that leaves the pipelines; True when it decides the issuing pair."""
        if not self.passing or self.passing[0][0] != cycle:
            return False
        _, tag, apart, last = self.passing.popleft()
        if tag == self.decided or not (apart or last):
            return False
        self.decided = tag
        if not apart:
            self.overlapping = self.nodes[tag]
        return apart and tag == self.tag

    def _opened(self, i: int, j: int) -> _Opened:
        """Expand an overlapping pair to an entry for the stack or to a pair of faces."""
        a, b = self.program.a, self.program.b
        if a.leaves[i] and b.leaves[j]:
            return None, (int(a.links[i]), int(b.links[j]))
        if b.leaves[j] or (not a.leaves[i] and a.sizes[i] > b.sizes[j]):
            return (int(a.links[i]), j, True, False), None
        return (i, int(b.links[j]), False, True), None

    def _end_test(self, cycle: int, unit: TriangleUnitModel) -> None:
        """Take a verdict; the host takes a result in the cycle after."""
        self.results_out = cycle + 1
        if unit.axis == TRIANGLE_AXES:
            self.found.append(unit.faces)
            self.results_out += 1
