"""Small solvers whose collisions are abut's own queries: demos, not an engine."""

from abut.sim.cloth import Cloth, Fabric, StepReport
from abut.sim.cloth_scenes import (
    Drape,
    FallingLeaves,
    cloth_over_ball,
    cloth_over_table,
    falling_leaves,
)
from abut.sim.disassembly import Disassembly, crank_in_a_ring
from abut.sim.impulse_solver import ImpulseSolver, Surfaces
from abut.sim.rigid import Energy, RigidBodies
from abut.sim.rigid_scenes import (
    Dragons,
    Fracture,
    Swarm,
    breaking_object,
    falling_dragons,
    swarm_of_balls,
)
from abut.sim.rigid_state import RigidState
from abut.sim.simulation import Seen, Simulation
from abut.sim.waves import WavingFloor

__all__ = [
    "Cloth",
    "Disassembly",
    "Dragons",
    "Drape",
    "Energy",
    "Fabric",
    "FallingLeaves",
    "Fracture",
    "ImpulseSolver",
    "RigidBodies",
    "RigidState",
    "Seen",
    "Simulation",
    "StepReport",
    "Surfaces",
    "Swarm",
    "WavingFloor",
    "breaking_object",
    "cloth_over_ball",
    "cloth_over_table",
    "crank_in_a_ring",
    "falling_dragons",
    "falling_leaves",
    "swarm_of_balls",
]
