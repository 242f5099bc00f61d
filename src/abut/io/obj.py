"""OBJ files: vertices, faces and their names, vectorised over the bytes of the file.

``v``, ``f``, ``o`` and ``g`` statements are read. Materials, normals, texture coordinates, lines,
points and free-form curves are ignored.
"""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from abut.core.device import thread_count
from abut.errors import FileError
from abut.io.decimals import parse_decimals, parse_float, parse_integers, word_edges

CHUNK = 1 << 18  # bytes parsed at once: the arrays of a chunk fit the cache
THREADS = 2  # more are slower: NumPy holds the lock while it reads integers
VERTEX_SIZES = (3, 4, 6, 7)  # coordinates; then a weight, a colour, or both
LARGEST = np.iinfo(np.int32).max
SPACE, NEWLINE, SLASH, LETTER_V, LETTER_F, LETTER_O, LETTER_G = b" \n/vfog"
COMMENT, CONTINUED = re.compile(rb"#[^\n]*"), re.compile(rb"\\\r?\n")
JOINT = b" \v"  # replaces the end of a continued line; the vertical tab counts as a line
# Map blanks except newlines to spaces, and other control characters to a letter.
BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")
BLANKS = bytes(ord("?") if c < SPACE and c != NEWLINE else c for c in BLANKS)
SPLIT = bytes.maketrans(b"/", b" ")


@dataclass
class Statements:
    """The statements of a chunk.

    Attributes:
        vertices: (n, 3) float64.
        corners: Indices of all faces one after another, as in the file: from 1 up, or negative.
        sizes: (m,) number of corners of each face.
        above: (m,) number of the chunk's vertices above each face.
        names: Kind, text and number of the chunk's faces above of each ``o`` and ``g`` statement.
    """

    vertices: np.ndarray
    corners: np.ndarray
    sizes: np.ndarray
    above: np.ndarray
    names: list[tuple[str, str, int]]


class ObjFile(NamedTuple):
    """Contents of a file.

    Attributes:
        vertices: (n, 3) float64.
        faces: (m, 3) int32.
        names: Kind ("o" or "g"), text and first triangle of each statement that names what follows.
    """

    vertices: np.ndarray
    faces: np.ndarray
    names: list[tuple[str, str, int]]


def read_obj(path: Path) -> ObjFile:
    """Read vertices, triangles and names.

    Vertices and faces keep the order of the file; a polygon becomes a fan about its first corner.
    Negative indices count back from the line they stand on. A weight or a colour after the
    coordinates is ignored.

    Raises:
        FileError: A statement is malformed, or an index is 0 or out of range; names the line.

    Guarantee:
        Exact. Coordinates are rounded as ``float`` rounds them.
    """
    text = path.read_bytes()
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    spans = list(_spans(text))
    with ThreadPoolExecutor(min(thread_count(), THREADS)) as pool:
        return _join(text, spans, pool.map(lambda span: _attempt(text[span.slice]), spans), path)


@dataclass
class Span:
    """A part of the file that ends at the end of a statement.

    Attributes:
        slice: Range of its bytes.
        line: Number of its first line.
    """

    slice: slice
    line: int


def _spans(text: bytes) -> Iterator[Span]:
    start, line = 3 if text.startswith(b"\xef\xbb\xbf") else 0, 1
    while start < len(text):
        stop = start + CHUNK
        while True:
            stop = text.find(b"\n", stop) + 1
            if not stop or not text[max(stop - 3, 0) : stop - 1].rstrip(b"\r").endswith(b"\\"):
                break
        stop = stop or len(text)
        yield Span(slice(start, stop), line)
        start, line = stop, line + text.count(b"\n", start, stop)


