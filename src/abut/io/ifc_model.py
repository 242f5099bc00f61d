"""Models from IFC files (2x3, 4, 4.3), by IfcOpenShell."""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.errors import FileError, ToolError
from abut.io.file_errors import require_small_zip
from abut.io.ifc_context import assembly_names, layer_of, links_of, properties_of
from abut.io.mesh_pool import MeshPool, unique_ids, welded
from abut.io.part_model import ModelPart, PartModel, Skipped

ANGLE = 0.5  # largest angle between neighbouring facets of a curved surface [rad]
THREADS = 2
END = b"END-ISO-10303-21"
TAIL = 4096  # bytes at the end of a file in which END must be
# Products that are no physical objects, in all schemas.
NOT_PHYSICAL = (
    "IfcFeatureElementSubtraction",
    "IfcSurfaceFeature",
    "IfcSpatialElement",
    "IfcSpatialStructureElement",
    "IfcVirtualElement",
    "IfcAnnotation",
    "IfcGrid",
    "IfcPositioningElement",
    "IfcPort",
    "IfcStructuralItem",
    "IfcStructuralActivity",
)
CURVED = (
    "IfcConic",
    "IfcBoundedSurface",
    "IfcBSplineCurve",
    "IfcCylindricalSurface",
    "IfcSphericalSurface",
    "IfcToroidalSurface",
    "IfcSweptSurface",
    "IfcSweptDiskSolid",
    "IfcRevolvedAreaSolid",
    "IfcFixedReferenceSweptAreaSolid",
    "IfcSurfaceCurveSweptAreaSolid",
    "IfcSectionedSolid",
    "IfcRightCircularCone",
    "IfcRightCircularCylinder",
    "IfcSphere",
    "IfcArcIndex",
    "IfcCurveSegment",
    "IfcParameterizedProfileDef",
)
STRAIGHT = ("IfcRectangleProfileDef", "IfcTrapeziumProfileDef", "IfcCurveBoundedPlane")


class _Shape(NamedTuple):
    """A mesh of a product as IfcOpenShell makes it."""

    vertices: np.ndarray
    faces: np.ndarray
    pose: np.ndarray


def read_ifc(path: Path, chord: float) -> PartModel:
    """Read the physical products of an IFC file, sorted by GlobalId.

    Products that are no physical objects (``NOT_PHYSICAL``) are left out, but for sites that have
    a mesh; products that cannot be meshed are ``skipped``.

    Args:
        path: An ``.ifc`` or ``.ifczip`` file.
        chord: Largest distance of a mesh from the curved surface it replaces [m].

    Raises:
        FileError: The file is damaged or cut short.
        ToolError: IfcOpenShell is missing.
    """
    model = _open(path)
    from ifcopenshell.util.unit import calculate_unit_scale

    products = _physical(model)
    shapes = _shapes(model, chord)
    ids = dict(zip((p.id() for p in products), _ids(products), strict=True))
    assemblies = assembly_names(products)
    pool, parts, skipped = MeshPool(), [], []
    for product in products:
        name, own = product.Name or "", ids[product.id()]
        shape = shapes.get(product.id()) or _lone_shape(product, chord)
        if isinstance(shape, str):
            if not _is_container(product):
                skipped.append(Skipped(own, name, product.is_a(), shape))
            continue
        parts.append(
            ModelPart(
                own,
                name,
                product.is_a(),
                layer_of(product),
                assemblies[product.id()],
                properties_of(product),
                pool.add(shape.vertices, shape.faces),
                shape.pose,
            )
        )
    parts.sort(key=lambda part: part.id)
    deviation = chord if _is_curved(model) else 0.0
    links = links_of(model, ids, {part.id for part in parts})
    unit = float(calculate_unit_scale(model))
    return PartModel(path, unit, deviation, pool.meshes, parts, skipped, links)


