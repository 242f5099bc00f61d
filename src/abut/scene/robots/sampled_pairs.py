"""Link pairs that need no test, found by sampling: adjacent, always and never in contact."""

from typing import TYPE_CHECKING

import numpy as np

from abut.errors import SceneError
from abut.scene.files.robot_description import LinkPair
from abut.scene.robots.kinematics import JointKind

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot

CHUNK = 1024  # configurations that are posed at a time
ALWAYS = 0.95  # share of samples in contact from which a pair is always so


def sample_pairs(robot: "Robot", samples: int, seed: int) -> list[LinkPair]:
    """Link pairs that need no test, as ``Robot.allowed_pairs`` returns them."""
    kinematics = robot.kinematics
    parts = zip(robot.objects.tolist(), kinematics.parts, strict=True)
    carried = {row: link for row, (link, _) in parts}
    rows = [row for row in carried if row not in robot.attached]
    links = sorted({carried[row] for row in rows})
    rest = kinematics.rows_of({})[None]
    low, high = robot.limits.reshape(-1, 2).T
    rest = rest[((rest >= low) & (rest <= high)).all(axis=1)]  # none where it is outside
    values = sampled_values(robot, samples, seed)
    pairs = _Contacts(robot, rows, [carried[row] for row in rows])
    adjacent, roaming = _adjacent(robot, links), _roaming(robot)
    at_rest, counts = pairs.counts(rest) > 0, pairs.counts(values)
    out = []
    for i, a in enumerate(links):
        for b in links[i + 1 :]:
            reason = None
            if adjacent[a, b]:
                reason = "Adjacent"
            elif at_rest[a, b]:
                reason = "Default"
            elif counts[a, b] >= ALWAYS * samples:
                reason = "Always"
            elif counts[a, b] == 0 and roaming[a] == roaming[b]:
                reason = "Never"
            if reason is not None:
                out.append(LinkPair(robot.links[a], robot.links[b], reason))
    return out


def sampled_values(robot: "Robot", samples: int, seed: int) -> np.ndarray:
    """(samples, k) uniform within the limits; hinges without them turn by half a turn each way.

    Rotations of balls are uniform. Positions of joints that move freely in space stay at rest.
    """
    kinematics, rng = robot.kinematics, np.random.default_rng(seed)
    low, high = robot.limits.reshape(-1, 2).T.copy()
    every = [joint for moves in kinematics.moves for joint in moves]
    slides = {joint.column for joint in every if joint.kind == JointKind.SLIDE}
    wide = {column for columns in kinematics.wide.values() for column in columns}
    for column in np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high)).tolist():
        low[column], high[column] = -np.pi, np.pi
        if column in slides & wide:
            low[column] = high[column] = kinematics.rows_of({})[column]
        elif column in slides:
            raise SceneError(f"joint {robot.joints[column]} slides without limits; give it some.")
    values = rng.uniform(low, high, (samples, len(low)))
    for column in kinematics.balls:
        part = slice(column, column + 4)
        values[:, part] = _rotations(samples, robot.limits[column, 0], rng)
    return values


def _rotations(samples: int, least: float, rng: np.random.Generator) -> np.ndarray:
    """(samples, 4) uniform quaternions w x y z with w >= 0, and at least ``least``."""
    most = 2.0 * np.arccos(np.clip(least, 0.0, 1.0))
    angles = np.linspace(0.0, most, 1025)
    shares = angles - np.sin(angles)  # of all rotations, up to an angle
    half = 0.5 * np.interp(rng.uniform(0.0, shares[-1], samples), shares, angles)
    axes = rng.normal(size=(samples, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.column_stack([np.cos(half), np.sin(half)[:, None] * axes])


def _roaming(robot: "Robot") -> list[set[int]]:
    """Columns of positions without limits that move each link, which samples leave at rest."""
    kinematics, out = robot.kinematics, []
    wide = {column for columns in kinematics.wide.values() for column in columns}
    free = wide & set(np.flatnonzero(~np.isfinite(robot.limits).all(axis=1)).tolist())
    for parent, moves in zip(kinematics.parents, kinematics.moves, strict=True):
        own = {joint.column for joint in moves if joint.kind == JointKind.SLIDE}
        out.append((own & free) | (out[parent] if parent >= 0 else set()))
    return out


def _adjacent(robot: "Robot", links: list[int]) -> np.ndarray:
    """(n, n) bool: links joined to each other, or through links without geometry alone."""
    parents = robot.kinematics.parents
    near = np.zeros((len(parents), len(parents)), bool)
    for link, above in enumerate(parents):
        if above >= 0:
            near[link, above] = near[above, link] = True
    for bare in sorted(set(range(len(parents))) - set(links)):
        around = np.flatnonzero(near[bare])
        near[np.ix_(around, around)] = True
        near[bare] = near[:, bare] = False
    return near


class _Contacts:
    """A scene of the robot alone, in which all pairs of links are tested as solids."""

    def __init__(self, robot: "Robot", rows: list[int], links: list[int]) -> None:
        from abut.scene.scene import Scene  # it imports the robot

        self.robot, self.links = robot, np.array(links)
        self.columns = np.flatnonzero(np.isin(robot.objects, rows))
        self.scene = Scene(device=robot.scene.device)
        for row in rows:
            self.scene.add(robot.scene.mesh(row))
        low, high = np.nonzero(np.triu(self.links[:, None] == self.links, 1))
        self.scene.ignore(low, high)

    def counts(self, values: np.ndarray) -> np.ndarray:
        """(n, n): in how many configurations each two links meet."""
        count = len(self.robot.links)
        out = np.zeros((count, count), int)
        for first in range(0, len(values), CHUNK):
            part = values[first : first + CHUNK]
            met = np.zeros((len(part), count, count), bool)
            poses = self.robot.object_poses(part)[:, self.columns]
            hits = self.scene.collide(poses=poses, first=True)
            a, b = self.links[hits.object_pairs.numpy()].reshape(-1, 2).T
            copies = hits.object_pair_pose
            assert copies is not None
            met[copies.numpy(), a, b] = True
            self._mark_inside(met, poses)
            met |= met.swapaxes(1, 2)
            out += met.sum(axis=0)
        return out

    def _mark_inside(self, met: np.ndarray, poses: np.ndarray) -> None:
        """Add pairs of which one is inside the other, where their surfaces do not meet."""
        from abut.query.point_signs import contains

        meshes = self.scene.meshes
        for i, mesh in enumerate(meshes):
            if not mesh.watertight:
                continue
            back = np.linalg.inv(poses[:, i])
            for j, other in enumerate(meshes):
                if i == j or self.links[i] == self.links[j] or not other.face_count:
                    continue
                low, high = mesh.bounds
                for vertex in other.points.numpy()[other.topology.anchors]:
                    place = (back @ poses[:, j] @ np.append(vertex, 1.0))[:, :3]
                    near = np.flatnonzero(((place >= low) & (place <= high)).all(axis=1))
                    if len(near):
                        inside = contains(mesh, place[near]).numpy()
                        met[near[inside], self.links[i], self.links[j]] = True
