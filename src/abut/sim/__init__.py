"""Small solvers whose collisions are abut's own queries: demos, not an engine."""

from abut.sim.cloth import Cloth, Fabric, StepReport
from abut.sim.drape import Drape, cloth_over_ball, cloth_over_table
from abut.sim.leaves import FallingLeaves, falling_leaves
from abut.sim.play import Play, Seen

__all__ = [
    "Cloth",
    "Drape",
    "Fabric",
    "FallingLeaves",
    "Play",
    "Seen",
    "StepReport",
    "cloth_over_ball",
    "cloth_over_table",
    "falling_leaves",
]
