"""Scene: many objects that move, deform and break, and the questions asked of them all."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.fixed import validate_width
from abut.core.cache import RecentCache
from abut.errors import OptionError, PoseError
from abut.geometry.poses import checked_poses
from abut.narrow.pair_corners import PairSides
from abut.options import (
    CULL_METHODS,
    LEAST_TOLERANCE,
    TREE_METHODS,
    BroadMethod,
    Method,
    chosen,
    number_from,
)
from abut.scene.by_pairs import near_rows, nearest_rows, tested_pairs
from abut.scene.contact_search import Asked, ContactSearch, Found
from abut.scene.contacts import SceneContacts, scene_contacts
from abut.scene.contents import Contents, alone
from abut.scene.fronts import SceneFronts, SceneFrontSearch
from abut.scene.gaps import SceneDistances, SceneGaps, scene_distances, scene_gaps
from abut.scene.impacts import SceneImpacts, scene_impacts
from abut.scene.kinematics import Kinematics
from abut.scene.look import found_of, look
from abut.scene.near import NearestSearch, NearSearch
from abut.scene.objects import Batch
from abut.scene.polytopes import polytope_rows
from abut.scene.queues import SceneQueues
from abut.scene.rows import object_rows
from abut.scene.search import SceneSearch


class Scene(Contents):
    """Objects on one device: meshes, each at its pose, several of which may share a mesh.

    An object is known by its index, which ``add`` returns, or by its name. Every pair of objects
    is tested unless both are static, their groups do not meet, or the pair is ignored.

    Args:
        device: Where the scene lives; None is the first CUDA device, else the CPU.
    """

    def __init__(self, device: Any = None) -> None:
        super().__init__(device)
        self.robot: Kinematics | None = None  # of a scene that was loaded from a robot's file
        self._queues = SceneQueues(self.device)
        self._batch = Batch(self.device)
        self._searches = RecentCache()

    def __getstate__(self) -> dict[str, Any]:
        """Also the robot."""
        return super().__getstate__() | {"robot": self.robot}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also the robot."""
        super().__setstate__(state)
        self.robot = state["robot"]

    @classmethod
    def load(cls, path: Any, device: Any = None, *, geometry: str = "collision") -> "Scene":
        """The scene of a file: GLB, glTF and whatever trimesh reads; URDF; MJCF (``.xml``).

        Every node of a scene graph is an object, named like the node. Every piece of geometry of a
        robot is one, named after its link; ``scene.robot`` says where all are for other values of
        the joints. Pieces of one link, or of links joined by one joint, are not tested against
        each other, nor what the file excludes.

        Args:
            path: The file.
            device: Where the scene lives.
            geometry: Of robots, ``collision`` or ``visual``. Round primitives become polyhedra.

        Raises:
            FileError: The file is not there, or holds no mesh.
            ToolError: Robots need yourdfpy or MuJoCo: ``pip install abut[robots]``.
        """
        from abut.scene.files import load_scene  # which makes scenes

        return load_scene(path, device, geometry=geometry)

    @alone
    def collide(
        self,
        *,
        self_collisions: bool = False,
        first: bool = False,
        poses: Any = None,
        method: str = "bvh",
        broad: str | None = None,
        pixels: int = 512,
        width: int = 18,
    ) -> SceneContacts:
        """Find every pair of faces of different objects that share a point.

        Args:
            self_collisions: Also faces of one object that meet, as in ``abut.self_collide``.
            first: Stop at one pair of faces for each pair of objects, a fixed one though not the
                lowest; the cheapest way to know which objects meet.
            poses: (B, n, 4, 4), poses of all n objects in each of B copies of the scene; None takes
                the objects where they are. Copies do not meet each other.
            method: ``bvh``; ``front``, which begins where the last query by fronts stopped (with
                ``first`` it is ``bvh``); ``far``, by visibility, without hierarchies; ``kdop``,
                polytopes in fixed point; or ``brute`` for the slow truth. ``cullide`` and
                ``quick_cullide`` are Approximate. Batches of poses are for ``bvh`` and ``brute``;
                ``kdop`` takes no self-collisions.
            broad: How pairs of objects are found, ``all_pairs``, ``sweep`` or ``tree``;
                None chooses. All return the same rows.
            pixels: Width of the views of ``far``, ``cullide`` and ``quick_cullide``.
            width: Bits of the fixed-point numbers of ``kdop``, 10 to 35.

        Returns:
            Sorted rows: objects, then faces; with a batch, copies first.

        Raises:
            PoseError: A pose is not a rigid motion.

        Guarantee:
            Exact and complete. Faces are closed: touching and coplanar overlap count.
        """
        how = chosen(Method, method, "method")
        if poses is not None and how not in TREE_METHODS:
            raise OptionError(f"method '{method}' takes no batches of poses; use 'bvh'.")
        held = self._objects
        if how in CULL_METHODS:
            about: dict[str, Any] = {"own": self_collisions, "first": first, "pixels": pixels}
            return self._gathered(lambda s: look(s, held, self.meshes, method=how, **about))
        if how is Method.KDOP:
            if self_collisions:
                raise OptionError("method 'kdop' takes no self_collisions; use 'bvh'.")
            bits = validate_width(width)
            return self._gathered(
                lambda s: found_of(s, len(held), *polytope_rows(held, self.meshes, bits), first)
            )
        asked = Asked(
            own=self_collisions,
            first=first,
            brute=how is Method.BRUTE,
            front=how is Method.FRONT and not first,
            broad=None if broad is None else chosen(BroadMethod, broad, "broad"),
        )
        found, where = self._found(asked, poses)
        return scene_contacts(found, self.device, where, poses is not None, self._shape_check())

    @alone
    def colliding(self, *, self_collisions: bool = False, poses: Any = None) -> Any:
        """Whether any two objects meet: a bool, or a (B,) array of them for a batch of poses.

        The search of a copy of the scene ends with the first contact found in it.

        Args:
            self_collisions: Also whether an object meets itself.
            poses: (B, n, 4, 4), as in ``collide``.

        Guarantee:
            Exact.
        """
        found, _ = self._found(Asked(own=self_collisions, hurry=True), poses)
        assert found.colliding is not None
        if poses is None:
            return bool(found.colliding[0])
        return wp.array(found.colliding, dtype=wp.bool, device=self.device)

    @alone
    def within(
        self, distance: float, *, self_collisions: bool = False, method: str = "bvh"
    ) -> SceneGaps:
        """Find every pair of faces of different objects at most ``distance`` apart.

        Args:
            distance: How far apart faces may be [length unit of the scene].
            self_collisions: Also faces of one object, as in ``abut.within`` of one mesh.
            method: ``bvh``, or ``brute`` for the slow truth.

        Returns:
            Sorted rows with their distances and, when asked for, their nearest points.

        Guarantee:
            Complete. Distances are rounded float64, compared as computed; pairs that meet are
            found exactly and have distance 0.
        """
        distance = number_from(distance, "distance", 0.0)
        if chosen(TREE_METHODS, method, "method") is Method.BRUTE:
            owners, faces, met = near_rows(self._objects, self.meshes, distance, self_collisions)
            pair = [wp.array(part, dtype=wp.int32, device=self.device) for part in (owners, faces)]
            return scene_gaps(*pair, PairSides(self._prepared().pairs, *pair), met)

        def make(*scene: Any) -> NearSearch:
            return NearSearch(*scene, distance=distance, own=self_collisions)

        search, (keys, met) = self._searched((NearSearch, *_bits(distance), self_collisions), make)
        meetings = search.pairs.object_pairs.keys
        rows = object_rows(meetings, keys, search.objects, search.layout, self.device)
        return scene_gaps(rows[1], rows[2], PairSides(search.pairs, *rows[1:]), met)

    @alone
    def distance(self, *, upper_bound: float | None = None, method: str = "bvh") -> SceneDistances:
        """How far each object is from the one nearest to it; or all pairs of objects under a bound.

        Args:
            upper_bound: Where given, every pair of objects that may meet and is no farther apart is
                a row. Without it there is a row for every object that may meet another: of those
                at the same distance, the lowest is its nearest.
            method: ``bvh``, or ``brute`` for the slow truth.

        Guarantee:
            The true minimum, rounded as in ``abut.distance``. 0 exactly where two objects meet.
        """
        bound = None if upper_bound is None else number_from(upper_bound, "upper_bound", 0.0)
        how = chosen(TREE_METHODS, method, "method")

        def make(*scene: Any) -> NearestSearch:
            return NearestSearch(*scene, bound=bound)

        if how is Method.BRUTE:
            search, most = self._prepared(), np.inf if bound is None else bound
            layouts = (search.objects, search.layout)
            pairs, value, faces = nearest_rows(self._objects, self.meshes, most, *layouts)
        else:
            about = (NearestSearch, *((0, 0) if bound is None else _bits(bound)))
            search, (pairs, value, faces) = self._searched((*about, bound is None), make)
        first = self.collide(first=True, method=how) if (value == 0).any() else None
        return scene_distances(search, pairs, value, faces, first, bound is None)

    @alone
    def ccd(
        self,
        poses: Any = None,
        *,
        vertices: dict[Any, Any] | None = None,
        min_distance: float = 0.0,
        tolerance: float = 1e-6,
        first: bool = False,
        self_collisions: bool = False,
        method: str = "bvh",
    ) -> SceneImpacts:
        """Find when objects first touch on their way to where they will be.

        Objects turn and move as rigid ones do in ``abut.Motion``. Those that get new vertices go
        straight, every vertex on its own, from where it is now. Nothing is moved by asking.

        Args:
            poses: (n, 4, 4), poses of all objects at the end of the step, by index; None leaves all
                in place.
            vertices: By index or name, (k, 3) vertices of objects at the end, in their frame.
            min_distance: Gap to keep [length unit of the scene].
            tolerance: How much earlier than the first contact a time may be [share of the step].
            first: Only the earliest impact, one row.
            self_collisions: Also features of one object, which share nothing but vertices of the
                same index.
            method: ``bvh``, or ``brute`` for the slow truth.

        Returns:
            One row for each vertex-face or edge-edge impact; ``safe_step`` is free of contact.

        Guarantee:
            Conservative. No impact is missed; no time is later than the true one.
        """
        gap = number_from(min_distance, "min_distance", 0.0)
        tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
        self._pool.flush()
        ends = self._objects.poses.numpy()
        if poses is not None:
            checked = checked_poses(poses, "poses")
            if checked is None or len(checked) != len(self._objects):
                raise PoseError(f"poses must have shape ({len(self._objects)}, 4, 4).")
            ends = checked
        later = dict(self._end_of(handle, v) for handle, v in (vertices or {}).items())
        how = (gap, tolerance, self_collisions, first)
        every = None
        if chosen(TREE_METHODS, method, "method") is Method.BRUTE:
            every = tested_pairs(self._objects, self.meshes)
        return scene_impacts(self._pool, self._objects, ends, later, *how, every)

    def _end_of(self, handle: Any, vertices: Any) -> tuple[int, np.ndarray]:
        """An object and its checked vertices at the end of a step, as those of its body."""
        rows = self._objects.rows([self._objects.one(handle)])
        points = self._shapes(self._own_bodies(rows), vertices).numpy().copy()
        self._pool.flush()
        return int(rows[0]), points

    def _searched(self, about: tuple[Any, ...], make: Callable[..., Any]) -> tuple[Any, Any]:
        """A search and its answer, with buffers that grow until all is found."""
        self._pool.flush()
        while True:
            held = self._objects
            scene = (self._pool, held, self._queues, held.poses)
            search = self._searches.get((*about, *self._state()), lambda scene=scene: make(*scene))
            search.follow(held)
            answer = search.run()
            if answer is not None:
                return search, answer

    def _prepared(self) -> SceneSearch:
        """A search that is not run: it knows the scene's layout."""
        self._pool.flush()
        return SceneSearch(self._pool, self._objects, self._queues, self._objects.poses)

    def _gathered(self, find: Callable[[SceneSearch], Found]) -> SceneContacts:
        """Contacts of the scene as it is now, found by other means than its own search."""
        found, where = find(self._prepared()), self._objects.poses
        return scene_contacts(found, self.device, where, False, self._shape_check())

    def _found(self, asked: Asked, poses: Any) -> tuple[Found, wp.array]:
        """Search with buffers that grow until all is found."""
        self._pool.flush()
        held, copies = self._objects, 1
        where = held.poses
        if poses is not None:
            where, copies = self._batch.take(poses, len(held))
        if asked.front:
            self._fronts.pause = max(self._fronts.pause - 1, 0)
            self._fronts.follow(self._pool, held)
        while True:
            if asked.front and self._fronts.pause:
                asked = replace(asked, front=False)
            about = (*self._state(), where, copies, *asked.key)
            scene = (self._pool, held, self._queues, where, copies, asked)

            def make(scene: Any = scene, front: bool = asked.front) -> ContactSearch:
                if front:
                    return SceneFrontSearch(*scene, fronts=self._fronts)
                return ContactSearch(*scene)

            search = self._searches.get(about, make)
            search.follow(held)
            counts = search.run()
            if counts is not None:
                return search.found(counts), where

    @cached_property
    def _fronts(self) -> SceneFronts:
        return SceneFronts(self.device)

    def _state(self) -> tuple[Any, ...]:
        """What a search was prepared for: where arrays lie, and how many there are of what."""
        held, pool = self._objects, self._pool
        bits = max(pool.arrays.most_faces - 1, 1).bit_length()
        sizes = (len(held), len(held.ignored), bits)
        return (pool.arrays.generation, self._queues.generation, held.poses, *sizes)

    def _shape_check(self) -> Any:
        """Says whether the scene has kept its shape since now."""
        pool, version = self._pool, self._pool.version

        def same() -> bool:
            return pool.version == version

        return same


def _bits(number: float) -> tuple[int, int]:
    """A number as two integers, which are compared by value."""
    return divmod(int(np.float64(number).view(np.int64)), 1 << 32)
