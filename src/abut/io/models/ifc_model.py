"""Models from IFC files (2x3, 4, 4.3), by IfcOpenShell."""

from pathlib import Path
from typing import Any

from abut.io.models.ifc_context import assembly_names, layer_of, links_of, properties_of
from abut.io.models.ifc_file import (
    MissingReference,
    global_id,
    has_curves,
    open_ifc,
    physical_products,
    products_with,
    text_of,
)
from abut.io.models.ifc_shapes import IfcShape, IfcShapes
from abut.io.models.mesh_pool import MeshPool, unique_ids
from abut.io.models.part_model import ModelPart, PartModel, Skipped


def read_ifc(path: Path, chord: float) -> PartModel:
    """Read the physical products of an IFC file, sorted by GlobalId.

    Products that are no physical objects (``NOT_PHYSICAL``) are left out, and so are assemblies
    without a shape of their own; every other product without a mesh is ``skipped``, and so is
    each entity that refers to a missing one.

    Args:
        path: An ``.ifc`` or ``.ifczip`` file.
        chord: Largest distance of a mesh from the curved surface it replaces [m].

    Raises:
        FileError: The file is damaged or cut short.
        ToolError: IfcOpenShell is missing.
    """
    model, missing = open_ifc(path)
    from ifcopenshell.util.unit import calculate_unit_scale

    unit = float(calculate_unit_scale(model))
    products = physical_products(model)
    damaged, skipped = _damaged(model, missing)
    shapes = IfcShapes(model, [p for p in products if p.id() not in damaged], chord, unit)
    reasons = shapes.reasons | damaged
    names = unique_ids(map(global_id, products))
    ids = {product.id(): name for product, name in zip(products, names, strict=True)}
    assemblies = assembly_names(products)
    pool, parts = MeshPool(), []
    for product in products:
        number, name = product.id(), text_of(product.Name)
        shape = shapes.found.get(number)
        if shape is not None:
            parts.append(_part(product, ids[number], assemblies[number], shape, pool))
        if number in reasons and (number in damaged or not _is_assembly(product)):
            incomplete = "its mesh is incomplete: " if shape is not None else ""
            reason = f"{incomplete}{reasons[number]}"
            skipped.append(Skipped(ids[number], name, product.is_a(), reason))
    parts.sort(key=lambda part: part.id)
    links = links_of(model, ids, {part.id for part in parts})
    deviation = chord if has_curves(model) else 0.0
    return PartModel(path, unit, deviation, pool.meshes, parts, sorted(skipped), links)


def _part(product: Any, own: str, assembly: str, shape: IfcShape, pool: MeshPool) -> ModelPart:
    return ModelPart(
        own,
        text_of(product.Name),
        product.is_a(),
        layer_of(product),
        assembly,
        properties_of(product),
        pool.add(shape.vertices, shape.faces),
        shape.pose,
    )


def _damaged(model: Any, missing: list[MissingReference]) -> tuple[dict[int, str], list[Skipped]]:
    """Return products whose shape or place lacks an entity, and other entities that lack one."""
    products: dict[int, str] = {}
    others: dict[int, Skipped] = {}
    for row in missing:
        reason = f"#{row.user} refers to #{row.missing}, which is missing."
        affected = products_with(model, row.user, row.attribute)
        products |= {number: reason for number in affected if number not in products}
        user = model.by_id(row.user)
        if not affected and not user.is_a("IfcStyledItem"):  # colours are not read
            name = text_of(getattr(user, "Name", None))
            entry = Skipped(f"#{row.user}", name, user.is_a(), reason)
            others.setdefault(row.user, entry)
    return products, list(others.values())


def _is_assembly(product: Any) -> bool:
    """Return whether a product is made of others, which are the parts."""
    return bool(getattr(product, "IsDecomposedBy", ())) and not product.Representation
