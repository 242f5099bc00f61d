"""Motions of a robot straight in joint space, and the answers about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.pickling import PicklableResult
from abut.errors import SceneError
from abut.query.collide import collide
from abut.scene.objects import ObjectTable
from abut.scene.robots.joint_rotations import motion_rates, rotations_of, values_between
from abut.scene.robots.jointed_arrays import (
    OUTWARD,
    JointedBody,
    arms_of,
    common_body,
    jointed_bodies_of,
)
from abut.scene.robots.kinematics import Joint, JointKind, Kinematics
from abut.scene.robots.motion_search import FoundMotions

MOTION_IMPACT_ROWS = {
    "time": wp.float64,
    "objects": wp.int32,
    "faces": wp.int32,
    "converged": wp.bool,
}


@dataclass(frozen=True, eq=False, repr=False)
class MotionVerdicts(PicklableResult):
    """Verdicts of motions: of one as plain numbers, of a batch as Warp arrays (B, …).

    Attributes:
        free: Certainly without contact, from the start to the end.
        time: Not after the first contact; infinite where free. A motion takes the time from 0 to 1,
            the piece of a path after waypoint k that from k to k + 1; or as ``times`` say.
        converged: Free, or the time is at most the tolerance before the first contact. False where
            a search has ended early: objects come so close that no contact could be shown either.
        objects: (2,) int32, the objects that come into contact first; -1 where free.
        faces: (2,) int32, faces of these objects; -1 where free, or where one object is inside the
            other from the start.
    """

    free: Any
    time: Any
    converged: Any
    objects: Any
    faces: Any

    def __bool__(self) -> bool:
        """Whether all motions are free."""
        return bool(self.free if isinstance(self.free, bool) else self.free.numpy().all())

    def numpy(self) -> dict[str, np.ndarray]:
        """The fields as NumPy arrays."""
        columns = vars(self).items()
        return {k: v.numpy() if isinstance(v, wp.array) else np.asarray(v) for k, v in columns}


@dataclass(frozen=True, eq=False, repr=False)
class MotionImpacts(PicklableResult):
    """First contacts of pairs of objects during a motion of a robot, sorted by objects.

    Attributes:
        time: (n,) float64 in [0, 1], not after the first contact of each pair.
        objects: (n, 2) int32, the lower one first.
        faces: (n, 2) int32, faces of them that come into contact first.
        converged: (n,) bool, as of MotionVerdicts.
        first: The earliest time; infinite without an impact.
    """

    time: wp.array
    objects: wp.array
    faces: wp.array
    converged: wp.array
    first: float

    def __len__(self) -> int:
        """Number of pairs of objects."""
        return self.time.shape[0]

    def __bool__(self) -> bool:
        """Whether there is any impact."""
        return len(self) > 0

    @property
    def safe_step(self) -> float:
        """The share of the motion that is free of contact, at most 1."""
        return min(self.first, 1.0)

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as NumPy arrays."""
        return {name: getattr(self, name).numpy() for name in MOTION_IMPACT_ROWS}


def motion_impacts(found: FoundMotions, device: wp.Device) -> MotionImpacts:
    """Wrap the answers that are not free."""
    rows = found[~found.free]
    rows = rows[np.lexsort(rows.objects.T[::-1])]
    time, objects, faces, converged = (
        wp.array(getattr(rows, name), dtype=kind, device=device)
        for name, kind in MOTION_IMPACT_ROWS.items()
    )
    return MotionImpacts(time, objects, faces, converged, float(rows.time.min(initial=np.inf)))


def motion_verdicts(found: FoundMotions, single: bool, device: wp.Device) -> MotionVerdicts:
    """Wrap answers; ``single`` is the one row of one motion."""
    if single:
        row = (column[0] for column in vars(found).values())
        free, time, converged, objects, faces = row
        return MotionVerdicts(bool(free), float(time), bool(converged), objects, faces)
    kinds = (wp.bool, wp.float64, wp.bool, wp.int32, wp.int32)
    columns = zip(vars(found).values(), kinds, strict=True)
    return MotionVerdicts(*(wp.array(rows, dtype=kind, device=device) for rows, kind in columns))


def first_of_pieces(found: FoundMotions, pieces: int) -> FoundMotions:
    """Answers of paths of so many pieces, from those of the pieces."""
    if pieces <= 1:
        return found
    met = ~found.free.reshape(-1, pieces)
    first = np.where(met.any(axis=1), met.argmax(axis=1), pieces - 1)
    chosen = found[np.arange(len(met)) * pieces + first]
    chosen.time = chosen.time + first
    return chosen


