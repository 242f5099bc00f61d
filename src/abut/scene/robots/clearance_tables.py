"""PairGrids: values of one or two joints for which two objects of a robot never or always meet.

The relative pose of two objects depends on the joints between them. Where these are one or two, a
grid over their values says in which cells no contact is possible: at the middle of a cell the
objects are farther apart than any of their points travels within the cell. In other cells they
always meet: a vertex of one is deeper inside the other than points travel.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from operator import is_
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from abut.mesh import Mesh
from abut.query.closest_point import closest_point
from abut.query.collide import collide
from abut.query.distance import distance
from abut.query.point_signs import contains
from abut.scene.robots.kinematics import JointKind, Kinematics
from abut.scene.robots.robot_poses import MovingJoint, RobotPoses, moving_joints

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEVELS = (8, 16, 32, 64, 128)  # cells along each joint, coarse to fine
SLACK = 1e-9  # of travels, for rounding of poses, distances and cells
ROUNDING = 1e-12  # of the size of the robot
FIRST_MET = 32  # cells along each joint, from which cells are asked for contact
MOST_VERTICES = 64  # that are asked how deep they are
UNKNOWN = wp.constant(wp.int32(0))  # cells
FREE = wp.constant(wp.int32(1))
MEETING = wp.constant(wp.int32(2))
NEAR = wp.constant(wp.int32(3))
EXPECTED_S = 0.3  # of one grid


@wp.struct
class CellTables:
    """Grids of pairs of objects over two columns of values, one after the other."""

    of_pair: wp.array[wp.int32]  # grid of each pair, -1 where it has none
    columns: wp.array[wp.vec2i]
    low: wp.array[wp.vec2d]  # first values
    per_value: wp.array[wp.vec2d]  # cells of a unit
    sizes: wp.array[wp.vec2i]  # cells
    starts: wp.array[wp.int32]
    cells: wp.array[wp.uint8]
    gaps: wp.array[wp.float64]  # of objects that are apart in FREE cells, and not in NEAR ones


@wp.func
def pair_state(
    tables: CellTables,
    pair: wp.int32,
    values: wp.array2d[wp.float64],
    row: wp.int32,
    gap: wp.float64,
):
    """State of two objects that are in contact up to a gap: FREE, MEETING or UNKNOWN."""
    state = cell_state(tables, pair, values, row)
    if state == FREE or state == NEAR:
        known = tables.gaps[tables.of_pair[pair]]
        if state == FREE and gap > known:
            return UNKNOWN
        if state == NEAR:
            return wp.where(gap >= known, MEETING, UNKNOWN)
    return state


@wp.func
def cell_state(tables: CellTables, pair: wp.int32, values: wp.array2d[wp.float64], row: wp.int32):
    """State of a pair of objects for a row of values, by its grid; UNKNOWN without one."""
    if tables.of_pair.shape[0] == 0:
        return UNKNOWN
    grid = tables.of_pair[pair]
    if grid < 0:
        return UNKNOWN
    columns = tables.columns[grid]
    size = tables.sizes[grid]
    low = tables.low[grid]
    per_value = tables.per_value[grid]
    x = (values[row, columns[0]] - low[0]) * per_value[0]
    y = (values[row, columns[1]] - low[1]) * per_value[1]
    zero = wp.float64(0.0)
    if not (x >= zero and y >= zero and x < wp.float64(size[0]) and y < wp.float64(size[1])):
        return UNKNOWN
    cell = tables.starts[grid] + wp.int32(x) * size[1] + wp.int32(y)
    return wp.int32(tables.cells[cell])


@dataclass
class JointGrid:
    """The grid of one pair of objects.

    Attributes:
        columns: Of the values; the second is the first where one joint alone matters.
        low, high: (2,) ends of the values.
        cells: (n, m) FREE, MEETING, NEAR or UNKNOWN; m is 1 for one joint.
        gap: Objects are farther apart in cells that are FREE, and never in those that are NEAR.
    """

    columns: tuple[int, int]
    low: np.ndarray
    high: np.ndarray
    cells: np.ndarray
    gap: float = 0.0


class PairTravel:
    """Bounds of travel of points of two objects of a robot, relative to each other.

    Args:
        kinematics: The robot.
        meshes: Of its objects.
        a, b: Numbers of two objects.

    Attributes:
        columns: Columns of the values that their relative pose depends on.
        bounds: For each of them, an upper bound of the travel for a value that changes by 1.
    """

    def __init__(self, kinematics: Kinematics, meshes: list[Mesh], a: int, b: int) -> None:
        self._joints, self._bodies = moving_joints(kinematics)
        self._ranges = value_ranges(kinematics)
        chains = [self._chain(self._bodies[k][0]) for k in (a, b)]
        common = set(chains[0]) & set(chains[1])
        travels: dict[int, float] = {}
        for body, chain in zip((a, b), chains, strict=True):
            pose = self._bodies[body][1]
            points = meshes[body].points.numpy() @ pose[:3, :3].T + pose[:3, 3]
            own = [joint for joint in chain if joint not in common]  # from the body upwards
            for k, joint in enumerate(own):
                about = self._joints[joint].joint
                slides = about.kind == JointKind.SLIDE
                reach = 1.0 if slides else self._reach(own[: k + 1], points)
                for column in about.columns:  # of a ball four: then there is no grid
                    travels[column] = travels.get(column, 0.0) + abs(about.scale) * reach
        self.columns = tuple(sorted(travels))
        self.bounds = np.array([travels[column] for column in self.columns])

    def _chain(self, joint: int) -> list[int]:
        """Joints above a body, the lowest first."""
        out = []
        while joint >= 0:
            out.append(joint)
            joint = self._joints[joint].above
        return out

    def _reach(self, chain: list[int], points: np.ndarray) -> float:
        """Largest distance of points below the lowest joint from the axis of the highest one."""
        lowest = self._joints[chain[0]].joint
        if len(chain) == 1:
            arms = points - lowest.anchor
            along = arms @ lowest.axis
            return float(np.linalg.norm(arms - along[:, None] * lowest.axis, axis=1).max())
        reach = float(np.linalg.norm(points - lowest.anchor, axis=1).max())
        for below, above in pairwise(chain):
            low: MovingJoint = self._joints[below]
            if low.joint.kind == JointKind.SLIDE:
                reach += self._farthest(low.joint)
            anchor = low.frame[:3, :3] @ low.joint.anchor + low.frame[:3, 3]
            reach += float(np.linalg.norm(anchor - self._joints[above].joint.anchor))
        return reach

    def _farthest(self, joint: Any) -> float:
        ends = self._ranges[joint.column] * joint.scale + joint.shift
        return float(np.abs(ends).max())


def value_ranges(kinematics: Kinematics) -> np.ndarray:
    """(k, 2) ends of grids: the limits, and a turn to both sides where there are none."""
    limits = np.asarray(kinematics.limits, float).reshape(-1, 2)
    return np.where(np.isfinite(limits), limits, [-np.pi, np.pi])


def clear_cells(
    kinematics: Kinematics, meshes: list[Mesh], pair: tuple[int, int], gap: float = 0.0
) -> JointGrid | None:
    """The grid of two objects of a robot; None where more than two joints are between them.

    Where it says FREE they are more than ``gap`` apart, and where it says NEAR no farther.
    """
    travel = PairTravel(kinematics, meshes, *pair)
    columns = travel.columns
    bounded = np.isfinite(np.asarray(kinematics.limits, float).reshape(-1, 2)).all(axis=1)
    joints = (row.joint for row in moving_joints(kinematics)[0])
    slides = {joint.column for joint in joints if joint.kind == JointKind.SLIDE}
    if not 1 <= len(columns) <= 2 or any(not bounded[c] for c in slides):
        return None
    low, high = value_ranges(kinematics)[list(columns)].T
    if not (high > low).all():
        return None
    single = len(columns) == 1
    device = meshes[pair[0]].device
    posing = RobotPoses(kinematics, device)
    finest = LEVELS[-1]
    cells = np.zeros((finest, 1 if single else finest), np.uint8)
    waiting = np.stack(np.meshgrid(*[np.arange(LEVELS[0])] * len(columns)), axis=-1)
    waiting = waiting.reshape(-1, len(columns))
    for level in LEVELS:
        step = (high - low) / level
        values = np.tile(kinematics.rows_of({}), (len(waiting), 1))
        values[:, list(columns)] = low + (waiting + 0.5) * step
        reach = float(step / 2 @ travel.bounds)
        states = _states(posing.of(values), meshes, pair, reach, gap, level >= FIRST_MET)
        wide = finest // level
        for cell, state in zip(waiting.tolist(), states.tolist(), strict=True):
            cells[tuple(slice(k * wide, (k + 1) * wide) for k in cell)] = state
        unknown = states == int(UNKNOWN)
        if level == finest or not unknown.any():
            break
        offsets = np.stack(np.meshgrid(*[np.arange(2)] * len(columns)), axis=-1)
        offsets = offsets.reshape(-1, len(columns))
        waiting = (2 * waiting[unknown][:, None] + offsets).reshape(-1, len(columns))
    if single:
        return JointGrid((columns[0], columns[0]), low[[0, 0]], high[[0, 0]], cells, gap)
    return JointGrid((columns[0], columns[1]), low, high, cells, gap)


def _states(
    poses: np.ndarray,
    meshes: list[Mesh],
    pair: tuple[int, int],
    travel: float,
    gap: float,
    asks_met: bool,
) -> np.ndarray:
    """(B,) states of cells: FREE where two objects are apart by more than a travel and a gap.

    NEAR where a gap exceeds their distance by more than a travel. MEETING where ``asks_met`` and a
    vertex is deeper inside than that.
    """
    states = np.full(len(poses), int(UNKNOWN), np.uint8)
    if not len(poses):
        return states
    a, b = (meshes[k] for k in pair)
    at = poses[:, pair[0]], poses[:, pair[1]]
    size = max(float(np.abs(x).max()) for x in at) + max(
        float(np.abs(mesh.points.numpy()).max()) for mesh in (a, b)
    )
    bound = travel * (1.0 + SLACK) + ROUNDING * size
    needed = bound + gap
    gaps = distance(a, b, pose_a=at[0], pose_b=at[1], upper_bound=needed).value.numpy()
    apart, solid = np.flatnonzero(gaps > needed), a.watertight and b.watertight
    states[apart] = int(FREE)
    if gap > 0.0:
        states[gaps < gap - bound] = int(NEAR)
    if solid and len(apart):
        first = {"pose_a": at[0][apart], "pose_b": at[1][apart], "first": True}
        inside = collide(a, b, **first, solid=True).colliding.numpy()
        states[apart[inside]] = int(UNKNOWN)
    met = np.flatnonzero(gaps == 0.0)
    if solid and asks_met and len(met):
        deep = _deepest(a, b, np.linalg.inv(at[0][met]) @ at[1][met])
        states[met[deep > bound]] = int(MEETING)
    return states


def _deepest(a: Mesh, b: Mesh, poses: np.ndarray) -> np.ndarray:
    """(B,) depth in a of the deepest of some vertices of b at poses; 0 where none is inside."""
    points = b.points.numpy()[np.unique(b.faces.numpy())]
    points = points[:: -(-len(points) // MOST_VERTICES)]
    moved = points @ poses[:, :3, :3].swapaxes(1, 2) + poses[:, None, :3, 3]
    inside = contains(a, moved.reshape(-1, 3)).numpy().reshape(len(poses), -1)
    gaps = closest_point(a, moved.reshape(-1, 3)).distance.numpy().reshape(len(poses), -1)
    return np.where(inside, gaps, 0.0).max(axis=1)


class PairGrids:
    """Grids of the pairs of objects of a robot, made one after the other as they pay.

    Args:
        kinematics: The robot.
        meshes: Of its objects.

    Attributes:
        version: Grows with every grid.
        spent: Time of searches so far [seconds].
        enough: Time from which another grid pays.
    """

    def __init__(self, kinematics: Kinematics, meshes: list[Mesh]) -> None:
        self._kinematics, self._meshes = kinematics, meshes
        self._shapes = [mesh.version for mesh in meshes]
        self._grids: dict[tuple[int, int], JointGrid | None] = {}
        self.version, self.spent, self._built, self.enough = 0, 0.0, 0.0, EXPECTED_S

    def serve(self, meshes: list[Mesh]) -> bool:
        """Whether the objects have these meshes, and the meshes their shape."""
        same = len(meshes) == len(self._meshes) and all(map(is_, meshes, self._meshes))
        return same and self._shapes == [mesh.version for mesh in meshes]

    def await_gaps(self, gaps: dict[tuple[int, int], float]) -> None:
        """Let further searches pay for grids again, where some do not keep the gaps of pairs."""
        if any(self._wants(*item) for item in gaps.items()):
            self.enough = min(self.enough, max(self._built, self.spent) + EXPECTED_S)

    def _wants(self, pair: tuple[int, int], gap: float) -> bool:
        """Whether a pair has no grid for a gap, and may have one."""
        held = self._grids.get(pair)
        return pair not in self._grids or (held is not None and held.gap < gap)

    def improve(self, gaps: dict[tuple[int, int], float], every: bool = False) -> None:
        """Make grids of pairs, as long as searches have taken more time; or all of them.

        Args:
            gaps: Up to which two objects are in contact, by pair.
            every: Make all of them.
        """
        if every or self.spent > self.enough:
            self.version = max(self.version, 1)
        for pair, gap in gaps.items():
            if not self._wants(pair, gap):
                continue
            self.enough = self._built + EXPECTED_S
            if not every and self.enough > self.spent:
                return
            start = perf_counter()
            self._grids[pair] = clear_cells(self._kinematics, self._meshes, pair, gap)
            self._built += perf_counter() - start
            self.version += 1
        self.enough = inf

    def tables(self, pairs: list[tuple[int, int]], device: wp.Device) -> Any:
        """CellTables of pairs, by their places in the list."""
        found = {k: self._grids.get(pair) for k, pair in enumerate(pairs)}
        known = {k: grid for k, grid in found.items() if grid is not None}
        return cell_tables(known, len(pairs), device)


def cell_tables(grids: dict[int, JointGrid], pair_count: int, device: wp.Device) -> Any:
    """Grids by the number of the pair, as kernels receive them."""
    out = CellTables()
    if not grids:
        return out
    of_pair = np.full(pair_count, -1, np.int32)
    of_pair[list(grids)] = np.arange(len(grids))
    held = list(grids.values())
    sizes = np.array([grid.cells.shape for grid in held])
    ends = [(grid.high - grid.low) for grid in held]
    starts = np.cumsum([0, *(grid.cells.size for grid in held)])[:-1]
    # along a joint that does not matter there is one cell, for all values
    per_value = np.array([size / end for size, end in zip(sizes, ends, strict=True)])
    out.of_pair = wp.array(of_pair, device=device)
    out.columns = wp.array(
        np.array([grid.columns for grid in held], np.int32), dtype=wp.vec2i, device=device
    )
    out.low = wp.array(np.array([grid.low for grid in held]), dtype=wp.vec2d, device=device)
    out.per_value = wp.array(per_value, dtype=wp.vec2d, device=device)
    out.sizes = wp.array(sizes.astype(np.int32), dtype=wp.vec2i, device=device)
    out.starts = wp.array(starts.astype(np.int32), device=device)
    out.gaps = wp.array(np.array([grid.gap for grid in held]), device=device)
    out.cells = wp.array(np.concatenate([grid.cells.ravel() for grid in held]), device=device)
    return out
