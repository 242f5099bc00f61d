"""A planner that takes a part out of an assembly: a tree of poses, grown by batches of edges.

Rapidly-exploring random trees (LaValle 1998), a batch at once: each round draws many poses, goes
from the nearest pose of the tree towards each, and asks about all poses on all these edges in one
call. Edges tested at poses alone may graze between them, so the edges of the path are tested
continuously at the end; one that touches is cut off, and the tree grows on.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from abut.cases.crank import crank, ring_frame
from abut.cases.placed_shapes import rotations_of_quaternions
from abut.cases.shape import Shape
from abut.core.device import resolve_device
from abut.core.timing import stage
from abut.errors import OptionError
from abut.mesh import Mesh
from abut.motion import Motion
from abut.query.ccd import ccd
from abut.query.collide import collide
from abut.sim.simulation import Seen, Simulation, box_corners

EDGES = 64  # of a round
POSES = 8  # on an edge
STEP = 0.3  # length of an edge, in lengths of position and radians of rotation alike
MOST_ROUNDS = 4000
SHORTCUTS = 40


@dataclass
class Tree:
    """Poses and the pose that each was reached from; positions, and rotations as quaternions."""

    at: np.ndarray
    turn: np.ndarray
    parent: np.ndarray

    def nearest(self, at: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Return the nearest pose of the tree to each of some poses."""
        apart = np.linalg.norm(self.at[:, None] - at, axis=2)
        return np.argmin(apart + _angle(self.turn[:, None], turn[None]), axis=0)

    def add(self, at: np.ndarray, turn: np.ndarray, parent: np.ndarray) -> None:
        """Append poses."""
        self.at = np.concatenate([self.at, at])
        self.turn = np.concatenate([self.turn, turn])
        self.parent = np.concatenate([self.parent, parent])

    def way_to(self, pose: int) -> list[int]:
        """Return the poses from the first to one."""
        way = [pose]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        return way[::-1]

    def without(self, pose: int) -> "Tree":
        """Return the tree without a pose and all that was reached from it."""
        gone = np.zeros(len(self.at), dtype=bool)
        for k in range(len(self.at)):  # parents come first
            gone[k] = k == pose or (self.parent[k] >= 0 and gone[self.parent[k]])
        number = np.cumsum(~gone) - 1
        parent = np.where(self.parent >= 0, number[self.parent], -1)
        return Tree(self.at[~gone], self.turn[~gone], parent[~gone])


