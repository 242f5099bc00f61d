"""The boundary of the solid inside a closed mesh: clean faces with outward normals."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from abut.errors import MeshError
from abut.geometry.topology import components
from abut.mesh import Mesh
from abut.query.closest_point import closest_point

THIN = 1e-12  # faces with less area than this share of their longest edge squared are looked at
SMALL_VOLUME = 1e-9  # share of the absolute terms; below it the sign is computed exactly
SAMPLES = 64  # points of a component that are looked at to find one off another component


@dataclass(frozen=True)
class ClosedSurface:
    """The boundary of a solid.

    Attributes:
        mesh: Closed, oriented outward, without faces of zero area or faces that cancel. Every face
            separates the solid from its outside. The mesh given, where it is all that already.
        size: Diagonal of the bounding box.
        source_face: (m,) the face of the given mesh that holds each face.
    """

    mesh: Mesh
    size: float
    source_face: np.ndarray


def closed_surface_of(mesh: Mesh, name: str) -> ClosedSurface:
    """Return the boundary of the solid inside a closed mesh, cached for its present shape.

    A point is inside if the mesh winds around it; if faces are oriented inconsistently, if a ray
    crosses the mesh an odd number of times. The mesh is assumed not to intersect itself.

    Raises:
        MeshError: The mesh is open, empty or not orientable.
    """
    return mesh.per_shape("closed_surface", lambda: _closed_surface(mesh, name))


def _closed_surface(mesh: Mesh, name: str) -> ClosedSurface:
    require_solid(mesh, name)
    points, given = mesh.points.numpy(), mesh.faces.numpy().astype(np.int64)
    faces, source = _net_faces(mesh.topology.welded[given], mesh.oriented)
    faces, source = _without_thin_faces(points, faces, source)
    if not len(faces):
        raise MeshError(f"{name} encloses nothing: its faces cancel or have no area.")
    joints = _joints(faces, len(points))
    if not mesh.oriented:
        faces = _oriented_alike(faces, joints, name)
    faces, kept = _outward(points, faces, joints, mesh)
    faces, source = faces[kept], source[kept]
    if not len(faces):
        raise MeshError(f"{name} encloses nothing: its volume is 0.")
    sides = np.ptp(points.T[:, faces.ravel()], axis=1)  # rows of x, y and z: ten times as fast
    size = float(sides.max() * np.linalg.norm(sides / sides.max()))
    same = np.array_equal(faces, mesh.topology.welded[given])
    clean = mesh if same else Mesh(mesh.vertices.numpy(), faces, mesh.device)
    return ClosedSurface(clean, size, source)


def require_solid(mesh: Mesh, name: str) -> None:
    """Refuse an open or empty mesh, as ``name``."""
    if mesh.face_count == 0:
        raise MeshError(f"{name} has no faces, so it encloses nothing.")
    if not mesh.watertight:
        raise MeshError(
            f"{name} is open, so it encloses nothing; fill its holes, for example by "
            "trimesh.repair.fill_holes or pymeshfix, or ask abut.collide and abut.distance."
        )


def _net_faces(faces: np.ndarray, oriented: bool) -> tuple[np.ndarray, np.ndarray]:
    """Remove faces with equal corners, pairs that cancel, and copies; return rows and sources."""
    a, b, c = faces.T
    rows = np.flatnonzero((a != b) & (b != c) & (c != a))
    a, b, c = faces[rows].T
    way = np.where((a < b) ^ (b < c) ^ (c < a), -1, 1)  # 1 for an even permutation
    low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    order = np.lexsort((a + b + c - low - high, high, low))
    same = _equal_to_previous(low[order], high[order], (a + b + c)[order])
    if not same.any():
        return faces[rows], rows
    group = np.empty(len(rows), int)
    group[order] = np.cumsum(~same) - 1
    count = np.bincount(group)
    net = np.bincount(group, weights=way).astype(int) if oriented else count % 2
    kept = net[group] != 0
    chosen = np.flatnonzero(kept & (way == np.sign(net)[group]) if oriented else kept)
    _, first = np.unique(group[chosen], return_index=True)
    rows = rows[np.sort(chosen[first])]
    return faces[rows], rows


def _equal_to_previous(*columns: np.ndarray) -> np.ndarray:
    """Return which rows are equal to the row before."""
    same = np.zeros(len(columns[0]), bool)
    same[1:] = np.all([column[1:] == column[:-1] for column in columns], axis=0)
    return same


def _joints(faces: np.ndarray, vertex_count: int) -> np.ndarray:
    """Return (k, 3): two faces that share an edge, and whether they run along it the same way.

    The faces of an edge are joined in a chain.
    """
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    owner = np.tile(np.arange(len(faces)), 3)
    low, high = np.minimum(*ends.T), np.maximum(*ends.T)
    key = low * vertex_count + high
    order = np.argsort(key, kind="stable")
    key, owner, forward = key[order], owner[order], (ends[:, 0] == low)[order]
    joined = key[1:] == key[:-1]
    alike = forward[1:] == forward[:-1]
    return np.stack([owner[:-1], owner[1:], alike], axis=1)[joined]


def _oriented_alike(faces: np.ndarray, joints: np.ndarray, name: str) -> np.ndarray:
    """Flip faces so that the two faces of every edge run along it in opposite directions."""
    flip = np.full(len(faces), -1)
    for seed in np.unique(components(joints[:, :2], len(faces))):
        flip[seed] = 0
    while (flip < 0).any():
        i, j, alike = joints.T
        for known, unknown in ((i, j), (j, i)):
            reach = (flip[known] >= 0) & (flip[unknown] < 0)
            flip[unknown[reach]] = flip[known[reach]] ^ alike[reach]
    if (flip[joints[:, 0]] ^ flip[joints[:, 1]] != joints[:, 2]).any():
        raise MeshError(f"the faces of {name} cannot be oriented; it has no inside.")
    return np.where(flip[:, None] == 1, faces[:, ::-1], faces)


def _outward(
    points: np.ndarray, faces: np.ndarray, joints: np.ndarray, mesh: Mesh
) -> tuple[np.ndarray, np.ndarray]:
    """Orient every component outward; return the faces, and which of them bound the solid."""
    labels = components(joints[:, :2], len(faces))
    parts = np.unique(labels)
    ways = np.array([_volume_sign(points, faces[labels == part]) for part in parts])
    around = _windings_around(points, faces, labels, parts, ways, mesh)
    if mesh.oriented:
        beyond, within = around != 0, around + ways != 0
    else:
        beyond = around % 2 == 1
        within = ~beyond
    wanted = np.where(within, 1, -1)
    part_of = np.searchsorted(parts, labels)
    turned = (wanted != ways)[part_of]
    kept = (beyond != within) & (ways != 0)
    return np.where(turned[:, None], faces[:, ::-1], faces), kept[part_of]


def _volume_sign(points: np.ndarray, faces: np.ndarray) -> int:
    """Return 1 if a closed component points out of the part that it bounds, -1, or 0 if flat."""
    corners = points[faces] - points[faces[0, 0]]
    scale = np.abs(corners).max()
    terms = _determinants(corners / scale) if scale > 0 else np.zeros(1)
    if abs(terms.sum()) > SMALL_VOLUME * np.abs(terms).sum():
        return 1 if terms.sum() > 0 else -1
    total = Fraction(0)
    for face in faces:
        (a, b, c) = ([Fraction(float(x)) for x in points[i]] for i in face)
        total += sum(
            a[i] * (b[(i + 1) % 3] * c[(i + 2) % 3] - b[(i + 2) % 3] * c[(i + 1) % 3])
            for i in range(3)
        )
    return (total > 0) - (total < 0)


def _determinants(rows: np.ndarray) -> np.ndarray:
    """Return the determinants of (n, 3, 3), with the rounding of ten operations."""
    (a, b, c), (d, e, f), (g, h, i) = rows.transpose(1, 2, 0)
    return a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)


def _windings_around(
    points: np.ndarray,
    faces: np.ndarray,
    labels: np.ndarray,
    parts: np.ndarray,
    ways: np.ndarray,
    mesh: Mesh,
) -> np.ndarray:
    """Return for each component how often the others wind around it; unoriented, how many do."""
    around = np.zeros(len(parts), int)
    if len(parts) == 1:
        return around
    corners = [faces[labels == part] for part in parts]
    lows = np.array([points[c.ravel()].min(axis=0) for c in corners])
    highs = np.array([points[c.ravel()].max(axis=0) for c in corners])
    for outer in range(len(parts)):
        inside = (lows >= lows[outer]).all(axis=1) & (highs <= highs[outer]).all(axis=1)
        inside[outer] = False
        inner = np.flatnonzero(inside)
        if not len(inner):
            continue
        shell = Mesh(points, corners[outer], "cpu")
        samples = [_samples(points, corners[i]) for i in inner]
        distance = closest_point(shell, np.concatenate(samples), signed=True).distance
        stops = np.cumsum([len(s) for s in samples])[:-1]
        for i, signed in zip(inner, np.split(distance.numpy(), stops), strict=True):
            off = signed[signed != 0.0]
            if len(off) and off[0] < 0:
                around[i] += ways[outer] if mesh.oriented else 1
    return around


def _samples(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return vertices of a component, then middles of its faces."""
    vertices = points[np.unique(faces)[:SAMPLES]]
    return np.concatenate([vertices, points[faces[:SAMPLES]].mean(axis=1)])


