"""Box: the positions of a field's samples."""

from dataclasses import dataclass

import numpy as np

from abut.errors import CapacityError, MeshError, OptionError
from abut.options import number_from

USUAL = 256  # samples along the longest side
MOST = 1024
USUAL_MARGIN = 0.1  # of the longest side of the mesh

SHORTEST, LONGEST = 1e-30, 1e30  # sides of boxes that float32 suits


@dataclass(frozen=True)
class Box:
    """A regular grid: samples at lower + spacing * (i, j, k)."""

    lower: np.ndarray
    spacing: float
    shape: tuple[int, int, int]

    @property
    def upper(self) -> np.ndarray:
        """The position of the last sample."""
        return self.lower + self.spacing * (np.array(self.shape) - 1)


def box_around(
    bounds: np.ndarray, resolution: int | None, spacing: float | None, margin: float | None
) -> Box:
    """Return the grid over a mesh's bounds and a margin, by resolution or spacing."""
    if resolution is not None and spacing is not None:
        raise OptionError("give resolution or spacing, not both: one follows from the other.")
    with np.errstate(over="ignore"):
        extent = bounds[1] - bounds[0]
    wide = USUAL_MARGIN * float(extent.max())
    if margin is not None:
        wide = number_from(margin, "margin", 0.0)
    sides = extent + 2.0 * wide
    longest = float(sides.max())
    if longest == 0.0:
        raise MeshError("the mesh is a single point; give the field a margin around it.")
    if not SHORTEST <= longest <= LONGEST:
        raise MeshError(
            f"a field holds distances in float32, which a box of {longest:.6g} does not suit; "
            "scale the mesh."
        )
    if spacing is None:
        spacing = longest / (_checked(resolution) - 1)
    else:
        spacing = number_from(spacing, "spacing", 0.0)
        if not spacing > 0.0 or longest / spacing > MOST - 1:
            raise OptionError(
                f"spacing must be from {longest / (MOST - 1):.6g} up for a field this long, "
                f"not {spacing!r}."
            )
    counts = np.ceil(sides / spacing * (1.0 - 2.0**-40)).astype(np.int64)  # of cells
    counts = np.maximum(counts, 1)
    centre = 0.5 * (bounds[0] + bounds[1])
    nx, ny, nz = (int(n) + 1 for n in counts)
    return Box(centre - 0.5 * spacing * counts, spacing, (nx, ny, nz))


def _checked(resolution: int | None) -> int:
    if resolution is None:
        return USUAL
    try:
        whole = int(resolution) if resolution == int(resolution) else 0
    except (TypeError, ValueError, OverflowError):
        whole = 0
    if whole < 2:
        raise OptionError(f"resolution must be a whole number from 2 up, not {resolution!r}.")
    if whole > MOST:
        raise CapacityError(f"resolution {whole} is too fine; {MOST} is the most.")
    return whole