class Disassembly(Simulation):
    """A part that leaves an assembly along the x axis, on a path that the planner finds.

    Args:
        part, assembly: Meshes in one frame, the part where it is fitted.
        reach: Positions from -reach to reach along each axis are searched.
        seed: Of the random poses.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        path: (n, 4, 4) poses of the part, free along and between them; empty before ``plan``.
        counts: Of the plan: rounds, poses tested, poses in the tree, edges cut off.
    """

    stages = ("edges", "certify", "collide")
    other_method = "brute"
    frames = 40  # of the way out

    def __init__(
        self,
        part: Shape,
        assembly: Shape,
        *,
        reach: float = 2.0,
        seed: int = 0,
        device: object = None,
    ) -> None:
        device = resolve_device(device)
        self.shapes = part, assembly
        self.part, self.assembly = (Mesh(*shape, device=device) for shape in self.shapes)
        self.device, self.reach = device, reach
        self.face_count = len(part.faces) + len(assembly.faces)
        self.path = np.empty((0, 4, 4))
        self.counts = {"rounds": 0, "poses": 0, "tree": 0, "cut": 0}
        self._random = np.random.default_rng(seed)
        self._beyond = float(assembly.vertices[:, 0].max()) + 0.05
        self._frame = 0
        low, high = assembly.vertices.min(axis=0), assembly.vertices.max(axis=0)
        length = np.array([float(np.ptp(part.vertices[:, 0])), 0.0, 0.0])
        self.around = box_corners(tuple(low), tuple(high + length))
        if collide(self.part, self.assembly, first=True):
            raise OptionError("the part touches the assembly where it is fitted; move it apart.")

    def plan(self) -> np.ndarray:
        """Find ``path``; returns it."""
        tree = Tree(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([-1]))
        while not len(self.path):
            out = self._grow(tree)
            way = self._shortened(tree, tree.way_to(out)) if out >= 0 else []
            touching = self._touching(tree, way)
            if touching is None:
                self.path = _dense(tree.at[way], tree.turn[way])
            else:
                tree = tree.without(touching)
                self.counts["cut"] += 1
        self.counts["tree"] = len(tree.at)
        return self.path

    def advance(self) -> dict[str, int]:
        """Plan in the first frame, then go on along the path and look for contacts."""
        if not len(self.path):
            self.plan()
        self._frame = min(self._frame + 1, self.frames)
        with stage("collide", self.device):
            pairs = len(self.rows("bvh"))
        return {**self.counts, "pairs": pairs}

    def seen(self) -> list[Seen]:
        """Return the part where it is, and the assembly."""
        part, assembly = self.shapes
        pose = self._pose()
        moved = Shape(part.vertices @ pose[:3, :3].T + pose[:3, 3], part.faces)
        return [Seen(moved, "piece"), Seen(assembly, "stone")]

    def rows(self, method: str) -> np.ndarray:
        """Return faces that intersect: none."""
        found = collide(self.part, self.assembly, pose_a=self._pose(), method=method)
        return np.pad(found.pairs.numpy(), ((0, 0), (2, 0)))

    def _pose(self) -> np.ndarray:
        if not len(self.path):
            return np.eye(4)
        return self.path[round(self._frame / self.frames * (len(self.path) - 1))]

    def _grow(self, tree: Tree) -> int:
        """Grow a tree until a pose is out; returns that pose."""
        while self.counts["rounds"] < MOST_ROUNDS:
            self.counts["rounds"] += 1
            at = self._random.uniform(-self.reach, self.reach, (EDGES, 3))
            turn = self._random.normal(size=(EDGES, 4))
            turn /= np.linalg.norm(turn, axis=1, keepdims=True)
            start = tree.nearest(at, turn)
            length = np.linalg.norm(at - tree.at[start], axis=1) + _angle(tree.turn[start], turn)
            share = np.minimum(STEP / length, 1.0)
            at = tree.at[start] + share[:, None] * (at - tree.at[start])
            turn = _slerp(tree.turn[start], turn, share)
            free = self._free(tree.at[start], tree.turn[start], at, turn)
            tree.add(at[free], turn[free], start[free])
            towards_x = rotations_of_quaternions(turn[free])[:, 0]
            along = self.shapes[0].vertices @ towards_x.T + at[free, 0]
            out = np.flatnonzero(along.min(axis=0, initial=np.inf) > self._beyond)
            if len(out):
                return len(tree.at) - int(free.sum()) + int(out[0])
        raise OptionError(f"the planner found no way out in {MOST_ROUNDS} rounds.")

    def _free(self, at0: Any, turn0: Any, at1: Any, turn1: Any) -> np.ndarray:
        """Return whether each edge is free of contact at all of its poses, by one call."""
        poses = np.concatenate(
            [_poses(at0 + t * (at1 - at0), _slerp(turn0, turn1, t)) for t in _shares()]
        )
        self.counts["poses"] += len(poses)
        with stage("edges", self.device):
            hits = collide(self.part, self.assembly, pose_a=poses, first=True)
            met = hits.colliding.numpy().reshape(POSES, -1)
        return ~met.any(axis=0)

    def _shortened(self, tree: Tree, way: list[int]) -> list[int]:
        """Leave out poses between two that a free edge joins; all tries of a round are one call."""
        for _ in range(SHORTCUTS):
            if len(way) < 3:
                break
            ends = np.sort(self._random.integers(0, len(way), (EDGES, 2)), axis=1)
            i, j = (np.array(way)[ends[:, k]] for k in range(2))
            far = np.linalg.norm(tree.at[i] - tree.at[j], axis=1) + _angle(
                tree.turn[i], tree.turn[j]
            )
            fits = (np.diff(ends)[:, 0] > 1) & (far < 2 * STEP)
            if not fits.any():
                continue
            ends, i, j = ends[fits], i[fits], j[fits]
            free = self._free(tree.at[i], tree.turn[i], tree.at[j], tree.turn[j])
            if free.any():
                low, high = ends[free][np.argmax(np.diff(ends[free])[:, 0])]
                way = way[: low + 1] + way[high:]
        for before, after in pairwise(way):
            tree.parent[after] = before
        return way

    def _touching(self, tree: Tree, way: list[int]) -> int | None:
        """The end of the first edge of a way that touches, continuously; None if none does."""
        still = Motion(self.assembly, self.assembly.vertices)
        poses = _poses(tree.at[way], tree.turn[way])
        for k in range(len(way) - 1):
            move = Motion(self.part, start_pose=poses[k], end_pose=poses[k + 1])
            with stage("certify", self.device):
                if ccd(move, still, first=True):
                    return way[k + 1]
        return None


def _shares() -> np.ndarray:
    return np.linspace(0.0, 1.0, POSES + 1)[1:]


def _poses(at: np.ndarray, turn: np.ndarray) -> np.ndarray:
    poses = np.tile(np.eye(4), (len(at), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations_of_quaternions(turn), at
    return poses


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The angle between rotations."""
    return 2.0 * np.arccos(np.clip(np.abs((a * b).sum(axis=-1)), 0.0, 1.0))


def _slerp(a: np.ndarray, b: np.ndarray, share: Any) -> np.ndarray:
    """Return rotations a share of the shorter way from a to b, at constant angular velocity."""
    share = np.broadcast_to(share, len(a))[:, None]
    cosine = (a * b).sum(axis=1, keepdims=True)
    b, half = np.where(cosine < 0.0, -b, b), np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    straight = half < 1e-6
    sine = np.where(straight, 1.0, np.sin(half))
    weights = np.where(straight, 1.0 - share, np.sin((1.0 - share) * half) / sine)
    return weights * a + np.where(straight, share, np.sin(share * half) / sine) * b


def _dense(at: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Poses along a way, a fifteenth of an edge apart."""
    parts = [_poses(at[:1], turn[:1])]
    for k in range(len(at) - 1):
        length = float(np.linalg.norm(at[k + 1] - at[k]) + _angle(turn[k], turn[k + 1]))
        shares = np.linspace(0.0, 1.0, max(2, round(15 * length / STEP)))[1:, None]
        before, after = (np.repeat(turn[i : i + 1], len(shares), axis=0) for i in (k, k + 1))
        parts.append(
            _poses(at[k] + shares * (at[k + 1] - at[k]), _slerp(before, after, shares[:, 0]))
        )
    return np.concatenate(parts)


def crank_in_a_ring(
    faces: int = 6000, device: object = None, meshes: tuple[Shape, ...] = ()
) -> Disassembly:
    """Return a bent rod that a planner takes out of a ring.

    Args:
        faces: Approximate number of faces.
        device: None is the first CUDA device, else the CPU.
        meshes: The part and the assembly, in their place.
    """
    part, assembly = meshes or (crank(faces // 3), ring_frame(faces // 2))
    return Disassembly(part, assembly, device=device)
