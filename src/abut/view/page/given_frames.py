"""Frames of a sequence that a page plays: checked before the page is served."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from abut.core.arrays import to_plain
from abut.errors import MeshError, OptionError
from abut.scene import Scene


def checked_frames(scene: Scene, frames: Iterable[Any]) -> list[np.ndarray]:
    """Vertices (n, 3) of the first object in each frame.

    Args:
        scene: Its first object deforms.
        frames: An array (n, 3) for each frame, or one array (F, n, 3).

    Raises:
        MeshError: A frame has another shape than the vertices, or a coordinate that is not finite.
        OptionError: Frames are no arrays of numbers, or there is no object.
    """
    try:
        found = [_array(frame) for frame in frames]
    except (TypeError, ValueError):
        raise OptionError(
            f"frames must be arrays (n, 3) of numbers, one a frame, not {_kind(frames)}."
        ) from None
    if found and not len(scene):
        raise OptionError("frames were given, but the scene has no object to deform.")
    count = scene.mesh(int(scene.indices[0])).vertex_count if found else 0
    for k, vertices in enumerate(found):
        if vertices.shape != (count, 3):
            raise MeshError(
                f"frames[{k}] has shape {vertices.shape}, but the object has {count:,} vertices; "
                f"give ({count}, 3)."
            )
        if len(bad := np.flatnonzero(~np.isfinite(vertices).all(axis=1))):
            raise MeshError(f"frames[{k}]: vertex {bad[0]} is not finite: {vertices[bad[0]]}.")
    return found


def _array(frame: Any) -> np.ndarray:
    plain = to_plain(frame)
    values = np.asarray(plain.numpy() if hasattr(plain, "numpy") else plain)
    if values.dtype.kind not in "fiu":
        raise TypeError(values.dtype)
    return values


def _kind(frames: Any) -> str:
    kind = type(frames).__name__
    if isinstance(frames, Sequence) and len(frames) and not isinstance(frames, str):
        kind += f" of {type(frames[0]).__name__}"
    return kind
