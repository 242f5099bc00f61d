"""Multiplier: 18 by 18 bits, registered, like the DSP blocks of FPGAs."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

LATENCY = 2  # operands, product


class Multiplier(wiring.Component):
    """``product = x * y``, two cycles later.

    Args:
        target: ``ecp5`` and ``xc2v`` instantiate the block with its own registers, which Yosys
            does not infer there; other values leave it to synthesis.
    """

    x: In(signed(18))
    y: In(signed(18))
    product: Out(signed(36))

    def __init__(self, target: str | None = None) -> None:
        super().__init__()
        self.target = target

    def elaborate(self, platform: object) -> Module:
        """Instantiate the block, or describe its behaviour."""
        m = Module()
        if self.target == "ecp5":
            m.submodules.block = self._ecp5()
            return m
        x, y = Signal(signed(18)), Signal(signed(18))
        m.d.sync += [x.eq(self.x), y.eq(self.y)]
        if self.target == "xc2v":
            m.submodules.block = Instance(
                "MULT18X18S",
                i_A=x,
                i_B=y,
                i_C=ClockSignal(),
                i_CE=Const(1),
                i_R=Const(0),
                o_P=self.product,
            )
        else:
            m.d.sync += self.product.eq(x * y)
        return m

    def _ecp5(self) -> Instance:
        clock = "CLK0"
        registers = {f"p_REG_{name}_CLK": clock for name in ("INPUTA", "INPUTB", "OUTPUT")}
        bits = {f"i_A{i}": self.x[i] for i in range(18)}
        bits |= {f"i_B{i}": self.y[i] for i in range(18)}
        bits |= {f"o_P{i}": self.product[i] for i in range(36)}
        return Instance(
            "MULT18X18D",
            **registers,
            **bits,
            i_SIGNEDA=Const(1),
            i_SIGNEDB=Const(1),
            i_CLK0=ClockSignal(),
            i_CE0=Const(1),
            i_RST0=Const(0),
        )
