"""Poses of operands: checked on the CPU; on CUDA sent to the device, where plans check them."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import scalar_dtype, to_plain
from abut.core.cache import ThreadCache
from abut.core.launch import run_parallel
from abut.core.pair_queue import PairQueue
from abut.geometry.poses import checked_poses, is_rigid

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ROWS_PER_COPY = 1 << 12  # poses that one thread copies at least

_staging = ThreadCache()


@wp.kernel
def take_poses_kernel(
    # in
    span: wp.vec3i,
    poses: wp.array[wp.mat44d],
    # out
    poses_out: wp.array[wp.mat44d],
    unfit_out: PairQueue,
):
    """Copy poses; count those that are not rigid motions and replace them by the identity."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = poses[i]
        if not is_rigid(pose):
            pose = wp.identity(n=4, dtype=wp.float64)
            wp.atomic_add(unfit_out.count, 0, wp.int64(1))
        poses_out[i] = pose


class PoseStaging:
    """Pinned memory through which a thread sends the poses of one operand to a device.

    The next poses may overwrite it: every query waits for the device before it returns. Two
    operands of a query must not share it, since the copy of the first may still be under way.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._buffer = wp.empty(1, dtype=wp.mat44d, device="cpu", pinned=True)
        self._view = self._buffer.numpy()

    def send(self, poses: np.ndarray) -> wp.array:
        """Return a copy of (B, 4, 4) numbers on the device."""
        count = len(poses)
        if len(self._view) < count:
            wp.synchronize_stream(self.device)  # the old buffer goes
            self._buffer = wp.empty(count, dtype=wp.mat44d, device="cpu", pinned=True)
            self._view = self._buffer.numpy()
        parts = max(1, count // ROWS_PER_COPY)
        edges = [count * k // parts for k in range(parts + 1)]
        spans = [slice(*span) for span in pairwise(edges)]
        run_parallel([partial(np.copyto, self._view[span], poses[span]) for span in spans])
        out = wp.empty(count, dtype=wp.mat44d, device=self.device)
        wp.copy(out, self._buffer, count=count)
        return out


def upload_poses(pose: Any, name: str, device: wp.Device) -> Any:
    """Return poses in memory of their own, or None.

    On the CPU they are (B, 4, 4) float64 and checked, on CUDA (B,) mat44d and unchecked.
    """
    if pose is None:
        return None
    if _is_ready(pose, device):
        return wp.clone(pose)
    plain = to_plain(pose)
    shaped = plain.shape[-2:] == (4, 4) and plain.ndim in (2, 3)
    if device.is_cpu or not shaped or scalar_dtype(plain).kind not in "fiub":
        return checked_poses(pose, name)
    plain = plain.reshape((-1, 4, 4))
    if isinstance(plain, np.ndarray):
        operands = _staging.on(device, dict)
        if name not in operands:
            operands[name] = PoseStaging(device)
        return operands[name].send(plain)
    return _copied(plain, device)


def _is_ready(pose: Any, device: wp.Device) -> bool:
    """Whether poses are an array on this CUDA device that only needs to be copied."""
    if device.is_cpu or not isinstance(pose, wp.array) or pose.dtype is not wp.mat44d:
        return False
    return pose.device == device and pose.ndim == 1 and pose.is_contiguous


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
