"""Rows of a scene by queries of its meshes: visibility, k-DOPs in fixed point, brute force."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.broad.overlaps import overlapping_boxes, posed_boxes
from abut.mesh import Mesh
from abut.options import Method
from abut.query.collide import collide
from abut.query.distance import distance
from abut.query.self_collide import self_collide
from abut.query.visible import visible_rows
from abut.query.within import within
from abut.scene.broad_stages import BroadStages
from abut.scene.object_distances import FoundDistances
from abut.scene.selection import Part

MARGIN = 2.0**-42  # of coordinates: more than the rounding of poses and boxes


def visibility_rows(
    part: Part, own: bool, method: Method, pixels: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) objects and (n, 2) faces that meet, in any order of rows.

    Args:
        part: The pairs of objects that are asked about.
        own: Also faces of one object.
        method: Culling method.
        pixels: Width of the views.
    """
    meshes = part.meshes
    owners, faces = visible_rows(meshes, poses_of(part), method, pixels)
    if own:
        inside = _own_rows(meshes, method, pixels)
        owners, faces = (np.concatenate(both) for both in zip((owners, faces), inside, strict=True))
    wanted, swapped = part.ordered(owners)
    owners[swapped], faces[swapped] = owners[swapped][:, ::-1], faces[swapped][:, ::-1]
    return owners[wanted], faces[wanted]


def _own_rows(meshes: list[Mesh], method: Method, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """((n, 2) objects, (n, 2) faces) of faces of one object that meet, in its own frame.

    Posed coordinates are rounded, so that other faces might touch there.
    """
    pairs = {
        key: self_collide(mesh, method=method, pixels=pixels).pairs.numpy()
        for key, mesh in {id(mesh): mesh for mesh in meshes}.items()
    }
    found = [np.empty((0, 2), np.int32), *(pairs[id(mesh)] for mesh in meshes)]
    owners = [np.full_like(rows, i - 1) for i, rows in enumerate(found)]
    return np.concatenate(owners), np.concatenate(found)


def kdop_rows(part: Part, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) objects and (n, 2) faces that meet, by k-DOPs of ``width`` bits.

    Pairs of objects with the same two meshes are one query with a batch of poses.
    """
    meshes, poses, objects = part.meshes, poses_of(part), part.objects
    filters = objects.filters(part.roles)
    pairs = overlapping_boxes(*world_boxes(meshes, poses), objects.device, filters)
    index = {id(mesh): k for k, mesh in enumerate(meshes)}
    mesh_of = np.array([index[id(mesh)] for mesh in meshes], dtype=np.int64)
    owners, faces = [np.empty((0, 2), np.int32)], [np.empty((0, 2), np.int32)]
    for both in np.unique(mesh_of[pairs], axis=0):
        batch = pairs[(mesh_of[pairs] == both).all(axis=1)]
        a, b = (meshes[k] for k in both)
        pose_a, pose_b = poses[batch[:, 0]], poses[batch[:, 1]]
        hits = collide(a, b, pose_a=pose_a, pose_b=pose_b, method="kdop", width=width)
        assert hits.pose is not None  # the poses are a batch
        owners.append(batch[hits.pose.numpy()])
        faces.append(hits.pairs.numpy())
    return np.concatenate(owners), np.concatenate(faces)


def world_boxes(meshes: list[Mesh], poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of objects; an object without faces has an empty box."""
    bounds = np.array([mesh.bounds for mesh in meshes]).reshape(-1, 2, 3)
    lower, upper = posed_boxes(bounds, poses).swapaxes(0, 1)
    size = np.abs(bounds).max(axis=(1, 2)) + np.abs(poses[:, :3, 3]).max(axis=1)
    pad = (MARGIN * size + np.finfo(np.float64).tiny)[:, None]
    empty = np.array([mesh.face_count == 0 for mesh in meshes], dtype=bool)[:, None]
    return np.where(empty, 1.0, lower - pad), np.where(empty, 0.0, upper + pad)


def brute_within_rows(
    part: Part, scene: BroadStages, far: float, own: bool
) -> tuple[wp.array, wp.array, wp.array, np.ndarray]:
    """Environments, objects, faces and whether they meet, as ``NearSearch`` returns them."""
    found, meshes = [], part.meshes
    for k, poses in enumerate(scene.environment_poses()):
        for i, j, options in _posed_pairs(part, meshes, poses):
            found.append((k, i, j, within(meshes[i], meshes[j], far, **options)))
        for i in part.own if own else []:
            found.append((k, i, i, within(meshes[i], None, far, method="brute")))
    found.sort(key=lambda row: row[:3])
    owners = [np.full((len(gaps), 3), at, np.int32) for *at, gaps in found]
    faces = [gaps.pairs.numpy() for *_, gaps in found]
    met = [gaps.distance.numpy() == 0 for *_, gaps in found]
    none = np.empty((0, 3), np.int32), np.empty((0, 2), np.int32), np.empty(0, bool)
    owners, faces, met = map(
        np.concatenate, ([none[0], *owners], [none[1], *faces], [none[2], *met])
    )
    columns = owners[:, 0], owners[:, 1:] - [0, part.first_external], faces
    rows = (wp.array(x.astype(np.int32), device=scene.device) for x in columns)
    return *rows, met


def brute_distance_rows(
    part: Part, scene: BroadStages, bound: float, given: np.ndarray | None = None
) -> FoundDistances:
    """Distances of all pairs that are asked about, or of those given, in every environment."""
    rows, meshes = [], part.meshes
    for k, poses in enumerate(scene.environment_poses()):
        for i, j, options in _posed_pairs(part, meshes, poses, given):
            near = distance(meshes[i], meshes[j], upper_bound=bound, **options)
            rows.append((k, i, j, *near.faces.numpy().tolist(), near.value))
    table = np.array(rows).reshape(-1, 6)
    environments, objects, faces = np.split(table[:, :5].astype(np.int64), [1, 3], axis=1)
    return FoundDistances(environments[:, 0], objects, faces, table[:, 5])


def poses_of(part: Part) -> np.ndarray:
    """(n, 4, 4) poses of all objects of a part, external ones last."""
    return part.objects.poses.numpy().reshape(-1, 4, 4)


def _posed_pairs(
    part: Part, meshes: list[Mesh], poses: np.ndarray, given: np.ndarray | None = None
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """All pairs of objects with faces that are asked about, and the options of a query."""
    if given is None:
        rows = np.array([i for i, mesh in enumerate(meshes) if mesh.face_count], dtype=np.int64)
        pairs = np.stack([rows[side] for side in np.triu_indices(len(rows), 1)], axis=1)
        tested, swapped = part.ordered(pairs)
        pairs[swapped] = pairs[swapped][:, ::-1]
        given = pairs[tested]
    for i, j in sorted(given.tolist()):
        yield i, j, {"pose_a": poses[i], "pose_b": poses[j], "method": "brute"}
