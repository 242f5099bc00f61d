"""Check the faces read from a file against the faces its header declares."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from abut.errors import FileError
from abut.io.decimals import parse_integers

STL_HEADER, STL_FACE = 84, 50  # bytes
STL_FACET = re.compile(
    rb"facet\s+normal(?:\s+\S+){3}\s+outer\s+loop(?:\s+vertex(?:\s+\S+){3}){3}\s+endloop\s+endfacet",
    re.IGNORECASE,
)
STL_LINE = re.compile(
    rb"^[ \t]*(?:facet|outer|vertex|endloop|endfacet)\b", re.IGNORECASE | re.MULTILINE
)
PLY_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip
INDEX_LISTS = ("vertex_index", "vertex_indices")


@dataclass
class Element:
    """An element of a PLY header; the types of a property are one, or two for a list."""

    name: str
    count: int
    properties: list[tuple[str, list[str]]] = field(default_factory=list)


def check_declared(path: Path, face_count: int) -> None:
    """Refuse a file whose header declares another number of triangles than ``face_count``.

    Also refuses indices in OFF and ASCII PLY that are not integers.

    Raises:
        FileError: Declared and read faces differ, or a face is malformed; names the file.
    """
    check = {".off": _off_triangles, ".ply": _ply_triangles, ".stl": _stl_triangles}
    if path.suffix.lower() not in check:
        return
    try:
        declared = check[path.suffix.lower()](path.read_bytes())
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}") from None
    if declared != face_count:
        raise FileError(
            f"{path} is damaged: it declares {declared} triangles, but {face_count} can be read."
        )


def _stl_triangles(text: bytes) -> int:
    if text[:5].lower() == b"solid":
        rest, facets = STL_FACET.subn(b"", text)
        if facets or STL_LINE.search(rest):
            if STL_LINE.search(rest):
                raise ValueError("a facet is not whole; it may be cut off.")
            return facets
    if len(text) < STL_HEADER:
        raise ValueError(f"it ends after {len(text)} bytes, within its header.")
    declared = int.from_bytes(text[STL_HEADER - 4 : STL_HEADER], "little")
    held = (len(text) - STL_HEADER) / STL_FACE
    if held < declared:
        raise ValueError(f"it declares {declared:,} faces, but only {int(held):,} are there.")
    if held > declared:
        raise ValueError(f"its header declares {declared} faces, but its size is that of {held:g}.")
    return declared


def _off_triangles(text: bytes) -> int:
    text = re.sub(rb"#[^\r\n]*", b"", text)
    lines = [line for line in text.partition(b"OFF")[2].splitlines() if line.strip()]
    vertices, faces = (int(word) for word in lines[0].split()[:2])
    return _row_triangles(lines[1 + vertices : 1 + vertices + faces], faces)


def _ply_triangles(text: bytes) -> int:
    ended = re.search(rb"end_header[ \t]*(\r\n|\n|\r)", text)
    if ended is None:
        raise ValueError("its header has no end.")
    binary, elements = _ply_header(text[: ended.start()].decode("utf-8", "replace"))
    before: list[Element] = []
    for element in elements:
        if element.name == "face" and binary:
            return _binary_triangles(text, ended.end(), before, element, binary)
        if element.name == "face":
            lines = text[ended.end() :].splitlines()
            first = sum(other.count for other in before)
            return _row_triangles(lines[first : first + element.count], element.count, element)
        before.append(element)
    return 0


def _ply_header(header: str) -> tuple[str, list[Element]]:
    """Return the byte order, empty for ASCII, and the elements."""
    order, elements = "", []
    for words in map(str.split, header.splitlines()):
        if words[:1] == ["format"]:
            order = {"binary_little_endian": "<", "binary_big_endian": ">"}.get(words[1], "")
        elif words[:1] == ["element"]:
            elements.append(Element(words[1], int(words[2])))
        elif words[:1] == ["property"]:
            types = words[2:-1] if words[1] == "list" else words[1:-1]
            elements[-1].properties.append((words[-1], types))
    return order, elements


def _index_list(element: Element) -> str | None:
    """Return the name of the property that holds the corners of faces."""
    lists = [name for name, types in element.properties if len(types) == 2]
    return next((name for name in lists if name in INDEX_LISTS), lists[0] if lists else None)


def _binary_triangles(
    text: bytes, start: int, before: Iterable[Element], element: Element, order: str
) -> int:
    """Count the triangles of binary faces, which must all have as many corners as the first."""
    for other in before:
        if any(len(types) == 2 for _, types in other.properties):
            raise ValueError("lists before its faces cannot be read.")
        row = np.dtype([(name, PLY_TYPES[types[0]]) for name, types in other.properties])
        start += other.count * row.itemsize
    fields: list[tuple[str, str, int]] = []
    corners = 0
    for name, types in element.properties:
        kinds = [order + PLY_TYPES[kind] for kind in types]
        size = 1
        if len(types) == 2:
            offset = start + np.dtype(fields).itemsize if fields else start
            size = int(np.frombuffer(text, kinds[0], 1, offset)[0]) if element.count else 0
            corners = size if name == _index_list(element) else corners
            fields.append((f"{name} size", kinds[0], 1))
        fields.append((name, kinds[-1], size))
    row = np.dtype([(name, kind, (size,)) for name, kind, size in fields])
    rows = np.frombuffer(text, row, element.count, start)
    sizes = [name for name, _, _ in fields if name.endswith(" size")]
    if any((rows[name] != rows[name][:1]).any() for name in sizes):
        raise ValueError("its faces have different numbers of corners; write it as ASCII PLY.")
    return element.count * (corners - 2)


def _row_triangles(lines: list[bytes], count: int, element: Element | None = None) -> int:
    """Count the triangles of faces in text, one a line: a number of corners, then indices."""
    if len(lines) < count:
        raise ValueError(f"it declares {count} faces, but holds {len(lines)}.")
    properties = [("", ["int", "int"])] if element is None else element.properties
    indices = "" if element is None else _index_list(element)
    if len(properties) == 1:
        try:
            rows = parse_integers(b"\n".join([*lines, b""]), 4 * count)
        except ValueError:
            rows = np.zeros(1)
        if (rows[::4] == 3).all():
            return count
    total = 0
    for k, line in enumerate(lines):
        try:
            total += _corner_count(line.split(), properties, indices) - 2
        except (ValueError, IndexError) as error:
            raise ValueError(f"face {k} cannot be read from {line[:60]!r}.") from error
    return total


def _corner_count(words: list[bytes], properties: list, indices: str | None) -> int:
    place, corners = 0, 0
    for name, types in properties:
        if len(types) == 1:
            place += 1
            continue
        size = int(words[place])
        if name == indices:
            corners = len([int(word) for word in words[place + 1 : place + 1 + size]])
            if corners != size or size < 3:
                raise ValueError("a face with too few corners")
        place += 1 + size
    return corners
