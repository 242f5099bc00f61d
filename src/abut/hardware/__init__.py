"""abut.hardware: the k-DOP collision machine: models, RTL simulation, Verilog, synthesis.

``simulate(engine="model")`` needs abut alone; the rest needs ``abut[hardware]``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from abut.errors import MeshError, OptionError, ToolError
from abut.hardware.config import Machine
from abut.hardware.cycle_model import CycleModel, Run
from abut.hardware.program import program
from abut.mesh import Mesh, require_meshes
from abut.options import chosen

if TYPE_CHECKING:
    from abut.hardware.synth import Synthesis

__all__ = ["Engine", "Machine", "Run", "simulate", "synthesize", "verilog"]


class Engine(StrEnum):
    """Simulators of a query. All give the same pairs, in the same order, and counters."""

    MODEL = "model"
    PYSIM = "pysim"
    VERILATOR = "verilator"


def simulate(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    engine: str = "model",
    **parameters: int,
) -> Run:
    """Find the face pairs of two meshes that may intersect, on the simulated machine.

    Args:
        a, b: Meshes with at least one face each.
        pose_a, pose_b: Rigid motions (4, 4); None leaves a mesh in place.
        engine: ``model`` (integers and cycles in Python), ``pysim`` (the RTL in Amaranth's
            simulator) or ``verilator`` (the RTL, compiled).
        parameters: Parameters of ``Machine``: ``width``, ``sides``, ``axis_count``,
            ``pipelines``, ``latency``, …

    Returns:
        Pairs in the order found, cycles and counters.

    Guarantee:
        Conservative. The pairs include every pair that ``abut.collide`` finds.
    """
    require_meshes(a=a, b=b)
    for name, mesh in (("a", a), ("b", b)):
        if mesh.face_count == 0:
            raise MeshError(f"{name} has no faces; the machine needs some.")
    query = program(a.to("cpu"), b.to("cpu"), pose_a, pose_b, Machine(**parameters))
    match chosen(Engine, engine, "engine"):
        case Engine.MODEL:
            return CycleModel(query).run()
        case Engine.PYSIM:
            _require_rtl(query.machine)
            from abut.hardware import pysim

            return pysim.simulate_pysim(query)
        case Engine.VERILATOR:
            _require_rtl(query.machine)
            from abut.hardware import verilate

            return verilate.simulate_verilator(query)


def verilog(*, part: str = "machine", target: str | None = None, **parameters: int) -> str:
    """Verilog of the machine (module ``top``), or of one ``pipeline``."""
    machine = Machine(**parameters)
    _require_rtl(machine)
    from abut.hardware.rtl.verilog import to_verilog

    return to_verilog(machine, part=part, target=target)


def synthesize(
    *, target: str = "ecp5", part: str = "machine", route: bool = True, goal_mhz: float = 160,
    seed: int = 1, **parameters: int,
) -> Synthesis:  # fmt: skip
    """Synthesise the machine or one ``pipeline``: cells, and on ECP5 the routed clock.

    Args:
        target: ``xc2v`` (Virtex-II), ``xc7`` or ``ecp5``.
        part: ``machine`` or ``pipeline``.
        route: Place and route too (ECP5 only; minutes, more than ten for wide numbers).
        goal_mhz: Target clock of place and route.
        seed: Seed of the placer; the clock varies by 10 to 20 % between seeds.
        parameters: Parameters of ``Machine``.
    """
    machine = Machine(**parameters)
    _require_rtl(machine)
    from abut.hardware import synth

    return synth.run_synthesis(
        machine, target, part=part, route=route, goal_mhz=goal_mhz, seed=seed
    )


def _require_rtl(machine: Machine) -> None:
    """Raise where the RTL lacks what a machine has, or Amaranth is not installed."""
    if not machine.has_rtl:
        raise OptionError(
            "cache, row_values, triangle_units and delta_bits have no RTL; use engine='model'."
        )
    try:
        import amaranth  # noqa: F401
    except ImportError:
        raise ToolError("the RTL needs Amaranth; pip install 'abut[hardware]'.") from None
