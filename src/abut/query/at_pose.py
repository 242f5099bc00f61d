"""Answers of ``collide`` and ``within`` about one pose of two meshes."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import curve_effort
from abut.core.pair_queue import NO_KEY_INT
from abut.operands.posed_mesh import PosedMesh, defer_posed_mesh
from abut.query.one_pose import one_pose
from abut.results import Contacts, Gaps


def contacts_at_pose(a: Any, b: Any, pose_a: Any, pose_b: Any, first: bool) -> Contacts | None:
    """The answer of ``collide`` about one pose, None where it takes a plan."""
    known = one_pose(a, b, pose_a, pose_b, at_once=first)
    if known is None:
        return None
    searched, found = (known.first if first else known.every)(pose_a, pose_b)
    if found is None:
        return None
    if searched:
        known.count_search(a, b, 1 if first else curve_effort(a, b))
    if isinstance(found, int):
        pairs = () if found == NO_KEY_INT else (known.layout.split(found),)
    else:
        pairs = np.empty((len(found), 2), dtype=np.int32)
        pairs[:, 0], pairs[:, 1] = known.layout.split(np.sort(found))
    if len(pairs) == 0:
        return Contacts((), None, False, None, NO_SEGMENTS, a.device)
    sides = (defer_posed_mesh(mesh, _copied(pose)) for mesh, pose in ((a, pose_a), (b, pose_b)))
    return Contacts(pairs, None, True, None, partial(segments_between, *sides), a.device)


def gaps_at_pose(a: Any, b: Any, distance: Any, pose_a: Any, pose_b: Any) -> Gaps | None:
    """The answer of ``within`` about one pose if boxes tell that it is empty, else None."""
    if not (isinstance(distance, int | float) and 0 <= distance < inf):
        return None
    known = one_pose(a, b, pose_a, pose_b, at_once=False)
    if known is None or not known.apart(pose_a, pose_b, distance):
        return None
    return no_gaps(None, a.device)


def no_gaps(pose: wp.array | None, device: wp.Device) -> Gaps:
    """Gaps without a row; ``pose`` is an empty array for a batch."""
    return Gaps((), pose, (), partial(wp.empty, (0, 2, 3), wp.float64, device), device)


def segments_between(
    a: Callable[[], PosedMesh], b: Callable[[], PosedMesh], pairs: wp.array, pose: wp.array | None
) -> tuple[wp.array, wp.array]:
    """Segments and coplanar flags of contacts; their kernels are imported at the first access."""
    from abut.narrow.segments import contact_segments

    return contact_segments(a, b, pairs, pose)


NO_SEGMENTS = partial(segments_between, PosedMesh, PosedMesh)


def _copied(pose: np.ndarray | None) -> np.ndarray | None:
    return None if pose is None else np.array(pose, dtype=np.float64).reshape(1, 4, 4)
