"""Load the parts of files and folders; a file that cannot be used is a line, not an error."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.coordination.parts.part_table import PartTable
from abut.coordination.parts.unit_problems import unit_problems
from abut.errors import AbutError, MeshError, OptionError
from abut.io.models.part_model import PartModel, Skipped
from abut.io.models.read_model import model_files, read_model, unit_in_metres
from abut.mesh import Mesh
from abut.scene.scene import Scene

Report = Callable[[str, int, int], None]  # stage, steps done, all steps

WITHOUT_SHAPE = (  # reasons of objects that are no damage
    "it has no representation",
    "its representation has no surface",
    "it has no surface",
)


class LoadedParts(NamedTuple):
    """Parts, and everything that is not one.

    Attributes:
        parts: Parts with usable meshes.
        skipped: (file, object) for each object that is not checked, or not whole.
        problems: A line for each file that cannot be read, each damaged object, each doubtful unit.
    """

    parts: PartTable
    skipped: list[tuple[str, Skipped]]
    problems: list[str]


def load_parts(
    files: Any,
    unit: float | str | None = None,
    chord: float = 0.001,
    report: Report | None = None,
) -> LoadedParts:
    """Load the parts of files and folders, of a scene, or of a table as it is.

    Args:
        files: A path or several, in any order; a ``Scene``; or a ``PartTable``.
        unit, chord: See ``read_model``.
        report: Called with the stage "reading" for each file.

    Raises:
        OptionError: The unit is not one, or nothing is named.
    """
    unit_in_metres(unit)
    if isinstance(files, Scene):
        files = PartTable.of_scene(files)
    if isinstance(files, PartTable):
        return _usable(files, [], [])
    paths, problems = _paths(files)
    models: list[PartModel] = []
    for number, path in enumerate(paths):
        if report is not None:
            report("reading", number, len(paths))
        try:
            models.append(read_model(path, unit=unit, chord=chord))
        except OptionError:
            raise
        except AbutError as error:
            problems.append(_line(error))
    skipped = [(str(model.path), one) for model in models for one in model.skipped]
    problems += [_skipped_line(*row) for row in skipped if is_damage(row[1])]
    problems += unit_problems(models)
    return _usable(PartTable.of_models(models), skipped, problems)


def is_damage(skipped: Skipped) -> bool:
    """Whether an object was not meshed because its file is damaged or its shape is not understood.

    Objects without a shape, such as groups, are no damage.
    """
    return not skipped.reason.startswith(WITHOUT_SHAPE)


def _paths(files: Any) -> tuple[list[Path], list[str]]:
    """Model files in an order of their own, and a line for each path that names none."""
    given = [files] if isinstance(files, str | PathLike) else files
    if not isinstance(given, Iterable) or not (given := list(given)):
        raise OptionError(f"files must be paths, a Scene or a PartTable, not {files!r}.")
    for path in given:
        if not isinstance(path, str | PathLike):
            raise OptionError(f"files must be paths, not {type(path).__name__}.")
    found: dict[Path, Path] = {}
    problems = []
    for path in sorted(set(map(str, given))):
        try:
            for file in model_files([path]):
                found.setdefault(file.resolve(), file)
        except AbutError as error:
            problems.append(_line(error))
    return [found[name] for name in sorted(found)], problems


def _usable(
    parts: PartTable, skipped: list[tuple[str, Skipped]], problems: list[str]
) -> LoadedParts:
    """Leave out parts whose mesh has no face or cannot be used."""
    kept = np.ones(len(parts), bool)
    verdicts: dict[int, str] = {}
    lines = []
    for row, number in enumerate(parts.mesh.tolist()):
        if number not in verdicts:
            verdicts[number] = _mesh_problem(parts, row)
        if verdicts[number]:
            kept[row] = False
            own = parts.key[row].rpartition("/")[2]
            one = Skipped(own, parts.name[row], parts.type[row], verdicts[number])
            skipped = [*skipped, (parts.file[row], one)]
            lines += [_skipped_line(*skipped[-1])] if is_damage(one) else []
    table = parts if kept.all() else parts.subset(np.flatnonzero(kept))
    return LoadedParts(table, skipped, problems + lines)


def _mesh_problem(parts: PartTable, row: int) -> str:
    """The reason why the mesh of a part cannot be used; empty if it can."""
    given = parts.part_meshes[parts.mesh[row]]
    if not len(given.faces):
        return "it has no surface."
    try:
        Mesh(given.vertices, given.faces, "cpu")
    except MeshError as error:
        return f"its mesh is damaged: {_line(error)}"
    return "" if np.isfinite(parts.poses[row]).all() else "its pose is not finite."


def _skipped_line(file: str, one: Skipped) -> str:
    name = f" {one.name!r}" if one.name else ""
    return f"{file}: {one.type or 'part'}{name} {one.id}: {one.reason}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
