"""Fields in files: abut's own NumPy archives, and NanoVDB, which Warp writes."""

from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.errors import FileError
from abut.io.write import replacing

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
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            state = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    except Exception:  # NumPy and zipfile raise many kinds for other files
        state = None
    if not isinstance(state, dict) or str(state.pop("format", "")) != FORMAT:
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
    distance, gradient = state.get("distance"), state.get("gradient")
    return (
        all(name in state and state[name].shape == shape for name, shape in SHAPES.items())
        and distance is not None
        and distance.dtype == np.float32
        and distance.ndim == 3
        and min(distance.shape) >= 2
        and gradient is not None
        and gradient.dtype == np.int16
        and gradient.shape == (*distance.shape, 3)
    )
