"""Views in three dimensions of the clashes of a page, within a budget of bytes."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from abut.coordination.clashes import Clashes, Verdict
from abut.coordination.pictures.clash_cameras import ClashView, report_views
from abut.coordination.pictures.clash_frame import clash_frames
from abut.coordination.pictures.clash_pictures import parts_around
from abut.coordination.report.report_columns import Columns, row_total
from abut.coordination.report.report_page_shapes import (
    deflated_text,
    is_whole,
    piece_of,
    shape_bytes,
)

MOST_VIEWS = 2000
MOST_LINES = 400  # segments of a contact
NEIGHBOURS = 16  # of a view
WIDE = 3.0  # size of the box around a clash whose faces are kept, over that of its frame


class PageViews:
    """Blocks of text for a page, by name; shapes that several views share are there once.

    Attributes:
        blocks: Deflated JSON of the view of row k, "v{k}", and shapes, "m{number}" and "q{number}".
        parts: (shape, pose) of each part that is shown, poses as rows of 12 numbers.
        left_out: Rows of the report that have no view, because the page would be too large.
    """

    def __init__(
        self,
        clashes: Clashes,
        columns: Columns,
        budget: int,
        views: Mapping[int, ClashView] | None = None,
        device: Any = None,
    ) -> None:
        self.clashes, self.columns, self.budget = clashes, columns, budget
        self.blocks: dict[str, str] = {}
        self.parts: list[list[Any]] = []
        self._part_numbers: dict[int, int] = {}
        self._size = self._pieces = 0
        if clashes.parts is None or not len(clashes.parts):
            self.left_out = 0
            return
        self.frames = clash_frames(columns, clashes.parts)
        rows = severest_rows(columns)
        if views is None:
            views = report_views(clashes, columns, rows[:MOST_VIEWS], device)
        known = [row for row in rows if columns["status"][row] != "gone"]
        for row in rows[:MOST_VIEWS]:
            if row in views:
                self._add(row, views[row])
        self.left_out = len(known) - sum(name.startswith("v") for name in self.blocks)

    def _add(self, row: int, view: ClashView) -> None:
        """Add the view of a row, if the budget allows."""
        if self._size >= self.budget:
            return
        parts, frame = self.clashes.parts, self.frames[row]
        middle = frame.mean(axis=0)
        pair = parts.rows_of([self.columns[side][row] for side in "ab"]).tolist()
        around = parts_around(parts, (pair[0], pair[1]), frame, NEIGHBOURS)
        shown = [self._part(part, frame) for part in pair]
        shown += [self._part(part, frame) for part in around if is_whole(parts, part)]
        lines = view.lines[:: max(1, -(-len(view.lines) // MOST_LINES))] - middle
        ends = [[self.columns[f"{s}_{x}"][row] for x in "xyz"] for s in "ab"]
        found = {
            "middle": middle.tolist(),
            "size": float(np.linalg.norm(np.ptp(frame, axis=0))),
            "eye": _short(view.camera.eye - middle),
            "parts": shown,
            "glass": list(view.glass),
            "cut": [not is_whole(parts, part) for part in pair],
            "solid": bool(self.columns["solid"][row]),
            "same": str(self.columns["verdict"][row]) == Verdict.DUPLICATE,
            "lines": _short(lines),
            "points": _short(np.nan_to_num(np.array(ends, float) - middle)),
        }
        self._store(f"v{row}", json.dumps(found, separators=(",", ":")).encode())

    def _part(self, part: int, frame: np.ndarray) -> int:
        """The number of a part, or of the piece of a large part, among ``parts``."""
        parts = self.clashes.parts
        if is_whole(parts, part):
            if part not in self._part_numbers:
                name = f"m{int(parts.mesh[part])}"
                if name not in self.blocks:
                    given = parts.part_meshes[parts.mesh[part]]
                    self._store(name, shape_bytes(given.vertices, given.faces))
                self._part_numbers[part] = len(self.parts)
                self.parts.append([name, *parts.poses[part, :3].ravel().tolist()])
            return self._part_numbers[part]
        middle = frame.mean(axis=0)
        name, self._pieces = f"q{self._pieces}", self._pieces + 1
        wide = middle + WIDE * (frame - middle)
        self._store(name, shape_bytes(*piece_of(parts, part, wide)))
        self.parts.append([name, *np.eye(4)[:3].ravel().tolist()])
        return len(self.parts) - 1

    def _store(self, name: str, data: bytes) -> None:
        self.blocks[name] = deflated_text(data)
        self._size += len(self.blocks[name])


def severest_rows(columns: Columns) -> list[int]:
    """Rows of clashes that are not gone, the severest and deepest first."""
    rank: Mapping[str, int] = {str(verdict): k for k, verdict in enumerate(Verdict)}
    severity = np.array([rank.get(str(name), len(rank)) for name in columns["verdict"]], int)
    order = np.lexsort((columns["distance"], -np.nan_to_num(columns["depth"]), severity))
    here = np.array([columns["status"][row] != "gone" for row in range(row_total(columns))], bool)
    return [row for row in order.tolist() if here[row]]


def _short(values: Any) -> Any:
    """Nested lists of numbers of at most seven digits."""
    flat = [float(f"{value:.7g}") for value in np.ravel(values)]
    return np.reshape(flat, np.shape(values)).tolist()
