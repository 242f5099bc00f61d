"""Draw batches: the order in which a pass tests and draws faces."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DrawingOrder:
    """The faces of a pass in drawing order: of each batch the tested faces, then the drawn ones.

    Attributes:
        codes: (n,) uint32, face << 1 | drawn.
        batches: (k,) batches that have faces, ascending.
        stops: (k, 3) indices into ``codes``: first tested face, first drawn face, end of a batch.
    """

    codes: np.ndarray
    batches: np.ndarray
    stops: np.ndarray


@dataclass(frozen=True)
class DrawBatches:
    """The order of a pass that tests and draws every face.

    Attributes:
        codes: (2 n,) uint32, face << 1 | drawn.
        stops: (k, 3) indices into ``codes``, see DrawingOrder, of all batches.
    """

    codes: np.ndarray
    stops: np.ndarray

    @staticmethod
    def of(batch: np.ndarray) -> "DrawBatches":
        """Batches of faces, numbered from 0, in ascending or in descending order."""
        count = len(batch)
        down = count > 0 and batch[0] > batch[-1]
        faces = np.arange(count, dtype=np.uint32)
        if down:
            faces, batch = faces[::-1], batch[::-1]
        sizes = np.bincount(batch, minlength=1)
        ends = np.cumsum(sizes)
        codes = np.empty(2 * count, dtype=np.uint32)
        place = np.arange(count) + np.repeat(ends - sizes, sizes)
        codes[place] = faces << 1
        codes[place + np.repeat(sizes, sizes)] = faces << 1 | 1
        starts = ends - sizes
        return DrawBatches(codes, np.stack([2 * starts, starts + ends, 2 * ends], axis=1))

    def order(self, tested: np.ndarray, drawn: np.ndarray) -> DrawingOrder:
        """The pass that tests and draws the faces of (n,) masks."""
        wanted = np.stack([tested, drawn], axis=1).ravel()
        kept = np.flatnonzero(wanted.take(self.codes))
        stops = np.searchsorted(kept, self.stops)
        batches = np.flatnonzero(stops[:, 2] > stops[:, 0])
        return DrawingOrder(self.codes.take(kept), batches, stops[batches])
