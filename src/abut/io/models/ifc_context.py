"""Properties of IFC products beside their shapes: layers, assemblies, property sets, links."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from abut.io.models.ifc_file import global_id, text_of
from abut.io.models.part_model import Link

ATTRIBUTES = ("Description", "ObjectType", "PredefinedType", "Tag")


def layer_of(product: Any) -> str:
    """Return the name of the storey of a product, or of its nearest spatial container."""
    from ifcopenshell.util.element import get_container

    container = get_container(product, ifc_class="IfcBuildingStorey") or get_container(product)
    return text_of(container.Name) or global_id(container) if container else ""


def _parent_of(product: Any) -> Any:
    """Return the element that a product is a part of, or None."""
    for inverse in ("Decomposes", "Nests"):
        for relation in getattr(product, inverse, ()) or ():
            parent = relation.RelatingObject
            if parent is not None and parent.is_a("IfcElement"):
                return parent
    return None


def assembly_names(products: list[Any]) -> dict[int, str]:
    """Return the path of assemblies of each product, by its STEP number.

    Assemblies of one name in one place are told apart by their GlobalIds.
    """
    paths: dict[int, tuple[Any, ...]] = {p.id(): tuple(_ancestors(p)) for p in products}
    owners = defaultdict(set)
    for path in paths.values():
        for k, assembly in enumerate(path):
            owners[(path[k - 1].id() if k else None, text_of(assembly.Name))].add(assembly.id())
    labels = {}
    for (_, name), ids in owners.items():
        for number in ids:
            labels[number] = name if name and len(ids) == 1 else None
    return {
        number: "/".join(
            labels[a.id()] or f"{text_of(a.Name) or a.is_a()} [{global_id(a)}]" for a in path
        )
        for number, path in paths.items()
    }


def _ancestors(product: Any) -> list[Any]:
    """Return the assemblies around a product, outermost first; a cycle ends the path."""
    found: list[Any] = []
    seen = {product.id()}
    while (product := _parent_of(product)) is not None and product.id() not in seen:
        seen.add(product.id())
        found.append(product)
    return found[::-1]


def properties_of(product: Any) -> dict[str, Any]:
    """Return attributes by name, and the numbers, texts and truth values of sets as "Set.Name"."""
    from ifcopenshell.util.element import get_psets

    found = {}
    for name in ATTRIBUTES:
        value = getattr(product, name, None)
        if isinstance(value, str):
            found[name] = text_of(value)
    for group, values in get_psets(product).items():
        for name, value in values.items():
            if name != "id" and isinstance(value, bool | int | float | str):
                key = text_of(f"{group}.{name}")
                found[key] = text_of(value) if isinstance(value, str) else value
    return found


def links_of(model: Any, ids: dict[int, str], parts: set[str]) -> list[Link]:
    """Return the links of parts, sorted; of an assembly, those of its parts."""
    members = _members(model)
    found = set()
    for a, b, kind in _relations(model):
        for first in _parts_in(a, members, ids, parts):
            for second in _parts_in(b, members, ids, parts):
                if first != second:
                    found.add(Link(first, second, kind))
    return sorted(found)


def _relations(model: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield pairs of elements that belong together, and the kind of link."""
    hosts = {
        relation.RelatedOpeningElement.id(): relation.RelatingBuildingElement
        for relation in model.by_type("IfcRelVoidsElement")
        if relation.RelatedOpeningElement and relation.RelatingBuildingElement
    }
    for relation in model.by_type("IfcRelFillsElement"):
        opening = relation.RelatingOpeningElement
        if opening and relation.RelatedBuildingElement and opening.id() in hosts:
            yield relation.RelatedBuildingElement, hosts[opening.id()], "fills"
    for relation in model.by_type("IfcRelConnectsElements"):
        between = getattr(relation, "RealizingElements", None) or ()
        yield from _joined(relation.RelatingElement, relation.RelatedElement, between)
    for relation in model.by_type("IfcRelConnectsPorts"):
        a, b = _element_of(relation.RelatingPort), _element_of(relation.RelatedPort)
        yield from _joined(a, b, [relation.RealizingElement])
    for relation in model.by_type("IfcRelCoversBldgElements"):
        for covering in relation.RelatedCoverings or ():
            if relation.RelatingBuildingElement:
                yield relation.RelatingBuildingElement, covering, "hosts"


def _joined(a: Any, b: Any, between: Iterable[Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yield a and b, and each of them with the elements that join them."""
    if a and b:
        yield a, b, "connects"
    for other in between:
        for end in (a, b):
            if end and other:
                yield end, other, "connects"


def _element_of(port: Any) -> Any:
    """Return the element of a port: nested in IFC 4, by a relation of its own in IFC 2x3."""
    for relation in getattr(port, "Nests", ()) or ():
        return relation.RelatingObject
    for relation in getattr(port, "ContainedIn", ()) or ():
        return relation.RelatedElement
    return None


def _members(model: Any) -> dict[int, list[Any]]:
    """Return the elements below each element, by its STEP number."""
    found = defaultdict(list)
    for kind in ("IfcRelAggregates", "IfcRelNests"):
        for relation in model.by_type(kind):
            if relation.RelatingObject:
                found[relation.RelatingObject.id()] += relation.RelatedObjects or ()
    return found


def _parts_in(
    element: Any, members: dict[int, list[Any]], ids: dict[int, str], parts: set[str]
) -> list[str]:
    """Return the part that an element is, or the parts below it."""
    found, seen, waiting = [], set(), [element]
    while waiting:
        element = waiting.pop()
        if element.id() in seen:
            continue
        seen.add(element.id())
        if ids.get(element.id()) in parts:
            found.append(ids[element.id()])
        else:
            waiting += members.get(element.id(), [])
    return found
