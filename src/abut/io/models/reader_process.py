"""Readers in a process of their own: native libraries that print, or crash on damaged files."""

import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from abut import errors
from abut.errors import FileError, ToolError
from abut.io.models.part_model import PartModel, Skipped

WORKER = "abut.io.models.reader_worker"
MOST_NAMED = 3  # damaged entities in a message


def read_apart(reader: str, path: Path, **options: Any) -> PartModel:
    """Read a model by a function of another process.

    Args:
        reader: "module:function", which takes the path, a function that is called with the
            entities found damaged, and the options.
        path: The file.
        options: Values that JSON can hold.

    Raises:
        AbutError: What the reader raised.
        FileError: The process ended without an answer, as native code does on some damaged files.
    """
    call = json.dumps({"reader": reader, "path": str(path), "options": options})
    paths = os.pathsep.join(place or os.getcwd() for place in sys.path)
    done = subprocess.run(
        [sys.executable, "-m", WORKER, call],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    damaged: list[Skipped] = []
    for kind, *content in _frames(done.stdout):
        if kind == "model":
            return content[0]
        if kind == "error":
            raise getattr(errors, content[0])(content[1])
        damaged = content[0]
    raise FileError(f"{path} is damaged: its reader crashed{_named(damaged)}.")


def require_package(path: Path, package: str, kind: str, product: str, extra: str) -> None:
    """Refuse a file whose reader needs a package that is missing."""
    if find_spec(package) is None:
        raise ToolError(
            f"{path}: {kind} files need {product}; pip install 'abut[{extra}]' brings it."
        )


def _frames(content: bytes) -> list[tuple[Any, ...]]:
    """Return what the process sent; a frame that is cut short ends it."""
    frames, place = [], 0
    while place + 8 <= len(content):
        size = int.from_bytes(content[place : place + 8], "little")
        if place + 8 + size > len(content):
            break
        frames.append(pickle.loads(content[place + 8 : place + 8 + size]))
        place += 8 + size
    return frames


def _named(damaged: list[Skipped]) -> str:
    """Return the first damaged entities, for a message."""
    if not damaged:
        return ""
    reasons = [row.reason.rstrip(".") for row in damaged[:MOST_NAMED]]
    named = [
        reason if reason.startswith(row.id) else f"{row.id} {row.type}".strip() + f": {reason}"
        for row, reason in zip(damaged, reasons, strict=False)
    ]
    rows = "; ".join(named)
    more = len(damaged) - MOST_NAMED
    return f"; {rows}" + (f"; and {more} more" if more > 0 else "")
