"""Leaves of an octree over boxes of cells, split until their objects fit a budget."""

import numpy as np

from abut.scale.cells import BITS, cells_of_codes

SMALLER = 0.75  # a split helps if its largest child has at most this share of the memory
SPREAD = 1.5  # or if its children have together at most this many times the memory
OCTANTS = np.arange(8)


def octree_leaves(
    low: np.ndarray,
    high: np.ndarray,
    meshes: np.ndarray,
    size: np.ndarray,
    object_bytes: int,
    budget: int,
) -> list[tuple[np.ndarray, int, int]]:
    """Split space until the objects of each leaf fit the budget or a split does not help.

    Args:
        low, high: (n, 3) first and last cells of the objects.
        meshes: (n,) numbers of their meshes, less than n; a leaf needs each mesh once.
        size: (n,) memory of the mesh of each object.
        object_bytes: Memory of an object besides its mesh.
        budget: Memory of a leaf.

    Returns:
        (rows, first code, code after the last) of each leaf with an object, in the order of codes.
    """
    entries = np.arange(len(low)), np.zeros(len(low), np.int64)  # rows and the codes of their nodes
    leaves: list[tuple[np.ndarray, int, int]] = []
    for level in range(BITS + 1):
        row, node = entries
        if not len(row):
            break
        need = _needs(row, node, meshes, size, object_bytes)
        nodes, place = np.unique(node, return_inverse=True)
        place = place.reshape(-1)
        split = (need > budget) & (level < BITS)
        child_row, child, parent = _children(row, node, place, split, level, low, high)
        split &= _helps(child_row, child, parent, need, meshes, size, object_bytes)
        width = 1 << (3 * (BITS - level))
        leaves += _as_leaves(row, place, nodes, ~split, width)
        kept = split[parent]
        entries = child_row[kept], child[kept]
    return sorted(leaves, key=lambda leaf: leaf[1])


def _as_leaves(
    row: np.ndarray, place: np.ndarray, nodes: np.ndarray, done: np.ndarray, width: int
) -> list[tuple[np.ndarray, int, int]]:
    """Rows and codes of the nodes that are done."""
    some = np.flatnonzero(done[place])
    some = some[np.argsort(place[some], kind="stable")]
    which, starts = np.unique(place[some], return_index=True)
    rows = np.split(row[some], starts[1:])
    first = (nodes[which] * width).tolist()
    return [(r, code, code + width) for r, code in zip(rows, first, strict=False)]


def _children(
    row: np.ndarray,
    node: np.ndarray,
    place: np.ndarray,
    split: np.ndarray,
    level: int,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, codes and places of the parents of the entries of child nodes."""
    some = np.flatnonzero(split[place])
    shift = max(BITS - level - 1, 0)
    corner = cells_of_codes(node[some]) << 1  # of the first child, in cells of its level
    first, last = (low[row[some]] >> shift) - corner, (high[row[some]] >> shift) - corner
    rows, codes, parents = [], [], []
    for octant in OCTANTS.tolist():
        at = np.array([octant >> 2 & 1, octant >> 1 & 1, octant & 1])
        hit = ((first <= at) & (last >= at)).all(axis=1)
        rows.append(row[some[hit]])
        codes.append((node[some[hit]] << 3) | octant)
        parents.append(place[some[hit]])
    return np.concatenate(rows), np.concatenate(codes), np.concatenate(parents)


def _needs(
    row: np.ndarray, node: np.ndarray, meshes: np.ndarray, size: np.ndarray, object_bytes: int
) -> np.ndarray:
    """Memory of each node, in the order of codes: distinct meshes, and objects."""
    names, place = np.unique(node, return_inverse=True)
    place = place.reshape(-1)
    first = np.unique(place * np.int64(len(meshes)) + meshes[row], return_index=True)[1]
    out = object_bytes * np.bincount(place, minlength=len(names)).astype(np.int64)
    np.add.at(out, place[first], size[row[first]])
    return out


def _helps(
    row: np.ndarray,
    child: np.ndarray,
    parent: np.ndarray,
    need: np.ndarray,
    meshes: np.ndarray,
    size: np.ndarray,
    object_bytes: int,
) -> np.ndarray:
    """Whether the split of each node makes nodes that are smaller, or few copies."""
    if not len(row):
        return np.zeros(len(need), bool)
    needs = _needs(row, child, meshes, size, object_bytes)
    of = parent[np.unique(child, return_index=True)[1]]
    largest, total = np.zeros(len(need)), np.zeros(len(need))
    np.maximum.at(largest, of, needs)
    np.add.at(total, of, needs)
    return (largest <= SMALLER * need) | (total <= SPREAD * need)
