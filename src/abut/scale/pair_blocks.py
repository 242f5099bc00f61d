"""Blocks of the pairs of objects that do not fit a budget together."""

from collections.abc import Iterator

import numpy as np

from abut.errors import CapacityError
from abut.scale.catalogue import Catalogue


def pair_blocks(
    rows: np.ndarray, meshes: np.ndarray, size: np.ndarray, object_bytes: int, budget: int
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int], int]]:
    """Divide objects into groups, and their pairs by the groups of both.

    Any two groups fit the budget, but for two groups of one object each. A pair has one pair of
    groups.

    Args:
        rows: (k,) ascending rows.
        meshes: (n,) mesh of each row.
        size: (n,) memory of the mesh of each row.
        object_bytes: Memory of an object besides its mesh.
        budget: Memory of a block.

    Yields:
        Rows of a block, their groups, the two groups, and the memory.
    """
    order = rows[np.argsort(meshes[rows], kind="stable")]
    mesh, own = meshes[order].tolist(), size[order].tolist()
    most = max(own) + object_bytes
    room = budget // 2 if most <= budget // 2 else max(budget - most, 0)
    group, total = np.empty(len(order), np.int32), [0]
    for k in range(len(order)):
        shared = total[-1] > 0 and mesh[k] == mesh[k - 1]
        need = object_bytes + (0 if shared else own[k])
        if total[-1] and total[-1] + need > room:
            total.append(0)
            need = object_bytes + own[k]
        group[k] = len(total) - 1
        total[-1] += need
    number = len(total) - 1
    for low in range(number + 1):
        for high in range(low, number + 1):
            inside = np.flatnonzero((group == low) | (group == high))
            if len(inside) < 2:
                continue
            inside = inside[np.argsort(order[inside])]
            together = total[low] + (total[high] if low != high else 0)
            yield order[inside], group[inside], (low, high), together


def require_room_for_pairs(
    catalogue: Catalogue, halo: float, size: np.ndarray, meshes: np.ndarray, budget: int
) -> None:
    """Refuse a budget that two near objects exceed by themselves.

    Raises:
        CapacityError: Names the objects and the memory they need.
    """
    boxes = np.asarray(catalogue.boxes)
    for row in np.flatnonzero(2 * size > budget).tolist():
        near = (boxes[:, 0] - halo <= boxes[row, 1]) & (boxes[row, 0] - halo <= boxes[:, 1])
        near = near.all(axis=1)
        near[row] = False
        if not near.any():
            continue
        both = np.where(near, size + np.where(meshes == meshes[row], 0, size[row]), 0)
        worst = int(both.argmax())
        if both[worst] > budget:
            a, b = catalogue.keys.of([row, worst])
            raise CapacityError(
                f"{a!r} and {b!r} are near each other and need {int(both[worst]):,} bytes "
                f"together; the budget of a tile is {budget:,}."
            )
