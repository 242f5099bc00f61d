"""Labels of vertices, and the pairs of labels that a continuous query ignores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import scalar_dtype, to_plain
from abut.errors import OptionError
from abut.motion import Motion

MOST_LABELS = 4096  # in ignored pairs: their table has a byte for each two
SAME = "same"


@dataclass(frozen=True)
class IgnoredLabels:
    """Labels of vertices and ignored pairs of labels, as kernels read them.

    Attributes:
        labels: (n,) int32 for each motion.
        pairs: (k, k) bool, the ignored pairs of the labels below k; empty: equal labels.
    """

    labels: tuple[wp.array, ...]
    pairs: wp.array


def ignored_labels(motions: tuple[Motion, ...], labels: Any, ignore: Any) -> IgnoredLabels | None:
    """The labels and ignored pairs that were given; None where nothing was."""
    if labels is None and ignore is None:
        return None
    if labels is None or ignore is None:
        raise OptionError(
            "labels and ignore go together: labels number the vertices, and ignore is 'same' or "
            "the (n, 2) pairs of labels that do not collide."
        )
    given = (labels,) if len(motions) == 1 else labels
    if len(given) != len(motions):
        raise OptionError("two motions need labels=(labels_a, labels_b).")
    arrays = tuple(_labels_of(m, one) for m, one in zip(motions, given, strict=True))
    return IgnoredLabels(arrays, _pair_table(ignore, motions[0].mesh.device))


def _labels_of(motion: Motion, labels: Any) -> wp.array:
    """(n,) int32 on the device of a motion."""
    mesh, labels = motion.mesh, to_plain(labels)
    if tuple(labels.shape) != (mesh.vertex_count,) or scalar_dtype(labels).kind not in "iu":
        raise OptionError(
            f"the mesh has {mesh.vertex_count} vertices, so labels must be as many integers, "
            f"not {scalar_dtype(labels)} of shape {tuple(labels.shape)}."
        )
    if isinstance(labels, wp.array) and labels.dtype is wp.int32 and labels.device == mesh.device:
        return labels
    host = labels.numpy() if isinstance(labels, wp.array) else np.asarray(labels)
    if host.size and (host.min() < -(2**31) or host.max() >= 2**31):
        raise OptionError("labels must be integers of 32 bits.")
    return wp.array(host.astype(np.int32), device=mesh.device)


def _pair_table(ignore: Any, device: wp.Device) -> wp.array:
    """(k, k) bool, symmetric; (0, 0) where equal labels are ignored."""
    if isinstance(ignore, str):
        if ignore != SAME:
            raise OptionError(f"ignore must be {SAME!r} or (n, 2) pairs of labels, not {ignore!r}.")
        return wp.empty((0, 0), dtype=wp.bool, device=device)
    pairs = np.asarray(ignore if not isinstance(ignore, wp.array) else ignore.numpy())
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise OptionError(
            f"ignore must be {SAME!r} or (n, 2) pairs of labels, not {pairs.dtype} of shape "
            f"{pairs.shape}."
        )
    if pairs.size and (pairs.min() < 0 or pairs.max() >= MOST_LABELS):
        raise OptionError(f"labels in ignore must be from 0 to {MOST_LABELS - 1}.")
    table = np.zeros((int(pairs.max(initial=0)) + 1,) * 2, dtype=bool)
    table[pairs[:, 0], pairs[:, 1]] = table[pairs[:, 1], pairs[:, 0]] = True
    return wp.array(table, dtype=wp.bool, device=device)
