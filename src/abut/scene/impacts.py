"""Scene.ccd: the impacts of all objects of a scene, joined to one mesh in motion."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import EVERYWHERE
from abut.broad.overlaps import overlapping_boxes, posed_boxes
from abut.core.arrays import to_plain
from abut.core.pair_queue import KeyLayout
from abut.core.progress import tracked
from abut.errors import PoseError
from abut.geometry.common_corners import SHARED_BY_INDEX
from abut.geometry.poses import checked_poses
from abut.geometry.rigid_path import MotionPath
from abut.mesh import Mesh
from abut.motion import MIX_ROUNDING, Piece, mixed_points, placed_points
from abut.narrow.impact_paths import TruePaths
from abut.operands.ccd_operands import moving_mesh
from abut.query.ccd import rows_of_pieces
from abut.query.ccd_candidates import CcdStrategy
from abut.query.ccd_labels import IgnoredLabels
from abut.query.ccd_plan import CcdExecution
from abut.query.ccd_queues import require_feature_bits
from abut.query.impact_rows import ImpactRows
from abut.query.initial_distance import initial_distances, log_closer_start
from abut.results import ImpactKind, Impacts, share_below_one
from abut.scene.object_motions import ObjectMotions
from abut.scene.objects import ObjectTable
from abut.scene.rows import ObjectRows
from abut.scene.selection import Part
from abut.scene.shape_arrays import ShapeArrays


@dataclass(frozen=True, eq=False, repr=False)
class SceneImpacts(ObjectRows, Impacts):
    """Impacts of objects, sorted by objects, kind and features, which are those of the objects.

    Attributes:
        first: The earliest time; infinity without an impact. Of a batch of steps (B,) float64.
        pose: (n,) int32, the step of each impact; None without a batch of steps.
        initial_distance: As of Impacts; of a batch of steps (B,) float64.
    """

    first: Any
    pose: wp.array | None = field(default=None, kw_only=True)

    @property
    def safe_step(self) -> Any:
        """The share of the step that is free of contact, at most 1; of a batch (B,) float64."""
        if self.pose is None:
            return min(self.first, 1.0)
        return wp.array(np.minimum(self.first.numpy(), 1.0), device=self.first.device)

    def rescaled_step(self, share: float = 0.9) -> Any:
        """A step that stops short of contact, see Impacts; of a batch (B,) float64."""
        if self.pose is None:
            return super().rescaled_step(share)
        steps = np.minimum(share_below_one(share) * self.first.numpy(), 1.0)
        return wp.array(steps, device=self.first.device)

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        rows = super().numpy()
        return rows if self.pose is None else rows | {"pose": self.pose.numpy()}


class StepPieces:
    """Division of a step into straight pieces, the same whichever objects may touch.

    Attributes:
        count: Number of straight pieces.
        far: Upper bound of coordinates at the start and at the end.
        deviation: Largest deviation of an object from its straight pieces.
        rotates: Whether an object rotates, so that times are refined on true paths.
    """

    def __init__(self, motions: ObjectMotions, boxes: np.ndarray) -> None:
        self.count, self.far = motions.piece_count, float(np.abs(boxes).max(initial=0.0))
        self.deviation = motions.deviation(self.count, self.far)
        self.rotates = bool(motions.rotates.any())


class JoinedMotion:
    """The objects that may touch in a step, joined to one mesh.

    Args:
        objects: The objects of the scene.
        rows: Indices of the objects that take part.
        motions: Their motions.
        vertices_t1: Vertices at the end, in the frame of their object, of each that deforms.
        step: Division of the step.
    """

    def __init__(
        self,
        objects: ObjectTable,
        rows: np.ndarray,
        motions: ObjectMotions,
        vertices_t1: dict[int, np.ndarray],
        step: "StepPieces",
    ) -> None:
        self.device, self.rows, self.motions, self.step = objects.device, rows, motions, step
        pool = objects.pool
        table = pool.arrays.table[objects.shapes[rows]]
        self.point_starts = np.concatenate([[0], np.cumsum(table["point_count"])])
        self.face_starts = np.concatenate([[0], np.cumsum(table["face_count"])])
        local = pool.arrays.points.numpy()[_ranges(table["first_point"], table["point_count"])]
        owner = np.repeat(np.arange(len(rows)), table["point_count"]).astype(np.int32)
        faces = pool.arrays.faces.numpy()[_ranges(table["first_face"], table["face_count"])]
        faces = faces + np.repeat(self.point_starts[:-1], table["face_count"])[:, None]
        local_t1 = local.copy()
        for k, row in enumerate(rows.tolist()):
            if row in vertices_t1:
                local_t1[self.point_starts[k] : self.point_starts[k + 1]] = vertices_t1[row]
        self.owner = wp.array(owner, device=self.device)
        self._local = self._points(local)
        self.start, self.end = (
            self._placed(self._local, 0.0),
            self._placed(self._points(local_t1), 1.0),
        )
        self.mesh = Mesh(self.start, faces.astype(np.int32), self.device)
        self.rotates = motions.rotates[owner]
        self._numbers = self._vertex_numbers(pool.are_pieces(objects.shapes[rows]), owner)
        edges = self.mesh.edges.numpy()
        self.edge_starts = np.searchsorted(edges[:, 0], self.point_starts)
        most = max(len(local), len(edges), len(faces))
        self.layout = KeyLayout.of(most, most)
        require_feature_bits(self.layout)

    def rows_of(self, gap: float, tolerance: float, brute: bool, own: bool) -> Iterator[ImpactRows]:
        """Rows of all impacts, for each piece of the step; with ``own`` also within objects."""
        count = self.step.count
        paths = self._true_paths(gap, tolerance) if self.step.rotates else None
        options = (SHARED_BY_INDEX, self.layout, gap, tolerance)
        execution = CcdExecution(CcdStrategy.BRUTE if brute else None)
        same = IgnoredLabels((self.owner,), wp.empty((0, 0), wp.bool, self.device))
        ignored = None if own else same
        about = ((self.mesh,), self._pieces(count), count, paths, *options)
        yield from rows_of_pieces(*about, execution=execution, ignored=ignored)

    def _pieces(self, count: int) -> Iterator[tuple[Piece]]:
        """The step in straight pieces; two objects deviate, each from its own path."""
        deviation, before = 2.0 * self.step.deviation, self.start
        for number in range(count):
            after = self._at((number + 1) / count)
            points = np.concatenate([before.numpy(), after.numpy()])
            box = np.array([points.min(axis=0), points.max(axis=0)])
            yield (Piece(before, after, box, deviation),)
            before = after

    def objects_of(self, kind: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((n, 2) objects, (n, 2) features in their meshes) of rows of the joined mesh."""
        owners, own = np.empty_like(features), np.empty_like(features)
        edges = kind == ImpactKind.EDGE_EDGE
        for side, starts in ((0, self.point_starts), (1, self.face_starts)):
            for which, first in ((edges, self.edge_starts), (~edges, starts)):
                numbers = features[which, side]
                held = np.searchsorted(first, numbers, side="right") - 1
                owners[which, side] = held
                own[which, side] = numbers - first[held]
                if first is self.point_starts:
                    own[which, side] = self._numbers[numbers]
        return self.rows[owners], own

    def _vertex_numbers(self, pieces: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Index of each vertex in the mesh of its object; fragments count the vertices they use."""
        numbers = np.arange(len(owner)) - self.point_starts[owner]
        if self.mesh.used.shape[0] and pieces.any():
            used = np.cumsum(self.mesh.used.numpy())
            before = np.concatenate([[0], used])[self.point_starts[owner]]
            numbers = np.where(pieces[owner], used - 1 - before, numbers)
        return numbers

    def _at(self, t: float) -> wp.array:
        if t == 1.0:
            return self.end
        placed = self._placed(self._local, t).numpy()
        straight = mixed_points(self.start, self.end, t).numpy()
        return self._points(np.where(self.rotates[:, None], placed, straight))

    def _placed(self, points: wp.array, t: float) -> wp.array:
        return placed_points(points, self.motions.poses(t), self.owner)

    def _points(self, rows: np.ndarray) -> wp.array:
        return wp.array(rows, dtype=wp.vec3d, device=self.device)

    def _true_paths(self, gap: float, tolerance: float) -> Any:
        """TruePaths of the joined mesh."""
        motions, true_paths = self.motions, TruePaths()
        rotates, local = self.rotates[:, None], self._local.numpy()
        sides = [np.where(rotates, local, p.numpy()) for p in (self.start, self.end)]
        true_paths.a = true_paths.b = moving_mesh(self.mesh, *map(self._points, sides))
        true_paths.bits = self.layout.bits
        true_paths.min_distance, true_paths.tolerance = wp.float64(gap), wp.float64(tolerance)
        paths = np.zeros(len(self.rows), dtype=np.dtype(MotionPath.numpy_dtype()))
        paths["rigid"] = motions.rotates
        paths["rotation"] = motions.start[:, :3, :3]
        paths["axis"] = motions.vector / np.where(motions.rotates, motions.angle, 1.0)[:, None]
        paths["angle"] = motions.angle
        paths["shift_t0"], paths["shift_t1"] = motions.start[:, :3, 3], motions.end[:, :3, 3]
        paths["deviation"] = motions.reach * motions.angle**2 / 8.0
        paths["rounding"] = motions.rounding(self.step.far)
        true_paths.object_paths = wp.array(paths, dtype=MotionPath, device=self.device)
        true_paths.owner = self.owner
        return true_paths


def scene_impacts(
    part: Part,
    poses: Any,
    vertices_t1: dict[int, np.ndarray],
    gap: float,
    tolerance: float,
    *,
    own: bool,
    first: bool,
    brute: bool,
) -> SceneImpacts:
    """Impacts of objects that move to ``poses``, and by index to ``vertices_t1``.

    By brute force, all object pairs that the filters leave take part. External objects rest.
    """
    part.objects.pool.flush()
    ends, batched = _end_poses(part, poses)
    options = (vertices_t1, gap, tolerance, own, brute)
    steps = tracked(ends, len(ends))
    tables = [_earliest(_impact_table(part, end, *options), first) for end in steps]
    impacts = _scene_impacts(part, tables, batched)
    log_closer_start(impacts, gap)
    return impacts


def _impact_table(
    part: Part,
    end_poses: np.ndarray,
    vertices_t1: dict[int, np.ndarray],
    gap: float,
    tolerance: float,
    own: bool,
    brute: bool,
) -> np.ndarray:
    """(n, 8) impacts of one step: objects, kind, features, time, converged, initial distance."""
    objects = part.objects
    asked = np.broadcast_to(part.roles, len(objects)) != 0
    living = objects.living[asked[objects.living]]
    living = living[objects.pool.arrays.table["face_count"][objects.shapes[living]] > 0]
    corners = _face_bounds(objects.pool.arrays, objects.shapes[living])
    reach = np.hypot.reduce(np.abs(corners).max(axis=1), axis=1)
    deforms = np.isin(living, list(vertices_t1))
    motions = ObjectMotions(objects.poses.numpy()[living], end_poses[living], deforms, reach)
    boxes = _end_boxes(living, corners, motions, vertices_t1)
    pad = EVERYWHERE if brute else gap / 2
    pairs = _object_pairs(part, living, boxes, motions, pad)
    alone = part.own if own else np.empty(0, np.int64)
    taking_part = np.isin(living, np.append(alone, pairs))
    found: list[np.ndarray] = [np.empty((0, 8))]
    if taking_part.any():
        step = StepPieces(motions, boxes)
        moving = motions.subset(taking_part)
        joined = JoinedMotion(objects, living[taking_part], moving, vertices_t1, step)
        pieces = joined.rows_of(gap, tolerance, brute, len(alone) > 0)
        found += [_table(part, joined, rows, pairs, alone) for rows in pieces]
    return np.concatenate(found)


def _end_poses(part: Part, poses: Any) -> tuple[np.ndarray, bool]:
    """((B, n, 4, 4) poses at the end of each step, whether a batch of steps was given).

    None leaves all objects in place, and external ones rest.
    """
    rest = part.objects.poses.numpy().reshape(-1, 4, 4)
    if poses is None:
        return rest[None], False
    count = part.first_external or len(rest)
    plain = to_plain(poses)
    batched = len(plain.shape) == 4
    if len(plain.shape) not in (3, 4) or tuple(plain.shape[-3:]) != (count, 4, 4):
        raise PoseError(
            f"poses must have shape ({count}, 4, 4) or (B, {count}, 4, 4), "
            f"not {tuple(plain.shape)}."
        )
    host = plain if isinstance(plain, np.ndarray) else plain.numpy()
    checked = checked_poses(host.reshape(-1, 4, 4), "poses")
    assert checked is not None
    steps = checked.reshape(-1 if count else int(not batched), count, 4, 4)
    externals = np.broadcast_to(rest[count:], (len(steps), *rest[count:].shape))
    return np.concatenate([steps, externals], axis=1), batched


def _table(
    part: Part, joined: JoinedMotion, rows: ImpactRows, pairs: np.ndarray, alone: np.ndarray
) -> np.ndarray:
    """The impacts of a piece of the step, of object pairs that are tested, as in _impact_table.

    ``alone`` are objects that are tested against themselves.
    """
    keys, layout, times = rows.keys.numpy(), joined.layout, rows.times.numpy()
    kind = (keys >> layout.width).astype(np.int64)
    features = np.stack(layout.split(keys), axis=1)
    initial = initial_distances([(joined.mesh, joined.start)] * 2, kind, features, times)
    owners, features = joined.objects_of(kind, features)
    swapped = (owners[:, 0] > owners[:, 1]) ^ part.ordered(np.sort(owners, axis=1))[1]
    kind[swapped & (kind == ImpactKind.VERTEX_FACE)] = ImpactKind.FACE_VERTEX
    for both in (owners, features):
        both[swapped] = both[swapped][:, ::-1]
    tested = np.isin(owners[:, 0] << 32 | owners[:, 1], pairs[:, 0] << 32 | pairs[:, 1])
    tested |= (owners[:, 0] == owners[:, 1]) & np.isin(owners[:, 0], alone)
    kept = tested & np.isfinite(times)
    single = (column[:, None] for column in (times, rows.converged.numpy(), initial))
    return np.concatenate([owners, kind[:, None], features, *single], axis=1)[kept]


def _earliest(table: np.ndarray, first: bool) -> np.ndarray:
    """Sorted rows, the earliest of each feature pair; with ``first`` the earliest of all."""
    order = np.lexsort((table[:, 5], *table[:, 4::-1].T))
    table = table[order]
    new = np.ones(len(table), bool)
    new[1:] = (table[1:, :5] != table[:-1, :5]).any(axis=1)
    table = table[new]
    return table[[int(np.argmin(table[:, 5]))]] if first and len(table) else table


def _scene_impacts(part: Part, tables: list[np.ndarray], batched: bool) -> SceneImpacts:
    """The result of the rows of each step."""
    device, table = part.objects.device, np.concatenate([np.empty((0, 8)), *tables])
    named = table[:, :2] - [0, part.first_external]
    columns = (table[:, 5], table[:, 2], table[:, 3:5], table[:, 6], named)
    kinds = (np.float64, np.int32, np.int32, np.bool_, np.int32)
    time, kind, features, converged, objects = (
        wp.array(np.ascontiguousarray(column, dtype=dtype), device=device)
        for column, dtype in zip(columns, kinds, strict=True)
    )
    first, initial = (
        np.array([rows[:, column].min(initial=np.inf) for rows in tables], np.float64)
        for column in (5, 7)
    )
    pose = None
    if batched:
        steps = np.repeat(np.arange(len(tables), dtype=np.int32), [len(rows) for rows in tables])
        pose, first, initial = (wp.array(x, device=device) for x in (steps, first, initial))
    else:
        first, initial = float(first[0]), float(initial[0])
    about = (time, kind, features, converged, first, lambda _: initial)
    return SceneImpacts(*about, objects=objects, pose=pose)


def _face_bounds(arrays: ShapeArrays, shapes: np.ndarray) -> np.ndarray:
    """(k, 2, 3) bounds of the faces of shapes, in their frames."""
    distinct, place = np.unique(shapes, return_inverse=True)
    table = arrays.table[distinct]
    counts = table["face_count"]
    corners = arrays.faces.numpy()[_ranges(table["first_face"], counts)]
    corners = corners + np.repeat(table["first_point"], counts)[:, None]
    points, starts = arrays.points.numpy()[corners], np.cumsum(counts) - counts
    low = np.minimum.reduceat(points.min(axis=1), starts) if len(starts) else np.empty((0, 3))
    high = np.maximum.reduceat(points.max(axis=1), starts) if len(starts) else np.empty((0, 3))
    return np.stack([low, high], axis=1)[place]


def _end_boxes(
    living: np.ndarray,
    corners: np.ndarray,
    motions: ObjectMotions,
    vertices_t1: dict[int, np.ndarray],
) -> np.ndarray:
    """(2, k, 2, 3) boxes of objects at the start and at the end of the step."""
    boxes = [posed_boxes(corners, motions.start), posed_boxes(corners, motions.end)]
    for k in np.flatnonzero(motions.deforms).tolist():
        vertices = vertices_t1[int(living[k])]
        own = np.array([[vertices.min(axis=0), vertices.max(axis=0)]])
        boxes[1][k] = posed_boxes(own, motions.end[k : k + 1])[0]
    return np.stack(boxes)


def _object_pairs(
    part: Part, living: np.ndarray, boxes: np.ndarray, motions: ObjectMotions, pad: float
) -> np.ndarray:
    """(m, 2) object pairs whose boxes over the whole step, padded, overlap."""
    count = len(part.objects)
    lower, upper = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    far = np.abs(boxes).max(initial=0.0)
    pads = (motions.deviations() + pad + MIX_ROUNDING * 64 * far)[:, None]
    lower[living] = boxes[:, :, 0].min(axis=0) - pads
    upper[living] = boxes[:, :, 1].max(axis=0) + pads
    filters = part.objects.filters(part.roles)
    return overlapping_boxes(lower, upper, part.objects.device, filters)


def _ranges(firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concatenated indices of several ranges."""
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(firsts - starts, counts)