def _without_thin_faces(
    points: np.ndarray, faces: np.ndarray, source: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Remove faces of zero area; the neighbour across the longest edge is split at the middle one.

    The surface stays closed and is the same set of points.
    """
    p, q, r = points.T[:, faces.T].swapaxes(0, 1)
    edges = np.stack([q - p, r - p])
    (x, y, z), (u, v, w) = edges / np.abs(edges).max(axis=(0, 1))
    across = np.stack([y * w - z * v, z * u - x * w, x * v - y * u])
    suspects = np.flatnonzero(np.abs(across).max(axis=0) < THIN)
    flat = [int(i) for i in suspects if _is_flat(points[faces[i]])]
    if not flat:
        return faces, source
    split, owners = _split_across(points, faces, set(flat))
    kept, rows = _net_faces(split, True)
    return kept, source[owners[rows]]


def _is_flat(corners: np.ndarray) -> bool:
    """Return whether three points lie on a line, exactly."""
    p, q, r = ([Fraction(float(x)) for x in corner] for corner in corners)
    u, v = [b - a for a, b in zip(p, q, strict=True)], [b - a for a, b in zip(p, r, strict=True)]
    return all(u[i] * v[i - 1] == u[i - 1] * v[i] for i in range(3))


def _split_across(
    points: np.ndarray, faces: np.ndarray, flat: set[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Replace faces of zero area and their neighbours; return rows and the row each comes from."""
    rows = {i: (tuple(int(v) for v in face), i) for i, face in enumerate(faces)}
    at_edge: dict[frozenset[int], set[int]] = {}
    for i, (face, _) in rows.items():
        for k in range(3):
            at_edge.setdefault(frozenset((face[k], face[k - 1])), set()).add(i)

    def replace(gone: list[int], new: list[tuple[tuple[int, int, int], int]]) -> None:
        for i in gone:
            face, _ = rows.pop(i)
            for k in range(3):
                at_edge[frozenset((face[k], face[k - 1]))].discard(i)
        for face, owner in new:
            i = len(faces) + len(made)
            made.append(i)
            rows[i] = face, owner
            for k in range(3):
                at_edge.setdefault(frozenset((face[k], face[k - 1])), set()).add(i)
            if len(set(face)) == 3 and _is_flat(points[list(face)]):
                flat.add(i)

    made: list[int] = []
    while flat:
        i = min(flat)
        flat.discard(i)
        face, _ = rows[i]
        middle = _middle_corner(points[list(face)])
        start, m, stop = (face[(middle + k) % 3] for k in (-1, 0, 1))
        others = at_edge[frozenset((start, stop))] - {i}
        j = min(others, key=lambda o: (not _runs(rows[o][0], start, stop), o))
        flat.discard(j)
        neighbour, owner = rows[j]
        k = next(k for k in range(3) if {neighbour[k], neighbour[(k + 1) % 3]} == {start, stop})
        first, second, apex = (neighbour[(k + n) % 3] for n in range(3))
        halves = [((first, m, apex), owner), ((m, second, apex), owner)] if apex != m else []
        replace([i, j], halves)
    kept = sorted(rows)
    return np.array([rows[i][0] for i in kept]).reshape(-1, 3), np.array([rows[i][1] for i in kept])


def _middle_corner(corners: np.ndarray) -> int:
    """Return the corner between the two others, of three on a line."""
    axis = int(np.argmax(np.ptp(corners, axis=0)))
    return int(np.argsort(corners[:, axis])[1])


def _runs(face: tuple[int, ...], start: int, stop: int) -> bool:
    """Return whether a face has the directed edge from start to stop."""
    return any(face[k] == start and face[(k + 1) % 3] == stop for k in range(3))
