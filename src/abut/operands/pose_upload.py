"""Batches of poses for a CUDA device: copied there and checked there."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import scalar_dtype, to_plain
from abut.core.cache import ThreadCache
from abut.core.launch import launch, run_parallel
from abut.geometry.poses import checked_poses, is_rigid

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_UPLOAD = 32  # poses; fewer are checked on the host sooner
ROWS_PER_COPY = 1 << 13  # poses that one thread copies at least

_staging = ThreadCache()


@wp.kernel
def count_unfit_kernel(
    # in
    span: wp.vec3i,
    poses: wp.array[wp.mat44d],
    # out
    unfit_out: wp.array[wp.int32],
):
    """Count the poses that are not rigid motions."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if not is_rigid(poses[i]):
            wp.atomic_add(unfit_out, 0, 1)


class PoseStaging:
    """Pinned memory through which a thread sends poses to a device, and the answer of their check.

    Every upload waits for the device, so that the memory is free again for the next one.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._pinned = np.empty((0, 4, 4))
        self._unfit = wp.zeros(1, dtype=wp.int32, device=device)
        self._count = wp.zeros(1, dtype=wp.int32, device="cpu", pinned=True)
        self._count_view = self._count.numpy()

    def send(self, poses: np.ndarray) -> wp.array:
        """Return a copy of (B, 4, 4) numbers on the device."""
        count = len(poses)
        if len(self._pinned) < count:
            self._buffer = wp.empty(count, dtype=wp.mat44d, device="cpu", pinned=True)
            self._pinned = self._buffer.numpy()
        parts = max(1, count // ROWS_PER_COPY)
        edges = [count * k // parts for k in range(parts + 1)]
        spans = [slice(*span) for span in pairwise(edges)]
        run_parallel([partial(np.copyto, self._pinned[span], poses[span]) for span in spans])
        out = wp.empty(count, dtype=wp.mat44d, device=self.device)
        wp.copy(out, self._buffer, count=count)
        return out

    def all_rigid(self, poses: wp.array) -> bool:
        """Whether all poses on the device are rigid motions. Waits for the device."""
        self._unfit.zero_()
        launch(count_unfit_kernel, poses.shape[0], [poses, self._unfit], self.device)
        wp.copy(self._count, self._unfit)
        wp.synchronize_stream(self.device)
        return self._count_view[0] == 0


def upload_poses(pose: Any, name: str, device: wp.Device) -> Any:
    """Return checked poses: on CUDA a larger batch as (B,) mat44d, else as ``checked_poses`` does.

    Either is in memory of its own.
    """
    plain = None if pose is None else to_plain(pose)
    if device.is_cpu or plain is None or plain.ndim != 3 or len(plain) < LEAST_UPLOAD:
        return checked_poses(pose, name)
    if plain.shape[1:] != (4, 4) or scalar_dtype(plain).kind not in "fiub":
        return checked_poses(pose, name)  # which says what is wrong
    staging = _staging.on(device, lambda: PoseStaging(device))
    if isinstance(plain, np.ndarray):
        sent = staging.send(plain)
    else:
        sent = _copied(plain, device)
    return sent if staging.all_rigid(sent) else checked_poses(pose, name)


def on_host(poses: Sequence[Any]) -> tuple[np.ndarray | None, ...]:
    """Return the poses of operands as (B, 4, 4) float64."""
    return tuple(p.numpy() if isinstance(p, wp.array) else p for p in poses)


def _copied(poses: wp.array, device: wp.Device) -> wp.array:
    """Return a (B, 4, 4) Warp array as (B,) mat44d on the device, in memory of its own."""
    numbers = poses.contiguous().to(device)
    if numbers.dtype is wp.float64:
        matrices = numbers.view(wp.mat44d)
        return wp.clone(matrices) if numbers.ptr == poses.ptr else matrices
    out = wp.empty(poses.shape[0], dtype=wp.mat44d, device=device)
    wp.utils.array_cast(numbers, out.view(wp.float64))
    return out
