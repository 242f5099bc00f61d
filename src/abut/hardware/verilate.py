"""RTL simulation with Verilator: some hundred thousand cycles per second."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from abut.errors import CapacityError, ToolError
from abut.hardware.config import Machine
from abut.hardware.cycle_model import Run
from abut.hardware.program import (
    EncodedTree,
    Program,
    record_beats,
    register_words,
    table_words,
    triangle_beats,
)
from abut.hardware.rtl.verilog import to_verilog

BENCH = Path(__file__).with_name("bench.cpp")


def verilator_missing() -> str | None:
    """The reason why Verilator cannot be used here; None where it can."""
    missing = [tool for tool in ("verilator", "make", "g++") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} not found; install Verilator 5" if missing else None


def simulate_verilator(program: Program, target: str | None = None, blocks: str = "") -> Run:
    """Run a query on the RTL; with ``target`` and Verilog of its ``blocks``, as synthesised."""
    model = build_simulator(program.machine, target, blocks)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        np.array(program_words(program), dtype="<u4").tofile(path)
        lines = _run([str(model), str(path)]).splitlines()
    rows = [line.split()[1:] for line in lines if line.startswith("pair ")]
    counts = {
        k: int(v) for k, v in (line.split() for line in lines if not line.startswith("pair "))
    }
    if counts.pop("overflow"):
        raise CapacityError(f"the stack of {program.machine.stack} pairs is too small.")
    bursts = counts.pop("records") * program.machine.bursts
    return Run(np.array(rows, dtype=np.int32).reshape(-1, 2), bursts=bursts, **counts)


def build_simulator(machine: Machine, target: str | None = None, blocks: str = "") -> Path:
    """Build the simulator of a machine, cached on disk."""
    why = verilator_missing()
    if why:
        raise ToolError(f"the engine 'verilator' is not there: {why}.")
    source = to_verilog(machine, target=target) + blocks
    name = hashlib.sha256(source.encode() + BENCH.read_bytes()).hexdigest()[:20]
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "abut" / "verilator"
    folder = home / name
    if not (folder / "Vtop").is_file():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            (made / "top.v").write_text(source)
            _run(
                ["verilator", "--cc", "--exe", "--build", "-O3", "-Wno-fatal", "-Wno-lint",
                 "--top-module", "top", "--Mdir", str(made),
                 "-CFLAGS", f"-O1 -DSHARED_BUS={int(machine.shared_bus)}",
                 str(made / "top.v"), str(BENCH)]
            )  # fmt: skip
            folder.mkdir(exist_ok=True)
            os.replace(made / "Vtop", folder / "Vtop")
    return folder / "Vtop"


def program_words(program: Program) -> list[int]:
    """A program as 32-bit words, in the order in which bench.cpp reads them."""
    machine = program.machine
    beat_words, row_words = -(-machine.beat_bits // 32), -(-machine.axis_bits // 32)
    table, registers = table_words(program), register_words(program)
    words = [machine.latency, machine.gap, machine.beats, machine.burst_beats]
    face_words = -(-machine.triangle_beat_bits // 32)
    words += [machine.triangle_beats, beat_words, face_words, len(table), row_words]
    words += [len(program.a.links), len(program.b.links)]
    words += [len(program.a.triangles), len(program.b.triangles)]
    words += [registers[name] for name in ("root_a", "root_b", "slack")]
    words += _split(registers["turn"], 6) + _split(registers["shift"], 4)
    for lane, row, word in table:
        words += [lane, row, *_split(word, row_words)]
    for tree in (program.a, program.b):
        words += _records(program, tree, beat_words)
    for tree in (program.a, program.b):
        for face in range(len(tree.triangles)):
            for beat in triangle_beats(program, tree, face):
                words += _split(beat, face_words)
    return words


def _records(program: Program, tree: EncodedTree, beat_words: int) -> list[int]:
    words = []
    for slot in range(len(tree.links)):
        for beat in record_beats(program, tree, slot):
            words += _split(beat, beat_words)
    return words


def _split(word: int, count: int) -> list[int]:
    return [(word >> (32 * n)) & 0xFFFFFFFF for n in range(count)]


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = " ".join((done.stderr or done.stdout).split()[-40:])
        raise ToolError(f"{command[0]} failed: {tail}")
    return done.stdout
