"""Small solvers whose collisions are abut's own queries: demos, not an engine."""

from abut.sim.cloth import Cloth, Fabric, StepReport

__all__ = ["Cloth", "Fabric", "StepReport"]
