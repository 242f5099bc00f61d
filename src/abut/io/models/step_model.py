"""Models from STEP files (AP203, AP214, AP242), by OCCT."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.errors import FileError
from abut.io.models.affine import split_matrix, stretched
from abut.io.models.mesh_pool import MeshPool, unique_ids
from abut.io.models.part_model import ModelPart, PartModel, Skipped
from abut.io.models.reader_process import read_apart, require_package
from abut.io.models.step_file import StepDocument, open_step, require_end
from abut.io.models.step_mesh import BodyMesh, matrix_of, mesh_body, open_edge_count

READER = "abut.io.models.step_model:read_step_here"
MILLIMETRE = 0.001
NAMELESS = "=>["  # names that OCCT gives to instances without one


class _Body(NamedTuple):
    """A body of a product: a solid, a shell or the faces that are in neither."""

    shape: Any
    name: str
    layer: str
    solid: bool


class _Product(NamedTuple):
    """A product without instances below it."""

    name: str
    bodies: list[_Body]


class _Use(NamedTuple):
    """A product at its place in the model; path and names of the assemblies around it."""

    path: str
    assembly: str
    matrix: np.ndarray
    product: int


def read_step(path: Path, chord: float) -> PartModel:
    """Read the bodies of a STEP file, sorted by id.

    Each solid of each instance of a product is a part, and so is each shell outside of solids.
    Its id is the path of names from the root; a product with several bodies adds their names.

    Args:
        path: A ``.step`` or ``.stp`` file.
        chord: Largest distance of a mesh from the true surface [m].

    Raises:
        FileError: The file is damaged or cut short, or holds no surface.
        ToolError: OCP is missing.
    """
    require_package(path, "OCP", "STEP", "OCP", "cad")
    require_end(path)
    return read_apart(READER, path, chord=chord)


def read_step_here(path: Path, note: Callable[[list[Skipped]], None], chord: float) -> PartModel:
    """Read a STEP file in this process, which OCCT may crash."""
    return _Reader(path, open_step(path, note), chord).model()


class _Reader:
    """The products of a document and their uses; meshes are made once for each body."""

    def __init__(self, path: Path, opened: StepDocument, chord: float) -> None:
        from OCP.XCAFDoc import XCAFDoc_DocumentTool

        self.path, self.opened, self.chord = path, opened, chord
        main = opened.document.Main()
        self.shapes = XCAFDoc_DocumentTool.ShapeTool_s(main)
        self.layers = XCAFDoc_DocumentTool.LayerTool_s(main)
        self.products: list[_Product] = []
        self.numbers: dict[str, int] = {}  # of products, by the entry of their label
        self.pool, self.meshed = MeshPool(), {}
        self.deviation, self.skipped = 0.0, list(opened.damaged)

    def model(self) -> PartModel:
        """Return the parts."""
        roots = _labels(self.shapes.GetFreeShapes)
        names = unique_ids(_name_of(root) or "part" for root in roots)
        uses: list[_Use] = []
        for root, name in zip(roots, names, strict=True):
            uses += self._uses(root, name, "", np.eye(4))
        parts = [part for use in uses for part in self._parts(use)]
        if not parts:
            raise FileError(f"{self.path} holds no surface.")
        parts.sort(key=lambda part: part.id)
        ids = unique_ids(part.id for part in parts)
        parts = [_renamed(part, own) for part, own in zip(parts, ids, strict=True)]
        unit = self.opened.unit
        deviation = max(self.deviation, self.chord) if self.deviation else 0.0
        return PartModel(self.path, unit, deviation, self.pool.meshes, parts, sorted(self.skipped))

    def _uses(self, label: Any, path: str, around: str, matrix: np.ndarray) -> Iterator[_Use]:
        """Yield the products below a label."""
        from OCP.TDF import TDF_Label
        from OCP.XCAFDoc import XCAFDoc_ShapeTool as Tool

        target = TDF_Label()
        if Tool.GetReferredShape_s(label, target):
            matrix = matrix @ matrix_of(Tool.GetLocation_s(label))
        else:
            target = label
        if not Tool.IsAssembly_s(target):
            yield _Use(path, around, matrix, self._product(target))
            return
        below = _labels(lambda found: Tool.GetComponents_s(target, found))
        names = unique_ids(_instance_name(component) for component in below)
        for component, name in zip(below, names, strict=True):
            inner = f"{around}/{path.rpartition('/')[2]}" if around else path
            yield from self._uses(component, f"{path}/{name}", inner, matrix)

    def _product(self, label: Any) -> int:
        """Return the number of a product, which is noted when it is first met."""
        from OCP.XCAFDoc import XCAFDoc_ShapeTool as Tool

        entry = _entry(label)
        if entry not in self.numbers:
            named = {}
            for below in _labels(lambda found: Tool.GetSubShapes_s(label, found)):
                named[Tool.GetShape_s(below).TShape()] = below
            bodies, layer = [], self._layer(label)
            for shape, solid in _bodies(Tool.GetShape_s(label)):
                own = named.get(shape.TShape())
                name, inner = (_name_of(own), self._layer(own)) if own is not None else ("", "")
                bodies.append(_Body(shape, name, inner or layer, solid))
            self.numbers[entry] = len(self.products)
            self.products.append(_Product(_name_of(label), bodies))
        return self.numbers[entry]

    def _layer(self, label: Any) -> str:
        """Return the layers of a label."""
        found = _labels(lambda labels: self.layers.GetLayers(label, labels))
        return ", ".join(sorted(filter(None, map(_name_of, found))))

    def _parts(self, use: _Use) -> Iterator[ModelPart]:
        """Yield the bodies of a product at its place."""
        product = self.products[use.product]
        own = product.name or use.path.rpartition("/")[2]
        if not product.bodies:
            self.skipped.append(Skipped(use.path, own, "", "it has no surface."))
        several = len(product.bodies) > 1
        inner = f"{use.assembly}/{own}" if use.assembly else own
        names = unique_ids(
            body.name or f"{'body' if body.solid else 'surface'} {k + 1}"
            for k, body in enumerate(product.bodies)
        )
        for k, (body, name) in enumerate(zip(product.bodies, names, strict=True)):
            path = f"{use.path}/{name}" if several else use.path
            made = self._mesh(use.product, k)
            self._note(path, name if several else own, body, made)
            if not len(made.faces):
                continue
            pose, stretch = split_matrix(use.matrix @ matrix_of(body.shape.Location()))
            vertices, faces = stretched(made.vertices * MILLIMETRE, made.faces, stretch)
            pose[:3, 3] *= MILLIMETRE
            larger = float(np.linalg.norm(stretch, 2)) * MILLIMETRE
            self.deviation = max(self.deviation, made.deviation * larger)
            assembly = inner if several else use.assembly
            mesh, label = self.pool.add(vertices, faces), name if several else own
            yield ModelPart(path, label, "", body.layer, assembly, {}, mesh, pose)

    def _mesh(self, product: int, k: int) -> BodyMesh:
        """Return the mesh of a body in its own frame; made once."""
        from OCP.TopLoc import TopLoc_Location

        body = self.products[product].bodies[k]
        key = body.shape.TShape(), body.shape.Orientation()
        if key not in self.meshed:
            own = body.shape.Located(TopLoc_Location())
            self.meshed[key] = mesh_body(own, self.chord / MILLIMETRE)
        return self.meshed[key]

    def _note(self, path: str, name: str, body: _Body, made: BodyMesh) -> None:
        """List a body whose mesh is missing or incomplete."""
        holes = open_edge_count(made.faces) if body.solid else 0
        if made.failed:
            incomplete = "" if not len(made.faces) else "its mesh is incomplete: "
            reason = f"{incomplete}{made.failed} of its faces could not be meshed."
        elif holes:
            reason = f"its mesh is incomplete: its faces leave {holes} edges open."
        else:
            return
        self.skipped.append(Skipped(path, name, "", reason))


def _bodies(shape: Any) -> list[tuple[Any, bool]]:
    """Return the solids of a shape, its free shells, and all its free faces as one."""
    from OCP.BRep import BRep_Builder
    from OCP.TopAbs import TopAbs_ShapeEnum as Kind
    from OCP.TopoDS import TopoDS_Compound, TopoDS_Iterator

    found, faces, waiting = [], [], [shape]
    while waiting:
        shape = waiting.pop()
        kind = shape.ShapeType()
        if kind in (Kind.TopAbs_SOLID, Kind.TopAbs_SHELL):
            found.append((shape, kind == Kind.TopAbs_SOLID))
        elif kind == Kind.TopAbs_FACE:
            faces.append(shape)
        elif kind in (Kind.TopAbs_COMPOUND, Kind.TopAbs_COMPSOLID):
            below, inner = TopoDS_Iterator(shape, True, True), []
            while below.More():
                inner.append(below.Value())
                below.Next()
            waiting += inner[::-1]
    if faces:
        together, builder = TopoDS_Compound(), BRep_Builder()
        builder.MakeCompound(together)
        for face in faces:
            builder.Add(together, face)
        found.append((together, False))
    return found


def _labels(fill: Any) -> list[Any]:
    from OCP.collections import Sequence_TDF_Label

    found = Sequence_TDF_Label()
    fill(found)
    return list(found)


def _entry(label: Any) -> str:
    from OCP.TCollection import TCollection_AsciiString
    from OCP.TDF import TDF_Tool

    text = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, text)
    return text.ToCString()


def _name_of(label: Any) -> str:
    from OCP.TDataStd import TDataStd_Name

    name = TDataStd_Name()
    if not label.FindAttribute(TDataStd_Name.GetID_s(), name):
        return ""
    text = name.Get().ToExtString()
    return "" if text.startswith(NAMELESS) else " ".join(text.replace("/", "|").split())


def _instance_name(component: Any) -> str:
    """Return the name of an instance, or that of its product."""
    from OCP.TDF import TDF_Label
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    product = TDF_Label()
    own = _name_of(component)
    if not own and XCAFDoc_ShapeTool.GetReferredShape_s(component, product):
        own = _name_of(product)
    return own or "part"


def _renamed(part: ModelPart, own: str) -> ModelPart:
    from dataclasses import replace

    return part if part.id == own else replace(part, id=own)
