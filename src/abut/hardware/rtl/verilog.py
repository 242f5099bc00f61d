"""Conversion of the machine to Verilog."""

import warnings

from amaranth.back import verilog as backend

from abut.hardware.config import Machine
from abut.hardware.rtl.lane import Lane
from abut.hardware.rtl.machine import CollisionMachine
from abut.hardware.rtl.pins import Pins


def to_verilog(
    machine: Machine, *, part: str = "machine", target: str | None = None, pins: bool = False
) -> str:
    """Verilog of the machine (module ``top``), or of one pipeline.

    Args:
        machine: Parameters.
        part: ``machine`` or ``pipeline``.
        target: FPGA family whose multipliers to instantiate; None leaves that to synthesis.
        pins: Wrap the design in shift registers, so that it needs two pins beside its clock.
    """
    design = (Lane if part == "pipeline" else CollisionMachine)(machine, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return backend.convert(
            Pins(design) if pins else design, name="top", strip_internal_attrs=True
        )
