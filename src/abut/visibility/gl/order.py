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
        """The order in which faces have their ``turn``; masks say what is done with them.

        Turns count from 0 and go up, or down, from face to face.
        """
        down = len(turn) > 0 and turn[0] > turn[-1]
        way = slice(None, None, -1) if down else slice(None)
        faces = np.arange(len(turn), dtype=np.uint32)[way]
        turn, masks = turn[way], (tested[way], drawn[way])
        groups = [(faces[mask] << 1 | k, turn[mask]) for k, mask in enumerate(masks)]
        count = int(turn[-1]) + 1 if len(turn) else 0
        sizes = [np.bincount(turns, minlength=count) for _, turns in groups]
        ends = [np.cumsum(size) for size in sizes]
        places = [ends[1] - sizes[1], ends[0]]  # entries of the other kind that come before
        codes = np.empty(sum(len(some) for some, _ in groups), dtype=np.uint32)
        for (some, turns), before in zip(groups, places, strict=True):
            codes[np.arange(len(some)) + before[turns]] = some
        turns = np.flatnonzero(sizes[0] + sizes[1])
        starts = ends[0] - sizes[0] + ends[1] - sizes[1]
        stops = np.stack([starts, starts + sizes[0], ends[0] + ends[1]], axis=1)
        return DrawingOrder(codes, turns, stops[turns])
