"""Operands of plans, and the plans and queues that a thread keeps."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.core.cache import RecentCache, ThreadCache
from abut.core.launch import Task
from abut.core.pair_queue import PairQueues
from abut.core.plan import Plan, Stage
from abut.core.progress import tracked
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh
from abut.operands.pose_upload import on_host, take_poses_kernel

LEAST_ROOM = 1 << 14
LEAST_LISTED = 1 << 8  # on the CPU, where candidates are tested as they are found
MOST_LISTED = 1 << 24  # leaves in all poses, on CUDA; beyond that walks from roots are fewer

_plans = ThreadCache()
_queues = ThreadCache()


def shared_queues(device: wp.Device, room: int) -> PairQueues:
    """The queues of this thread on a device; they only ever grow."""

    def make() -> PairQueues:
        from abut.traversal.overlap.leaf_cluster_pairs import REST_QUEUES

        sizes = {"hits": room, "undecided": room, "near": room, "skipped": 1, "unfit": 1}
        lists = room if device.is_cuda else LEAST_LISTED
        sizes |= {"candidates": 8 * lists, "clusters": 4 * lists, "leaves": 8 * lists}
        sizes |= dict.fromkeys(REST_QUEUES, lists)
        return PairQueues(device, **sizes)

    queues = _queues.on(device, make)
    queues.make_room({"hits": room, "undecided": room})
    return queues


def plans_of(a: Mesh, b: Mesh) -> RecentCache:
    """This thread's plans for two meshes, for as long as both live."""
    return _plans.get((a, b), RecentCache)


def kdops_between(
    meshes: tuple[Mesh, Mesh], trees: Any, width: int | None = None, moved: bool = False
) -> Any:
    """k-DOPs of two trees, in fixed point if they have a width, and the axes to test."""
    from abut.bounds.kdop import axis_choices
    from abut.bvh.bvh_cache import kdops_of
    from abut.bvh.node_kdops import KdopShape

    shape = KdopShape() if width is None else KdopShape(width=width)
    axes = axis_choices(shape.sides, shape.sides)
    if not moved:
        axes = axes[axes[:, 0] < 0]  # the normals of one are those of the other
    dops = tuple(kdops_of(mesh, tree, shape) for mesh, tree in zip(meshes, trees, strict=True))
    return dops, axes


def in_chunks(
    ask: Callable[[Any, int], tuple[Any, ...]], poses: Sequence[Any], count: int, room: int
) -> tuple[Any, ...]:
    """Ask about ``room`` poses at a time.

    Args:
        ask: Takes the poses of both operands and their number; returns rows, their poses, and
            other arrays. Arrays are on the host or on a device.
        poses: The poses of both operands.
        count: Number of poses.
        room: The most poses that ``ask`` takes.

    Returns:
        The arrays of all chunks, joined where they are.
    """
    if count <= room:
        return ask(poses, count)
    parts: list[tuple[Any, ...]] = []
    starts = range(0, count, room)
    for start in tracked(starts, len(starts)):
        stop = min(start + room, count)
        chunk = tuple(p if p is None or len(p) == 1 else p[start:stop] for p in poses)
        rows, pose, *rest = ask(chunk, stop - start)
        shifted = wp.array(pose.numpy() + np.int32(start), device=pose.device)
        parts.append((rows, shifted, *rest))
    return tuple(map(_joined, zip(*parts, strict=True)))


def _joined(arrays: Sequence[Any]) -> Any:
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    return wp.array(np.concatenate([a.numpy() for a in arrays]), device=arrays[0].device)


class Operands:
    """Two posed operands of a plan, whose poses may change between runs.

    Poses that lie on a CUDA device are checked there when the plan runs (``pose_stages``).
    """

    a: Any
    b: Any
    _plan: Plan

    def __post_init__(self) -> None:
        """Cache the values that every run needs."""
        self._room = max(LEAST_ROOM, self.a.faces.shape[0] + self.b.faces.shape[0])
        self._poses = [side.poses for side in (self.a, self.b)]
        self._pose_views = [
            p.numpy() if p is not None and p.device.is_cpu else None for p in self._poses
        ]
        self._sent: list[Any] = [None, None]  # poses on the device, unchecked
        self._taking: list[Task | None] = [None, None]

    def move(self, *poses: Any) -> None:
        """Take other poses of a and b, as many as before; see ``make_posed_mesh``."""
        for k, new in enumerate(poses):
            if new is None:
                continue
            view, taking = self._pose_views[k], self._taking[k]
            if view is not None:
                view[:] = new
            elif isinstance(new, np.ndarray):
                self._poses[k].assign(new)
            else:
                self._sent[k] = new
                if taking is None:
                    self._plan.forget()
                else:
                    taking.set_arg(0, new)

    def pose_stages(self, queues: PairQueues) -> Iterator[Stage]:
        """Stages that take the poses last sent to the device, and count invalid ones."""
        for k, (new, held) in enumerate(zip(self._sent, self._poses, strict=True)):
            if new is not None:
                args = [new, held, queues["unfit"]]
                taking = Task(take_poses_kernel, held.shape[0], args, held.device)
                self._taking[k] = taking
                yield "poses", taking.run

    def refuse_unfit(self, counts: dict[str, int]) -> None:
        """Raise PoseError if ``pose_stages`` has counted poses that are not rigid motions."""
        if any(new is not None for new in self._sent) and counts["unfit"]:
            for pose, name in zip(on_host(self._sent), ("pose_a", "pose_b"), strict=True):
                checked_poses(pose, name)
