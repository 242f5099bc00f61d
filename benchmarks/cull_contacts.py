"""Contacts of a frame from end to end: by culling, and by hierarchies, built or refitted."""

from collections.abc import Callable
from typing import Any

import numpy as np

import abut
from benchmarks.cull_scenes import Frame

PIXELS = 1024  # of the views of FAR before exact tests


class Asked:
    """The meshes of a frame and their scene, which follow later frames of the same objects."""

    def __init__(self, frame: Frame, within: bool, device: str) -> None:
        self.meshes = [abut.Mesh(*shape, device=device) for shape in frame]
        self.sizes = [shape.faces.shape for shape in frame]
        self.within = within
        self.scene = abut.Scene(device=device)
        for mesh in self.meshes:
            self.scene.add(mesh)

    def follow(self, frame: Frame) -> bool:
        """Deform the meshes. False if the objects are others."""
        if self.sizes != [shape.faces.shape for shape in frame]:
            return False
        for mesh, shape in zip(self.meshes, frame, strict=True):
            mesh.deform(shape.vertices)
        return True

    def contacts(self, **options: Any) -> list[Any]:
        """Return the contacts between objects, after those within each mesh if asked for."""
        own = [abut.self_collide(mesh, **options) for mesh in self.meshes] if self.within else []
        return [*own, self.scene.collide(**options)] if len(self.meshes) > 1 else own


def rows_of(found: list[Any]) -> set[tuple[int, ...]]:
    """Return rows (object, object, face, face) of contacts."""
    rows = set()
    for k, hits in enumerate(found):
        pairs = hits.pairs.numpy()
        between = hasattr(hits, "objects")
        objects = hits.objects.numpy() if between else np.full((len(pairs), 2), k)
        rows |= set(map(tuple, np.concatenate([objects, pairs], axis=1).tolist()))
    return rows


def ways(
    frame: Frame, before: Asked | None, within: bool, device: str
) -> dict[str, Callable[[], list[Any]]]:
    """Return ways to ask for the contacts of a frame, by name; some need the frame before."""
    far = {"method": "far", "pixels": PIXELS}

    def built(**options: Any) -> list[Any]:
        return Asked(frame, within, device).contacts(**options)

    def kept(asked: Asked, **options: Any) -> list[Any]:
        asked.follow(frame)
        return asked.contacts(**options)

    calls = {"bvh_built": built, "collide_far_built": lambda: built(**far)}
    if before is not None and before.follow(frame):
        calls["bvh_refitted"] = lambda: kept(before)
        calls["collide_far"] = lambda: kept(before, **far)
    return calls