def _join(
    text: bytes, spans: list[Span], parsed: Iterable[Statements | None], path: Path
) -> ObjFile:
    """Join the statements of all spans; parse by line what could not be parsed at once."""
    vertices, faces = [np.empty((0, 3))], [np.empty((0, 3), np.int32)]
    count, counts, highest, names, triangles = 0, [], [], [], 0
    for span, attempt in zip(spans, parsed, strict=True):
        found, corners = attempt, None if attempt is None else _resolve(attempt, count)
        if found is None or corners is None:
            found = _parse_lines(text[span.slice], span.line, count, path)
            corners = _resolve(found, count)
            assert corners is not None  # lines are parsed strictly
        counts.append(count)
        highest.append(int(corners.max(initial=-1)))
        faces.append(_fan(np.minimum(corners, LARGEST).astype(np.int32), found.sizes))
        starts = np.append(triangles, triangles + np.cumsum(found.sizes - 2)).tolist()
        names += [(kind, name, starts[above]) for kind, name, above in found.names]
        triangles = starts[-1]
        vertices.append(found.vertices)
        count += len(found.vertices)
    for span, above, index in zip(spans, counts, highest, strict=True):
        if index >= count:
            _parse_lines(text[span.slice], span.line, above, path, total=count)
    return ObjFile(np.concatenate(vertices), np.concatenate(faces), names)


def _statements(chunk: bytes) -> bytes:
    """Return the chunk with one statement a line, each line ended, without comments."""
    if b"#" in chunk:
        chunk = COMMENT.sub(b"", chunk)
    if b"\\" in chunk:
        chunk = CONTINUED.sub(JOINT, chunk)
    return chunk if chunk.endswith(b"\n") else chunk + b"\n"


def _attempt(chunk: bytes) -> Statements | None:
    """Parse a chunk at once; None if a line is malformed."""
    try:
        return _parse(chunk)
    except ValueError:
        return None


def _parse(chunk: bytes) -> Statements:
    text = _statements(chunk).translate(BLANKS)
    if text.startswith(b" ") or b"\n " in text:
        text = re.sub(rb"(?m)^ +", b"", text)
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    letter, blank = data[starts], data[np.minimum(starts + 1, ends)] <= SPACE
    is_vertex, is_face = (letter == LETTER_V) & blank, (letter == LETTER_F) & blank
    if ((letter == LETTER_F) & ~blank).any():
        raise ValueError("an old form of faces")
    vertices = _parse_vertices(*_select(data, starts, ends, is_vertex))
    corners, sizes = _parse_faces(*_select(data, starts, ends, is_face))
    named = np.flatnonzero(((letter == LETTER_O) | (letter == LETTER_G)) & blank)
    above = np.cumsum(is_face)[named].tolist()
    lines = [text[start:end] for start, end in zip(starts[named], ends[named], strict=True)]
    names = [_name(line, faces) for line, faces in zip(lines, above, strict=True)]
    return Statements(vertices, corners, sizes, np.cumsum(is_vertex)[is_face], names)


def _name(statement: bytes, faces: int) -> tuple[str, str, int]:
    """Kind and text of a statement, and the number of faces above."""
    kind, *words = statement.decode("utf-8", "replace").split()
    return kind, " ".join(words), faces