def _open(path: Path) -> Any:
    """Open a file with IfcOpenShell; it must be whole."""
    try:
        import ifcopenshell
    except ImportError:
        raise ToolError(
            f"{path}: IFC files need IfcOpenShell; pip install 'abut[bim]' brings it."
        ) from None
    with _unzipped(path) as file:
        size = file.stat().st_size
        with file.open("rb") as stream:
            stream.seek(max(0, size - TAIL))
            if END not in stream.read():
                raise FileError(f"{path} is cut short: it does not end in {END.decode()};.")
        model = ifcopenshell.open(file, format=".ifc")
    if not model.by_type("IfcProject"):
        raise FileError(f"{path} holds no IfcProject; is it an IFC file?")
    return model


@contextmanager
def _unzipped(path: Path) -> Iterator[Path]:
    """Unpack the IFC file of an ``.ifczip`` file for a while."""
    if path.suffix.lower() != ".ifczip":
        yield path
        return
    require_small_zip(path)
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="abut-") as folder:
        names = [name for name in archive.namelist() if name.lower().endswith(".ifc")]
        if len(names) != 1:
            raise FileError(f"{path} holds {len(names)} .ifc files; it must hold one.")
        yield Path(archive.extract(names[0], folder))


def _physical(model: Any) -> list[Any]:
    """Return the products that are physical objects, by GlobalId and then as in the file."""
    left_out = {
        product.id()
        for kind in _known(model, NOT_PHYSICAL)
        for product in model.by_type(kind)
        if not (product.is_a("IfcSite") and product.Representation)
    }
    found = [product for product in model.by_type("IfcProduct") if product.id() not in left_out]
    return sorted(found, key=lambda product: (product.GlobalId or "", product.id()))


def _ids(products: list[Any]) -> list[str]:
    return unique_ids(product.GlobalId or f"#{product.id()}" for product in products)


def _known(model: Any, kinds: tuple[str, ...]) -> list[str]:
    """Return the classes that the file's schema has."""
    from ifcopenshell import ifcopenshell_wrapper

    schema = ifcopenshell_wrapper.schema_by_name(model.schema_identifier)
    known = {declaration.name() for declaration in schema.declarations()}
    return [kind for kind in kinds if kind in known]


def _is_curved(model: Any) -> bool:
    """Return whether the file has curved geometry."""
    straight = {e.id() for kind in _known(model, STRAIGHT) for e in model.by_type(kind)}
    for kind in _known(model, CURVED):
        if any(entity.id() not in straight for entity in model.by_type(kind)):
            return True
    return False


def _is_container(product: Any) -> bool:
    """Return whether a product is made of others, which are the parts."""
    return product.is_a("IfcSite") or bool(getattr(product, "IsDecomposedBy", ()))


def _settings(chord: float) -> Any:
    from ifcopenshell import geom

    settings = geom.settings()
    settings.set("mesher-linear-deflection", chord)
    settings.set("mesher-angular-deflection", ANGLE)
    settings.set("no-normals", True)
    return settings


def _shapes(model: Any, chord: float) -> dict[int, _Shape]:
    """Mesh all products; a product without a mesh is missing."""
    from ifcopenshell import geom

    settings = _settings(chord)
    without = [kind for kind in _known(model, NOT_PHYSICAL) if not kind.startswith("IfcSpatial")]
    iterator: Any = geom.iterator(settings, model, THREADS, exclude=[*without, "IfcSpace"])
    found: dict[int, _Shape] = {}
    for made in iterator:
        shape = _shape_of(made)
        if made.id not in found and shape is not None:
            found[made.id] = shape
    return found


def _lone_shape(product: Any, chord: float) -> _Shape | str:
    """Mesh one product again, or say why it cannot be meshed."""
    from ifcopenshell import geom

    if not product.Representation:
        return "it has no representation."
    try:
        made = geom.create_shape(_settings(chord), product)
    except Exception as error:
        return f"IfcOpenShell cannot mesh it: {' '.join(str(error).split())[:200]}"
    return _shape_of(made) or "its representation has no surface."


def _shape_of(made: Any) -> _Shape | None:
    geometry = made.geometry
    vertices = np.frombuffer(geometry.verts_buffer, np.float64).reshape(-1, 3)
    faces = np.frombuffer(geometry.faces_buffer, np.int32).reshape(-1, 3)
    if not len(faces):
        return None
    pose = np.frombuffer(made.transformation_buffer, np.float64).reshape(4, 4).T.copy()
    return _Shape(*welded(vertices, faces), pose)
