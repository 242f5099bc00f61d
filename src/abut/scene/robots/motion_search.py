"""MotionSearch: first contacts of motions of a robot, straight in joint space."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.call import Call
from abut.core.device import thread_count
from abut.core.lanes import WARP_SIZE
from abut.core.launch import SLICES_PER_THREAD, Task
from abut.operands.jointed_bodies import BodyStates, JointMotions
from abut.scene.robots.joint_rotations import motion_rates
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
MOST_CALLS = 8  # that are kept, by gap, rounding and tolerance
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
        self._calls: dict[Any, Call] = {}  # of one motion

    def run_one(
        self, start: np.ndarray, end: np.ndarray, gap: float, tolerance: float
    ) -> FoundMotions:
        """First contact of one motion, given as (1, k) joint values, by a prepared call."""
        levels = _levels(tolerance)
        key = (gap, position_rounding(self.arrays, start, end), levels)
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= MOST_CALLS:
                self._calls.clear()
            call = self._calls[key] = self._one_call(start, end, gap, levels)
        call.inputs[0][:] = start
        call.inputs[1][:] = motion_rates(start, end, self.arrays.balls)
        call.run()
        outcome, *columns = (column.copy() for column in call.outputs)
        if outcome[0] == FULL_INT:
            return self.run(start, end, gap, tolerance)
        free = outcome == FREE_INT
        time, objects, faces = columns
        return FoundMotions(free, time, free | (outcome == CONTACT_INT), objects, faces)

    def _one_call(self, start: np.ndarray, end: np.ndarray, gap: float, levels: Any) -> Call:
        """The launch for one motion with a gap, and a rounding that suits these values."""
        device, motions = self.device, joint_motions(self.arrays, start, end, gap)
        items = wp.array([[0, 0, len(self.arrays.pairs)]], dtype=wp.vec3i, device=device)
        counter = wp.zeros(1, dtype=wp.int32, device=device)
        rows = _empty_rows(1, device)
        listed = max(LISTED, 8 * len(self.arrays.pairs))
        scratch = self._new_scratch(1, listed)
        task = self._task(items, motions, levels, counter, scratch, rows)
        columns = [rows.outcome, rows.time, rows.objects, rows.faces]
        return Call([task], [motions.start, motions.rates, counter], columns)

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
        levels = _levels(tolerance)
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
        rows = _empty_rows(count, device)
        given = wp.array(items, dtype=wp.vec3i, device=device)
        self._counter.zero_()
        scratch = self._scratch(teams, listed)
        self._task(given, motions, levels, self._counter, scratch, rows).run()
        return rows

    def _task(
        self, items: wp.array, motions: Any, levels: Any, counter: wp.array, scratch: Any, rows: Any
    ) -> Task:
        """The launch for some items, by the teams of ``scratch``."""
        view = self.arrays
        args = [view.objects.pool.arrays.bvhs, view.body_view, view.object_view, motions, items]
        args += [wp.vec3i(*levels), counter, scratch, rows]
        lanes = WARP_SIZE if self.device.is_cuda else 1
        threads = scratch.pending.teams * lanes
        return Task(certify_motions_kernel, threads, args, self.device, grain=1)

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
    rates = motion_rates(start, end, arrays.balls)
    motions.rates = wp.array(rates, dtype=wp.float64, device=arrays.device)
    motions.min_distance = wp.float64(gap)
    motions.rounding = wp.float64(position_rounding(arrays, start, end))
    return motions


def position_rounding(arrays: JointedArrays, start: np.ndarray, end: np.ndarray) -> float:
    """Bound of the rounding of positions over their size, one of few numbers."""
    most = max(np.abs(start).max(initial=0.0), np.abs(end).max(initial=0.0))
    size = 2.0 ** np.ceil(np.log2(1.0 + most))
    return float(ROUNDING * size * (1.0 + len(arrays.bodies) / 8) + 8 * arrays.skew)


def _levels(tolerance: float) -> tuple[int, int, int]:
    """Halvings that a tolerance needs, the most there may be, and the most intervals."""
    first = max(int(np.ceil(-np.log2(tolerance))), 0)
    last = min(first + MORE_LEVELS, MOST_LEVELS)
    return min(first, last), last, MOST_INTERVALS


def _empty_rows(count: int, device: wp.Device) -> Any:
    rows = MotionRows()
    for name, dtype in (("outcome", wp.int32), ("time", wp.float64)):
        setattr(rows, name, wp.empty(count, dtype=dtype, device=device))
    for name in ("objects", "faces"):
        setattr(rows, name, wp.empty(count, dtype=wp.vec2i, device=device))
    return rows


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
