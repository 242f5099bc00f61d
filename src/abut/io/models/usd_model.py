"""Models from USD files (.usd, .usda, .usdc, .usdz), by Pixar's library."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.errors import FileError
from abut.io.file_errors import require_small_zip
from abut.io.models.affine import split_matrix, stretched
from abut.io.models.mesh_pool import MeshPool, unique_ids
from abut.io.models.part_model import ModelPart, PartModel, Skipped
from abut.io.models.reader_process import read_apart, require_package
from abut.io.models.usd_shapes import UsdShape, shape_of

READER = "abut.io.models.usd_model:read_usd_here"
Y_TO_Z = np.array([[1.0, 0, 0, 0], [0, 0, -1.0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])
LEFT_OUT = ("guide", "proxy")  # purposes of prims that are no objects
SAID = re.compile(r" in file \S+ : '(.*?)'(?= Error in |$)")  # a message of Pixar's library
NOTES = "userProperties"  # namespace of properties


class _Placed(NamedTuple):
    """A prim with a shape: its id, its matrix in the world, and why it is left out, if it is."""

    prim: Any
    id: str
    matrix: np.ndarray
    reason: str


def read_usd(path: Path, chord: float, unit: float | None) -> PartModel:
    """Read the shapes of a USD file at its first time, sorted by path.

    Coordinates are in metres, and z is up. Instances and the copies of a point instancer share
    their meshes. Invisible prims, guides and proxies are ``skipped``, and so are curves, points
    and what has no surface that is read.

    Args:
        path: The root layer, or a package.
        chord: Largest distance of a mesh from the curved surface it replaces [m].
        unit: Metres per unit where the file states none; None: 0.01, which USD prescribes.

    Raises:
        FileError: The file is damaged or holds no shape.
        ToolError: Pixar's library is missing.
    """
    require_package(path, "pxr", "USD", "usd-core", "usd")
    require_small_zip(path)
    return read_apart(READER, path, chord=chord, unit=unit)


def read_usd_here(
    path: Path, note: Callable[[list[Skipped]], None], chord: float, unit: float | None
) -> PartModel:
    """Read a USD file in this process, which may crash and prints."""
    stage = _opened(path)
    broken = _broken(stage)
    note(broken)
    return _Reader(path, stage, chord, unit).model(broken)


def _opened(path: Path) -> Any:
    from pxr import Tf, Usd

    try:
        return Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        why = "; ".join(SAID.findall(_line(error))[:1]) or "it cannot be opened"
        why = why.replace(f"{path}:", "line ").rstrip(". ")
        raise FileError(f"{path} cannot be read as a USD file: {why}.") from None


def _broken(stage: Any) -> list[Skipped]:
    """Return the references that could not be followed."""
    found = []
    for error in stage.GetCompositionErrors():
        site = str(getattr(getattr(error, "rootSite", None), "path", "")) or "/"
        found.append(Skipped(site, "", "", " ".join(str(error).split())))
    return list(dict.fromkeys(found))


class _Reader:
    """The shapes of a stage, each meshed once."""

    def __init__(self, path: Path, stage: Any, chord: float, unit: float | None) -> None:
        from pxr import Usd, UsdGeom

        self.path, self.stage, self.chord = path, stage, chord
        stated = UsdGeom.StageHasAuthoredMetersPerUnit(stage) or unit is None
        self.unit = float(UsdGeom.GetStageMetersPerUnit(stage)) if stated else float(unit or 1.0)
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise FileError(f"{path} states {self.unit} metres per unit.")
        self.up = Y_TO_Z if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y else np.eye(4)
        self.time = Usd.TimeCode.EarliestTime()
        self.frames = UsdGeom.XformCache(self.time)
        self.shapes: dict[tuple[str, float], UsdShape] = {}
        self.pool, self.cages = MeshPool(), []
        self.deviation = 0.0

    def model(self, skipped: list[Skipped]) -> PartModel:
        """Return the parts."""
        parts = []
        placed = list(self._below(self.stage.GetPseudoRoot(), "", self.up))
        for one, own in zip(placed, unique_ids(row.id for row in placed), strict=True):
            try:
                if one.reason:
                    raise ValueError(one.reason)
                parts.append(self._part(one, own))
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                kind = str(one.prim.GetTypeName())
                skipped.append(Skipped(own, one.prim.GetName(), kind, _line(error)))
        if not parts:
            why = f": {skipped[0].id}: {skipped[0].reason}" if skipped else "."
            raise FileError(f"{self.path} holds no shape that can be read{why}")
        if self.cages:
            about = f"{len(self.cages)} meshes are cages of subdivision surfaces"
            reason = f"{about}, which are not refined; the first is {self.cages[0]}."
            skipped.append(Skipped("/", "", "Mesh", reason))
        parts.sort(key=lambda part: part.id)
        meshes = self.pool.meshes
        return PartModel(self.path, self.unit, self.deviation, meshes, parts, sorted(skipped))

    def _below(self, root: Any, prefix: str, matrix: np.ndarray) -> Iterator[_Placed]:
        """Yield the shapes below a prim, at its place in the frame of ``matrix``."""
        from pxr import Usd, UsdGeom

        known = Usd.PrimIsActive & Usd.PrimIsLoaded
        if root.IsPseudoRoot():
            known = Usd.PrimDefaultPredicate
        start = "" if root.IsPseudoRoot() else str(root.GetPath())
        range_ = iter(Usd.PrimRange(root, Usd.TraverseInstanceProxies(known)))
        states: dict[str, tuple[bool, str]] = {}
        for prim in range_:
            path = str(prim.GetPath())
            states[path] = state = self._state(prim, states)
            own = prefix + path[len(start) :]
            if prim.IsA(UsdGeom.PointInstancer):
                range_.PruneChildren()
                if state[0] and state[1] not in LEFT_OUT:
                    yield from self._copies(prim, own, self._matrix(prim, root, matrix))
            elif prim.IsA(UsdGeom.Gprim):
                hidden = "it is invisible." if not state[0] else ""
                other = f"its purpose is {state[1]}." if state[1] in LEFT_OUT else ""
                yield _Placed(prim, own, self._matrix(prim, root, matrix), hidden or other)

    def _state(self, prim: Any, states: dict[str, tuple[bool, str]]) -> tuple[bool, str]:
        """Return whether a prim is visible, and its purpose, from those of its parent."""
        from pxr import UsdGeom

        visible, purpose = states.get(str(prim.GetPath().GetParentPath()), (True, ""))
        if prim.IsA(UsdGeom.Imageable):
            about = UsdGeom.Imageable(prim)
            visible &= about.GetVisibilityAttr().Get(self.time) != UsdGeom.Tokens.invisible
            if about.GetPurposeAttr().HasAuthoredValue() and not purpose:
                purpose = str(about.GetPurposeAttr().Get())
        return bool(visible), purpose

    def _matrix(self, prim: Any, root: Any, matrix: np.ndarray) -> np.ndarray:
        """Return where a prim is in the world, if ``root`` is placed by a matrix."""
        if root.IsPseudoRoot():
            return matrix @ _columns(self.frames.GetLocalToWorldTransform(prim))
        if prim == root:
            return matrix
        return matrix @ _columns(self.frames.ComputeRelativeTransform(prim, root)[0])

    def _copies(self, prim: Any, own: str, matrix: np.ndarray) -> Iterator[_Placed]:
        """Yield the shapes of the copies that a point instancer makes."""
        from pxr import UsdGeom

        instancer = UsdGeom.PointInstancer(prim)
        kinds = instancer.GetProtoIndicesAttr().Get(self.time) or []
        roots = [
            self.stage.GetPrimAtPath(path)
            for path in instancer.GetPrototypesRel().GetForwardedTargets()
        ]
        options = UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
        places = instancer.ComputeInstanceTransformsAtTime(self.time, self.time, *options)
        mask = instancer.ComputeMaskAtTime(self.time)
        for k, place in enumerate(places):
            if len(mask) and not mask[k]:
                continue
            if not (0 <= kinds[k] < len(roots) and roots[kinds[k]]):
                yield _Placed(prim, f"{own}[{k}]", matrix, "its prototype is missing.")
                continue
            yield from self._below(roots[kinds[k]], f"{own}[{k}]", matrix @ _columns(place))

    def _part(self, placed: _Placed, own: str) -> ModelPart:
        """Return the part of a shape; raise ValueError where it is no mesh."""
        prim = placed.prim
        if not np.isfinite(placed.matrix).all():
            raise ValueError("its transform is not finite.")
        pose, stretch = split_matrix(placed.matrix)
        sizes = np.linalg.svd(stretch, compute_uv=False)
        if not sizes[-1] > 0:
            raise ValueError("its transform flattens it.")
        shape = self._shape(prim, self.chord / float(sizes[0]) / self.unit)
        vertices, faces = stretched(shape.vertices * self.unit, shape.faces, stretch)
        pose[:3, 3] *= self.unit
        self.deviation = max(self.deviation, self.chord * shape.curved)
        assembly, _, name = own.strip("/").rpartition("/")
        mesh, label = self.pool.add(vertices, faces), prim.GetDisplayName() or name
        kind, properties = str(prim.GetTypeName()), _properties(prim)
        return ModelPart(own, label, kind, "", assembly, properties, mesh, pose)

    def _shape(self, prim: Any, chord: float) -> UsdShape:
        """Return the mesh of a prim in its own frame and unit; instances share it."""
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        path = str(source.GetPath())
        key = path, 0.0 if str(prim.GetTypeName()) == "Mesh" else chord
        if key not in self.shapes:
            self.shapes[key] = shape_of(prim, self.time, chord)
            if self.shapes[key].cage:
                self.cages.append(str(prim.GetPath()))
        return self.shapes[key]


def _columns(matrix: Any) -> np.ndarray:
    """Return a matrix of USD, which has points as rows, for points as columns."""
    return np.array(matrix, np.float64).reshape(4, 4).T


def _properties(prim: Any) -> dict[str, Any]:
    """Return the user's properties of a prim that are a number, a text or a truth value."""
    found = {}
    for held in prim.GetAuthoredPropertiesInNamespace(NOTES):
        value = held.Get() if hasattr(held, "Get") else None
        if isinstance(value, bool | int | float | str):
            found[held.GetName().partition(":")[2]] = value
    return found


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
