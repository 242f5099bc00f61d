"""Tiles: regions of space whose objects fit a budget, each pair of objects in exactly one.

A tile is a range of the Morton curve. A pair belongs to the tile of its corner, the cell of the low
corner of the common box of its two boxes, widened downwards by the halo. design/scale.md has the
proof that no pair is lost or repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.io.file_errors import reading
from abut.io.write import replacing
from abut.scale.catalogue import Catalogue
from abut.scale.cells import Grid, morton_codes
from abut.scale.octree import octree_leaves
from abut.scale.pair_blocks import pair_blocks, require_room_for_pairs


@dataclass(frozen=True, eq=False)
class Tile:
    """A tile, or a block of the pairs of one.

    Attributes:
        number: Its place among the tiles.
        rows: (k,) ascending rows of the catalogue: all objects that a pair of the tile may have.
        cells: (k, 3) cells of their low corners.
        start, stop: Range of codes of the corners of its pairs.
        group: (k,) group of each object; a pair has one object in each of two ``groups``.
        groups: The two groups; they may be one.
        bytes: Estimated memory of the meshes of its objects.
    """

    number: int
    rows: np.ndarray
    cells: np.ndarray
    start: int
    stop: int
    group: np.ndarray
    groups: tuple[int, int]
    bytes: int

    def owns(self, pairs: np.ndarray) -> np.ndarray:
        """(n,) whether pairs (n, 2) of places in ``rows`` belong to the tile."""
        corner = morton_codes(self.cells[pairs].max(axis=1))
        groups = np.sort(self.group[pairs], axis=1)
        inside = (corner >= self.start) & (corner < self.stop)
        return inside & (groups == np.sort(self.groups)).all(axis=1)


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Tiles of a catalogue, in the order of the curve.

    Attributes:
        halo: Largest distance of objects whose pair is wanted.
        budget: Largest memory of a tile.
        grid: Cells.
        low: (n, 3) cell of the low corner of each object's box.
        ranges: (t, 2) codes of the tiles.
        groups: (t, 2) groups of the pairs of each tile.
        bytes: (t,) estimated memory.
        ends: (t,) ends of the tiles in ``members``.
        members: Rows of the objects of all tiles.
        member_groups: Their groups.
    """

    halo: float
    budget: int
    grid: Grid
    low: np.ndarray
    ranges: np.ndarray
    groups: np.ndarray
    bytes: np.ndarray
    ends: np.ndarray
    members: np.ndarray
    member_groups: np.ndarray

    def __len__(self) -> int:
        """Number of tiles."""
        return len(self.ranges)

    def __getitem__(self, number: int) -> Tile:
        """A tile."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        some = slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
        rows = self.members[some]
        start, stop = self.ranges[number].tolist()
        low, high = self.groups[number].tolist()
        cells, group = self.low[rows], self.member_groups[some]
        return Tile(number, rows, cells, start, stop, group, (low, high), int(self.bytes[number]))

    def __iter__(self) -> Iterator[Tile]:
        """All tiles."""
        return (self[number] for number in range(len(self)))

    def save(self, path: Any) -> None:
        """Write the plan as an ``.npz`` file."""
        names = "low ranges groups bytes ends members member_groups".split()
        arrays = {name: getattr(self, name) for name in names}
        about = np.array([self.halo, self.budget, self.grid.size])
        with replacing(path, folders=True) as new:
            np.savez(new, about=about, origin=self.grid.origin, **arrays)

    @classmethod
    def load(cls, path: Any) -> "TilePlan":
        """Read a plan.

        Raises:
            FileError: The file is missing or damaged.
        """
        with reading(path, "a plan of tiles"), np.load(Path(path), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
            halo, budget, size = arrays.pop("about").tolist()
            grid = Grid(arrays.pop("origin"), size)
            if len(arrays["ends"]) != len(arrays["ranges"]):
                raise FileError(f"{path} is damaged.")
            return cls(halo, int(budget), grid, **arrays)


def plan_tiles(
    catalogue: Catalogue,
    *,
    halo: float,
    budget: int,
    bytes_per_face: int,
    object_bytes: int,
    target: int | None = None,
) -> TilePlan:
    """Cut the objects of a catalogue into tiles.

    Args:
        catalogue: The objects.
        halo: Largest distance of objects whose pair is wanted.
        budget: Memory of the meshes of a tile.
        bytes_per_face: Memory of a mesh and all that is derived from it, for each face.
        object_bytes: Memory of an object besides its mesh.
        target: Memory of a tile to aim at, for more tiles than the budget asks for; None: the
            budget.

    Returns:
        Tiles in the order of the curve. Tiles without a pair of objects are left out.

    Raises:
        CapacityError: Two near objects need more than the budget by themselves.

    Guarantee:
        Two objects whose boxes are at most ``halo`` apart along each axis are in exactly one tile
        that owns their pair.
    """
    boxes = np.asarray(catalogue.boxes)
    below = boxes[:, 0] - halo
    grid = Grid.around(below, boxes[:, 1])
    low, high = grid.cells(below), grid.cells(boxes[:, 1])
    size = np.asarray(catalogue.face_count).astype(np.int64) * bytes_per_face
    meshes = np.unique(np.asarray(catalogue.mesh), return_inverse=True)[1].reshape(-1)
    require_room_for_pairs(catalogue, halo, size, meshes, budget)
    target = budget if target is None else min(target, budget)
    leaves = octree_leaves(low, high, meshes, size, object_bytes, target)
    cuts = []
    for rows, start, stop, need in _joined(leaves, meshes, size, object_bytes, target):
        if len(rows) < 2:
            continue
        if need <= budget:
            cuts.append((rows, np.zeros(len(rows), np.int32), (0, 0), (start, stop), need))
            continue
        for some, group, groups, part in pair_blocks(rows, meshes, size, object_bytes, budget):
            cuts.append((some, group, groups, (start, stop), part))
    return TilePlan(
        float(halo),
        int(budget),
        grid,
        low,
        np.array([cut[3] for cut in cuts], np.int64).reshape(-1, 2),
        np.array([cut[2] for cut in cuts], np.int32).reshape(-1, 2),
        np.array([cut[4] for cut in cuts], np.int64),
        np.cumsum([len(cut[0]) for cut in cuts], dtype=np.int64),
        np.concatenate([np.empty(0, np.int64), *(cut[0] for cut in cuts)]),
        np.concatenate([np.empty(0, np.int32), *(cut[1] for cut in cuts)]),
    )


def _joined(
    leaves: list[tuple[np.ndarray, int, int]],
    meshes: np.ndarray,
    size: np.ndarray,
    object_bytes: int,
    budget: int,
) -> Iterator[tuple[np.ndarray, int, int, int]]:
    """Join successive leaves while they fit the budget: rows, range of codes, memory.

    A leaf that adds nothing to those before is joined even beyond the budget.
    """
    has_row = np.full(len(meshes), -1)
    has_mesh = np.full(len(meshes), -1)
    number = held = start = stop = 0
    rows: list[np.ndarray] = []

    def more(leaf: np.ndarray) -> tuple[np.ndarray, int]:
        fresh = leaf[has_row[leaf] != number]
        first = np.unique(meshes[fresh], return_index=True)[1]
        needed = fresh[first][has_mesh[meshes[fresh[first]]] != number]
        return fresh, int(size[needed].sum()) + object_bytes * len(fresh)

    for leaf, begin, end in leaves:
        fresh, need = more(leaf)
        if rows and need and held + need > budget:
            yield np.sort(np.concatenate(rows)), start, stop, held
            number, held, rows = number + 1, 0, []
            fresh, need = more(leaf)
        if not rows:
            start = begin
        has_row[fresh], has_mesh[meshes[fresh]] = number, number
        rows.append(fresh)
        held, stop = held + need, end
    if rows:
        yield np.sort(np.concatenate(rows)), start, stop, held
