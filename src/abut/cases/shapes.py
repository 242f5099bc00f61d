"""Shapes in pure NumPy. Closed ones are watertight and their faces are oriented outwards."""

from itertools import combinations

import numpy as np

from abut.cases.shape import Shape, grid_faces, joined, tube_faces


def box(size: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Shape:
    """A box of 12 faces about the origin."""
    corners = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], float)
    quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
    faces = [f for a, b, c, d in quads for f in ([a, b, c], [a, c, d])]
    return Shape(corners * np.asarray(size) / 2, np.array(faces, np.int32))


def icosphere(faces: int = 1280, radius: float = 1.0) -> Shape:
    """A sphere of about ``faces`` (20 n²) near-equal faces: an icosahedron, finely divided."""
    n = max(1, round((faces / 20) ** 0.5))
    solid = _icosahedron()
    lattice = [(i, j) for i in range(n + 1) for j in range(n + 1 - i)]
    at = {point: k for k, point in enumerate(lattice)}
    weights = np.array([[i, j, n - i - j] for i, j in lattice]) / n
    cells = [[at[i + 1, j], at[i, j + 1], at[i, j]] for i, j in lattice if i + j < n]
    cells += [[at[i, j + 1], at[i + 1, j], at[i + 1, j + 1]] for i, j in lattice if i + j < n - 1]
    points = np.einsum("lk,fkd->fld", weights, solid.vertices[solid.faces]).reshape(-1, 3)
    _, first, weld = np.unique(points.round(9), axis=0, return_index=True, return_inverse=True)
    blocks = np.arange(20)[:, None, None] * len(lattice) + np.array(cells)
    vertices = points[first] * (radius / np.linalg.norm(points[first], axis=1, keepdims=True))
    return Shape(vertices, weld.reshape(-1)[blocks].reshape(-1, 3).astype(np.int32))


def uv_sphere(rows: int = 24, columns: int = 48, radius: float = 1.0) -> Shape:
    """A sphere along meridians and parallels, thin faces at the poles."""
    theta = np.linspace(np.pi, 0, rows + 1)[1:-1, None]
    phi = np.linspace(0, 2 * np.pi, columns, endpoint=False)
    ring = np.stack(np.broadcast_arrays(np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi)))
    belt = np.concatenate([ring, np.broadcast_to(np.cos(theta), ring[:1].shape)])
    vertices = np.concatenate([belt.reshape(3, -1).T, [[0, 0, -1], [0, 0, 1]]])
    return Shape(vertices * radius, tube_faces(rows - 1, columns))


def gem(faces: int = 1280, radius: float = 1.0, bump: float = 0.12, waves: int = 5) -> Shape:
    """A sphere with bumps: smooth, closed, and curved both ways."""
    sphere = icosphere(faces)
    x, y, z = sphere.vertices.T * waves
    height = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    return Shape(sphere.vertices * (radius * (1 + bump * height[:, None])), sphere.faces)


def torus(rows: int = 48, columns: int = 24, radius: float = 1.0, thick: float = 0.35) -> Shape:
    """A ring about the z axis."""
    u = np.linspace(0, 2 * np.pi, rows, endpoint=False)
    circle = radius * np.stack([np.cos(u), np.sin(u), np.zeros(rows)], axis=1)
    return tube(circle, thick, columns, closed=True)


def torus_knot(
    rows: int = 256, columns: int = 24, *, p: int = 2, q: int = 3, thick: float = 0.28
) -> Shape:
    """A closed tube that winds p times about the z axis and q times about a circle of radius 1."""
    u = np.linspace(0, 2 * np.pi, rows, endpoint=False)
    reach = 1 + 0.5 * np.cos(q * u)
    line = np.stack([reach * np.cos(p * u), reach * np.sin(p * u), 0.5 * np.sin(q * u)], axis=1)
    return tube(line, thick, columns, closed=True)


def plane(rows: int = 32, columns: int = 32, size: float = 2.0, wave: float = 0.0) -> Shape:
    """An open sheet over the xy plane, facing up, with ripples ``wave`` high."""
    y, x = np.meshgrid(
        np.linspace(-size / 2, size / 2, rows),
        np.linspace(-size / 2, size / 2, columns),
        indexing="ij",
    )
    z = wave * np.sin(3 * np.pi * x / size) * np.cos(2 * np.pi * y / size)
    vertices = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    return Shape(vertices, grid_faces(rows, columns, wrap=(False, False)))


