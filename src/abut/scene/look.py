"""Contacts of a scene by visibility, and rows of any source in the form that searches have."""

import numpy as np
import warp as wp

from abut.broad.phase import object_layout
from abut.core.pair_queue import KeyLayout
from abut.mesh import Mesh
from abut.options import Method
from abut.query.self_collide import self_collide
from abut.query.visible import visible_rows
from abut.scene.contact_search import Found
from abut.scene.objects import Objects
from abut.scene.search import SceneSearch


def look(
    search: SceneSearch,
    objects: Objects,
    meshes: list[Mesh],
    *,
    own: bool,
    first: bool,
    method: Method,
    pixels: int,
) -> Found:
    """What cullers see in a scene, as it is now.

    Args:
        search: Knows the scene's layout; it is not run.
        objects: Which pairs of objects are not to be tested.
        meshes: Of all objects, by index.
        own: Also faces of one object.
        first: The lowest pair of faces for each pair of objects.
        method: How to cull.
        pixels: Width of the views.
    """
    poses = objects.poses.numpy().reshape(-1, 4, 4)
    owners, faces = visible_rows(meshes, poses, method, pixels)
    if own:
        inside = own_rows(meshes, method, pixels)
        owners, faces = (np.concatenate(both) for both in zip((owners, faces), inside, strict=True))
    wanted = tested(objects, owners)
    return found_of(search, len(meshes), owners[wanted], faces[wanted], first)


def own_rows(meshes: list[Mesh], method: Method, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """((n, 2) objects, (n, 2) faces) of faces of one object that meet, in its own frame.

    Where a pose has put them, coordinates are rounded, and other faces may touch.
    """
    pairs = {
        key: self_collide(mesh, method=method, pixels=pixels).pairs.numpy()
        for key, mesh in {id(mesh): mesh for mesh in meshes}.items()
    }
    found = [np.empty((0, 2), np.int32), *(pairs[id(mesh)] for mesh in meshes)]
    owners = [np.full_like(rows, i - 1) for i, rows in enumerate(found)]
    return np.concatenate(owners), np.concatenate(found)


def found_of(
    search: SceneSearch, object_count: int, owners: np.ndarray, faces: np.ndarray, first: bool
) -> Found:
    """Rows (n, 2) of objects and faces, in any order, as a search finds them."""
    order = np.lexsort((*faces.T[::-1], *owners.T[::-1]))
    owners, faces = owners[order].astype(np.int64), faces[order].astype(np.int64)
    layout: KeyLayout = search.layout
    pairs = object_layout(max(object_count, 1), 1)
    meetings, rank = np.unique((owners[:, 0] << pairs.bits_b) | owners[:, 1], return_inverse=True)
    keys = (((rank.ravel() << layout.bits_a) | faces[:, 0]) << layout.bits_b) | faces[:, 1]
    if first:
        keys = keys[np.flatnonzero(np.diff(keys >> layout.width, prepend=-1))]
    held = wp.array(meetings, dtype=wp.int64, device=search.device)
    return Found(held, keys, layout, pairs, pairs=search.pairs)


def tested(objects: Objects, owners: np.ndarray) -> np.ndarray:
    """Rows (n, 2) of objects that are to be tested against each other; all with themselves."""
    a, b = owners.T
    static, group, mask = objects.static, objects.group, objects.mask
    meet = (static[a] == 0) | (static[b] == 0)
    meet &= (group[a] & mask[b] != 0) & (group[b] & mask[a] != 0)
    if objects.ignored:
        pairs = np.array(sorted(objects.ignored), dtype=np.int64)
        low, high = np.sort(pairs, axis=1).T
        meet &= ~np.isin((a.astype(np.int64) << 32) | b, (low << 32) | high)
    return meet | (a == b)