def at_times(found: FoundMotions, times: Any, q0: Any, q1: Any) -> FoundMotions:
    """Answers of paths with times in place of numbers of waypoints; times are rounded down.

    Args:
        found: Of paths, whose times are ``k + share``.
        times: (m,) of the waypoints.
        q0, q1: As ``pieces_of`` takes them.

    Raises:
        SceneError: There are no waypoints, or not an increasing time for each.
    """
    rows = np.asarray(times, np.float64)
    count = None if q1 is not None else to_plain(q0).shape[-2]
    if rows.shape != (count,) or not np.isfinite(rows).all() or not (np.diff(rows) > 0).all():
        raise SceneError("times must be increasing numbers, one for each waypoint of a path.")
    met = np.flatnonzero(~found.free)
    piece = np.minimum(found.time[met].astype(int), max(len(rows) - 2, 0))
    start, end = rows[piece], rows[np.minimum(piece + 1, len(rows) - 1)]
    later = start + (found.time[met] - piece) * (end - start)
    found.time[met] = np.maximum(np.nextafter(later, -np.inf), start)
    return found


def nested_pairs(objects: ObjectTable, pairs: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(m, 2) the first pair of objects one of which is inside the other; -1 where there is none.

    Args:
        objects: Of the scene.
        pairs: (n, 2) to look at. Open meshes contain nothing.
        poses: (m, k, 4, 4) of all objects.
    """
    out = np.full((len(poses), 2), -1)
    for a, b in pairs.tolist():
        left = np.flatnonzero(out[:, 0] < 0)
        if not len(left):
            break
        meshes = [objects.pool.mesh(int(objects.shapes[row])) for row in (a, b)]
        if all(mesh.watertight for mesh in meshes):
            at = {"pose_a": poses[left, a], "pose_b": poses[left, b]}
            inside = collide(*meshes, **at, first=True, solid=True).contained.numpy()
            out[left[inside]] = a, b
    return out


def checked_values(kinematics: Kinematics, values: Any) -> np.ndarray:
    """(k,) or (B, k) finite joint values."""
    rows = kinematics.rows_of(values)
    kinematics.require(rows)
    return rows


def pieces_of(kinematics: Kinematics, q0: Any, q1: Any) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """(starts, ends (n, k), pieces of each path, whether it is one path) of motions or waypoints.

    Args:
        kinematics: The robot.
        q0: (k,) or (B, k) starts; without ``q1`` waypoints (m, k) or (B, m, k).
        q1: Ends, like the starts; or one for all, or None.
    """
    if q1 is None:
        paths = to_plain(q0)
        paths = paths if isinstance(paths, np.ndarray) else paths.numpy()
        if paths.ndim not in (2, 3) or paths.shape[-2] == 0:
            raise SceneError(
                f"waypoints must have shape (m, k) or (B, m, k), not {paths.shape}; "
                "a motion needs q0 and q1."
            )
        rows = checked_values(kinematics, paths.reshape(-1, paths.shape[-1]))
        rows = rows.reshape(-1, *paths.shape[-2:])
        whole = rows.shape[1] == 1  # one waypoint: the robot rests
        starts, ends = (rows, rows) if whole else (rows[:, :-1], rows[:, 1:])
        width = rows.shape[2]
        pieces = starts.shape[1]
        return starts.reshape(-1, width), ends.reshape(-1, width), pieces, paths.ndim == 2
    starts = checked_values(kinematics, q0)
    ends = checked_values(kinematics, q1)
    try:
        starts, ends = np.broadcast_arrays(starts, ends)
    except ValueError:
        raise SceneError(f"q0 has shape {starts.shape}, but q1 {ends.shape}.") from None
    single = starts.ndim == 1
    return np.atleast_2d(starts), np.atleast_2d(ends), 1, single


class RobotMotion:
    """A motion of a robot, straight in joint space, over the time from 0 to 1.

    Args:
        kinematics: The robot.
        spheres: Centres (in the frame of the body) and radii of spheres around the objects of each.
        q0, q1: (k,) joint values at the start and at the end.

    Attributes:
        start, end: (k,) joint values.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        spheres: tuple[np.ndarray, np.ndarray],
        q0: np.ndarray,
        q1: np.ndarray,
    ) -> None:
        self.start, self.end = q0, q1
        self._kinematics, self._spheres = kinematics, spheres
        bodies, links = jointed_bodies_of(kinematics)
        rates = motion_rates(q0[None], q1[None], kinematics.balls)[0]
        self._bodies = [_turning_once(body, q0, rates) for body in bodies]
        self._from, self._to = q0.copy(), q0 + rates
        for column in kinematics.balls:
            self._from[column], self._to[column] = 0.0, rates[column]
        self._body = [links[link][0] for link, _ in kinematics.parts]
        self._arms = arms_of(self._bodies)

    def values(self, t: Any) -> np.ndarray:
        """(k,) joint values at a time, or (n, k) at (n,) times."""
        t = np.asarray(t, np.float64)
        return values_between(self.start, self.end, self._kinematics.balls, t)

    def poses(self, t: Any) -> np.ndarray:
        """(m, 4, 4) poses of the robot's objects at a time, or (n, m, 4, 4) at (n,) times."""
        return self._kinematics.poses(self.values(t))

    def travel(self, t0: float = 0.0, t1: float = 1.0) -> np.ndarray:
        """(m,) how far points of the robot's objects travel, at most, in an interval of time.

        Guarantee:
            Conservative, up to rounding: no point of an object has a longer path.
        """
        return np.array([self._travel(body, -1, t0, t1) for body in self._body])

    def relative_travel(self, a: int, b: int, t0: float = 0.0, t1: float = 1.0) -> float:
        """Bound of the change of the distance between points of two of the robot's objects.

        Both travel in the frame of the last link that moves both, so that joints before it do not
        count.

        Args:
            a, b: Numbers of objects among those of the robot.
            t0, t1: Times.

        Guarantee:
            Conservative, up to rounding.
        """
        pair = self._body[a], self._body[b]
        common = common_body(self._bodies, *pair)
        return sum(self._travel(body, common, t0, t1) for body in pair)

    def _travel(self, body: int, above: int, t0: float, t1: float) -> float:
        """Bound of the paths of points of a body in the frame of another body above it."""
        centres, radii = self._spheres
        if body == above or radii[body] < 0:
            return 0.0
        half, poses = 0.5 * abs(t1 - t0), self._body_poses(0.5 * (t0 + t1))
        centre, radius = _moved(poses[body], centres[body]), radii[body]
        reach = np.linalg.norm(centres[body] - self._bodies[body].joint.anchor) + radius
        travel, k = 0.0, body  # from the middle, forwards or backwards
        while k != above:
            joint = self._bodies[k].joint
            values = np.stack([self._from, self._to])[:, joint.column] * joint.scale + joint.shift
            rate = abs(values[1] - values[0])
            if joint.kind == JointKind.HINGE:
                axis = poses[k][:3, :3] @ joint.axis
                arm = np.linalg.norm(np.cross(axis, centre - _moved(poses[k], joint.anchor)))
                rate *= min(arm + radius + travel, reach)
            else:
                reach += np.abs(values).max()
            travel += half * rate
            reach += self._arms[k]
            k = self._bodies[k].parent
        return float(2.0 * travel * OUTWARD)

    def _body_poses(self, t: float) -> list[np.ndarray]:
        """(4, 4) pose of each body at a time."""
        values, poses = ((1.0 - t) * self._from + t * self._to)[None], []
        for body in self._bodies:
            above = poses[body.parent] if body.parent >= 0 else np.eye(4)
            poses.append(above @ body.frame @ body.joint.motions(values)[0])
        return poses


def _turning_once(body: JointedBody, start: np.ndarray, rates: np.ndarray) -> JointedBody:
    """The body; a ball is the hinge that turns it in a motion, from the rotation at the start."""
    joint = body.joint
    if joint.kind != JointKind.BALL:
        return body
    frame, first = body.frame.copy(), rotations_of(start[None, joint.columns])[0]
    frame[:3, 3] += frame[:3, :3] @ (joint.anchor - first @ joint.anchor)
    frame[:3, :3] = frame[:3, :3] @ first
    axis = rates[joint.columns[1:]]
    return JointedBody(body.parent, frame, Joint(axis, JointKind.HINGE, joint.anchor, joint.column))


def _moved(pose: np.ndarray, point: np.ndarray) -> np.ndarray:
    return pose[:3, :3] @ point + pose[:3, 3]
