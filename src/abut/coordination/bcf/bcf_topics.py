"""Topics of BCF files, made of the rows of a report."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from abut.coordination.bcf.bcf_markup import AUTHOR, CLOSED, OPEN, BcfComment, BcfTopic, markup_file
from abut.coordination.bcf.bcf_viewpoint import BcfView, viewpoint_file
from abut.coordination.bcf.bcf_xml import filled, stable_guid
from abut.coordination.clashes import Clashes
from abut.coordination.pictures.clash_cameras import ASPECT, ClashView, report_views
from abut.coordination.pictures.clash_frame import clash_frames, frame_camera
from abut.coordination.report.compare import Status
from abut.coordination.report.report_columns import Columns, row_total
from abut.coordination.report.row_texts import part_facts, row_description, row_labels, row_title
from abut.view.camera import Camera

WIDE = 3.0  # size of the view with all parts over that of the clash alone


class BcfTopics:
    """The topics of a report."""

    def __init__(
        self,
        clashes: Clashes,
        columns: Columns,
        pictures: Mapping[str, bytes],
        created: str,
        views: Mapping[int, ClashView] | None = None,
        device: Any = None,
    ) -> None:
        self.columns, self.pictures, self.created = columns, pictures, created
        self.frames = clash_frames(columns, clashes.parts)
        if views is None:
            views = report_views(clashes, columns, range(row_total(columns)), device)
        self.cameras = {row: view.camera for row, view in views.items()}
        self.related = _related(columns)

    def labels(self) -> list[str]:
        """All labels."""
        rows = range(row_total(self.columns))
        return sorted({label for row in rows for label in row_labels(self.columns, row)})

    def users(self) -> list[str]:
        """All authors of comments, and abut."""
        names = {filled(name, AUTHOR) for name in self.columns["accepted_by"].tolist()}
        return sorted(names | {AUTHOR})

    def files(self, row: int, version: str) -> Iterator[tuple[str, bytes]]:
        """Names and contents of the files of a topic."""
        name = str(self.columns["id"][row])
        folder, views = stable_guid("topic", name), self._views(row)
        picture = self.pictures.get(name)
        listed = []
        for k, view in enumerate(views):
            file = "viewpoint.bcfv" if k == 0 else f"viewpoint_{view.guid}.bcfv"
            listed.append((view.guid, file, "snapshot.png" if k == 0 and picture else None))
            yield f"{folder}/{file}", viewpoint_file(view, version)
        if views and picture:
            yield f"{folder}/snapshot.png", picture
        yield f"{folder}/markup.bcf", markup_file(self._topic(row, listed), version)

    def _topic(self, row: int, viewpoints: list[tuple[str, str, str | None]]) -> BcfTopic:
        columns, name = self.columns, str(self.columns["id"][row])
        closed = columns["status"][row] in (Status.ACCEPTED, Status.GONE)
        return BcfTopic(
            guid=stable_guid("topic", name),
            title=row_title(columns, row),
            description=row_description(columns, row),
            status=CLOSED if closed else OPEN,
            labels=row_labels(columns, row),
            created=self.created,
            parts=[part_facts(columns, side, row) for side in "ab"],
            comments=_comments(columns, row),
            viewpoints=viewpoints,
            related=self.related.get(name, ()),
        )

    def _views(self, row: int) -> list[BcfView]:
        """The views of a row; none where its place is not known."""
        if not np.isfinite(self.frames[row]).all():
            return []
        name = str(self.columns["id"][row])
        camera = self.cameras.get(row) or frame_camera(self.frames[row], ASPECT)
        parts = {side: part_facts(self.columns, side, row) for side in "ab"}
        guids = [stable_guid(kind, name) for kind in ("view", "wide view")]
        line = _line(self.columns, row)
        middle = self.frames[row].mean(axis=0)
        wide = Camera(middle + WIDE * (camera.eye - middle), *_directions(camera))
        return [
            BcfView(guids[0], camera, parts, alone=True, line=line),
            BcfView(guids[1], wide, parts, alone=False, line=line),
        ]


def _comments(columns: Columns, row: int) -> list[BcfComment]:
    """The change since the earlier report, and the acceptance."""
    name, change = str(columns["id"][row]), str(columns["change"][row])
    by, reason = str(columns["accepted_by"][row]), str(columns["accepted_reason"][row])
    out = []
    if columns["status"][row] == Status.GONE:
        out.append(BcfComment(stable_guid("gone", name), "", "The clash is gone."))
    if change:
        out.append(BcfComment(stable_guid("change", name, change), "", f"Changed: {change}."))
    if by or reason:
        text = f"Accepted{reason and ': ' + reason}"
        out.append(BcfComment(stable_guid("accepted", name, by, reason), by, text))
    return out


def _related(columns: Columns) -> dict[str, list[str]]:
    """GUIDs of related topics by id: the first clash of a group and the others."""
    groups: dict[str, list[str]] = {}
    for name, group in zip(columns["id"], columns["group"].tolist(), strict=True):
        if group:
            groups.setdefault(group, []).append(str(name))
    out: dict[str, list[str]] = {}
    for first, *others in groups.values():
        out[first] = [stable_guid("topic", name) for name in others]
        out |= {name: [stable_guid("topic", first)] for name in others}
    return out


def _line(columns: Columns, row: int) -> np.ndarray | None:
    """The nearest points of parts that are apart."""
    ends = np.array([[columns[f"{side}_{axis}"][row] for axis in "xyz"] for side in "ab"], float)
    apart = float(columns["distance"][row]) > 0.0 and np.isfinite(ends).all()
    return ends if apart else None


def _directions(camera: Camera) -> tuple[Any, ...]:
    return camera.right, camera.up, camera.ahead, camera.tangent, camera.vertical
