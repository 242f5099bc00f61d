"""abut.hardware: the k-DOP machine as a model, in simulators, as Verilog, synthesised.

``simulate(engine="model")`` needs nothing more than abut; the rest needs ``abut[hardware]``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from abut.errors import MeshError, ToolError
from abut.hardware.config import Machine
from abut.hardware.program import program
from abut.hardware.walk import Run, Walk
from abut.mesh import Mesh, require_meshes
from abut.options import chosen

if TYPE_CHECKING:
    from abut.hardware.synth import Synthesis

__all__ = ["Engine", "Machine", "Run", "simulate", "synthesize", "verilog"]


class Engine(StrEnum):
    """What runs a query. All give the same pairs, order and counters."""

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
    """Let the machine find the pairs of faces of two meshes that may meet.

    Args:
        a, b: Meshes with at least one face each.
        pose_a, pose_b: Rigid motions (4, 4); None leaves a mesh in place.
        engine: ``model`` (integers and cycles in Python), ``pysim`` (the RTL in Amaranth's
            simulator) or ``verilator`` (the RTL, compiled).
        parameters: Of the ``Machine``: ``width``, ``sides``, ``axis_count``, ``pipelines``,
            ``latency``, …

    Returns:
        Pairs in the order found, cycles and counters.

    Guarantee:
        Conservative. Every pair that ``abut.collide`` finds is among them.
    """
    require_meshes(a=a, b=b)
    for name, mesh in (("a", a), ("b", b)):
        if mesh.face_count == 0:
            raise MeshError(f"{name} has no faces; the machine needs some.")
    question = program(a.to("cpu"), b.to("cpu"), pose_a, pose_b, Machine(**parameters))
    match chosen(Engine, engine, "engine"):
        case Engine.MODEL:
            return Walk(question).run()
        case Engine.PYSIM:
            _require_amaranth()
            from abut.hardware import pysim

            return pysim.simulate(question)
        case Engine.VERILATOR:
            _require_amaranth()
            from abut.hardware import verilate

            return verilate.simulate(question)


def verilog(*, part: str = "machine", target: str | None = None, **parameters: int) -> str:
    """The machine (module ``top``), or one ``pipeline`` of it, as Verilog."""
    _require_amaranth()
    from abut.hardware.rtl.verilog import verilog as convert

    return convert(Machine(**parameters), part=part, target=target)


def synthesize(
    *, target: str = "ecp5", part: str = "machine", route: bool = True, goal_mhz: float = 160,
    seed: int = 1, **parameters: int,
) -> Synthesis:  # fmt: skip
    """Cells of the machine or of one ``pipeline``, and its routed clock on ECP5.

    Args:
        target: ``xc2v``, ``xc7`` or ``ecp5``.
        part: ``machine`` or ``pipeline``.
        route: Place and route too (ECP5); minutes.
        goal_mhz: The clock that placer and router strive for.
        seed: Of the placer.
        parameters: Of the ``Machine``.
    """
    _require_amaranth()
    from abut.hardware import synth

    machine = Machine(**parameters)
    return synth.synthesize(machine, target, part=part, route=route, goal_mhz=goal_mhz, seed=seed)


def _require_amaranth() -> None:
    try:
        import amaranth  # noqa: F401
    except ImportError:
        raise ToolError("the RTL needs Amaranth; pip install 'abut[hardware]'.") from None
