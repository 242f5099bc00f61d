"""Meshes of IFC products: tessellations as the file has them, other shapes by IfcOpenShell."""

import os
from typing import Any, NamedTuple

import numpy as np

from abut.io.models.affine import split_matrix, stretched
from abut.io.models.ifc_file import failures, products_with
from abut.io.models.mesh_pool import welded

ANGLE = 0.5  # largest angle between neighbouring facets of a curved surface [rad]
RIGID = 1e-6  # of the entries of a rotation times its transpose
TESSELLATION = "IfcTriangulatedFaceSet"


class IfcShape(NamedTuple):
    """The mesh of a product and its rigid pose, in metres."""

    vertices: np.ndarray
    faces: np.ndarray
    pose: np.ndarray


class IfcShapes:
    """Meshes of products by STEP number, and the reasons where one is missing or incomplete."""

    def __init__(self, model: Any, products: list[Any], chord: float, unit: float) -> None:
        self.model, self.unit = model, unit
        self.settings = _settings(chord)
        self.found: dict[int, IfcShape] = {}
        self.reasons: dict[int, str] = {}
        self._coordinates: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        others = [product for product in products if not self._takes_tessellation(product)]
        self._mesh([product for product in others if product.Representation])
        for product in others:
            if product.id() not in self.found and product.id() not in self.reasons:
                self._mesh_alone(product)

    def _takes_tessellation(self, product: Any) -> bool:
        """Take the triangles of the file; IfcOpenShell leaves out slivers and so opens solids."""
        try:
            body = _body_of(product)
            items = _tessellated(body) if body else None
            if items is None or product.ObjectPlacement is None:
                return False
            self._store(product.id(), self._tessellation(product, *items))
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            self.reasons[product.id()] = f"its tessellation is damaged: {_line(error)}"
        return True

    def _tessellation(self, product: Any, mapping: np.ndarray, sets: list[Any]) -> IfcShape:
        """Return the face sets of a product as one mesh."""
        pose, stretch = split_matrix(mapping)
        pieces = [self._triangles(item) for item in sets]
        shifts = np.cumsum([0] + [len(vertices) for vertices, _ in pieces])
        vertices = np.concatenate([vertices for vertices, _ in pieces])
        faces = np.concatenate([f + shift for (_, f), shift in zip(pieces, shifts, strict=False)])
        vertices, faces = welded(*stretched(vertices * self.unit, faces, stretch))
        pose[:3, 3] *= self.unit
        place = self._place(product)
        return IfcShape(vertices, faces, place if (pose == np.eye(4)).all() else place @ pose)

    def _store(self, number: int, shape: IfcShape) -> None:
        """Keep a mesh if it is one: with faces, finite, and placed by a rigid motion."""
        if not len(shape.faces):
            self.reasons.setdefault(number, "its representation has no surface.")
        elif not (np.isfinite(shape.vertices).all() and np.isfinite(shape.pose).all()):
            self.reasons[number] = "its coordinates are not finite."
        elif not _is_rigid(shape.pose):
            self.reasons[number] = "its placement is no rigid motion."
        else:
            self.found.setdefault(number, shape)

    def _place(self, product: Any) -> np.ndarray:
        from ifcopenshell import geom

        placed: Any = geom.create_shape(self.settings, product.ObjectPlacement)
        return np.array(placed.matrix, np.float64).reshape(4, 4).T.copy()

    def _triangles(self, item: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return vertices and faces of an IfcTriangulatedFaceSet; instances share them."""
        if item.id() not in self._coordinates:
            vertices = np.array(item.Coordinates.CoordList, np.float64).reshape(-1, 3)
            faces = np.array(item.CoordIndex, np.int64).reshape(-1, 3) - 1
            if getattr(item, "PnIndex", None):
                faces = np.array(item.PnIndex, np.int64)[faces] - 1
            self._coordinates[item.id()] = vertices, faces
        vertices, faces = self._coordinates[item.id()]
        if len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices):
            raise ValueError(f"#{item.id()} refers to vertices that it does not have.")
        return vertices, faces

    def _mesh(self, products: list[Any]) -> None:
        """Mesh products in parallel; each error is noted at the products that it affects."""
        import ifcopenshell
        from ifcopenshell import geom

        if not products:
            return
        ifcopenshell.get_log()
        threads = os.cpu_count() or 1
        iterator: Any = geom.iterator(self.settings, self.model, threads, include=products)
        for made in iterator:
            self._store(made.id, _shape_of(made))
        for number, message in failures(ifcopenshell.get_log()).items():
            for product in products_with(self.model, number):
                reason = f"{message} ({self.model.by_id(number).is_a()} #{number})."
                self.reasons.setdefault(product, reason)

    def _mesh_alone(self, product: Any) -> None:
        """Mesh a product that the parallel run left out, or note why it has no mesh."""
        from ifcopenshell import geom

        number = product.id()
        if not product.Representation:
            self.reasons[number] = "it has no representation."
            return
        try:
            self._store(number, _shape_of(geom.create_shape(self.settings, product)))
        except RuntimeError as error:
            self.reasons[number] = f"IfcOpenShell: {_line(error).partition(' Product:')[0]}"


def _settings(chord: float) -> Any:
    from ifcopenshell import geom

    settings = geom.settings()
    settings.set("mesher-linear-deflection", chord)
    settings.set("mesher-angular-deflection", ANGLE)
    settings.set("no-normals", True)
    return settings


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _is_rigid(pose: np.ndarray) -> bool:
    turn = pose[:3, :3]
    return np.allclose(turn @ turn.T, np.eye(3), rtol=0, atol=RIGID) and np.linalg.det(turn) > 0


def _shape_of(made: Any) -> IfcShape:
    """Return the mesh of a product of IfcOpenShell, in metres."""
    geometry = made.geometry
    vertices = np.frombuffer(geometry.verts_buffer, np.float64).reshape(-1, 3)
    faces = np.frombuffer(geometry.faces_buffer, np.int32).reshape(-1, 3)
    pose = np.frombuffer(made.transformation_buffer, np.float64).reshape(4, 4).T.copy()
    return IfcShape(*welded(vertices, faces), pose)


def _body_of(product: Any) -> Any:
    """Return the body of a product without openings, or None."""
    if not product.Representation or getattr(product, "HasOpenings", ()):
        return None
    bodies = [
        representation
        for representation in product.Representation.Representations or ()
        if representation.RepresentationIdentifier == "Body"
    ]
    return bodies[0] if len(bodies) == 1 else None


def _tessellated(body: Any) -> tuple[np.ndarray, list[Any]] | None:
    """Return the matrix and the face sets of a body that has nothing else, or None."""
    matrix, items = np.eye(4), list(body.Items or ())
    while len(items) == 1 and items[0].is_a("IfcMappedItem"):
        from ifcopenshell.util.placement import get_mappeditem_transformation

        matrix = matrix @ get_mappeditem_transformation(items[0])
        items = list(items[0].MappingSource.MappedRepresentation.Items or ())
    plain = items and all(item.is_a() == TESSELLATION for item in items)
    return (matrix, items) if plain else None
