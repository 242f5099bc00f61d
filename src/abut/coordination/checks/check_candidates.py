"""Check candidate pairs in chunks; a pair that cannot be checked is a line, not an error."""

from collections.abc import Callable
from typing import Any

import numpy as np

from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.clashes import Clashes, joined_clashes
from abut.coordination.parts.part_candidates import PartCandidates
from abut.coordination.parts.part_table import PartTable
from abut.errors import AbutError

CHUNK = 128  # pairs; progress is shown for each chunk
ERRORS = (AbutError, ArithmeticError, LookupError, ValueError)


def check_candidates(
    parts: PartTable,
    found: PartCandidates,
    *,
    device: Any = None,
    done: Callable[[int], None] | None = None,
) -> tuple[Clashes, list[str]]:
    """Find the verdicts of candidate pairs.

    Args:
        parts: The parts.
        found: Candidates of these parts.
        device: Where to compute; None: the first CUDA device, else the CPU.
        done: Called with the number of pairs that are finished.

    Returns:
        Rows as of ``check_pairs``, and a line for each pair whose check failed.
    """
    tables, problems = [], []
    waiting = [(start, min(start + CHUNK, len(found))) for start in range(0, len(found), CHUNK)]
    waiting.reverse()
    while waiting:
        start, stop = waiting.pop()
        pairs, which = found.pairs[start:stop], found.which[start:stop]
        try:
            tables.append(check_pairs(parts, pairs, found.checks, which, device=device))
        except ERRORS as error:
            if stop - start > 1:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
                continue
            problems.append(_failed(parts, pairs[0], error))
        if done is not None:
            done(stop)
    return joined_clashes(tables, parts), problems


def _failed(parts: PartTable, pair: np.ndarray, error: Exception) -> str:
    a, b = parts.key[pair].tolist()
    why = " ".join(str(error).split()) or type(error).__name__
    return f"{a} and {b} could not be checked: {why}"
