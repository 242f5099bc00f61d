"""RTL simulation in Amaranth's simulator: some hundred cycles per second."""

from collections import deque
from typing import Any

import numpy as np
from amaranth.sim import Simulator

from abut.errors import CapacityError
from abut.hardware.cycle_model import BurstMemory, Run
from abut.hardware.program import (
    Program,
    record_beats,
    register_words,
    table_words,
    triangle_word,
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
        self.memory = BurstMemory(program.machine)
        self.records: deque[list[int]] = deque()
        self.triangles: deque[tuple[int, int]] = deque()
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
        valid = self.memory.valid(cycle)
        ctx.set(top.ask_ready, self.memory.ready())
        ctx.set(top.beat, valid)
        if valid:
            ctx.set(top.beat_data, self.records[0][self.memory.beat])
        answer = bool(self.triangles) and self.triangles[0][0] == cycle
        ctx.set(top.triangle_valid, answer)
        if answer:
            ctx.set(top.triangle, self.triangles.popleft()[1])
        asked = ctx.get(top.ask) and self.memory.ready()
        if valid and ctx.get(top.beat_ready) and self.memory.take(cycle):
            self.records.popleft()
        if asked:
            tree = program.b if ctx.get(top.ask_b) else program.a
            self.records.append(record_beats(program, tree, ctx.get(top.ask_slot)))
            self.memory.ask(cycle)
        if ctx.get(top.face_ask):
            tree = program.b if ctx.get(top.face_ask_b) else program.a
            word = triangle_word(tree, ctx.get(top.face))
            self.triangles.append((cycle + program.machine.latency, word))
        if ctx.get(top.result_valid):
            self.found.append((ctx.get(top.result.a), ctx.get(top.result.b)))
