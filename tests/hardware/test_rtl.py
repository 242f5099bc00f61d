"""Every block of the RTL, and the whole machine, against the model; in Amaranth's simulator."""

import numpy as np
import pytest

pytest.importorskip("amaranth", reason="the RTL needs amaranth: pip install 'abut[hardware]'")

from amaranth.sim import Simulator

import abut
from abut import cases, hardware
from abut.hardware import Machine, model, pysim
from abut.hardware.cycle_model import CycleModel
from abut.hardware.program import (
    packed,
    program,
    record_beats,
    register_words,
    table_words,
    triangle_beats,
)
from abut.hardware.rtl.dots import Gap, Scale
from abut.hardware.rtl.fetch import Fetch
from abut.hardware.rtl.lane import Lane
from abut.hardware.rtl.multiply import LATENCY, Multiplier
from abut.hardware.rtl.stack import Stack
from abut.hardware.rtl.triangle import TriangleUnit
from shapes import random_poses

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def simulate(design, testbench):
    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()


def question(machine, faces=24, name="tori", seed=0):
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair(name, faces=faces))
    return program(a, b, None, random_poses(1, 0.1, seed)[0], machine)


def test_multiplier():
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**17), 2**17, size=(50, 2)).tolist() + [[-(2**17), -(2**17)]] * 3
    design, seen = Multiplier(), []

    async def bench(ctx):
        for x, y in rows:
            ctx.set(design.x, x)
            ctx.set(design.y, y)
            await ctx.tick()
            seen.append(ctx.get(design.product))

    simulate(design, bench)
    products = [x * y for x, y in rows]
    assert seen[LATENCY - 1 :] == products[: len(products) - LATENCY + 1]


