"""Anchors: CUDA programs that answer one question as fast as the GPU can, in float32.

An anchor is not part of this repository. ``bench_everyday --anchor NAME=PROGRAM`` runs one on the
benchmark's cases: ``first`` (whether two meshes intersect) or ``nearest`` (how far apart they are).
The program reads a case file and prints a line for each number of poses that it times: 1, 10, 100,
... up to those in the file. The file holds five int32 (vertices and faces of a, of b, and poses),
then float32 vertices and int32 faces of a and of b, 12 float32 a pose (the rotation by rows, then
the translation), and abut's answers (int32, or float32 distances), which the program compares.
"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import Case, Question
from benchmarks.rows import Row

TIMEOUT_S = 120
QUESTIONS = {
    "first": (Question.FIRST, Question.POSES),
    "nearest": (Question.DISTANCE, Question.DISTANCES),
}
FIRST_LINE = re.compile(
    r"(?P<count>\d+) poses: (?P<copies>[\d.]+) ms with copies, kernel (?P<kernel>[\d.]+) ms, "
    r"(?P<differ>\d+) answers differ"
)
NEAREST_LINE = re.compile(
    r"(?P<count>\d+) poses: kernel (?P<kernel>[\d.]+) ms;.*largest difference (?P<worst>\S+), "
    r"contact differs in (?P<differ>\d+)"
)


class Line(NamedTuple):
    """One line of an anchor's output. ``copies_ms``: with poses copied in and answers out."""

    kernel_ms: float
    copies_ms: float | None
    agrees: str


def anchor_rows(case: Case, answer: Any, programs: dict[str, Path]) -> list[Row]:
    """Run the anchors that answer the question of a case; rows for its number of poses."""
    rows = []
    for name, program in programs.items():
        if case.question in QUESTIONS[name]:
            line = parse(name, _run(program, case, answer)).get(np.size(answer))
            if line is not None:
                rows += _rows(case, name, line)
    return rows


def parse(name: str, text: str) -> dict[int, Line]:
    """Return the lines of an anchor's output by their number of poses."""
    lines = {}
    for text_line in text.splitlines():
        found = (FIRST_LINE if name == "first" else NEAREST_LINE).search(text_line)
        if found is not None:
            differ, total = int(found["differ"]), int(found["count"])
            agrees = f"{differ} of {total} differ" if differ else "yes"
            copies = float(found["copies"]) if name == "first" else None
            if name == "nearest":
                agrees += f" within {found['worst']}"
            lines[total] = Line(float(found["kernel"]), copies, agrees)
    return lines


def write_case(path: Path, case: Case, answer: Any) -> None:
    """Write a case file."""
    other = case.vertices if case.other is None else case.other
    other_faces = case.faces if case.other_faces is None else case.other_faces
    poses = np.eye(4)[None] if case.pose is None else case.pose.reshape(-1, 4, 4)
    meshes = (case.vertices, case.faces), (other, other_faces)
    sizes = [len(array) for mesh in meshes for array in mesh] + [len(poses)]
    motions = np.concatenate([poses[:, :3, :3].reshape(-1, 9), poses[:, :3, 3]], axis=1)
    kind = np.float32 if np.asarray(answer).dtype.kind == "f" else np.int32
    with path.open("wb") as file:
        file.write(np.array(sizes, np.int32).tobytes())
        for vertices, faces in meshes:
            file.write(np.ascontiguousarray(vertices, np.float32).tobytes())
            file.write(np.ascontiguousarray(faces, np.int32).tobytes())
        file.write(motions.astype(np.float32).tobytes())
        file.write(np.atleast_1d(answer).astype(kind).tobytes())


def _run(program: Path, case: Case, answer: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.bin"
        write_case(path, case, answer)
        command, pipes = [str(program), str(path)], {"capture_output": True, "text": True}
        done = subprocess.run(command, check=False, timeout=TIMEOUT_S, **pipes)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def _rows(case: Case, name: str, line: Line) -> list[Row]:
    times = {f"anchor_{name}_kernel": line.kernel_ms}
    if line.copies_ms is not None:
        times = {f"anchor_{name}": line.copies_ms} | times
    rows = []
    for library, ms in times.items():
        row = Row(case.job, case.variant, library, case.device, ms, ms)
        row.agrees = line.agrees
        rows.append(row)
    return rows