def folded_cloth(rows: int = 128, columns: int = 64, waves: int = 3) -> Shape:
    """An open sheet in breaking waves, each of which folds over and intersects itself."""
    u, v = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    swell = np.cos(np.pi * v / 2) ** 2
    phase = np.pi * waves * (u + 1)
    x = 1.6 * u + (0.10 + 0.22 * swell) * np.sin(phase)
    y = 1.1 * v + 0.05 * np.sin(phase / 2)
    z = 0.03 * np.sin(9 * v) - (0.22 + 0.12 * swell) * np.cos(phase)
    vertices = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    return Shape(vertices, grid_faces(rows, columns, wrap=(False, False)))


def needles(count: int = 64, length: float = 2.0, width: float = 1e-3, seed: int = 0) -> Shape:
    """Thin closed spikes through the unit ball, in random directions."""
    rng = np.random.default_rng(seed)
    spike = np.array([[0, 0, 1], [1, 0, 0], [-0.5, 0.8, 0], [-0.5, -0.8, 0]], float)
    spike *= [width, width, length]
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]], np.int32)
    rotations, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    rotations[np.linalg.det(rotations) < 0] *= -1
    centres = rng.uniform(-0.5, 0.5, size=(count, 1, 3))
    spikes = np.einsum("nij,kj->nki", rotations, spike - [0, 0, length / 2]) + centres
    return joined(*(Shape(vertices, faces) for vertices in spikes))


def tube(line: np.ndarray, radius: float, sides: int, *, closed: bool) -> Shape:
    """A round tube along ``line`` (n, 3); watertight, oriented outwards.

    Args:
        line: Points with distinct neighbours; n >= 2, or 3 when closed.
        radius: Distance from the line [mesh length unit].
        sides: Vertices of each ring.
        closed: Join the last point to the first; otherwise both ends are capped.
    """
    ahead, across = _frames(line, closed)
    over = np.cross(ahead, across)
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)[:, None]
    ring = np.cos(angle) * across[:, None] + np.sin(angle) * over[:, None]
    vertices = (line[:, None] + radius * ring).reshape(-1, 3)
    if closed:
        return Shape(vertices, grid_faces(len(line), sides, wrap=(True, True)))
    return Shape(np.concatenate([vertices, line[[0, -1]]]), tube_faces(len(line), sides))


def _frames(line: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unit tangents, and unit normals of minimal rotation from point to point."""
    steps = np.diff(line, axis=0, append=line[:1] if closed else 2 * line[-1:] - line[-2:-1])
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    before = np.roll(steps, 1, axis=0) if closed else np.concatenate([steps[:1], steps[:-1]])
    ahead = steps + before
    lengths = np.linalg.norm(ahead, axis=1, keepdims=True)
    ahead = np.where(lengths > 1e-9, ahead / np.maximum(lengths, 1e-9), steps)
    across = np.empty_like(ahead)
    normal = np.eye(3)[np.argmin(np.abs(ahead[0]))]
    for k, tangent in enumerate(ahead):
        normal = normal - tangent * (tangent @ normal)
        normal = normal / np.linalg.norm(normal)
        across[k] = normal
    return (ahead, _untwisted(ahead, across)) if closed else (ahead, across)


def _untwisted(ahead: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Distribute the angle between the last and the first normal over the closed line."""
    arrived = across[-1] - ahead[0] * (ahead[0] @ across[-1])
    over = np.cross(ahead[0], across[0])
    miss = np.arctan2(arrived @ over, arrived @ across[0])
    angle = -miss * np.arange(len(ahead))[:, None] / len(ahead)
    return np.cos(angle) * across + np.sin(angle) * np.cross(ahead, across)


def _icosahedron() -> Shape:
    golden = (1 + 5**0.5) / 2
    ring = np.array([[0, s, t * golden] for s in (-1, 1) for t in (-1, 1)], float)
    vertices = np.concatenate([ring, ring[:, [2, 0, 1]], ring[:, [1, 2, 0]]])
    near = np.linalg.norm(vertices[:, None] - vertices, axis=-1) < 2.1
    triples = [t for t in combinations(range(12), 3) if near[np.ix_(t, t)].all()]
    outward = [t if np.linalg.det(vertices[list(t)]) > 0 else t[::-1] for t in triples]
    return Shape(vertices, np.array(outward, np.int32))
