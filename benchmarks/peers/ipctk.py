"""IPC Toolkit: whether a mesh meets itself, by edges against faces, all cores."""

from typing import Any

import ipctk
import numpy as np

from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "ipctk", "ipctk"
NOTE = "IPC Toolkit answers yes or no only, and builds its broad phase in every call."
SUPPORTS = {Question.SELF_ANY: ("",)}


def prepare(case: Case, choice: str = "") -> Prepared:
    """A collision mesh; of the broad phases LBVH was the fastest."""
    vertices = np.asfortranarray(case.vertices, dtype=np.float64)
    mesh = ipctk.CollisionMesh(vertices, ipctk.edges(case.faces), case.faces)
    return Prepared(lambda: ipctk.has_intersections(mesh, vertices, ipctk.LBVH()))


def run(prepared: Prepared) -> Any:
    """The library's own result."""
    return prepared.call()


def answer(result: Any) -> bool:
    """Yes or no."""
    return bool(result)
