"""Meshes of B-rep bodies: triangles of faces, joined along the edges that the faces share."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from abut.io.models.step_deviation import curve_deviation, surface_deviation

ANGLE = 0.5  # largest angle between neighbouring facets [rad]
MARGIN = 1.1  # what is measured is sampled; the deviation may be that much larger
ROUNDS = 4  # times a body is meshed with a smaller deflection where the mesher missed it
FINER = 0.8
ROUNDING = 1e-9  # of the size of a body: how exact points on the true surface are


class BodyMesh(NamedTuple):
    """A mesh of a body, in the unit of the body.

    Attributes:
        deviation: Largest distance from the true surface that was measured, with a margin; 0 for
            plane faces with straight edges.
        failed: Faces that could not be meshed.
    """

    vertices: np.ndarray
    faces: np.ndarray
    deviation: float
    failed: int


class _Face(NamedTuple):
    """A triangles_of_polygons face: its nodes in space and on the surface, and their numbers.

    Attributes:
        poles: For each node the parameter, 0 or 1, that has no effect there; -1: both have one.
    """

    face: Any
    points: np.ndarray
    parameters: np.ndarray
    triangles: np.ndarray
    numbers: np.ndarray
    poles: np.ndarray


def mesh_body(body: Any, chord: float) -> BodyMesh:
    """Mesh a body with a deviation of at most ``chord`` where the mesher can.

    Faces share the vertices of their common edges, so that a closed body has a closed mesh.

    Args:
        body: A TopoDS_Shape with faces.
        chord: Largest distance of the mesh from the true surface, in the unit of the body.
    """
    deflection, best = chord, None
    for _ in range(ROUNDS):
        made = _mesh_once(body, deflection)
        if best is None or made.deviation < best.deviation:
            best = made
        if best.deviation <= chord:
            break
        deflection *= FINER * chord / made.deviation
    assert best is not None
    return best


def _mesh_once(body: Any, deflection: float) -> BodyMesh:
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.BRepTools import BRepTools
    from OCP.TopAbs import TopAbs_ShapeEnum

    BRepTools.Clean_s(body)
    BRepMesh_IncrementalMesh(body, deflection, False, ANGLE, False)
    joints = _Joints(body)
    faces, failed = [], 0
    for face in explored(body, TopAbs_ShapeEnum.TopAbs_FACE):
        made = joints.numbered(face)
        faces += [] if made is None else [made]
        failed += made is None
    vertices, triangles, moved = _joined(faces, joints)
    deviation = max([moved, *(_deviation(face, vertices) for face in faces)], default=0.0)
    deviation = max(deviation, joints.curve_deviation)
    vertices, triangles = _used(vertices, triangles)
    size = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
    deviation = deviation * MARGIN if deviation > ROUNDING * size else 0.0
    return BodyMesh(vertices, triangles, deviation, failed)


def explored(shape: Any, kind: Any) -> Iterator[Any]:
    """Yield the faces or edges of a shape, as often as they are used."""
    from OCP.TopAbs import TopAbs_ShapeEnum
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    cast = TopoDS.Face if kind == TopAbs_ShapeEnum.TopAbs_FACE else TopoDS.Edge
    explorer = TopExp_Explorer(shape, kind)
    while explorer.More():
        yield cast(explorer.Current())
        explorer.Next()


class _Joints:
    """Numbers of the nodes on vertices and edges, the same for all faces that meet there."""

    def __init__(self, body: Any) -> None:
        from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher as Map
        from OCP.TopAbs import TopAbs_ShapeEnum
        from OCP.TopExp import TopExp

        self.vertices, self.edges = Map(), Map()
        TopExp.MapShapes_s(body, TopAbs_ShapeEnum.TopAbs_VERTEX, self.vertices)
        TopExp.MapShapes_s(body, TopAbs_ShapeEnum.TopAbs_EDGE, self.edges)
        self.count = self.vertices.Size() + 1  # numbers of shapes begin with 1
        self.first: dict[tuple[int, int], int] = {}  # edge and node count -> its first number
        self.same: dict[int, int] = {}  # numbers that turned out to be one node
        self.curve_deviation = 0.0

    def numbered(self, face: Any) -> _Face | None:
        """Return the triangles of a face with the numbers of its nodes; None without any."""
        from OCP.BRep import BRep_Tool
        from OCP.TopAbs import TopAbs_Orientation, TopAbs_ShapeEnum
        from OCP.TopLoc import TopLoc_Location

        place = TopLoc_Location()
        mesh = BRep_Tool.Triangulation_s(face, place)
        if mesh is None or mesh.NbTriangles() == 0:
            return None
        nodes = [mesh.Node(k) for k in range(1, mesh.NbNodes() + 1)]
        matrix = matrix_of(place)
        points = np.array([(p.X(), p.Y(), p.Z()) for p in nodes])
        points = points @ matrix[:3, :3].T + matrix[:3, 3]
        spots = [mesh.UVNode(k) for k in range(1, mesh.NbNodes() + 1)]
        parameters = np.array([(p.X(), p.Y()) for p in spots])
        corners = [mesh.Triangle(k).Get() for k in range(1, mesh.NbTriangles() + 1)]
        triangles = np.array(corners, np.int64)[:, -3:] - 1
        if face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED:
            triangles = triangles[:, ::-1]
        numbers = np.full(len(points), -1, np.int64)
        made = _Face(face, points, parameters, triangles, numbers, np.full(len(points), -1))
        for edge in explored(face, TopAbs_ShapeEnum.TopAbs_EDGE):
            polygon = BRep_Tool.PolygonOnTriangulation_s(edge, mesh, place)
            if polygon is not None:
                self._number(edge, polygon, made)
        inner = np.flatnonzero(numbers < 0)
        numbers[inner] = self.count + np.arange(len(inner))
        self.count += len(inner)
        return made

    def _number(self, edge: Any, polygon: Any, made: _Face) -> None:
        """Number the nodes of a face that lie on an edge."""
        from OCP.BRep import BRep_Tool
        from OCP.TopExp import TopExp

        numbers, points = made.numbers, made.points

        count = polygon.NbNodes()
        nodes = np.array([polygon.Node(k) for k in range(1, count + 1)]) - 1
        ends = TopExp.FirstVertex_s(edge), TopExp.LastVertex_s(edge)
        first, last = (0 if end.IsNull() else self.vertices.FindIndex(end) for end in ends)
        if BRep_Tool.Degenerated_s(edge):
            made.poles[nodes] = np.argmax(np.ptp(made.parameters[nodes], axis=0))
            for node in nodes.tolist():
                self._set(numbers, node, first)
            return
        key = self.edges.FindIndex(edge), count
        if key not in self.first:
            self.first[key], self.count = self.count, self.count + count
            deviation = curve_deviation(edge, polygon, points[nodes])
            self.curve_deviation = max(self.curve_deviation, deviation)
        wanted = self.first[key] + np.arange(count)
        wanted[0], wanted[-1] = first or wanted[0], last or wanted[-1]
        for node, number in zip(nodes.tolist(), wanted.tolist(), strict=True):
            self._set(numbers, node, number)

    def _set(self, numbers: np.ndarray, node: int, number: int) -> None:
        """Number a node; a second number is the same node as the first."""
        held = self.root(int(numbers[node])) if numbers[node] >= 0 else -1
        number = self.root(number)
        if held >= 0 and held != number:
            self.same[max(held, number)] = min(held, number)
            number = min(held, number)
        numbers[node] = number

    def root(self, number: int) -> int:
        """Return the least number of a node."""
        while number in self.same:
            number = self.same[number]
        return number


def _joined(faces: list[_Face], joints: _Joints) -> tuple[np.ndarray, np.ndarray, float]:
    """Return vertices by number, triangles, and how far a node is from its vertex at most."""
    vertices = np.full((joints.count, 3), np.nan)
    moved, triangles = 0.0, []
    for face in faces:
        for number in joints.same:
            face.numbers[face.numbers == number] = joints.root(number)
        new = np.isnan(vertices[face.numbers, 0])
        vertices[face.numbers[new]] = face.points[new]
        moves = np.linalg.norm(vertices[face.numbers] - face.points, axis=1)
        moved = max(moved, float(moves.max(initial=0.0)))
        triangles.append(face.numbers[face.triangles])
    rows = np.concatenate([np.empty((0, 3), np.int64), *triangles])
    a, b, c = rows.T
    return vertices, rows[(a != b) & (b != c) & (c != a)], moved


def _deviation(face: _Face, vertices: np.ndarray) -> float:
    triangles = face.triangles
    parameters = face.parameters[triangles]
    for axis in range(2):  # at a pole, take the mean of the other corners
        pole = face.poles[triangles] == axis
        known = (~pole).sum(axis=1, keepdims=True)
        mean = np.where(pole, 0.0, parameters[:, :, axis]).sum(axis=1, keepdims=True)
        mean = mean / np.maximum(known, 1)
        parameters[:, :, axis] = np.where(pole & (known > 0), mean, parameters[:, :, axis])
    return surface_deviation(face.face, parameters, vertices[face.numbers[triangles]])


def _used(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove vertices that no triangle uses."""
    kept, corners = np.unique(triangles, return_inverse=True)
    return vertices[kept], corners.reshape(-1, 3).astype(np.int32)


def matrix_of(location: Any) -> np.ndarray:
    """Return the (4, 4) matrix of a TopLoc_Location."""
    matrix = np.eye(4)
    if not location.IsIdentity():
        motion = location.Transformation()
        for i in range(3):
            matrix[i] = [motion.Value(i + 1, j + 1) for j in range(4)]
    return matrix


def open_edge_count(faces: np.ndarray) -> int:
    """Return how many edges of triangles lack an opposite one."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    way = np.where(ends[:, 0] < ends[:, 1], 1, -1)
    keys = ends.min(axis=1) * (int(ends.max(initial=0)) + 1) + ends.max(axis=1)
    _, place = np.unique(keys, return_inverse=True)
    return int(np.count_nonzero(np.bincount(place, weights=way)))
