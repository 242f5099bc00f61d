"""Pins: a wrapper with two pins, to place and route a design alone, whatever its ports.

Inputs come from one long shift register; outputs are folded into another. Both are registers at
the ports, like those of a neighbouring block.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Pins(wiring.Component):
    """Shifts inputs into a design and folds its outputs."""

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
