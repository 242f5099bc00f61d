"""IFC files: open them, find their physical products and the entities that are damaged."""

import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from abut.errors import FileError, ToolError
from abut.io.file_errors import require_small_zip

END = b"END-ISO-10303-21"
TAIL = 4096  # bytes at the end of a file in which END must be
# Products that are no physical objects, in all schemas.
NOT_PHYSICAL = (
    "IfcAnnotation",
    "IfcFeatureElementSubtraction",
    "IfcGrid",
    "IfcPort",
    "IfcPositioningElement",
    "IfcSpatialElement",
    "IfcSpatialStructureElement",
    "IfcStructuralActivity",
    "IfcStructuralItem",
    "IfcSurfaceFeature",
    "IfcVirtualElement",
)
CURVED = (
    "IfcArcIndex",
    "IfcBoundedSurface",
    "IfcBSplineCurve",
    "IfcConic",
    "IfcCurveSegment",
    "IfcCylindricalSurface",
    "IfcFixedReferenceSweptAreaSolid",
    "IfcParameterizedProfileDef",
    "IfcRevolvedAreaSolid",
    "IfcRightCircularCone",
    "IfcRightCircularCylinder",
    "IfcSectionedSolid",
    "IfcSphere",
    "IfcSphericalSurface",
    "IfcSurfaceCurveSweptAreaSolid",
    "IfcSweptDiskSolid",
    "IfcSweptSurface",
    "IfcToroidalSurface",
)
STRAIGHT = ("IfcCurveBoundedPlane", "IfcRectangleProfileDef", "IfcTrapeziumProfileDef")
# Entities that hold the shape and the place of products.
GEOMETRIC = (
    "IfcObjectPlacement",
    "IfcProductRepresentation",
    "IfcProfileDef",
    "IfcRepresentation",
    "IfcRepresentationContext",
    "IfcRepresentationItem",
    "IfcRepresentationMap",
)
PLACED = ("5", "6")  # attributes of IfcProduct: ObjectPlacement, Representation
MISSING = re.compile(
    r"Instance reference #(\d+) used by instance #(\d+)(?: at attribute index (\d+))?"
)
FAILED = re.compile(r"^\[error\](?: \[[^\]]*\])*(?: \{[^}]*\})? (.+?):? *\n#(\d+)=", re.MULTILINE)
FIRST_ERROR = re.compile(r"^\[error\](?: \[[^\]]*\])* (.+)$", re.MULTILINE)


class MissingReference(NamedTuple):
    """An entity that refers to one that is not in the file, by STEP numbers."""

    missing: int
    user: int
    attribute: str


def open_ifc(path: Path) -> tuple[Any, list[MissingReference]]:
    """Open an ``.ifc`` or ``.ifczip`` file, which must be whole.

    Raises:
        FileError: The file is damaged or cut short.
        ToolError: IfcOpenShell is missing.
    """
    try:
        import ifcopenshell
    except ImportError:
        raise ToolError(
            f"{path}: IFC files need IfcOpenShell; pip install 'abut[bim]' brings it."
        ) from None
    with _unzipped(path) as file:
        _require_end(file, path)
        ifcopenshell.get_log()  # messages about other files
        try:
            model = ifcopenshell.open(file, format=".ifc")
        except Exception as error:
            found = FIRST_ERROR.search(ifcopenshell.get_log())
            why = text_of(found[1] if found else str(error))
            raise FileError(f"{path} cannot be read as an IFC file: {why}.") from None
    if not model.by_type("IfcProject"):
        raise FileError(f"{path} holds no IfcProject, so it is no model.")
    found = MISSING.findall(ifcopenshell.get_log())
    return model, [MissingReference(int(a), int(b), c) for a, b, c in found]


@contextmanager
def _unzipped(path: Path) -> Iterator[Path]:
    """Unpack the IFC file of an ``.ifczip`` file for a while."""
    if path.suffix.lower() != ".ifczip":
        yield path
        return
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="abut-") as folder:
        require_small_zip(path)
        names = [name for name in archive.namelist() if name.lower().endswith(".ifc")]
        if len(names) != 1:
            raise FileError(f"{path} holds {len(names)} .ifc files; it must hold one.")
        yield Path(archive.extract(names[0], folder))


def _require_end(file: Path, path: Path) -> None:
    """Refuse a file without its last line: IfcOpenShell reads it as far as it goes."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - TAIL))
        if END not in stream.read():
            raise FileError(f"{path} is cut short or no IFC file: it has no {END.decode()}.")


def physical_products(model: Any) -> list[Any]:
    """Return products that are physical objects, and sites with a shape, by GlobalId."""
    left_out = {
        product.id()
        for kind in _known(model, NOT_PHYSICAL)
        for product in model.by_type(kind)
        if not (product.is_a("IfcSite") and product.Representation)
    }
    found = [product for product in model.by_type("IfcProduct") if product.id() not in left_out]
    return sorted(found, key=lambda product: (global_id(product), product.id()))


def global_id(product: Any) -> str:
    """Return the GlobalId of a product, or its STEP number where it has none."""
    return text_of(product.GlobalId) or f"#{product.id()}"


def text_of(value: Any) -> str:
    """Return a text that can be written; damaged files hold other values and characters."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else ""


def has_curves(model: Any) -> bool:
    """Return whether the file has curved geometry, which meshes approximate."""
    straight = {e.id() for kind in _known(model, STRAIGHT) for e in model.by_type(kind)}
    for kind in _known(model, CURVED):
        if any(entity.id() not in straight for entity in model.by_type(kind)):
            return True
    return False


def _known(model: Any, kinds: tuple[str, ...]) -> list[str]:
    """Return the classes that the file's schema has."""
    from ifcopenshell import ifcopenshell_wrapper

    schema = ifcopenshell_wrapper.schema_by_name(model.schema_identifier)
    known = {declaration.name() for declaration in schema.declarations()}
    return [kind for kind in kinds if kind in known]


def failures(log: str) -> dict[int, str]:
    """Return the first error about each entity of a log of IfcOpenShell, by STEP number."""
    found: dict[int, str] = {}
    for message, number in FAILED.findall(log):
        found.setdefault(int(number), message.removesuffix(" encountered for"))
    return found


def products_with(model: Any, number: int, attribute: str = "") -> set[int]:
    """Return the products whose shape or place uses an entity, by STEP numbers.

    A wall uses what its openings use. Without a shape or a place, an entity is in no product.
    """
    start = model.by_id(number)
    if start.is_a("IfcProduct"):
        return _with_host(start) if attribute in PLACED else set()
    if start.is_a("IfcRelVoidsElement"):  # an opening of unknown shape
        return {start.RelatingBuildingElement.id()} if start.RelatingBuildingElement else set()
    found: set[int] = set()
    seen, waiting = {number}, [start] if _is_geometric(start) else []
    while waiting:
        for user in model.get_inverse(waiting.pop()):
            if user.id() in seen:
                continue
            seen.add(user.id())
            if user.is_a("IfcProduct"):
                found |= _with_host(user)
            elif _is_geometric(user):
                waiting.append(user)
    return found


def _is_geometric(entity: Any) -> bool:
    return any(entity.is_a(kind) for kind in GEOMETRIC)


def _with_host(product: Any) -> set[int]:
    """Return a product, and the element that it is an opening of."""
    hosts = [relation.RelatingBuildingElement for relation in getattr(product, "VoidsElements", ())]
    return {product.id(), *(host.id() for host in hosts if host)}
