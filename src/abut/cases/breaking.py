"""Solids broken into the cells of a Voronoi diagram."""

import numpy as np

from abut.cases.clip import ClippedSolid
from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape
from abut.cases.shapes import box, gem, torus_knot
from abut.geometry.topology import components


def breaking(
    faces: int = 50_000,
    pieces: int = 300,
    *,
    whole: Shape | None = None,
    falling: Shape | None = None,
    seed: int = 0,
) -> PlacedShapes:
    """An object broken into closed pieces, below a falling one, which comes last.

    Args:
        faces: Approximate number of faces of the objects made here.
        pieces: Cells of the Voronoi diagram; some give no piece and some give several.
        whole, falling: The objects, in one unit of length; None makes a knot and a bumpy ball.
        seed: Seed of the cells.
    """
    whole = _knot(faces * 3 // 4) if whole is None else whole
    falling = gem(faces // 4, 0.5) if falling is None else falling
    low, high = whole.vertices.min(axis=0), whole.vertices.max(axis=0)
    top = whole.vertices[np.argmax(whole.vertices[:, 2])]
    shapes = shattered(whole, broken_sites(whole, pieces, top, seed), 1e-4 * (high - low).max())
    poses = np.tile(np.eye(4), (len(shapes) + 1, 1, 1))
    middle = (falling.vertices.min(axis=0) + falling.vertices.max(axis=0)) / 2
    poses[-1, :3, 3] = top - middle
    poses[-1, 2, 3] = high[2] - falling.vertices[:, 2].min() + 0.02 * (high - low)[2]
    return PlacedShapes([*shapes, falling], poses)


def broken_sites(solid: Shape, count: int, impact: np.ndarray, seed: int = 0) -> np.ndarray:
    """Sites (count, 3) near the surface, denser about the point of impact."""
    rng = np.random.default_rng(seed)
    a, b, c = (solid.vertices[corner] for corner in solid.faces.T)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    middle = (a + b + c) / 3
    size = np.ptp(solid.vertices, axis=0).max()
    near = np.exp(-((np.linalg.norm(middle - impact, axis=1) / (0.25 * size)) ** 2))
    weight = area * (1 + 3 * near)
    chosen = rng.choice(len(area), count, p=weight / weight.sum())
    return middle[chosen] + 0.02 * size * rng.normal(size=(count, 3))


def cell_labels(shape: Shape, sites: np.ndarray) -> np.ndarray:
    """(m,) index of the site nearest to the centre of each face."""
    middles = shape.vertices[shape.faces].mean(axis=1)
    labels = np.empty(len(middles), np.int32)
    for some in np.array_split(np.arange(len(middles)), max(1, len(middles) * len(sites) // 10**7)):
        off = middles[some, None] - sites
        labels[some] = np.argmin(np.einsum("ijk,ijk->ij", off, off), axis=1)
    return labels


def shattered(solid: Shape, sites: np.ndarray, gap: float = 0.0) -> list[Shape]:
    """The closed pieces of a solid in the Voronoi cells of sites (n, 3).

    Cells are cut ``gap`` apart, so that pieces do not touch. Holes of the surface are closed
    first; connected components of a cell are separate pieces.
    """
    whole = ClippedSolid.of(solid)
    low, high = whole.vertices.min(axis=0), whole.vertices.max(axis=0)
    bounds = ClippedSolid.of(
        Shape(box().vertices * (high - low) * 1.1 + (low + high) / 2, box().faces)
    )
    planes, boxes = zip(*(_cell(bounds, sites, k, gap) for k in range(len(sites))), strict=True)
    boxes = np.stack(boxes)
    out: list[Shape] = []
    groups = [(whole, np.arange(len(sites)))]
    while groups:  # bisect the cells, so that each plane cuts as little as possible
        part, cells = groups.pop()
        part = _cropped(part, boxes[cells, 0].min(axis=0), boxes[cells, 1].max(axis=0))
        if part.empty:
            continue
        if len(cells) > 1:
            axis = np.argmax(np.ptp(sites[cells], axis=0))
            order = cells[np.argsort(sites[cells, axis], kind="stable")]
            groups += [(part, order[len(order) // 2 :]), (part, order[: len(order) // 2])]
            continue
        for normal, offset in planes[cells[0]]:
            part = part.clipped(normal, offset)
        out += _parts(part.compact().shape())
    return out


def _cell(bounds: ClippedSolid, sites: np.ndarray, k: int, gap: float) -> tuple[list, np.ndarray]:
    """The planes that bound a Voronoi cell, and its box."""
    ways = sites - sites[k]
    far = np.linalg.norm(ways, axis=1)
    cell, planes = bounds, []
    for other in np.argsort(far, kind="stable"):
        if far[other] == 0 or cell.empty:
            continue
        if far[other] - gap > 2 * np.linalg.norm(cell.vertices - sites[k], axis=1).max():
            break
        normal = ways[other] / far[other]
        offset = normal @ (sites[k] + sites[other]) / 2 - gap / 2
        cut = cell.clipped(normal, offset)
        if cut is not cell:
            planes.append((normal, offset))
            cell = cut.compact()
    corners = sites[[k]] if cell.empty else cell.vertices
    return planes, np.stack([corners.min(axis=0), corners.max(axis=0)])


def _cropped(part: ClippedSolid, low: np.ndarray, high: np.ndarray) -> ClippedSolid:
    """The part of a solid in a slightly enlarged box."""
    slack = 1e-3 * (high - low).max()
    for axis, normal in enumerate(np.eye(3)):
        part = part.clipped(normal, high[axis] + slack)
        part = part.clipped(-normal, slack - low[axis])
    return part.compact()


def _parts(piece: Shape) -> list[Shape]:
    """Connected components of a piece that have a positive volume."""
    label = components(piece.faces, len(piece.vertices))[piece.faces[:, 0]]
    parts = [_used(Shape(piece.vertices, piece.faces[label == k])) for k in np.unique(label)]
    return [part for part in parts if _volume(part) > 0]


def _used(shape: Shape) -> Shape:
    """The shape without unused vertices."""
    used, faces = np.unique(shape.faces, return_inverse=True)
    return Shape(shape.vertices[used], faces.reshape(-1, 3).astype(np.int32))


def _volume(shape: Shape) -> float:
    a, b, c = (shape.vertices[corner] - shape.vertices[0] for corner in shape.faces.T)
    return float(np.einsum("ij,ij->", np.cross(a, b), c)) / 6


def _knot(faces: int) -> Shape:
    """An upright torus knot."""
    columns = max(8, round((faces / 2 / 12) ** 0.5))
    return torus_knot(12 * columns, columns, q=5, thick=0.24).turned("x", 90)
