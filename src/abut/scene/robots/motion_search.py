"""MotionSearch: first contacts of motions of a robot, straight in joint space."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import thread_count
from abut.core.lanes import WARP_SIZE
from abut.core.launch import SLICES_PER_THREAD, Task
from abut.operands.jointed_bodies import BodyStates, JointMotions
from abut.scene.robots.jointed_arrays import JointedArrays
from abut.traversal.motion.certify import (
    CONTACT,
    FREE,
    FULL,
    MOST_LEVELS,
    MotionRows,
    Pending,
    TeamScratch,
    certify_motions_kernel,
)

STACK = 1 << 11  # pairs of nodes that a team opens
LISTED = 1 << 13  # pairs that it leaves to shorter intervals, to begin with
MOST_LISTED = 1 << 22
CUDA_TEAMS = 2048
MORE_LEVELS = 16  # halvings below the tolerance
MOST_INTERVALS = 1 << 14
ROUNDING = 2.0**-43  # of positions: a thousand roundings of the sum of their coordinates
FREE_INT, CONTACT_INT, FULL_INT = int(FREE), int(CONTACT), int(FULL)


@dataclass
class FoundMotions:
    """Answers about motions, on the host.

    Attributes:
        free: (n,) certainly without contact.
        time: (n,) not after the first contact; infinite where free.
        converged: (n,) free, or the time is within the tolerance.
        objects, faces: (n, 2) that come into contact first; -1 where free or not known.
    """

    free: np.ndarray
    time: np.ndarray
    converged: np.ndarray
    objects: np.ndarray
    faces: np.ndarray

    def __getitem__(self, rows: Any) -> "FoundMotions":
        """Some of the rows."""
        return FoundMotions(*(column[rows] for column in vars(self).values()))


class MotionSearch:
    """A search among pairs of objects, of which a robot moves at least one.

    Args:
        arrays: The robot and the objects.
    """

    def __init__(self, arrays: JointedArrays) -> None:
        self.arrays, self.device = arrays, arrays.device
        self._counter = wp.zeros(1, dtype=wp.int32, device=self.device)
        self._scratches: dict[tuple[int, int], Any] = {}

    def run(self, start: np.ndarray, end: np.ndarray, gap: float, tolerance: float) -> FoundMotions:
        """First contacts of motions from (n, k) to (n, k) joint values."""
        count, pairs = len(start), len(self.arrays.pairs)
        items = np.zeros((count, 3), np.int32)
        items[:, 0], items[:, 2] = np.arange(count), pairs
        return self._run(items, start, end, gap, tolerance)

    def run_pairs(
        self, start: np.ndarray, end: np.ndarray, gap: float, tolerance: float
    ) -> FoundMotions:
        """First contacts of each pair of objects in one motion, given as (1, k) joint values."""
        pair = np.arange(len(self.arrays.pairs))
        items = np.column_stack([np.zeros_like(pair), pair, pair + 1]).astype(np.int32)
        return self._run(items, start, end, gap, tolerance)

    def _run(
        self, items: np.ndarray, start: np.ndarray, end: np.ndarray, gap: float, tolerance: float
    ) -> FoundMotions:
        motions = joint_motions(self.arrays, start, end, gap)
        first = max(int(np.ceil(-np.log2(tolerance))), 0)
        last = min(first + MORE_LEVELS, MOST_LEVELS)
        levels = wp.vec3i(min(first, last), last, MOST_INTERVALS)
        most_pairs = int((items[:, 2] - items[:, 1]).max(initial=0))
        listed, left = max(LISTED, 8 * most_pairs), np.arange(len(items))
        outcome = np.full(len(items), FULL_INT)
        found = FoundMotions(
            *(np.empty(len(items), kind) for kind in (bool, float, bool)),
            *(np.empty((len(items), 2), np.int32) for _ in range(2)),
        )
        while len(left):  # once; again where lists were full
            rows = self._launch(items[left], motions, levels, listed)
            outcome[left] = rows.outcome.numpy()
            found.time[left] = rows.time.numpy()
            found.objects[left], found.faces[left] = rows.objects.numpy(), rows.faces.numpy()
            left = left[outcome[left] == FULL_INT] if listed < MOST_LISTED else left[:0]
            listed *= 8
        found.free = outcome == FREE_INT
        found.converged = found.free | (outcome == CONTACT_INT)
        return found

    def _launch(self, items: np.ndarray, motions: Any, levels: Any, listed: int) -> Any:
        """Run the kernel; answers are on the device, a row for each item."""
        count, device, cuda = len(items), self.device, self.device.is_cuda
        most = CUDA_TEAMS if cuda else thread_count() * SLICES_PER_THREAD
        teams = max(min(count, most * LISTED // listed, most), 1)
        rows = MotionRows()
        for name, dtype in (("outcome", wp.int32), ("time", wp.float64)):
            setattr(rows, name, wp.empty(count, dtype=dtype, device=device))
        for name in ("objects", "faces"):
            setattr(rows, name, wp.empty(count, dtype=wp.vec2i, device=device))
        view = self.arrays
        args = [view.objects.pool.arrays.bvhs, view.body_view, view.object_view, motions]
        args += [wp.array(items, dtype=wp.vec3i, device=device), levels, self._counter]
        self._counter.zero_()
        lanes = WARP_SIZE if cuda else 1
        args += [self._scratch(teams, listed), rows]
        Task(certify_motions_kernel, teams * lanes, args, device, grain=1).run()
        return rows

    def _scratch(self, teams: int, listed: int) -> Any:
        """Memory of teams, kept for the sizes that are usual."""
        key = (teams, listed)
        if key not in self._scratches:
            if len(self._scratches) > 2:
                self._scratches.clear()
            self._scratches[key] = self._new_scratch(teams, listed)
        return self._scratches[key]

    def _new_scratch(self, teams: int, listed: int) -> Any:
        pending, scratch = Pending(), TeamScratch()
        size = STACK + listed
        pending.entries = wp.empty(teams * size, dtype=wp.vec3i, device=self.device)
        pending.stack_size, pending.size, pending.teams = STACK, size, teams
        scratch.states, scratch.pending = empty_states(self.arrays, teams), pending
        return scratch


def joint_motions(arrays: JointedArrays, start: np.ndarray, end: np.ndarray, gap: float) -> Any:
    """The struct of motions from (n, k) to (n, k) joint values, with a gap to keep."""
    motions = JointMotions()
    motions.start = wp.array(start, dtype=wp.float64, device=arrays.device)
    motions.rates = wp.array(end - start, dtype=wp.float64, device=arrays.device)
    motions.min_distance = wp.float64(gap)
    most = max(np.abs(start).max(initial=0.0), np.abs(end).max(initial=0.0))
    rounding = ROUNDING * (1.0 + most) * (1.0 + len(arrays.bodies) / 8)
    motions.rounding = wp.float64(rounding + 8 * arrays.skew)
    return motions


def empty_states(arrays: JointedArrays, teams: int) -> Any:
    """Memory for the states of bodies of so many teams."""

    def empty(count: int, dtype: Any) -> wp.array:
        return wp.empty(teams * count, dtype=dtype, device=arrays.device)

    bodies, objects, states = len(arrays.bodies), len(arrays.body), BodyStates()
    states.rotations = empty(bodies, wp.mat33d)
    for name in ("positions", "axes", "anchors", "spins", "drifts"):
        setattr(states, name, empty(bodies, wp.vec3d))
    states.speeds = empty(bodies, wp.float64)
    states.bends = empty(bodies * (bodies + 1), wp.float64)
    states.object_rotations = empty(objects, wp.mat33d)
    states.object_positions = empty(objects, wp.vec3d)
    return states
