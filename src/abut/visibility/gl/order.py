"""What a pass draws, one thing after the other."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DrawingOrder:
    """The faces of a pass in drawing order: of each turn those tested, then those drawn.

    Attributes:
        codes: (n,) uint32, face << 1 | drawn.
        turns: (k,) turns that have faces, ascending.
        stops: (k, 3) in ``codes``: where a turn's tested faces begin, its drawn begin, and it ends.
    """

    codes: np.ndarray
    turns: np.ndarray
    stops: np.ndarray

    @staticmethod
    def of(turn: np.ndarray, tested: np.ndarray, drawn: np.ndarray) -> "DrawingOrder":
        """The order in which faces have their ``turn``; masks say what is done with them."""
        faces = np.concatenate([np.flatnonzero(tested), np.flatnonzero(drawn)])
        is_drawn = np.repeat([False, True], [np.count_nonzero(tested), np.count_nonzero(drawn)])
        keys = 2 * turn[faces].astype(np.int64) + is_drawn
        order = np.argsort(keys, kind="stable")
        turns = np.unique(keys // 2)
        edges = np.searchsorted(keys[order], [2 * turns, 2 * turns + 1, 2 * turns + 2]).T
        codes = (faces[order] << 1 | is_drawn[order]).astype(np.uint32)
        return DrawingOrder(codes, turns, edges)
