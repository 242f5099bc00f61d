"""Conversion of the machine to Verilog, and a wrapper to place and route it alone."""

import warnings

from amaranth.back import verilog as backend
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from abut.hardware.config import Machine
from abut.hardware.rtl.lane import Lane
from abut.hardware.rtl.machine import CollisionMachine


class Pins(wiring.Component):
    """A design behind two pins, whatever its ports.

    Inputs come from one long shift register; outputs are folded into another. Both are registers at
    the ports, like those of a neighbouring block.
    """

    shift_in: In(1)
    shift_out: Out(1)

    def __init__(self, design: wiring.Component) -> None:
        super().__init__()
        self.design = design

    def elaborate(self, platform: object) -> Module:
        """Two shift registers around the design."""
        m = Module()
        m.submodules.design = design = self.design
        ports = {way: [] for way in (In, Out)}
        for name, member in design.signature.members.items():
            ports[member.flow].append(getattr(design, name))
        inputs, outputs = (Cat(*(Cat(port) for port in ports[way])) for way in (In, Out))
        feeding = Signal(len(inputs))
        folding = Signal(len(outputs))
        m.d.sync += [
            feeding.eq(Cat(self.shift_in, feeding)),
            folding.eq(Cat(self.shift_in, folding) ^ outputs),
        ]
        m.d.comb += [inputs.eq(feeding), self.shift_out.eq(folding[-1])]
        return m


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
