"""STEP files: open them as documents of named shapes, and list the entities that are damaged."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from abut.errors import FileError
from abut.io.models.part_model import Skipped

END = b"END-ISO-10303-21"
TAIL = 4096  # bytes at the end of a file in which END must be
# Metres of the length units of STEP, by the names that OCCT gives them.
LENGTHS = {
    "millimetre": 0.001,
    "centimetre": 0.01,
    "decimetre": 0.1,
    "metre": 1.0,
    "kilometre": 1000.0,
    "micrometre": 1e-6,
    "inch": 0.0254,
    "foot": 0.3048,
    "mile": 1609.344,
}
LINE = re.compile(r"Undefined Parsing: (Line \d+): (.*)")
USER = re.compile(r"Unresolved Reference, .*?(#\d+).*\(Id\.(#\d+)\)")
SUBSHAPE_NAMES = "read.stepcaf.subshapes.name"


class StepDocument(NamedTuple):
    """A STEP file in memory; lengths of its shapes are millimetres.

    Attributes:
        document: The TDocStd_Document, which owns the shapes.
        unit: Metres per unit of the file; None if it is unknown.
        damaged: Entities with an error.
    """

    document: Any
    unit: float | None
    damaged: list[Skipped]


def open_step(path: Path, note: Callable[[list[Skipped]], None]) -> StepDocument:
    """Open a STEP file.

    Args:
        path: A whole file.
        note: Called with the damaged entities before OCCT makes shapes of the others.

    Raises:
        FileError: The file is damaged, or holds no shape.
    """
    from OCP.IFSelect import IFSelect_ReturnStatus
    from OCP.Interface import Interface_Static
    from OCP.STEPCAFControl import STEPCAFControl_Reader
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDocStd import TDocStd_Document

    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    reader = STEPCAFControl_Reader()
    Interface_Static.SetIVal_s(SUBSHAPE_NAMES, 1)  # names of the bodies of a product
    reader.SetNameMode(True)
    reader.SetLayerMode(True)
    reader.SetColorMode(False)
    if reader.ReadFile(str(path)) != IFSelect_ReturnStatus.IFSelect_RetDone:
        raise FileError(f"{path} cannot be read as a STEP file: its syntax is damaged.")
    damaged = _damaged(reader.Reader().WS())
    note(damaged)
    unit = _unit(reader.ChangeReader())
    if not reader.Transfer(document):
        found = [f"{row.id} {row.type}: {row.reason}" for row in damaged]
        raise FileError(
            f"{path} holds no shape that can be read{': '.join(['', *found[:1]]) or '.'}"
        )
    return StepDocument(document, unit, damaged)


def require_end(path: Path) -> None:
    """Refuse a file without its last line: OCCT reads it as far as it goes."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL))
        if END not in stream.read():
            raise FileError(f"{path} is cut short or no STEP file: it has no {END.decode()}.")


def _damaged(session: Any) -> list[Skipped]:
    """Return the errors of a file: of lines, of references and of entities, which are counted."""
    model, found = session.Model(), []
    checks = session.ModelCheckList()
    checks.Start()
    while checks.More():
        check, number = checks.Value(), checks.Number()
        known = 0 < number <= model.NbEntities()
        kind = model.Value(number).DynamicType().Name().partition("_")[2] if known else ""
        for k in range(1, check.NbFails() + 1 if not known else 2 * check.HasFailed()):
            found.append(_error(_line(check.CFail(k)), f"entity {number}" if known else "", kind))
        checks.Next()
    return list(dict.fromkeys(found))


def _error(text: str, own: str, kind: str) -> Skipped:
    """Return an error with the line or the entity that it names."""
    line, user = LINE.match(text), USER.search(text)
    if line:
        own, text = line[1].lower(), line[2]
    elif user:
        own = user[1]
        text = f"{user[1]} refers to {user[2]}, which is missing."
    return Skipped(own or "file", "", kind, text)


def _line(text: Any) -> str:
    text = text if isinstance(text, str) else text.ToCString()
    return " ".join(re.sub(r"[^\x20-\x7e]", " ", text).split()).rstrip(".") + "."


def _unit(reader: Any) -> float | None:
    """Return the first length unit of a file in metres."""
    from OCP.collections import Sequence_TCollection_AsciiString as Texts

    lengths, angles, solid_angles = Texts(), Texts(), Texts()
    reader.FileUnits(lengths, angles, solid_angles)
    for name in lengths:
        return LENGTHS.get(name.ToCString().strip().lower())
    return None
