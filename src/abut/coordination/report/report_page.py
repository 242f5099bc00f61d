"""A report as one page that opens in a browser without a network."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from abut.coordination.clashes import Clashes, Verdict
from abut.coordination.pictures.clash_cameras import ClashView
from abut.coordination.report.compare import Status
from abut.coordination.report.report_columns import COLUMNS, Columns, row_total
from abut.coordination.report.report_json import date_text, report_date
from abut.coordination.report.report_page_shapes import deflated_text
from abut.coordination.report.report_page_views import PageViews
from abut.io.write import replacing

BUDGET = 24 << 20  # bytes of shapes
SCRIPTS = ("blocks", "filter", "matrix", "table", "linear", "viewer", "detail", "main")
DIGITS = 7  # of numbers in the page


def write_page(
    clashes: Clashes,
    columns: Columns,
    path: Any,
    *,
    pictures: Mapping[str, bytes] | None = None,
    title: str = "Clash report",
    created: datetime | None = None,
    earlier: datetime | None = None,
    budget: int = BUDGET,
    views: Mapping[int, ClashView] | None = None,
    device: Any = None,
) -> Path:
    """Write a report as one HTML file: a matrix, a table, and a view of each clash.

    The file loads nothing from elsewhere. Texts from files are shown as texts; the page forbids
    all scripts but its own. Equal arguments and dates give equal bytes.

    Args:
        clashes: The clashes, their parts, problems, skipped objects and settings.
        columns: Rows of the report, also those that are gone.
        path: The file.
        pictures: PNG of clashes by id.
        title: Name of the project.
        created: Date of the report; None: that of ``report_date``.
        earlier: Date of the report that this one is compared with.
        budget: Most bytes of shapes for views in three dimensions; the severest clashes come
            first, and the page says how many are left out.
        views: Views of all rows, of ``report_views``; None: computed.
        device: Where cameras are computed; None is the first CUDA device, else the CPU.

    Raises:
        FileError: The file cannot be written.
    """
    shown = PageViews(clashes, columns, budget, views, device)
    facts = {
        "title": title,
        "created": date_text(report_date(created)),
        "earlier": None if earlier is None else date_text(earlier),
        "verdicts": [str(verdict) for verdict in Verdict],
        "statuses": [str(status) for status in Status],
        "columns": {name: _column(columns[name], name) for name in COLUMNS},
        "count": row_total(columns),
        "parts": shown.parts,
        "part_count": 0 if clashes.parts is None else len(clashes.parts),
        "views_left_out": shown.left_out,
        "settings": _settings(clashes.settings),
        "problems": list(clashes.problems),
        "skipped": [[str(file), *map(str, thing)] for file, thing in clashes.skipped],
    }
    blocks = {
        "facts": deflated_text(json.dumps(facts, separators=(",", ":")).encode()),
        **shown.blocks,
    }
    for row, name in enumerate(columns["id"].tolist()):
        if pictures and name in pictures:
            blocks[f"p{row}"] = base64.b64encode(pictures[name]).decode("ascii")
    with replacing(path, folders=True) as new, new.open("w", encoding="utf-8") as file:
        file.writelines(_page(title, blocks))
    return Path(path)


def _page(title: str, blocks: Mapping[str, str]) -> Iterator[str]:
    """The page in pieces."""
    style = _asset("report_page.css")
    scripts = "\n".join(_asset(f"report_page_{name}.js") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{scripts}\n}})();\n'
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src blob: data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head, tail = _asset("report_page.html").split("<!-- blocks -->\n")
    before, after = head.replace("{policy}", escape(policy)).split("{style}")
    yield before + style + after.replace("{title}", escape(_plain(title)))
    for name, text in blocks.items():
        yield f'<script type="text/plain" id="block-{name}">{text}</script>\n'
    yield tail.replace("{script}", script)


def _asset(name: str) -> str:
    return files("abut.coordination.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Source expression of a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _column(values: np.ndarray, name: str) -> dict[str, Any]:
    """A column as values, or as the distinct texts and the index of each row."""
    kind = COLUMNS[name].type
    if kind is str:
        texts, index = np.unique(np.array([str(v) for v in values], object), return_inverse=True)
        return {"texts": [_plain(text) for text in texts], "rows": index.reshape(-1).tolist()}
    if kind is float:
        known = np.isfinite(values)
        rows = zip(values.tolist(), known.tolist(), strict=True)
        return {"rows": [float(f"{v:.{DIGITS}g}") if ok else None for v, ok in rows]}
    return {"rows": [kind(value) for value in values]}


def _settings(settings: Mapping[str, Any]) -> list[list[str]]:
    """Names and values of settings as texts."""
    out = []
    for name, value in settings.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        out.append([str(name), _plain(text)])
    return out


def _plain(text: Any) -> str:
    """A text that UTF-8 can hold."""
    return str(text).encode("utf-8", "replace").decode()
