"""Render scene: all surfaces of a picture as one mesh, with light baked into its vertices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import joined
from abut.view.body import Body
from abut.view.camera import Camera
from abut.view.rays import bake
from abut.view.shading import RenderScene

RAYS = 1_500_000  # to bake the light of all vertices
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
    casting = _make_scene(bodies, camera, extent, wire, device, shaded=False)
    everything = [*bodies, *unshadowing]
    scene = _make_scene(everything, camera, extent, wire, device)
    normals = np.concatenate([body.vertex_normals() for body in everything])
    least = max(2, round(8 * quality))
    samples = int(np.clip(quality * RAYS / (4 * len(normals)), least, 64))
    sides = [
        bake(casting.view, scene.view.points, _vectors(sign * normals, device), samples)
        for sign in (1.0, -1.0)
    ]
    light = _smoothed(np.concatenate(sides, axis=1), scene.view.faces.numpy())
    scene.view.light = wp.array(light, dtype=wp.vec4f, device=device)
    return scene


def _make_scene(
    bodies: Sequence[Body],
    camera: Camera,
    extent: float,
    wire: float,
    device: wp.Device,
    *,
    shaded: bool = True,
) -> LitScene:
    """Make the scene without light; and without normals unless ``shaded``."""
    vertices, faces = joined(*(body.shape for body in bodies))
    view = RenderScene()
    view.points = _vectors(vertices, device)
    view.faces = wp.array(faces, dtype=wp.vec3i, device=device)
    if shaded:
        normals = np.concatenate([body.corner_normals() for body in bodies]).astype(np.float32)
        view.normals = wp.array(normals, dtype=wp.vec3f, device=device)
    paint = np.concatenate([body.paint() for body in bodies])
    view.paint = wp.array(paint, dtype=wp.vec4f, device=device)
    finish = np.repeat([body.finish for body in bodies], [len(b.shape.faces) for b in bodies])
    view.finish = wp.array(finish.astype(np.int32), device=device)
    view.key = _lamp(camera, -0.55, 0.50, 0.95)
    view.fill = _lamp(camera, 0.80, 0.55, 0.25)
    view.extent, view.wire = extent, wire
    mesh = wp.Mesh(view.points, wp.array(faces.ravel(), dtype=wp.int32, device=device))
    view.mesh = mesh.id
    return LitScene(view, mesh)


def _vectors(rows: np.ndarray, device: wp.Device) -> wp.array:
    return wp.array(rows.astype(np.float32), dtype=wp.vec3f, device=device)


def _lamp(camera: Camera, right: float, front: float, above: float) -> wp.vec3f:
    """Direction to a lamp that moves around with the camera."""
    flat = np.array([camera.ahead[0], camera.ahead[1], 0.0])
    flat /= np.linalg.norm(flat)
    way = right * camera.right - front * flat + above * np.array([0.0, 0.0, 1.0])
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
