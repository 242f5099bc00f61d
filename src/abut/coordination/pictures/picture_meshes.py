"""Meshes of parts for pictures: ray-casting trees, normals of corners, edges that are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from abut.cases.shape import Shape
from abut.coordination.parts.part_table import PartTable
from abut.io.models.part_model import PartMesh
from abut.view.body import corner_normals, unit, vertex_normals

CREASE = np.cos(np.radians(30.0))  # edges sharper than this are drawn
KEPT_FACES = 4_000_000  # of meshes that are kept for the next pictures


@dataclass(frozen=True)
class PictureMesh:
    """A mesh about its own origin, in float32.

    Attributes:
        origin: (3,) middle of its box, in the frame of the part mesh [m].
        mesh: The tree that rays are cast at.
        shape: Its vertices and faces.
        normals: (3m, 3) float32 of the corners of faces.
        edges: (m,) int32: bit k is set where the edge opposite to corner k is drawn.
    """

    origin: np.ndarray
    mesh: wp.Mesh
    shape: Shape
    normals: np.ndarray
    edges: np.ndarray


class PictureMeshes:
    """Meshes of parts, made when they are first drawn and kept while they are few."""

    def __init__(self, parts: PartTable, device: wp.Device) -> None:
        self.parts, self.device = parts, device
        self._kept: dict[int, PictureMesh] = {}

    def of(self, row: int) -> PictureMesh:
        """The mesh of a part."""
        number = int(self.parts.mesh[row])
        if number not in self._kept:
            self._kept[number] = make_picture_mesh(self.parts.part_meshes[number], self.device)
        return self._kept[number]

    def placed(self, row: int) -> "PosedPictureMesh":
        """The mesh of a part, where the part is."""
        return PosedPictureMesh(self.of(row), self.parts.poses[row])

    def trim(self) -> None:
        """Forget all meshes if they are many."""
        if sum(len(mesh.edges) for mesh in self._kept.values()) > KEPT_FACES:
            self._kept.clear()


@wp.struct
class PictureParts:
    """Parts of some pictures, in the frames of the picture meshes.

    Those of picture k are ``first[k]`` to ``first[k + 1]``: a, b and perhaps their surroundings.
    """

    first: wp.array[wp.int32]
    mesh: wp.array[wp.uint64]
    face: wp.array[wp.int32]  # the first face in normals and edges
    eye: wp.array[wp.vec3f]
    turn: wp.array[wp.mat33f]  # from the world
    normals: wp.array[wp.vec3f]
    edges: wp.array[wp.int32]


class PosedPictureMesh(NamedTuple):
    """A mesh and its pose (4, 4) in the world."""

    mesh: PictureMesh
    pose: np.ndarray


def picture_parts(
    groups: Sequence[Sequence[PosedPictureMesh]], eyes: Sequence[np.ndarray], device: wp.Device
) -> Any:
    """Return ``PictureParts`` of groups of meshes, each seen from an eye (3,)."""
    placed = [mesh for group in groups for mesh in group]
    distinct = {id(one.mesh): one.mesh for one in placed}
    starts = np.cumsum([0, *(len(mesh.edges) for mesh in distinct.values())])
    first_face = dict(zip(distinct, starts.tolist(), strict=False))
    at = np.repeat(np.asarray(eyes, np.float64).reshape(-1, 3), [len(g) for g in groups], axis=0)
    poses = np.array([one.pose for one in placed])
    local = np.einsum("kji,kj->ki", poses[:, :3, :3], at - poses[:, :3, 3])
    local -= np.array([one.mesh.origin for one in placed])
    out = PictureParts()
    first = np.cumsum([0, *(len(group) for group in groups)]).astype(np.int32)
    out.first = wp.array(first, dtype=wp.int32, device=device)
    ids = np.array([one.mesh.mesh.id for one in placed], np.uint64)
    out.mesh = wp.array(ids, dtype=wp.uint64, device=device)
    faces = np.array([first_face[id(one.mesh)] for one in placed], np.int32)
    out.face = wp.array(faces, dtype=wp.int32, device=device)
    out.eye = wp.array(local.astype(np.float32), dtype=wp.vec3f, device=device)
    turns = np.swapaxes(poses[:, :3, :3], 1, 2).astype(np.float32)
    out.turn = wp.array(turns, dtype=wp.mat33f, device=device)
    normals = np.concatenate([mesh.normals for mesh in distinct.values()])
    out.normals = wp.array(normals, dtype=wp.vec3f, device=device)
    edges = np.concatenate([mesh.edges for mesh in distinct.values()])
    out.edges = wp.array(edges, dtype=wp.int32, device=device)
    return out


def merged_mesh(
    placed: Sequence[PosedPictureMesh], middle: np.ndarray, device: wp.Device
) -> PosedPictureMesh:
    """One mesh of several: rays ask one tree in place of many.

    Args:
        placed: At least one mesh.
        middle: (3,) origin of the mesh in the world.
        device: Where rays are cast.
    """
    points, faces, normals = [], [], []
    count = 0
    for mesh, pose in placed:
        shift = pose[:3, :3] @ mesh.origin + pose[:3, 3] - middle
        points.append(mesh.shape.vertices @ pose[:3, :3].T + shift)
        faces.append(mesh.shape.faces + count)
        normals.append(mesh.normals @ pose[:3, :3].T.astype(np.float32))
        count += len(mesh.shape.vertices)
    shape = Shape(np.concatenate(points), np.concatenate(faces))
    edges = np.concatenate([mesh.edges for mesh, _ in placed])
    made = PictureMesh(middle, _tree(shape, device), shape, np.concatenate(normals), edges)
    return PosedPictureMesh(made, np.eye(4))


def make_picture_mesh(given: PartMesh, device: wp.Device) -> PictureMesh:
    """Make the tree, normals and edges of a mesh."""
    used = given.vertices[given.faces.ravel()]
    low, high = (used.min(axis=0), used.max(axis=0)) if len(used) else (np.zeros(3), np.zeros(3))
    origin = (low + high) / 2
    points, index = np.unique(given.vertices, axis=0, return_inverse=True)
    shape = Shape(points - origin, index.reshape(-1)[given.faces].astype(np.int32))
    normals = corner_normals(shape, vertex_normals(shape)).reshape(-1, 3).astype(np.float32)
    return PictureMesh(origin, _tree(shape, device), shape, normals, drawn_edges(shape))


def _tree(shape: Shape, device: wp.Device) -> wp.Mesh:
    vertices = wp.array(shape.vertices.astype(np.float32), dtype=wp.vec3f, device=device)
    return wp.Mesh(vertices, wp.array(shape.faces.ravel(), dtype=wp.int32, device=device))


def drawn_edges(shape: Shape) -> np.ndarray:
    """(m,) int32: bit k is set where the edge opposite to corner k is sharp or a boundary."""
    faces = shape.faces
    a, b, c = (shape.vertices[corner] for corner in faces.T)
    normals = unit(np.cross(b - a, c - a))
    ends = np.sort(np.stack([faces[:, [1, 2]], faces[:, [2, 0]], faces[:, [0, 1]]], axis=1))
    keys = ends[..., 0].astype(np.int64) * len(shape.vertices) + ends[..., 1]
    order = np.argsort(keys.ravel(), kind="stable")
    sorted_keys = keys.ravel()[order]
    new = np.append(True, sorted_keys[1:] != sorted_keys[:-1])
    group = np.cumsum(new) - 1
    own = normals[order // 3]
    first = own[np.flatnonzero(new)][group]
    smooth = np.bincount(group, (own * first).sum(axis=1) > CREASE)
    uses = np.bincount(group)
    sharp = np.empty(len(order), bool)
    sharp[order] = ((uses != 2) | (smooth != 2))[group]
    return (sharp.reshape(-1, 3) @ np.array([1, 2, 4])).astype(np.int32)
