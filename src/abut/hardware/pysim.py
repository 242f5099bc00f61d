"""RTL simulation in Amaranth's simulator: some hundred cycles per second."""

from collections import deque
from typing import Any

import numpy as np
from amaranth.sim import Simulator

from abut.errors import CapacityError
from abut.hardware.config import Machine
from abut.hardware.cycle_model import Run
from abut.hardware.memory_model import RECORDS, Memory
from abut.hardware.program import (
    Program,
    record_beats,
    register_words,
    table_words,
    triangle_beats,
)
from abut.hardware.rtl.machine import CollisionMachine


def simulate_pysim(program: Program, most_cycles: int = 1_000_000) -> Run:
    """Run a query on the RTL."""
    top = CollisionMachine(program.machine)
    bench = _Bench(program, top, most_cycles)
    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench.run)
    simulator.run()
    return bench.answer


class _Bench:
    """Test bench: host and memories around the machine."""

    def __init__(self, program: Program, top: CollisionMachine, most_cycles: int) -> None:
        self.program, self.top, self.most_cycles = program, top, most_cycles
        machine = program.machine
        self.memory = _Port(machine)
        self.triangle_memory = self.memory if machine.shared_bus else _Port(machine)
        self.found: list[tuple[int, int]] = []

    async def run(self, ctx: Any) -> None:
        """Write the axis table, start a query, serve the machine until it has finished."""
        top = self.top
        for name, word in register_words(self.program).items():
            ctx.set(getattr(top, name), word)
        ctx.set(top.table_write, 1)
        for lane, row, word in table_words(self.program):
            ctx.set(top.table_lane, lane)
            ctx.set(top.table_row, row)
            ctx.set(top.table_data, word)
            await ctx.tick()
        ctx.set(top.table_write, 0)
        ctx.set(top.result_ready, 1)
        ctx.set(top.go, 1)
        await ctx.tick()
        ctx.set(top.go, 0)
        for cycle in range(self.most_cycles):
            if not ctx.get(top.running):
                break
            self._serve(ctx, cycle)
            await ctx.tick()
        else:
            raise CapacityError(f"the query takes more than {self.most_cycles} cycles.")
        if ctx.get(top.overflow):
            raise CapacityError(f"the stack of {self.program.machine.stack} pairs is too small.")
        self.answer = Run(
            np.array(self.found, dtype=np.int32).reshape(-1, 2),
            ctx.get(top.cycles),
            ctx.get(top.dop_tests),
            ctx.get(top.axis_tests),
            ctx.get(top.leaf_pairs),
            ctx.get(top.records) * self.program.machine.bursts,
        )

    def _serve(self, ctx: Any, cycle: int) -> None:
        """Drive memories and host for one cycle."""
        top, program = self.top, self.program
        shared = program.machine.shared_bus
        ready, beat = self.memory.ready(), self.memory.front(cycle)
        ctx.set(top.ask_ready, ready)
        ctx.set(top.beat, beat is not None)
        if beat is not None:
            ctx.set(top.beat_data, beat)
            if shared:
                ctx.set(top.beat_face, self.memory.requests[0].port != RECORDS)
        if not shared:
            triangle = self.triangle_memory.front(cycle)
            ctx.set(top.triangle_valid, triangle is not None)
            if triangle is not None:
                ctx.set(top.triangle, triangle)
                self.triangle_memory.take(cycle)
            if ctx.get(top.face_ask):
                self._ask_face(cycle, ctx.get(top.face_ask_b), ctx.get(top.face))
        if beat is not None and ctx.get(top.beat_ready):
            self.memory.take(cycle)
        if ctx.get(top.ask):
            side, slot = ctx.get(top.ask_b), ctx.get(top.ask_slot)
            if shared and ctx.get(top.ask_face):
                self._ask_face(cycle, side, slot)
            elif ready:
                tree = program.b if side else program.a
                self.memory.ask_words(cycle, RECORDS, record_beats(program, tree, slot))
        if ctx.get(top.result_valid):
            self.found.append((ctx.get(top.result.a), ctx.get(top.result.b)))

    def _ask_face(self, cycle: int, side: int, face: int) -> None:
        tree = self.program.b if side else self.program.a
        self.triangle_memory.ask_words(cycle, 0, triangle_beats(self.program, tree, face))


class _Port(Memory):
    """A port of the memory with its data."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.words: deque[list[int]] = deque()

    def ask_words(self, cycle: int, port: int, words: list[int]) -> None:
        """Request words that will be the answer."""
        self.ask(cycle, port)
        self.words.append(words)

    def front(self, cycle: int) -> int | None:
        """The word offered in this cycle, if any."""
        return self.words[0][self.beat] if self.valid(cycle) else None

    def take(self, cycle: int) -> bool:
        """Take the word offered."""
        last = super().take(cycle)
        if last:
            self.words.popleft()
        return last
