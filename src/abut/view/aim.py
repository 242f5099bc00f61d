"""Aim: a camera that sees an answer, and bodies that do not hide it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import joined
from abut.core.device import resolve_device
from abut.core.launch import launch
from abut.view.body import Body, bodies_of
from abut.view.camera import Camera

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

AZIMUTHS = (-60, -90, -30, -120, 0, 180, 60, 120, 90, 150, 30, -150)
ELEVATIONS = (25, 50, 8, 75, -20, -55)
SHIFTS = ((0.0, 0.0), (0.25, 0.0), (-0.25, 0.0), (0.0, 0.25), (0.0, -0.25))  # against grazing
POINTS = 256  # of the answer that are looked for
SEEN = 0.6  # share of the answer that is enough
GLASS = 0.3  # opacity of bodies that hide the answer
CLOSE = 4.0  # size of the picture over the size of the answer
LEAST = 0.25  # size of the picture over the extent of the bodies, at least
LIFT = wp.constant(wp.float32(3.0e-3))  # of lines above surfaces, over their distance to the eye
LAYERS = wp.constant(256)


@wp.kernel
def hiding_kernel(
    # in
    span: wp.vec3i,
    mesh: wp.uint64,
    opaque: wp.array[wp.int32],
    points: wp.array[wp.vec3f],
    eyes: wp.array[wp.vec3f],
    # out
    faces_out: wp.array[wp.int32],
):
    """The first opaque face between each point and each eye, and beyond; -1 without one."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i % points.shape[0]]
        offset = eyes[i / points.shape[0]] - p
        way = wp.normalize(offset)
        reached = LIFT * wp.length(offset)
        found = wp.int32(-1)
        for _layer in range(LAYERS):
            hit = wp.mesh_query_ray(mesh, p + way * reached, way, 1.0e6)
            if not hit.result:
                break
            if opaque[hit.face] > 0:
                found = hit.face
                break
            reached += hit.t + 1.0e-4 * wp.length(offset)
        faces_out[i] = found


def aim(
    bodies: Sequence[Any],
    answer: np.ndarray,
    *,
    size: tuple[int, int] = (1200, 800),
    vertical: str = "z",
    device: Any = None,
) -> tuple[list[Body], Camera]:
    """Choose a camera that sees an answer, near enough to show it.

    Of 72 directions the camera takes the first from which most of the answer is visible. Bodies
    that hide two fifths of it from every direction become translucent.

    Args:
        bodies: Surfaces or meshes, at least one.
        answer: Points (n, 3); without any, the camera looks at all bodies.
        size: Width and height of the picture [pixels].
        vertical: The axis that points upwards, ``"z"`` or ``"y"``.
        device: None is the first CUDA device, else the CPU.

    Returns:
        The bodies, and the camera.
    """
    bodies = bodies_of(bodies)
    points = np.concatenate([body.shape.vertices for body in bodies])
    look = {"aspect": size[0] / size[1], "vertical": vertical}
    if not len(answer) or not any(len(body.shape.faces) for body in bodies):
        return bodies, Camera.around(points, **look)
    frame = _frame(points, answer)
    ways = product(ELEVATIONS, AZIMUTHS)
    cameras = [Camera.around(frame, azimuth=a, elevation=e, **look) for e, a in ways]
    sought = answer[np.linspace(0, len(answer) - 1, min(POINTS, len(answer))).astype(int)]
    search = _Search(bodies, sought, resolve_device(device))
    seen = np.mean([search.seen(cameras, shift) for shift in SHIFTS], axis=0)
    camera = cameras[int(np.argmax(seen >= seen.max() - 0.1))]
    if seen.max() < SEEN:
        while (hiding := search.hiding([camera])).max() >= 0:
            for k in np.unique(search.body[hiding[hiding >= 0]]).tolist():
                bodies[k] = replace(bodies[k], opacity=min(bodies[k].opacity, GLASS))
                search.opaque[search.body == k] = 0
    return bodies, camera


class _Search:
    """Rays from an answer to cameras, and the faces that hide it."""

    def __init__(self, bodies: Sequence[Body], points: np.ndarray, device: wp.Device) -> None:
        vertices, faces = joined(*(body.shape for body in bodies))
        counts = [len(body.shape.faces) for body in bodies]
        self.device, self.origin = device, points.mean(axis=0)
        self.body = np.repeat(np.arange(len(bodies)), counts)
        self.opaque = np.repeat([body.opacity == 1 for body in bodies], counts).astype(np.int32)
        self._points = self._vectors(points)
        corners = wp.array(faces.ravel(), dtype=wp.int32, device=device)
        self._mesh = wp.Mesh(self._vectors(vertices), corners)

    def seen(self, cameras: Sequence[Camera], shift: tuple[float, float]) -> np.ndarray:
        """(cameras,): the share of the points that each camera sees, turned a little about them."""
        aside = [c.right * shift[0] + c.up * shift[1] for c in cameras]
        far = [np.linalg.norm(c.eye - self.origin) for c in cameras]
        moved = zip(cameras, aside, far, strict=True)
        return (self.hiding([replace(c, eye=c.eye + a * d) for c, a, d in moved]) < 0).mean(axis=1)

    def hiding(self, cameras: Sequence[Camera]) -> np.ndarray:
        """(cameras, points): the first opaque face before each point; -1 without one."""
        eyes = self._vectors(np.stack([camera.eye for camera in cameras]))
        opaque = wp.array(self.opaque, device=self.device)
        count = len(cameras) * self._points.shape[0]
        faces = wp.empty(count, dtype=wp.int32, device=self.device)
        args = [self._mesh.id, opaque, self._points, eyes, faces]
        launch(hiding_kernel, count, args, self.device, grain=256)
        return faces.numpy().reshape(len(cameras), -1)

    def _vectors(self, rows: np.ndarray) -> wp.array:
        return wp.array((rows - self.origin).astype(np.float32), dtype=wp.vec3f, device=self.device)


def _frame(points: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Points to keep in view: all, or near a smaller answer those of the bodies and a box."""
    points = np.concatenate([points, answer])
    extents = np.ptp(points, axis=0)
    low, high = answer.min(axis=0), answer.max(axis=0)
    side = max(CLOSE * (high - low).max(), LEAST * extents.max())
    if side >= extents.max():
        return points
    middle = (low + high) / 2
    near = points[(np.abs(points - middle) <= side / 2).all(axis=1)]
    corners = np.array(list(product((-0.25, 0.25), repeat=3)))
    return np.concatenate([middle + np.minimum(side, extents) * corners, near])