@pytest.mark.parametrize("width", [12, 18, 19, 35])
@pytest.mark.parametrize("sides", [24, 14])
def test_pipeline(width, sides):
    """Every axis of many DOPs, one a cycle, with sums around zero; both banks of either side."""
    machine = Machine(width=width, sides=sides, axis_count=sides, bus=0)  # a row a beat
    asked = question(machine, 60)
    rng = np.random.default_rng(width)
    axes = asked.axes.copy()
    slots = rng.integers(0, len(asked.a.links), size=(2, 2))
    a, b = asked.a.reaches[slots[0]], asked.b.reaches[slots[1]]
    one = 1 << (width - 1)
    for n in range(sides):  # constants that bring sums near zero, for the first banks
        axes[n, 7:] = 0
        for side in (7, 8):
            low, high = -4 * one, 4 * one - 1
            while low < high:  # the least constant that separates
                axes[n, 7:] = -4 * one
                axes[n, side] = (low + high) // 2
                apart = model.AxisTable(axes[n : n + 1], width - 1, sides).separations(a[0], b[0])[
                    0
                ]
                low, high = (low, (low + high) // 2) if apart else ((low + high) // 2 + 1, high)
            axes[n, 7:] = -4 * one
            axes[n, side] = low - rng.integers(0, 2)
            if rng.random() < 0.5:
                break
    asked = program_with(asked, axes)
    tests = [
        (int(s), int(x), int(y))
        for s, x, y in zip(
            rng.integers(0, sides, 150),
            rng.integers(0, 2, 150),
            rng.integers(0, 2, 150),
            strict=True,
        )
    ]
    tests[:sides] = [(n, 0, 0) for n in range(sides)]
    lane, seen = Lane(machine), []

    async def bench(ctx):
        ctx.set(lane.table_write, 1)
        for _, row, word in table_words(asked):
            ctx.set(lane.table_row, row)
            ctx.set(lane.table_data, word)
            await ctx.tick()
        ctx.set(lane.table_write, 0)
        for load, tree, which in ((lane.load_a, asked.a, 0), (lane.load_b, asked.b, 1)):
            ctx.set(load, 1)
            for bank in range(2):
                for row, beat in enumerate(record_beats(asked, tree, slots[which][bank])[1:]):
                    ctx.set(lane.load_row, 8 * bank + row)
                    ctx.set(lane.load_data, beat)
                    await ctx.tick()
            ctx.set(load, 0)
        before = (0, 0, 0)
        for this in tests + [(0, 0, 0)] * (machine.depth + 1):
            ctx.set(lane.step, this[0])  # a cycle ahead of its banks
            ctx.set(lane.bank_a, before[1])
            ctx.set(lane.bank_b, before[2])
            await ctx.tick()
            seen.append(ctx.get(lane.apart))
            before = this

    simulate(lane, bench)
    truth = [
        int(model.AxisTable(axes[s : s + 1], width - 1, sides).separations(a[x], b[y])[0])
        for s, x, y in tests
    ]
    assert seen[machine.depth : machine.depth + len(tests)] == truth
    assert 0 < sum(truth[:sides]) < sides


def program_with(asked, axes):
    return type(asked)(**(vars(asked) | {"axes": axes}))


@pytest.mark.parametrize("depth", [8, 40])
def test_stack(depth):
    """Against a list, with every mixture of pushes and pops."""
    rng = np.random.default_rng(3)
    stack, held = Stack(depth), []

    async def bench(ctx):
        for n in range(1200):
            filled = ctx.get(stack.filled)
            often = 0.6 if n % 300 < 150 else 0.2
            push = bool(rng.random() < often) and len(held) < depth
            pop = bool(filled) and not push and bool(rng.random() < 0.7)
            ctx.set(stack.push, push)
            ctx.set(stack.pop, pop)
            if filled:
                a, b, opened_a, opened_b = held[-1]
                assert ctx.get(stack.pair.a) == a | opened_a
                assert ctx.get(stack.pair.b) == b | opened_b
            if pop:
                a, b, opened_a, opened_b = held.pop()
                if opened_a or opened_b:
                    held.append((a, b, 0, 0))
            if push:
                side = int(rng.integers(0, 3))
                entry = (2 * int(rng.integers(0, 99)), 2 * int(rng.integers(0, 99)),
                         int(side == 1), int(side == 2))  # fmt: skip
                for name, value in zip(("a", "b", "opened_a", "opened_b"), entry, strict=True):
                    ctx.set(getattr(stack.entry, name), value)
                held.append(entry)
            await ctx.tick()
        assert not ctx.get(stack.overflow)
        ctx.set(stack.pop, 0)
        ctx.set(stack.push, 1)
        for _ in range(depth + 1):
            await ctx.tick()
        assert ctx.get(stack.overflow) and ctx.get(stack.deepest) == depth

    simulate(stack, bench)


def test_fetch_reuses_loaded_records():
    machine = Machine()
    fetch, asked = Fetch(machine), []
    pairs = [(4, 6), (4, 7), (5, 7), (4, 7), (4, 6)]

    async def bench(ctx):
        ctx.set(fetch.ask_ready, 1)
        ctx.set(fetch.beat, 1)
        waiting = list(pairs)
        for _ in range(200):
            take = bool(waiting) and bool(ctx.get(fetch.room))
            ctx.set(fetch.take, take)
            if take:
                ctx.set(fetch.pair.a, waiting[0][0])
                ctx.set(fetch.pair.b, waiting.pop(0)[1])
            if ctx.get(fetch.ask):
                asked.append(("ab"[ctx.get(fetch.ask_b)], ctx.get(fetch.ask_slot)))
            ready = ctx.get(fetch.ready)
            ctx.set(fetch.start, ready)
            await ctx.tick()
        assert ctx.get(fetch.idle)

    simulate(fetch, bench)
    assert asked == [("a", 4), ("b", 6), ("b", 7), ("a", 5)]


def test_scale():
    rng = np.random.default_rng(4)
    scale, seen = Scale(), []
    vectors = [[int(x) for x in rng.integers(-(2**bits), 2**bits, size=3)] for bits in range(1, 36)]

    async def bench(ctx):
        for vector in [*vectors, *[[0, 0, 0]] * 6]:
            for n in range(3):
                ctx.set(scale.vector[n], vector[n])
            await ctx.tick()
            axis = [ctx.get(scale.axis[n]) for n in range(3)]
            seen.append((axis, ctx.get(scale.norm)))

    simulate(scale, bench)
    for n, vector in enumerate(vectors):
        spread = 0
        for part in vector:
            spread |= part if part >= 0 else ~part
        shift = max(spread.bit_length() - 17, 0)
        axis = [part >> shift for part in vector]
        assert seen[n + 2][0] == axis
        assert seen[n + 4][1] == sum(map(abs, axis))


def test_gap():
    rng = np.random.default_rng(5)
    rows = rng.integers(-20, 20, size=(60, 6)).tolist()
    gap, seen = Gap(), []

    async def bench(ctx):
        ctx.set(gap.slack, 7)
        for row in [*rows, *rows[:4]]:
            for shadow in (row[:3], row[3:]):
                for n in range(3):
                    ctx.set(gap.shadow[n], shadow[n])
                await ctx.tick()
                seen.append(ctx.get(gap.apart))

    simulate(gap, bench)
    truth = [int(max(min(r[:3]) - max(r[3:]), min(r[3:]) - max(r[:3])) > 7) for r in rows]
    assert seen[6 : 6 + 2 * len(rows) : 2] == truth
    assert 0 < sum(truth) < len(rows)


def test_triangle_unit():
    """Results, and the cycles in which they are valid."""
    asked = question(Machine(), 60, seed=1)
    rng = np.random.default_rng(6)
    faces = [
        (int(i), int(j))
        for i, j in rng.integers(0, min(len(asked.a.triangles), len(asked.b.triangles)), (40, 2))
    ]
    near = sorted(faces, key=lambda f: -model.triangle_apart(asked, *f))[:12]
    unit, seen = TriangleUnit(asked.machine.triangle_beat_bits), []

    async def bench(ctx):
        for name in ("turn", "shift", "slack"):
            ctx.set(getattr(unit, name), register_words(asked)[name])
        for i, j in near:
            ctx.set(unit.faces_valid, 1)
            ctx.set(unit.face_a, i)
            ctx.set(unit.face_b, j)
            await ctx.tick()
            ctx.set(unit.faces_valid, 0)
            await ctx.tick().repeat(2)
            for tree, face in ((asked.a, i), (asked.b, j)):
                ctx.set(unit.answer, 1)
                for beat in triangle_beats(asked, tree, face):
                    assert ctx.get(unit.answer_ready)
                    ctx.set(unit.beat, beat)
                    await ctx.tick()
            ctx.set(unit.answer, 0)
            for cycle in range(60):
                if ctx.get(unit.done):
                    assert (ctx.get(unit.done_a), ctx.get(unit.done_b)) == (i, j)
                    seen.append((bool(ctx.get(unit.meet)), cycle))
                    break
                await ctx.tick()
            await ctx.tick()

    simulate(unit, bench)
    axes = [model.triangle_apart(asked, *pair) for pair in near]
    assert seen == [(axis == 11, 32 + 2 * min(axis, 10)) for axis in axes]
    assert len(set(axes)) > 2


@pytest.mark.parametrize(
    "machine",
    [
        Machine(),
        Machine(width=35, pipelines=2, latency=3, gap=1),
        Machine(width=12, sides=18, axis_count=13, pipelines=3, latency=11),
        Machine(sides=14, axis_count=4, pipelines=4),
        Machine(bus=0, width=35, pipelines=4, latency=3),
        Machine(bus=144, width=20, sides=6, axis_count=6, latency=2, gap=0),
        Machine(width=12, weight_bits=20, constant_bits=16, pipelines=4),
        Machine(width=20, weight_bits=10, constant_bits=25, pipelines=4),
    ],
    ids=[
        "plain",
        "wide",
        "three pipelines",
        "one step",
        "wide bus",
        "144 bit bus",
        "wide weights",
        "wide values",
    ],
)
def test_machine(machine):
    """A whole query: pairs, their order, all counters and cycles."""
    a, b = abut.Mesh(*cases.icosphere(20), "cpu"), abut.Mesh(*cases.box(), "cpu")
    pose = random_poses(1, 0.0)[0]
    pose[0, 3] = 1.2
    asked = program(a, b, None, pose, machine)
    ran, truth = pysim.simulate_pysim(asked), CycleModel(asked).run()
    assert np.array_equal(ran.pairs, truth.pairs)
    assert ran.counters() == truth.counters()
    assert len(truth.pairs) > 0 and truth.dop_tests > 50


def test_one_face_each():
    """Leaves at the root."""
    a = abut.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], "cpu")
    b = abut.Mesh([[0, 0, -1], [0.2, 0.2, 1], [1, 1, 1]], [[0, 1, 2]], "cpu")
    runs = [hardware.simulate(a, b, engine=engine) for engine in ("model", "pysim")]
    assert [run.pairs.tolist() for run in runs] == [[[0, 0]]] * 2
    assert runs[0].counters() == runs[1].counters()


def test_packed():
    assert packed(np.array([1, -1, 2]), 4) == 0x2F1