def _select(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen lines without their first letter, and the start of each."""
    if chosen.all():
        data = data.copy()
    else:
        lengths = ends + 1 - starts
        data = data[np.repeat(chosen, lengths)]
        starts = np.cumsum(lengths[chosen]) - lengths[chosen]
    data[starts] = SPACE
    return data, starts


def _parse_vertices(data: np.ndarray, lines: np.ndarray) -> np.ndarray:
    numbers, words = parse_decimals(data)
    first = np.searchsorted(words, lines)
    sizes = np.diff(first, append=len(words))
    if not np.isin(sizes, VERTEX_SIZES).all():
        raise ValueError("a vertex of another size")
    if (sizes == 3).all():
        return numbers.reshape(-1, 3)
    return numbers[first[:, None] + np.arange(3)]


def _parse_faces(data: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of all corners, and the number of corners of each face."""
    blank, slash = data <= SPACE, data == SLASH
    slashes = np.flatnonzero(slash)
    words, _ = word_edges(blank | slash)
    if len(slashes):
        numbers = parse_integers(data.tobytes().translate(SPLIT), len(words))
        leads = data[words - 1] != SLASH
        numbers, words = numbers[leads], words[leads]
        if blank[slashes - 1].any() or (np.add.reduceat(slash, words, dtype=int) > 2).any():
            raise ValueError("slashes out of place")
    else:
        numbers = parse_integers(data.tobytes(), len(words))
    sizes = np.diff(np.searchsorted(words, lines), append=len(words))
    if (sizes < 3).any() or (numbers == 0).any():
        raise ValueError("a face with too few corners, or an index 0")
    return numbers, sizes


def _resolve(found: Statements, count: int) -> np.ndarray | None:
    """Return indices from 0 up, ``count`` vertices being above the chunk; None if one is < 0."""
    corners = found.corners - (found.corners > 0)
    relative = np.flatnonzero(found.corners < 0)
    if len(relative):
        corners[relative] += count + np.repeat(found.above, found.sizes)[relative]
        if corners[relative].min() < 0:
            return None
    return corners


def _fan(corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return triangles (m, 3) of fans about the first corner of each polygon."""
    if (sizes == 3).all():
        return corners.reshape(-1, 3)
    counts = sizes - 2
    first = np.repeat(np.cumsum(sizes) - sizes, counts)
    step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    fan = np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1)
    halves = np.flatnonzero((np.repeat(sizes, counts) == 4) & (step == 1))
    fan[halves] = np.roll(fan[halves], -1, axis=1)  # 2 3 0, as trimesh cuts quads
    return fan


def _parse_lines(
    chunk: bytes, line: int, count: int, path: Path, total: int = LARGEST
) -> Statements:
    """Parse a chunk by line; ``count`` vertices are above it, ``total`` in the file."""
    vertices: list[list[float]] = []
    corners: list[list[int]] = []
    above: list[int] = []
    names: list[tuple[str, str, int]] = []
    for statement in _statements(chunk).split(b"\n"):
        words = statement.split()
        try:
            if words[:1] == [b"v"]:
                vertices.append(_vertex(words[1:]))
            elif words[:1] in ([b"f"], [b"fo"]):
                corners.append(_corners(words[1:], count + len(vertices), total))
                above.append(len(vertices))
            elif words[:1] in ([b"o"], [b"g"]):
                names.append(_name(statement.translate(BLANKS), len(corners)))
        except ValueError as error:
            raise FileError(f"{path}, line {line}: {error}") from None
        line += 1 + statement.count(b"\v")
    return Statements(
        np.array(vertices).reshape(-1, 3),
        np.array([index for face in corners for index in face], dtype=np.int64),
        np.array([len(face) for face in corners], dtype=np.int64),
        np.array(above, dtype=np.int64),
        names,
    )


def _vertex(words: list[bytes]) -> list[float]:
    numbers = [_number(parse_float, word) for word in words]
    if len(numbers) not in VERTEX_SIZES:
        raise ValueError(f"a vertex has 3 coordinates, not {len(numbers)}.")
    return numbers[:3]


def _corners(words: list[bytes], count: int, total: int) -> list[int]:
    """Return the vertices of a face below ``count`` vertices of ``total``."""
    if len(words) < 3:
        raise ValueError(f"a face has 3 corners or more, not {len(words)}.")
    corners = []
    for word in words:
        index, *others = word.split(b"/")
        for other in filter(None, others):
            _number(_integer, other, word)
        if len(others) > 2:
            raise ValueError(f"{_shown(word)} has more than three indices.")
        corners.append(_number(_integer, index, word))
        if corners[-1] == 0:
            raise ValueError("a face refers to vertex 0; OBJ counts vertices from 1.")
        if corners[-1] < -count:
            raise ValueError(
                f"a face refers to vertex {corners[-1]}, but {count} vertices stand above it."
            )
        if corners[-1] > total:
            raise ValueError(
                f"a face refers to vertex {corners[-1]} but the file has {total} vertices."
            )
    return corners


def _number(read, word: bytes, shown: bytes | None = None):
    try:
        return read(word)
    except ValueError:
        kind = "a number" if read is parse_float else "an index"
        raise ValueError(f"{_shown(shown or word)} is not {kind}.") from None


def _integer(word: bytes) -> int:
    if not re.fullmatch(rb"[+-]?[0-9]+", word):
        raise ValueError
    return int(word)


def _shown(word: bytes) -> str:
    text = word[:40].decode("utf-8", "backslashreplace")
    return repr(text + "…" if len(word) > 40 else text)
