"""Length units of models that are in doubt: sizes that no building or machine has."""

from collections.abc import Sequence

import numpy as np

from abut.coordination.report.compare import length_text
from abut.io.models.part_model import PartModel
from abut.scene.touching_solids import moved

LARGEST, SMALLEST = 2e4, 2e-3  # plausible sizes of a model [m]
RATIO = 200.0  # of the sizes of two models of one project, where a unit is not stated
FAR = 10.0  # distance of a model from all others, in units of the largest
FAR_LEAST = 1e3  # [m]


def unit_problems(models: Sequence[PartModel]) -> list[str]:
    """Lines about models whose unit or origin is in doubt, in the order of the models.

    A model is in doubt if it is larger than 20 km or smaller than 2 mm; if its format states no
    unit and none was given, and its size differs from that of another model by a factor of 200; or
    if it lies more than 1 km, and ten times the size of the largest model, from all others.
    """
    found = [(model, box) for model in models if (box := _box(model)) is not None]
    sizes = [float(np.linalg.norm(np.ptp(box, axis=0))) for _, box in found]
    lines = []
    for k, (model, box) in enumerate(found):
        others = [m for m in range(len(found)) if m != k]
        reason = _size_problem(model, sizes[k], [sizes[m] for m in others])
        if not reason and others:
            reason = _place_problem([found[m][1] for m in others], box, max(sizes))
        if reason:
            lines.append(f"{model.path}: {reason}")
    return lines


def _size_problem(model: PartModel, size: float, others: list[float]) -> str:
    stated = "" if model.unit is not None else "; the format states no unit, so give it (--units)"
    if not SMALLEST <= size <= LARGEST:
        return f"it is {_size_text(size)} large, so its unit is in doubt{stated}."
    if model.unit is not None:
        return ""
    for other in others:
        if max(size / other, other / size) > RATIO:
            sides = f"{_size_text(size)} large, and another file {_size_text(other)}"
            return f"it is {sides}; units may disagree{stated}."
    return ""


def _place_problem(others: list[np.ndarray], box: np.ndarray, largest: float) -> str:
    gaps = [np.maximum(box[0] - other[1], other[0] - box[1]).clip(min=0.0) for other in others]
    gap = min(float(np.linalg.norm(one)) for one in gaps)
    if gap <= max(FAR * largest, FAR_LEAST):
        return ""
    return f"it lies {_size_text(gap)} from all other files, so its origin is in doubt."


def _box(model: PartModel) -> np.ndarray | None:
    """(2, 3) bounds of the finite vertices of all parts; None without any."""
    corners = []
    bounds: dict[int, np.ndarray | None] = {}
    for part in model.parts:
        if part.mesh not in bounds:
            points = model.meshes[part.mesh].vertices
            points = points[np.isfinite(points).all(axis=1)]
            low_high = (points.min(axis=0), points.max(axis=0)) if len(points) else None
            bounds[part.mesh] = None if low_high is None else _corners(*low_high)
        known = bounds[part.mesh]
        if known is not None and np.isfinite(part.pose).all():
            corners.append(moved(part.pose, known))
    if not corners:
        return None
    points = np.concatenate(corners)
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(8, 3) corners of a box."""
    return np.stack(np.meshgrid(*np.stack([low, high]).T), axis=-1).reshape(-1, 3)


def _size_text(size: float) -> str:
    return f"{1e-3 * size:,.3g} km" if size >= 1e4 else length_text(size)
