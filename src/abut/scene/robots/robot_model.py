"""RobotModel: a robot among obstacles, prepared for questions about its configurations."""

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import thread_count
from abut.core.launch import run_parallel
from abut.errors import SceneError
from abut.geometry.poses import checked_poses
from abut.scene.box_cache import BoxCache
from abut.scene.robots.clearance_tables import PairGrids
from abut.scene.robots.kinematics import Kinematics
from abut.scene.robots.robot_poses import joint_tree_of
from abut.scene.robots.robot_search import FREE, MET, NOT_FINITE, RobotSearch
from abut.scene.robots.robot_solids import Solids
from abut.scene.robots.sphere_covers import (
    SphereCovers,
    inner_spheres,
    outer_spheres,
    sphere_covers,
)
from abut.scene.search_cache import SearchCache
from abut.scene.selection import Part
from abut.scene.shape_pool import NO_SHAPE

CHUNK = 256  # configurations of a search on the CPU
CUDA_CHUNK = 1 << 17


class RobotModel:
    """A robot and the objects of its scene, as searches need them.

    Serves as long as nothing but poses changes (``serves``).

    Args:
        searches: Of the scene.
        kinematics: The robot.
        rows: Its objects in the scene.
        grids: Grids of an earlier model, taken over where they still hold.
    """

    def __init__(
        self,
        searches: SearchCache,
        kinematics: Kinematics,
        rows: np.ndarray,
        grids: PairGrids | None,
    ) -> None:
        self.objects = objects = searches.objects
        self.device, self.rows = objects.device, rows
        self._part = Part(objects)
        self._box_cache = searches.near(BoxCache, self._part)
        self.boxes, self.filters = self._box_cache.boxes, self._box_cache.filters
        self.shapes, self.poses = self._box_cache.shapes, objects.poses
        self.bvhs, self.most_faces = objects.pool.arrays.bvhs, objects.pool.arrays.most_faces
        self.tree = joint_tree_of(kinematics, self.device)
        self.joint_count, self.value_count = self.tree.parents.shape[0], len(kinematics.joints)
        self.row_array = wp.array(rows.astype(np.int32), device=self.device)
        own = np.full(len(objects), -1, np.int32)
        own[rows] = np.arange(len(rows))
        self.own = wp.array(own, device=self.device)
        self.skipped = wp.zeros(len(rows), dtype=wp.int32, device=self.device)
        self._fixed = (self.tree.body_joints.numpy() < 0).astype(np.int32)
        self._skips = not self._fixed.any()
        self._followed = -1
        self.solids = self._solids()
        pairs = self._own_pairs()
        self.own_pairs = wp.array(pairs, dtype=wp.vec2i, device=self.device)
        self._pairs = [(i, j) for i, j in pairs.tolist()]
        meshes = [objects.pool.mesh(shape) for shape in objects.shapes[rows].tolist()]
        kept = grids is not None and grids.serve(meshes)
        self.grids = grids if grids is not None and kept else PairGrids(kinematics, meshes)
        self._held_pads: dict[int, float] = {}
        self.pads = wp.empty(0, dtype=wp.float64, device=self.device)
        self._take_tables()

    def set_pads(self, pads: dict[int, float]) -> None:
        """Take over the paddings of objects, by row of the scene."""
        if pads == self._held_pads:
            return
        rows = np.zeros(len(self.own) if pads else 0)
        rows[list(pads)] = list(pads.values())
        if len(rows) == len(self.pads):
            self.pads.assign(rows)
        else:
            self.pads = wp.array(rows, dtype=wp.float64, device=self.device)
            self._forget_searches()
        self._held_pads = dict(pads)
        self.grids.await_gaps(self._gaps())
        self.skipped.zero_()
        self._skips = not self._fixed.any()

    def _gaps(self) -> dict[tuple[int, int], float]:
        """Up to which distance two of its own objects are in contact, by pair."""
        pads = [self._held_pads.get(row, 0.0) for row in self.rows.tolist()]
        return {(i, j): pads[i] + pads[j] for i, j in self._pairs}

    def serves(self) -> bool:
        """Whether nothing but poses of objects has changed."""
        return self._box_cache.serves(self._part)

    def follow(self) -> None:
        """Compute the boxes of objects that have moved.

        Raises:
            PoseError: A pose that was written in place is not a rigid motion.
        """
        cache, objects = self._box_cache, self.objects
        if not objects.exposed and objects.moves.count == self._followed:
            return
        known = objects.tracks_moves()
        if known and objects.moves.count == self._followed:
            return
        if not known:
            checked_poses(objects.poses.numpy()[objects.shapes != NO_SHAPE], "poses")
        cache.update(every=not known)
        self._followed = objects.moves.count
        if self._skips and self._fixed.any():
            self.skipped.zero_()
            self._skips = False

    def improve(self, every: bool = False) -> None:
        """Make grids of pairs of the robot's objects that pay by now, or all."""
        self.grids.improve(self._gaps(), every)
        if self.grids.version != self._tables_version:
            self._take_tables()

    def _take_tables(self) -> None:
        """Take over the grids there are, and spheres once there is any reason for them."""
        self.tables = self.grids.tables(self._pairs, self.device)
        self._tables_version = self.grids.version
        self.covers = self._covers() if self.grids.version else SphereCovers()
        self._forget_searches()

    def _forget_searches(self) -> None:
        self._one, self._few, self._searches = None, None, []

    _one: RobotSearch | None  # of one configuration
    _few: RobotSearch | None  # of a CHUNK, in one graph
    _searches: list[RobotSearch]

    def is_free(self, values: np.ndarray) -> bool:
        """Whether one configuration is free."""
        start = perf_counter()
        if self._one is None:
            self._one = RobotSearch(self, 1)
        flag = int(self._one.flags(values[None])[0])
        self._spend(start)
        if flag == FREE and not self._skips:
            self._skip_fixed()
        if flag == NOT_FINITE:
            raise _not_finite(0)
        return flag != MET

    def are_free(self, values: Any) -> wp.array:
        """(B,) bool, of (B, k) values on the host, or on the device of the scene."""
        start = perf_counter()
        flags = self._cuda_flags(values) if self.device.is_cuda else self._cpu_flags(values)
        self._spend(start)
        if not self._skips and (flags == FREE).any():
            self._skip_fixed()
        if (flags == NOT_FINITE).any():
            raise _not_finite(int(np.argmax(flags == NOT_FINITE)))
        return wp.array(flags != MET, dtype=wp.bool, device=self.device)

    def _skip_fixed(self) -> None:
        """Test fixed objects against obstacles no more: a free configuration proves them apart."""
        self.skipped.assign(self._fixed)
        self._skips = True

    def _spend(self, start: float) -> None:
        grids = self.grids
        grids.spent += perf_counter() - start
        if grids.spent > grids.enough:
            self.improve()

    def _cpu_flags(self, values: np.ndarray) -> np.ndarray:
        flags = np.empty(len(values), np.int32)
        starts = range(0, len(values), CHUNK)
        count = min(thread_count(), len(starts))
        while len(self._searches) < count:
            self._searches.append(RobotSearch(self, CHUNK))
        free = self._searches[:]

        def ask(start: int) -> None:
            search = free.pop()
            flags[start : start + CHUNK] = search.flags(values[start : start + CHUNK])
            free.append(search)

        run_parallel([partial(ask, start) for start in starts])
        return flags

    def _cuda_flags(self, values: Any) -> np.ndarray:
        if isinstance(values, np.ndarray) and len(values) <= CHUNK:
            if self._few is None:
                self._few = RobotSearch(self, CHUNK)
            return self._few.flags(values).copy()
        rows = values
        if isinstance(values, np.ndarray):
            rows = wp.array(values, dtype=wp.float64, device=self.device)
        flags = wp.empty(rows.shape[0], dtype=wp.int32, device=self.device)
        capacity = min(1 << max(rows.shape[0] - 1, 1).bit_length(), CUDA_CHUNK)
        search = next((x for x in self._searches if x.capacity >= capacity), None)
        if search is None:
            search = RobotSearch(self, capacity)
            self._searches = [search]
        for start in range(0, rows.shape[0], capacity):
            part = slice(start, min(start + capacity, rows.shape[0]))  # Warp clamps no slices
            search.write_flags(rows[part], flags[part])
        return flags.numpy()

    def _covers(self) -> Any:
        """Spheres around the objects of the robot, and inside all objects."""
        pool, shapes = self.objects.pool, self.objects.shapes
        used = set(np.unique(shapes).tolist()) - {NO_SHAPE}
        meshes = {shape: pool.mesh(shape) for shape in used}
        own = {shape: meshes[shape] for shape in shapes[self.rows].tolist()}
        outer = {shape: outer_spheres(mesh) for shape, mesh in own.items() if mesh.face_count}
        inner = {shape: inner_spheres(mesh) for shape, mesh in meshes.items()}
        return sphere_covers(outer, inner, max(used, default=-1) + 1, self.device)

    def _own_pairs(self) -> np.ndarray:
        """(n, 2) numbers of objects of the robot that are tested against each other."""
        low, high = np.triu_indices(len(self.rows), 1)
        pairs = np.stack([low, high], axis=1)
        tested = self.objects.tested(self.rows[pairs])
        return pairs[tested].astype(np.int32).reshape(-1, 2)

    def _solids(self) -> Any:
        """Flags of the closed shapes, and a vertex of each component of those."""
        pool = self.objects.pool
        used = set(np.unique(self.objects.shapes).tolist()) - {NO_SHAPE}
        closed = np.zeros(max(used, default=0) + 1, np.int32)
        anchors: list[np.ndarray] = []
        for shape in range(len(closed)):
            mesh = pool.mesh(shape if shape in used else NO_SHAPE)
            solid = mesh.face_count > 0 and mesh.watertight
            own = mesh.topology.anchors if solid else np.empty(0, np.int64)
            anchors.append(pool.point_rows(shape, own) if len(own) else own)
            closed[shape] = (2 if mesh.oriented else 1) if solid else 0
        out = Solids()
        starts = np.cumsum([0, *map(len, anchors)]).astype(np.int32)
        every = np.concatenate(anchors).astype(np.int32)
        out.closed, out.anchor_starts = (wp.array(x, device=self.device) for x in (closed, starts))
        out.anchors = wp.array(every, device=self.device)
        return out


class NoObjects:
    """The model of a robot without objects, which touches nothing."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device

    def is_free(self, values: np.ndarray) -> bool:
        """Whether one configuration is free."""
        return bool(self.are_free(values[None]).numpy()[0])

    def are_free(self, values: np.ndarray) -> wp.array:
        """(B,) bool, of (B, k) values."""
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise _not_finite(int(np.argmax(bad)))
        return wp.full(len(values), True, dtype=wp.bool, device=self.device)


def _not_finite(row: int) -> SceneError:
    return SceneError(f"values[{row}] of the joints are not finite.")
