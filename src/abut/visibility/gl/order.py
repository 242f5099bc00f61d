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
        return Turns.of(turn).order(tested, drawn)


@dataclass(frozen=True)
class Turns:
    """The order of a pass that tests and draws every face.

    Attributes:
        codes: (2 n,) as in DrawingOrder.
        stops: (k, 3) likewise, for all turns.
    """

    codes: np.ndarray
    stops: np.ndarray

    @staticmethod
    def of(turn: np.ndarray) -> "Turns":
        """Turns count from 0 and go up, or down, from face to face."""
        count = len(turn)
        down = count > 0 and turn[0] > turn[-1]
        faces = np.arange(count, dtype=np.uint32)
        if down:
            faces, turn = faces[::-1], turn[::-1]
        sizes = np.bincount(turn, minlength=1)
        ends = np.cumsum(sizes)
        codes = np.empty(2 * count, dtype=np.uint32)
        place = np.arange(count) + np.repeat(ends - sizes, sizes)
        codes[place] = faces << 1
        codes[place + np.repeat(sizes, sizes)] = faces << 1 | 1
        starts = ends - sizes
        return Turns(codes, np.stack([2 * starts, starts + ends, 2 * ends], axis=1))

    def order(self, tested: np.ndarray, drawn: np.ndarray) -> DrawingOrder:
        """The pass that tests and draws what (n,) masks say."""
        wanted = np.stack([tested, drawn], axis=1).ravel()
        kept = np.flatnonzero(wanted.take(self.codes))
        stops = np.searchsorted(kept, self.stops)
        turns = np.flatnonzero(stops[:, 2] > stops[:, 0])
        return DrawingOrder(self.codes.take(kept), turns, stops[turns])
