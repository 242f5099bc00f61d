"""Fields in files: abut's own NumPy archives, and NanoVDB, which Warp writes."""

from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.errors import FileError
from abut.io.numpy_files import read_archive
from abut.io.write import replacing
from abut.options import Sign

FORMAT = "abut distance field 1"
SHAPES = {"lower": (3,), "spacing": (), "sign": (), "band": ()}


def require_known(path: Path) -> None:
    """Refuse file names with an unknown suffix."""
    if path.suffix not in (".npz", ".nvdb"):
        raise FileError(f"{path} should end in .npz or .nvdb.")


def save_archive(path: Path, state: dict[str, Any]) -> None:
    """Write the state of a field as ``.npz``, to the name as given."""
    with replacing(path) as new, new.open("wb") as file:
        np.savez(file, format=FORMAT, **state)


def load_archive(path: Path) -> dict[str, Any]:
    """Read the state that save_archive wrote."""
    state = read_archive(path, "a distance field")
    if str(state.pop("format", "")) != FORMAT:
        raise FileError(f"{path} is no distance field of abut.")
    if not _is_whole(state):
        raise FileError(f"{path} is a distance field with parts missing.")
    return state


def save_nanovdb(path: Path, distance: np.ndarray, lower: np.ndarray, spacing: float) -> None:
    """Write the distances as ``.nvdb``; the background is the largest of them."""
    volume = wp.Volume.load_from_numpy(
        distance,
        min_world=tuple(map(float, lower)),
        voxel_size=float(spacing),
        bg_value=float(distance.max()),
        device="cpu",
    )
    with replacing(path) as new:
        volume.save_to_nvdb(str(new))


def _is_whole(state: dict[str, Any]) -> bool:
    """Return whether all parts are there, of the right types and shapes, with sound numbers."""
    kinds = {"lower": "f", "spacing": "f", "band": "f", "sign": "U"}
    if not all(name in state and state[name].dtype.kind == kinds[name] for name in SHAPES):
        return False
    distance, gradient = state.get("distance"), state.get("gradient")
    return bool(
        all(state[name].shape == shape for name, shape in SHAPES.items())
        and np.isfinite(state["lower"]).all()
        and np.isfinite(state["spacing"])
        and state["spacing"] > 0
        and state["band"] > 0
        and str(state["sign"]) in set(Sign)
        and distance is not None
        and distance.dtype == np.float32
        and distance.ndim == 3
        and min(distance.shape) >= 2
        and not np.isnan(distance).any()
        and gradient is not None
        and gradient.dtype == np.int16
        and gradient.shape == (*distance.shape, 3)
    )
