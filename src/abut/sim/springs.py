"""Springs of a sheet, which keep lengths and resist bending."""

from dataclasses import dataclass

import numpy as np

from abut.cases.shape import Shape
from abut.geometry.topology import components, directed_edges


@dataclass(frozen=True)
class Springs:
    """Springs in groups without a common vertex."""

    ends: np.ndarray  # (n, 2) int32 vertices, group after group
    rest: np.ndarray  # (n,) rest lengths
    starts: np.ndarray  # first spring of each group, and n


def edge_springs(shape: Shape) -> Springs:
    """Return one spring along each edge."""
    return _grouped(np.unique(np.sort(directed_edges(shape.faces), axis=1), axis=0), shape.vertices)


def bend_springs(shape: Shape) -> Springs:
    """Return one spring across each inner edge, between the corners opposite to it."""
    edges = np.sort(directed_edges(shape.faces), axis=1).astype(np.int64)
    opposite = shape.faces[:, [2, 0, 1]].T.ravel()
    keys = edges @ [len(shape.vertices), 1]
    order = np.argsort(keys, kind="stable")
    twins = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    ends = np.stack([opposite[order[twins]], opposite[order[twins + 1]]], axis=1)
    ends = np.unique(np.sort(ends, axis=1), axis=0)
    return _grouped(ends[ends[:, 0] != ends[:, 1]], shape.vertices)


def brace_springs(shape: Shape, count: int, seed: int = 0) -> Springs:
    """Return ``count`` springs from each vertex to random others of its sheet."""
    sheet = components(shape.faces, len(shape.vertices))
    order = np.argsort(sheet, kind="stable")
    first, size = (np.zeros(len(sheet), np.int64) for _ in range(2))
    labels, starts, sizes = np.unique(sheet[order], return_index=True, return_counts=True)
    first[labels], size[labels] = starts, sizes
    share = np.random.default_rng(seed).random((len(sheet), count))
    others = order[first[sheet][:, None] + (share * size[sheet][:, None]).astype(np.int64)]
    ends = np.stack(np.broadcast_arrays(np.arange(len(sheet))[:, None], others), axis=-1)
    ends = np.unique(np.sort(ends.reshape(-1, 2), axis=1), axis=0)
    return _grouped(ends[ends[:, 0] != ends[:, 1]], shape.vertices)


def _grouped(ends: np.ndarray, vertices: np.ndarray) -> Springs:
    """Put each spring into the first group without a spring at its vertices (greedy colouring)."""
    taken = [0] * len(vertices)
    group = np.empty(len(ends), np.int64)
    for spring, (i, j) in enumerate(ends.tolist()):
        free = ~(taken[i] | taken[j])
        lowest = free & -free
        taken[i] |= lowest
        taken[j] |= lowest
        group[spring] = lowest.bit_length() - 1
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))]) if len(ends) else np.zeros(1, int)
    a, b = vertices[ends[order]].transpose(1, 0, 2)
    return Springs(ends[order].astype(np.int32), np.linalg.norm(a - b, axis=1), starts)
