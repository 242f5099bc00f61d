"""How long a query takes, with the loading of kernels apart."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from abut.cases import box
from abut.cli.console import working
from abut.core.timing import recording
from abut.mesh import Mesh

Answer = TypeVar("Answer")
Stages = dict[str, float]  # milliseconds by name


def timed(stages: Stages, name: str, work: Callable[[], Answer]) -> Answer:
    """The result of ``work``, whose time is noted."""
    start = time.perf_counter()
    answer = work()
    stages[name] = (time.perf_counter() - start) * 1e3
    return answer


def measured(
    query: Callable[..., Answer],
    meshes: tuple[Mesh, ...],
    *,
    then: Callable[[Answer], Any] = bool,
    **options: Any,
) -> tuple[Answer, Stages]:
    """The answer of a query and the times of its stages.

    The same is asked of two small boxes before, so that kernels are loaded; ``then`` is what else
    will be asked of the answer.
    """
    stages: Stages = {}
    boxes = [Mesh(*box(), device=mesh.device) for mesh in meshes]
    few = {name: _few(value) for name, value in options.items()}
    with working("loading kernels"):
        timed(stages, "kernels", lambda: then(query(*boxes, **few)))
    with working("searching"), recording() as timer:
        answer = query(*meshes, **options)
    return answer, stages | timer.milliseconds


def _few(option: Any) -> Any:
    """At most two of a batch of poses."""
    return option[:2] if isinstance(option, np.ndarray) and option.ndim == 3 else option
