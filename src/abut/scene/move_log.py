"""MoveLog: which objects of a scene have moved since a query."""

from itertools import takewhile

import numpy as np


class MoveLog:
    """The rows of objects in the order in which they were last moved.

    Attributes:
        count: Number of calls that have moved objects.
    """

    MOST_ROWS = 64  # of a call; where there are more, any row may have moved

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[int, int] = {}  # call that has moved each row
        self._all = 0  # last call that may have moved any row

    def add(self, rows: np.ndarray) -> None:
        """Note the rows of a call."""
        self.count += 1
        if len(rows) > self.MOST_ROWS:
            self._last, self._all = {}, self.count
            return
        for row in rows.tolist():
            self._last.pop(row, None)
            self._last[row] = self.count

    def since(self, count: int) -> list[int] | None:
        """Rows that have moved after so many calls; None: all may have."""
        if count < self._all:
            return None
        return [row for row, _ in takewhile(lambda x: x[1] > count, reversed(self._last.items()))]
