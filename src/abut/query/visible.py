"""Contacts by visibility: cull, pair the survivors, test exactly (FAR §4.2)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.plan import Plan, Stage
from abut.geometry.common_corners import SHARED_BY_POSITION, SHARED_NONE
from abut.mesh import Mesh
from abut.operands.contact_queues import contact_queues
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_pairs import mesh_pairs
from abut.operands.soup import Soup, soup_of
from abut.options import Level, Method, Order
from abut.query.contact_stages import ContactStages, Strategy
from abut.query.cull import culler_of
from abut.visibility.candidate_pairs import Candidates
from abut.visibility.settings import Settings, checked_pixels, checked_views
from abut.visibility.survivors import layout_of

LEAST_CAPACITY = 1 << 12


def visible_keys(
    meshes: Sequence[Mesh],
    poses: tuple[np.ndarray | None, ...],
    sharing: int,
    layout: KeyLayout,
    method: Method,
    pixels: int,
) -> np.ndarray:
    """Sorted keys (pose, face, face) of the intersecting pairs of two meshes, or within one.

    Args:
        meshes: The operands.
        poses: (B, 4, 4) or None for each; one pose serves a whole batch.
        sharing: Vertices that faces of the operands may share, see common_corners.
        layout: Layout of the keys.
        method: Culling method.
        pixels: Width of the views.
    """
    within = len(meshes) == 1
    settings = visible_settings(method, pixels, within, sharing)
    batch = max([len(p) for p in poses if p is not None], default=1)
    found = []
    for pose in range(batch):
        at = [None if p is None else p[min(pose, len(p) - 1)] for p in poses]
        with meshes[0].lock:
            soup = soup_of(meshes, at)
            keys = _contact_keys(soup, settings, sharing)
        low, high = layout_of(soup).split(keys)
        high = high - (0 if within else meshes[0].face_count)
        found.append((((pose << layout.bits_a) | low) << layout.bits_b) | high)
    return np.concatenate(found)


def visible_rows(
    meshes: Sequence[Mesh], poses: np.ndarray, method: Method, pixels: int
) -> tuple[np.ndarray, np.ndarray]:
    """((n, 2) objects, (n, 2) faces) of intersecting faces of different objects, in any order.

    Args:
        meshes, poses: All objects.
        method: Culling method.
        pixels: Width of the views.
    """
    if not any(mesh.face_count for mesh in meshes):
        return np.zeros((0, 2), dtype=np.int32), np.zeros((0, 2), dtype=np.int32)
    with meshes[0].lock:
        soup = soup_of(meshes, poses)
        keys = _contact_keys(soup, visible_settings(method, pixels, False), SHARED_NONE)
    return soup.pair_rows(*layout_of(soup).split(keys))


def visible_settings(
    method: Method, pixels: int, within: bool, sharing: int = SHARED_BY_POSITION
) -> Settings:
    """Settings of the culling before the exact test."""
    order = Order.FREE if method is Method.FAR else Order.DRAWN
    pixels, views = checked_pixels(pixels), checked_views("xyz")
    shared = sharing if within else SHARED_BY_POSITION
    far = method is Method.FAR
    return Settings(method, pixels, views, Level.FACE, 0.0, order, within, far, shared)


def _contact_keys(soup: Soup, settings: Settings, sharing: int) -> np.ndarray:
    """Sorted keys of intersecting pairs of the soup's faces."""
    device, layout = soup.device, layout_of(soup)
    culler = culler_of(soup, settings)
    culler.run()
    candidates = Candidates(soup, culler, in_views=False)
    capacity = max(LEAST_CAPACITY, 4 * culler.survivors.count + culler.survivors.fold_count)
    room = {"near": 2 * capacity, "candidates": capacity, "hits": capacity, "undecided": capacity}
    queues = PairQueues(device, **room)

    def stages() -> Iterator[Stage]:
        yield from candidates.stages(queues["near"], queues["candidates"])
        rows = MeshRows(mesh_pairs(soup.view, soup.view, sharing), device)
        contacts = ContactStages(rows, queues, contact_queues(queues, layout), Strategy.BRUTE)
        yield contacts.filter(queues["candidates"])
        yield contacts.exact()

    counts = Plan(queues, stages).run()
    assert counts is not None
    keys: Any = queues.sorted_keys("hits", counts["hits"], layout.width)
    return keys if isinstance(keys, np.ndarray) else keys.numpy()
