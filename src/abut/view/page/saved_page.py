"""Save a page as one file that opens without a server and without a network."""

from html import escape
from pathlib import Path
from typing import Any

from abut.io.write import replacing
from abut.view.page.answer_rows import FACE_PAIRS, OBJECT_PAIRS, row_count, rows_from, title_of
from abut.view.page.answers import Answers
from abut.view.page.page import Page
from abut.view.page.panel import facts_table, scene_facts

SECONDS = 1 / 12  # of a frame
MOST_ROWS = 200  # of each kind
STYLE = (
    "position:fixed;top:0;right:0;width:19em;max-height:100vh;overflow-y:auto;z-index:9;"
    "background:#fffd;font:14px system-ui,sans-serif;padding:.5em 0"
)


def save_page(page: Page, path: Any) -> Path:
    """Write what a page shows now: the picture, which still turns, the numbers and the rows.

    A sequence is written as a film of all its frames.

    Raises:
        AbutError: The answers, or a frame, cannot be shown.
        FileError: The file cannot be written.
    """
    page.wait_until_shown()
    shown, page.gizmo.visible = page.gizmo.visible, False
    film = page.server.get_scene_serializer()
    for frame in range(len(page.player.frames) if page.player is not None else 0):
        page.show_frame(frame)
        film.insert_sleep(SECONDS)
    html = film.as_html()
    page.gizmo.visible = shown
    end = html.rindex("</body>")
    with replacing(path, folders=True) as new:
        new.write_text(html[:end] + _summary(page) + html[end:], encoding="utf-8")
    return Path(path)


def _summary(page: Page) -> str:
    """Numbers and rows in HTML."""
    live, answers = page.live, page.live.answers or Answers()
    lines = [f"<div style='{STYLE}'>", facts_table(scene_facts(live, answers))]
    for kind in (OBJECT_PAIRS, FACE_PAIRS):
        count = row_count(answers, kind)
        rows = rows_from(live, answers, kind, 0, MOST_ROWS)
        texts = "".join(f"<li>{escape(row.text)}</li>" for row in rows)
        more = f"<li>… and {count - len(rows):,} more</li>" if count > len(rows) else ""
        title = title_of(answers, kind)
        lines.append(f"<details><summary>{title}</summary><ul>{texts}{more}</ul></details>")
    errors = "".join(f"<p style='color:#b3261e'>{escape(text)}</p>" for text in page.messages)
    return "".join([*lines, errors, "</div>"])
