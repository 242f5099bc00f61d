"""Synthesis with Yosys, place and route with nextpnr: cells and, if routed, the clock."""

import json
import re
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from abut.errors import OptionError, ToolError
from abut.hardware.config import Machine
from abut.hardware.rtl.verilog import to_verilog

FAMILIES = {
    "xc2v": "synth_xilinx -family xc2v -flatten -top top",
    "xc7": "synth_xilinx -family xc7 -flatten -top top",
    "ecp5": "synth_ecp5 -top top -json top.json",
}
# LUTs of one cell of memory, by family; a logic LUT counts one
MEMORY_LUTS = {
    "xc2v": {"RAM16X1D": 2, "RAM32X1D": 4, "RAM64X1D": 8, "SRL16": 1, "SRL16E": 1},
    "xc7": {"RAM32X1D": 2, "RAM64X1D": 2, "RAM32M": 4, "RAM64M": 4, "SRL16E": 1, "SRLC32E": 1},
    "ecp5": {"CCU2C": 2, "TRELLIS_DPR16X4": 6},
}
SLICE = {"xc2v": (2, 2), "xc7": (4, 8)}  # LUTs and registers of a slice
MULTIPLIERS = ("MULT18X18", "MULT18X18S", "MULT18X18D", "DSP48E1")
REGISTERS = ("FDRE", "FDSE", "FDCE", "FDPE", "TRELLIS_FF")
ROUTE = ("--85k", "--router", "router2", "--lpf-allow-unconstrained", "--textcfg", "/dev/null")


@dataclass(frozen=True)
class Synthesis:
    """Resources of a design.

    Attributes:
        target, part, width, pipelines: The design.
        luts, registers, multipliers: Cells of the design alone.
        slices: Lower bound: max(LUTs, registers) over the capacity of a slice; None for ECP5.
        clock_mhz: Routed clock on an ECP5-85k of the default speed; None without routing.
        cells: Number of cells by type.
        commands: The commands that were run.
    """

    target: str
    part: str
    width: int
    pipelines: int
    luts: int
    registers: int
    multipliers: int
    slices: int | None
    clock_mhz: float | None
    cells: dict[str, int]
    commands: tuple[str, ...]


def run_synthesis(
    machine: Machine,
    target: str,
    *,
    part: str = "machine",
    route: bool = True,
    goal_mhz: float = 160,
    seed: int = 1,
) -> Synthesis:
    """Synthesise a machine, or one pipeline with its axis table."""
    if target not in FAMILIES:
        raise OptionError(f"target must be one of {', '.join(FAMILIES)}, not {target!r}.")
    if part not in ("machine", "pipeline"):
        raise OptionError(f"part must be machine or pipeline, not {part!r}.")
    with tempfile.TemporaryDirectory() as folder:
        tools = _Workspace(Path(folder))
        cells = tools.cells(to_verilog(machine, part=part, target=target), target)
        clock = None
        if target == "ecp5" and route:
            tools.cells(to_verilog(machine, part=part, target=target, pins=True), target)
            clock = tools.clock(goal_mhz, seed)
    luts = _luts(cells, target)
    registers = sum(cells.get(name, 0) for name in REGISTERS)
    slices = None
    if target in SLICE:
        per_slice = SLICE[target]
        slices = max(-(-luts // per_slice[0]), -(-registers // per_slice[1]))
    multipliers = sum(cells.get(name, 0) for name in MULTIPLIERS)
    made = (machine.width, machine.pipelines, luts, registers, multipliers, slices, clock)
    return Synthesis(target, part, *made, cells, tuple(tools.commands))


def _luts(cells: dict[str, int], target: str) -> int:
    """LUTs of all cells; inverters are LUTs too where nothing absorbs them."""
    logic = sum(n for name, n in cells.items() if re.fullmatch(r"LUT\d|INV", name))
    return logic + sum(n * cells.get(name, 0) for name, n in MEMORY_LUTS[target].items())


class _Workspace:
    """A folder in which the tools run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[str] = []

    def cells(self, source: str, target: str) -> dict[str, int]:
        """Cells by type."""
        (self.folder / "top.v").write_text(source)
        script = f"read_verilog top.v; {FAMILIES[target]}; tee -o stat.json stat -json"
        self._run("yosys", "-q", "-p", script)
        text = (self.folder / "stat.json").read_text()
        module = json.loads(text[text.index("{") :])["modules"]["\\top"]
        counts = module.get("num_cells_by_type", {})
        return {name: int(n) for name, n in sorted(counts.items()) if not name.startswith("$")}

    def clock(self, goal_mhz: float, seed: int) -> float:
        """The routed clock in MHz: the last one printed, not the estimate before routing."""
        options = (*ROUTE, "--freq", f"{goal_mhz:g}", "--seed", str(seed), "--json", "top.json")
        log = self._run("nextpnr-ecp5", *options, "--timing-allow-fail")
        routed = log[log.rindex("Router2 time") :] if "Router2 time" in log else ""
        found = re.findall(r"Max frequency for clock[^:]*: ([\d.]+) MHz", routed)
        if not found:
            raise ToolError("nextpnr-ecp5 printed no clock after routing.")
        return float(found[-1])

    def _run(self, tool: str, *arguments: str) -> str:
        command = [_find(tool), *arguments]
        self.commands.append(" ".join([tool, *(f'"{a}"' if " " in a else a for a in arguments)]))
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line]
            raise ToolError(f"{tool} failed: {' '.join(lines) or 'no reason given'}")
        return done.stderr + done.stdout


def _find(tool: str) -> str:
    """Path of a tool, or of its WebAssembly build (package yowasp-…)."""
    for name in (tool, f"yowasp-{tool}"):
        for folder in (None, sysconfig.get_path("scripts")):
            path = shutil.which(name, path=folder)
            if path:
                return path
    raise ToolError(f"{tool} is not there; pip install 'abut[hardware]' brings it.")
