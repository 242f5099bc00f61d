"""Overlaps of solids of a scene, as answers of a page."""

from dataclasses import dataclass

import numpy as np

from abut.errors import MeshError
from abut.query.overlap import overlap
from abut.scene import Scene

MOST_PAIRS = 4  # pairs of objects whose overlap is measured


@dataclass(frozen=True)
class SolidOverlap:
    """The overlap of two objects.

    Attributes:
        objects: The two objects.
        relation: As ``Overlap.relation``.
        depths: How deep the common part lies inside each.
        deepest: (2, 3), the points that lie deepest in each.
        separation: (3,), a translation of the second object that ends the overlap.
    """

    objects: tuple[int, int]
    relation: str
    depths: tuple[float, float]
    deepest: np.ndarray
    separation: np.ndarray


def solid_overlaps(scene: Scene, pairs: np.ndarray) -> tuple[list[SolidOverlap], str]:
    """Overlaps of pairs of objects (k, 2), at most MOST_PAIRS; and why there are fewer."""
    poses, found, message = scene.poses.numpy(), [], ""
    for a, b in pairs[:MOST_PAIRS].tolist():
        try:
            pose = {"pose_a": poses[a], "pose_b": poses[b]}
            o = overlap(scene.mesh(a), scene.mesh(b), **pose)
        except MeshError as error:
            message = message or str(error)
            continue
        if o.overlapping:
            points = np.asarray(_plain(o.deepest)), np.asarray(_plain(o.separation))
            found.append(SolidOverlap((a, b), str(o.relation), (o.inside_a, o.inside_b), *points))
    return found, message


def _plain(value: object) -> object:
    return value.numpy() if hasattr(value, "numpy") else value  # type: ignore[attr-defined]
