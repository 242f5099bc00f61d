"""Render scene: all surfaces of a picture as one mesh, with light baked into its vertices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import joined
from abut.view.body import Body, corner_normals, unit, vertex_normals
from abut.view.camera import Camera
from abut.view.coplanar import levels_of, lifted
from abut.view.rays import bake
from abut.view.shading import RenderScene

RAYS = 1_000_000  # to bake the light of all vertices
LEAST_SAMPLES = 4  # of each side of a vertex
SMOOTHINGS = 5


@dataclass
class LitScene:
    """The struct for kernels, and the Warp mesh that it refers to."""

    view: Any
    mesh: wp.Mesh


def light_scene(
    bodies: Sequence[Body],
    unshadowing: Sequence[Body],
    camera: Camera,
    extent: float,
    wire: float,
    quality: float,
    device: wp.Device,
) -> LitScene:
    """Set up a scene; all but the ``unshadowing`` bodies cast shadows."""
    casting = _make_scene(bodies, camera, extent, wire, device)
    everything = [*bodies, *unshadowing]
    shape = joined(*(body.shape for body in everything))
    levels = levels_of(shape, _layers(everything), extent)
    scene = _make_scene(everything, camera, extent, wire, device, lifted(shape, levels, camera.eye))
    normals = vertex_normals(shape)
    corners = corner_normals(shape, normals)
    scene.view.normals = wp.array(corners.astype(np.float32), dtype=wp.vec3f, device=device)
    least = max(2, round(LEAST_SAMPLES * quality))
    samples = int(np.clip(quality * RAYS / (4 * len(normals)), least, 64))
    sides = [
        bake(casting.view, scene.view.points, _vectors(sign * normals, device), samples)
        for sign in (1.0, -1.0)
    ]
    light = _smoothed(np.concatenate(sides, axis=1), shape.faces)
    scene.view.light = wp.array(light, dtype=wp.vec4f, device=device)
    return scene


def _layers(bodies: Sequence[Body]) -> np.ndarray:
    """The layer of each face: its body; marked faces lie above all others."""
    layers = [k + len(bodies) * body.is_marked() for k, body in enumerate(bodies)]
    return np.concatenate(layers).astype(np.int64)


def _make_scene(
    bodies: Sequence[Body],
    camera: Camera,
    extent: float,
    wire: float,
    device: wp.Device,
    corners: np.ndarray | None = None,
) -> LitScene:
    """Make the scene without normals and light; rays meet faces at ``corners`` (3m, 3) if given."""
    vertices, faces = joined(*(body.shape for body in bodies))
    view = RenderScene()
    view.points = _vectors(vertices, device)
    view.faces = wp.array(faces, dtype=wp.vec3i, device=device)
    paint = np.concatenate([body.paint() for body in bodies])
    view.paint = wp.array(paint, dtype=wp.vec4f, device=device)
    finish = np.repeat([body.finish for body in bodies], [len(b.shape.faces) for b in bodies])
    view.finish = wp.array(finish.astype(np.int32), device=device)
    view.key = _lamp(camera, -0.55, 0.50, 0.95)
    view.fill = _lamp(camera, 0.80, 0.55, 0.25)
    view.extent, view.wire = extent, wire
    met = view.points if corners is None else _vectors(corners, device)
    indices = faces.ravel() if corners is None else np.arange(faces.size)
    mesh = wp.Mesh(met, wp.array(indices, dtype=wp.int32, device=device))
    view.mesh = mesh.id
    return LitScene(view, mesh)


def _vectors(rows: np.ndarray, device: wp.Device) -> wp.array:
    return wp.array(rows.astype(np.float32), dtype=wp.vec3f, device=device)


def _lamp(camera: Camera, right: float, front: float, above: float) -> wp.vec3f:
    """Direction to a lamp that moves around with the camera."""
    top = np.array([0.0, 0.0, 1.0])
    level = unit(np.cross(top, camera.right))
    way = right * camera.right - front * level + above * top
    return wp.vec3f(*(way / np.linalg.norm(way)).tolist())


def _smoothed(light: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Reduce noise: average each vertex with its neighbours."""
    corners = faces.ravel()
    use = np.bincount(corners, minlength=len(light))
    for _ in range(SMOOTHINGS):
        around = np.repeat(light[faces].mean(axis=1), 3, axis=0)
        total = [np.bincount(corners, column, len(light)) for column in around.T]
        light = np.where(use[:, None] > 0, np.stack(total, 1) / np.maximum(use, 1)[:, None], light)
    return light
