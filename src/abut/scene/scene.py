"""Scene: many objects that move, deform and break, and the queries about all of them."""

import threading
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.bounds.fixed import validate_width
from abut.core.device import require_same_device, resolve_device
from abut.core.pickling import device_or_cpu
from abut.core.unknown_options import explain_methods
from abut.errors import OptionError, SceneError
from abut.mesh import Mesh, require_meshes
from abut.options import (
    CULL_METHODS,
    LEAST_TOLERANCE,
    TREE_METHODS,
    BroadMethod,
    Method,
    chosen,
    number_from,
)
from abut.scene.contact_search import found_from_rows
from abut.scene.distance_queries import bounded_rows, given_rows, least_rows, nearest_rows
from abut.scene.distance_results import (
    LeastDistance,
    SceneDistances,
    distance_rows,
    least_distance,
)
from abut.scene.files.robot_description import RobotDescription
from abut.scene.impacts import SceneImpacts, scene_impacts
from abut.scene.inputs import (
    given_poses,
    is_one_pose,
    require_bits,
    require_count,
    require_name,
)
from abut.scene.mesh_methods import brute_within_rows, kdop_rows, visibility_rows
from abut.scene.near import NearSearch
from abut.scene.objects import ALL_GROUPS, ObjectTable
from abut.scene.robots.joint_motions import MotionImpacts
from abut.scene.robots.kinematics import Kinematics
from abut.scene.robots.robot import Robot, RobotState
from abut.scene.scene_object import SceneObject, device_of, is_device, named_meshes, to_mesh
from abut.scene.scene_results import (
    SceneContacts,
    SceneGaps,
    scene_contacts,
    scene_gaps,
)
from abut.scene.search_cache import SearchCache
from abut.scene.selection import Selections
from abut.scene.shape_pool import ShapePool

if TYPE_CHECKING:
    from abut.scene.files.planning_scene import PlanningScene
    from abut.scene.object_overlaps import SceneOverlaps


@explain_methods
class Scene:
    """Objects on one device: meshes at poses; several objects may share a mesh.

    The index that ``add`` returns, or a name, identifies an object. Every pair of objects is
    tested unless both are static, their groups exclude each other, or the pair is ignored.
    ``scene["name"]`` and ``scene[index]`` are its objects, and so are the items of a loop over it.

    Args:
        objects: Meshes to add, or a dict of meshes by name; or the device.
        device: Device of the scene; None is that of the meshes, else the first CUDA device, else
            the CPU.

    Attributes:
        robot: The robot of a scene that was loaded from a robot's file; else None.
    """

    def __init__(self, objects: Any = None, device: Any = None) -> None:
        if isinstance(device, Mesh):
            raise SceneError("a scene takes its objects as one list: abut.Scene([a, b]).")
        if device is None and is_device(objects):
            objects, device = None, objects
        objects = list(named_meshes(objects))
        self.device = resolve_device(device_of(objects) if device is None else device)
        self.lock = threading.RLock()
        self._robot: RobotState | None = None
        self._pool = ShapePool(self.device)
        self._objects = ObjectTable(self._pool)
        self._searches = SearchCache(self._objects)
        self._selections = Selections(self._objects)
        for name, mesh in objects:
            self.add(mesh, name=name)

    @classmethod
    def load(
        cls,
        path: Any,
        device: Any = None,
        *,
        geometry: str = "collision",
        packages: Any = None,
        srdf: Any = None,
        chord: float | None = None,
        convex: bool = False,
    ) -> "Scene":
        """Read a scene: GLB, glTF and all formats of trimesh; URDF; MJCF (``.xml``).

        Every node of a scene graph is an object, named like the node. Every piece of geometry of a
        robot is one, named after its link; ``scene.robot`` says where all are for other values of
        the joints. Pieces of one link, or of links joined by one joint, are not tested against
        each other, nor what the file excludes (``docs/robots.md``). Round shapes become polyhedra
        that contain them; the ``deviation`` of each object says how much larger they are.

        Args:
            path: The file.
            device: Where the scene lives.
            geometry: Of robots, ``collision`` or ``visual``.
            packages: Of a URDF, where the packages of ``package://`` are: a dict of folders by
                name, or folders to search. Then come ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and the
                folders above the file.
            srdf: Of a URDF, its SRDF file: groups, states, and the pairs of links that are not
                tested. True takes the file of the same name, else the only one beside the URDF.
            chord: The largest deviation of a polyhedron from the round shape that it contains
                [length unit]; None takes 32 sides or 1,280 faces.
            convex: Of an MJCF, take the convex hulls of meshes, which MuJoCo collides.

        Raises:
            FileError: The file is not there, or holds no mesh.
            ToolError: An MJCF needs MuJoCo: ``pip install 'abut[robots]'``.
        """
        from abut.scene.files.scene_file import load_scene  # it imports this module

        options = {"packages": packages, "srdf": srdf, "chord": chord, "convex": convex}
        return load_scene(path, device, geometry=geometry, **options)

    def __len__(self) -> int:
        """Number of objects."""
        return self._objects.count

    def __getitem__(self, handle: Any) -> SceneObject:
        """The object of an index or a name."""
        return SceneObject(self, self._objects.row(handle))

    def __iter__(self) -> Iterator[SceneObject]:
        """The objects, by index."""
        return (SceneObject(self, index) for index in self.indices.tolist())

    def __contains__(self, handle: Any) -> bool:
        """Whether there is an object of an index or a name."""
        try:
            return self._objects.row(handle) >= 0
        except SceneError:
            return False

    def __repr__(self) -> str:
        """Counts and device."""
        return f"{type(self).__name__}({len(self)} objects, {self.device})"

    def __getstate__(self) -> dict[str, Any]:
        """Meshes and the table of objects; hierarchies are built anew."""
        with self.lock:
            meshes, state = self.meshes, self._objects.state()
            return {"meshes": meshes, "robot": self._robot, "device": self.device.alias, **state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the scene on its device, or on the CPU where that is missing."""
        self.__init__(device_or_cpu(state.pop("device")))
        self._robot, meshes = state.pop("robot"), state.pop("meshes")
        shapes = np.array([self._pool.add(mesh) for mesh in meshes], np.int32)
        self._objects.restore(shapes, **state)

    @property
    def indices(self) -> np.ndarray:
        """Indices of all objects, ascending."""
        return self._objects.living

    @property
    def names(self) -> dict[str, int]:
        """The objects that have a name, and their indices."""
        return dict(self._objects.names)

    @property
    def robot(self) -> Robot | None:
        """The robot whose links carry some of the objects; None in other scenes."""
        return None if self._robot is None else Robot(self, self._robot)

    def set_robot(
        self,
        kinematics: Kinematics,
        objects: Any,
        description: RobotDescription | None = None,
    ) -> None:
        """Attach objects to the links of a robot, one for each of ``kinematics.parts``."""
        with self.lock:
            rows = self._objects.rows(objects)
            if len(rows) != len(kinematics.parts):
                raise SceneError(
                    f"the robot has {len(kinematics.parts)} parts, so as many objects are needed, "
                    f"not {len(rows)}."
                )
            self._robot = RobotState(kinematics, rows, description or RobotDescription())

    def add_planning_scene(
        self, path: Any, *, packages: Any = None, chord: float | None = None
    ) -> "PlanningScene":
        """Add the obstacles of a planning scene of MoveIt, a YAML file.

        Obstacles are not tested against each other. Where the scene has a robot, objects that the
        file attaches to its links are attached, links are padded, and its allowed-collision matrix
        replaces the pairs of links that are not tested.

        Args:
            path: The file.
            packages, chord: As ``load`` takes them.

        Returns:
            The indices of the objects by name, and the values of the joints in the file.

        Raises:
            FileError: The file cannot be read as a planning scene; nothing is added.
            ToolError: PyYAML is missing: ``pip install 'abut[robots]'``.
        """
        from abut.scene.files.planning_scene import add_planning_scene

        with self.lock:
            return add_planning_scene(self, path, packages, chord)

    @property
    def poses(self) -> wp.array:
        """(n,) matrices on the device, by index. Write into them to move objects in place.

        A matrix that is not a rigid motion is refused by the next query. The array is another one
        after objects were added.
        """
        self._objects.exposed = True
        return self._objects.poses

    @property
    def meshes(self) -> list[Mesh]:
        """The mesh of each object, by index; one without faces for an index that is not used."""
        return [self._pool.mesh(shape) for shape in self._objects.shapes.tolist()]

    def mesh(self, handle: Any) -> Mesh:
        """The mesh of an object, in its own frame."""
        return self._pool.mesh(int(self._objects.shapes[self._objects.row(handle)]))

    def pose_of(self, handle: Any) -> np.ndarray:
        """(4, 4), a copy of the pose of an object."""
        return self._objects.poses[self._objects.row(handle) :][:1].numpy()[0].copy()

    def add(
        self,
        mesh: Any,
        pose: Any = None,
        name: str | None = None,
        *,
        static: bool = False,
        group: int = 1,
        mask: int = ALL_GROUPS,
    ) -> Any:
        """Add an object; with a batch of poses (k, 4, 4), k objects that share the mesh.

        Args:
            mesh: The mesh, on the scene's device; or a ``trimesh.Trimesh``.
            pose: Pose of the object; None leaves it in place.
            name: Name of the object, beside its index.
            static: The object does not move: it is not tested against other static ones.
            group: Bits of the groups the object is in.
            mask: Bits of the groups it may meet. Two objects are tested when each is in a group
                that the other may meet.

        Returns:
            The index of the object; for a batch a (k,) array.

        Raises:
            SceneError: The name is taken or not a string, or a batch has one; groups that are not
                32 bits.
            DeviceError: The mesh lives on another device.
        """
        with self.lock:
            mesh = to_mesh(mesh, self.device)
            require_meshes(mesh=mesh)
            require_same_device(self, mesh)
            poses, single = given_poses(pose), is_one_pose(pose)
            require_name(name, single, self._objects.names)
            require_bits(group=group, mask=mask)
            shapes = np.full(len(poses), self._pool.add(mesh), np.int32)
            rows = self._objects.add(shapes, poses, static, group, mask)
            if name is not None:
                self._objects.set_name(int(rows[0]), name)
            return int(rows[0]) if single else rows

    def move(self, handles: Any, pose: Any) -> None:
        """Give an object a pose, or many objects one each.

        Args:
            handles: An index or a name; or several.
            pose: (4, 4), or (k, 4, 4) for k objects.
        """
        with self.lock:
            rows = self._objects.rows(handles)
            self._objects.write_poses(rows, given_poses(pose, len(rows)))

    def deform(self, handles: Any, vertices: Any) -> None:
        """Move the vertices of an object, or of many.

        Other objects that share its mesh keep their shape.

        Args:
            handles: An index or a name; or several.
            vertices: (n, 3) in the object's frame; of several objects one after the other.
        """
        with self.lock:
            self._objects.deform(handles, vertices)

    def set(
        self,
        handles: Any,
        *,
        static: bool | None = None,
        group: int | None = None,
        mask: int | None = None,
    ) -> None:
        """Change filters of an object, or of many, as ``add`` takes them; None keeps one."""
        with self.lock:
            given = {"group": group, "mask": mask}
            require_bits(**{name: bits for name, bits in given.items() if bits is not None})
            self._objects.set_filters(self._objects.rows(handles), static=static, **given)

    def rename(self, handle: Any, name: str | None) -> None:
        """Give an object another name; None leaves it without one."""
        with self.lock:
            row = self._objects.row(handle)
            require_name(name)
            self._objects.set_name(row, name)

    def name_of(self, indices: Any) -> Any:
        """The name of an object, or None; of (…) indices, a NumPy array of as many names."""
        with self.lock:
            names = self._objects.names_of(indices)
            return names if names.ndim else names.item()

    def remove(self, handles: Any) -> None:
        """Remove objects from the scene. Objects that are added later reuse their indices."""
        with self.lock:
            rows = np.unique(self._objects.rows(handles))
            self._objects.remove(rows)
            if self._robot is not None:
                self._robot.drop(rows)

    def split(self, handle: Any, labels: Any) -> np.ndarray:
        """Replace an object by pieces: faces with the same label become one object.

        Pieces keep pose, groups and ignored pairs of the object, which is removed.

        Args:
            handle: The index or name of the object.
            labels: (m,) integers, one for each face.

        Returns:
            Indices of the pieces, in ascending order of their labels. Faces of a piece keep their
            order, and so do the vertices that they use.
        """
        with self.lock:
            whole = self._objects.row(handle)
            pieces = self._objects.split(whole, labels)
            if self._robot is not None:
                self._robot.replace(whole, pieces)
            return pieces

    def ignore(self, handles: Any, others: Any) -> None:
        """Never test pairs of objects: each of ``handles`` with its partner in ``others``.

        One against many is all of these pairs.
        """
        with self.lock:
            rows, partners = self._objects.rows(handles), self._objects.rows(others)
            self._objects.set_ignored(rows, partners, True)

    def allow(self, handles: Any, others: Any) -> None:
        """Undo ``ignore``, with arguments of the same form."""
        with self.lock:
            rows, partners = self._objects.rows(handles), self._objects.rows(others)
            self._objects.set_ignored(rows, partners, False)

    @property
    def ignored_pairs(self) -> np.ndarray:
        """(k, 2) indices of objects that are never tested, the lower first, sorted."""
        with self.lock:
            return self._objects.ignored.pairs

    def allowed_collisions(self) -> tuple[list[str | int], np.ndarray]:
        """Return the ignored pairs as the allowed-collision matrix of planners.

        Returns:
            The name of each object, its index where it has none; and a (k, k) symmetric matrix of
            bool in the same order: True where the collision of two objects is allowed, so that
            they are never tested. The diagonal is False.
        """
        with self.lock:
            rows = self.indices
            both = zip(self.name_of(rows), rows.tolist(), strict=True)
            names = [row if name is None else name for name, row in both]
            return names, self._objects.ignored.matrix(rows)

    def set_allowed_collisions(self, handles: Any, matrix: Any) -> None:
        """Ignore each two objects whose entry is True, and test those whose entry is False.

        Args:
            handles: k indices or names; pairs with other objects stay as they are.
            matrix: (k, k) bool, symmetric, as ``allowed_collisions`` returns it. The diagonal has
                no meaning.
        """
        with self.lock:
            self._objects.set_ignored_matrix(handles, matrix)

    def collide(
        self,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        self_collisions: bool = False,
        first: bool = False,
        solid: bool = False,
        poses: Any = None,
        method: str = "bvh",
        broad: str | None = None,
        pixels: int = 512,
        width: int = 18,
    ) -> SceneContacts:
        """Find every pair of faces of different objects that share a point.

        Args:
            which: Indices or names of objects; None: all.
            against: Objects to test them against, by index or name; or a ``Mesh`` or another
                ``Scene``, which need not be added. None: all objects of the scene. The filters
                apply, but a mesh meets all groups, and static objects those of another scene.
            pose: Pose (4, 4) of the mesh of ``against``; None leaves it in place.
            self_collisions: Also faces of one object that meet, as in ``abut.self_collide``.
            first: Stop at one pair of faces for each pair of objects, not always the lowest. This
                is the cheapest way to find the objects that meet.
            solid: Closed objects are solids: one, or a part of one, inside another is a collision
                too (``contained``). Open ones stay surfaces. Not for batches of poses.
            poses: (B, n, 4, 4), poses of all n objects in each of B copies of the scene; None takes
                the objects where they are. Copies do not meet each other.
            method: ``bvh``; ``front``, which begins where the last query by fronts stopped (with
                ``first``, ``which`` or ``against`` it is ``bvh``); ``far``, by visibility, without
                hierarchies; ``kdop``, polytopes in fixed point; or ``brute``, the reference.
                ``cullide`` and ``quick_cullide`` are Approximate. Batches of poses are for ``bvh``
                and ``brute``; ``kdop`` takes no self-collisions.
            broad: How pairs of objects are found, ``all_pairs``, ``sweep`` or ``tree``;
                None chooses. All return the same rows.
            pixels: Width of the views of ``far``, ``cullide`` and ``quick_cullide``.
            width: Bits of the fixed-point numbers of ``kdop``, 10 to 35.

        Returns:
            Sorted rows: objects, one of ``which`` and one of ``against``, then faces; with a batch,
            copies first.

        Raises:
            PoseError: A pose is not a rigid motion.

        Guarantee:
            Exact and complete. Faces are closed: touching and coplanar overlap count.
        """
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            how = chosen(Method, method, "method")
            if poses is not None and how not in TREE_METHODS:
                raise OptionError(f"method '{method}' takes no batches of poses; use 'bvh'.")
            if how is Method.KDOP and self_collisions:
                raise OptionError("method 'kdop' takes no self_collisions; use 'bvh'.")
            if solid and poses is not None:
                raise OptionError("solid takes no batches of poses; move the objects instead.")
            if how is Method.KDOP:
                rows = kdop_rows(part, validate_width(width))
                found = found_from_rows(self._searches.layout(part), *rows, first)
            elif how in CULL_METHODS:
                rows = visibility_rows(part, self_collisions, how, pixels)
                found = found_from_rows(self._searches.layout(part), *rows, first)
            else:
                found = self._searches.contacts(
                    part,
                    poses,
                    how is Method.FRONT and not first,
                    own=self_collisions,
                    first=first,
                    brute=how is Method.BRUTE,
                    broad=None if broad is None else chosen(BroadMethod, broad, "broad"),
                )
            pool, version = self._pool, self._pool.version
            contacts = scene_contacts(found, poses is not None, lambda: pool.version == version)
            if not solid:
                return contacts
            from abut.scene.object_overlaps import with_contained

            return with_contained(contacts, part)

    def overlap(
        self,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        tolerance: float = 1e-6,
        volume: bool = False,
    ) -> "SceneOverlaps":
        """Find relations and depths of objects as solids, as ``abut.overlap`` of two meshes.

        Args:
            which, against, pose: The part of the scene to test, as in ``collide``.
            tolerance: Of depths and separations, relative to the smaller solid of each pair.
            volume: Also measure volume, centroid and areas of the common parts.

        Returns:
            One row for each pair of objects that are not apart, sorted by objects.

        Raises:
            MeshError: An object whose box meets that of another one is open.

        Guarantee:
            That of ``abut.overlap``.
        """
        from abut.scene.object_overlaps import scene_overlaps

        tolerance = number_from(tolerance, "tolerance", 0.0)
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            return scene_overlaps(self._searches, part, tolerance, volume)

    def colliding(
        self,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        self_collisions: bool = False,
        poses: Any = None,
    ) -> Any:
        """Whether any two objects meet: a bool, or a (B,) array of them for a batch of poses.

        The search of each environment ends with the first contact.

        Args:
            which, against, pose: The part of the scene to test, as in ``collide``.
            self_collisions: Also whether an object meets itself.
            poses: (B, n, 4, 4), as in ``collide``.

        Guarantee:
            Exact.
        """
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            if poses is None:
                return self._searches.any_contact(part, self_collisions)
            colliding = self._searches.colliding(part, poses, self_collisions)
            return wp.array(colliding, dtype=wp.bool, device=self.device)

    def within(
        self,
        distance: float,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        self_collisions: bool = False,
        poses: Any = None,
        method: str = "bvh",
    ) -> SceneGaps:
        """Find every pair of faces of different objects at most ``distance`` apart.

        Args:
            distance: Largest distance of a pair [length unit of the scene].
            which, against, pose: The part of the scene to test, as in ``collide``.
            self_collisions: Also faces of one object, as in ``abut.within`` of one mesh.
            poses: (B, n, 4, 4), as in ``collide``.
            method: ``bvh``, or ``brute``, the reference.

        Returns:
            Rows sorted as those of ``collide``, with their distances and, when asked for, their
            nearest points.

        Guarantee:
            Complete. Distances are rounded float64, compared as computed; pairs that meet are
            found exactly and have distance 0.
        """
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            distance = number_from(distance, "distance", 0.0)
            if chosen(TREE_METHODS, method, "method") is Method.BRUTE:
                scene = self._searches.layout(part, poses)
                rows = brute_within_rows(part, scene, distance, self_collisions)
            else:
                options = {"distance": distance, "own": self_collisions}
                search = self._searches.near(NearSearch, part, poses, **options)
                scene, rows = search.broad, search.run()
            return scene_gaps(scene, rows, poses is not None)

    def distance(
        self,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        pairs: Any = None,
        nearest: int | None = None,
        upper_bound: float | None = None,
        poses: Any = None,
        method: str = "bvh",
    ) -> SceneDistances:
        """Distances of objects: of each to its nearest, of pairs under a bound, of given pairs.

        Without ``pairs`` and ``upper_bound`` there is a row for every object of ``which`` that may
        meet one of ``against``: the distance to the nearest.

        Args:
            which, against, pose: The part of the scene to test, as in ``collide``.
            pairs: (n, 2) indices or names: a row for each of these pairs, as given, whether the
                filters leave it or not. Not with ``which``, ``against`` and ``nearest``.
            nearest: Number of objects to find for each; nearest ones first, and of those at
                the same distance the lowest.
            upper_bound: Largest distance of objects. Without ``nearest`` and ``pairs`` every pair
                of objects that may meet and is no farther apart is a row. A given pair that is
                farther apart has an infinite distance.
            poses: (B, n, 4, 4), as in ``collide``.
            method: ``bvh``, or ``brute``, the reference.

        Returns:
            Rows sorted by objects; with a batch, copies first, and ``pose`` says which.

        Guarantee:
            The true minimum, rounded as in ``abut.distance``. 0 exactly where two objects meet.
        """
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            bound = inf if upper_bound is None else number_from(upper_bound, "upper_bound", 0.0)
            brute = chosen(TREE_METHODS, method, "method") is Method.BRUTE
            if pairs is not None:
                if nearest is not None or not part.is_whole:
                    raise OptionError("pairs go without which, against and nearest.")
                rows = given_rows(self._searches, part, poses, pairs, bound, brute)
            elif nearest is None and upper_bound is not None:
                rows = bounded_rows(self._searches, part, poses, bound, brute)
            else:
                count = 1 if nearest is None else require_count(nearest, "nearest")
                rows = nearest_rows(self._searches, part, poses, count, bound, brute)
            return distance_rows(*rows, poses is not None)

    def least_distance(
        self,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        poses: Any = None,
        method: str = "bvh",
    ) -> LeastDistance:
        """Distance of the two objects that are nearest to each other.

        If several pairs are equally near, the lowest is returned.

        Args:
            which, against, pose: The part of the scene to test, as in ``collide``.
            poses: (B, n, 4, 4), as in ``collide``.
            method: ``bvh``, or ``brute``, the reference.

        Guarantee:
            The true minimum, rounded as in ``abut.distance``. 0 exactly where two objects meet.
        """
        external = self._selections.external(against, pose)
        with self.lock:
            part = self._selections.part(which, against, external)
            brute = chosen(TREE_METHODS, method, "method") is Method.BRUTE
            found = None if brute or poses is not None else self._searches.least(part)
            if found is not None:
                return found
            rows = least_rows(self._searches, part, poses, brute)
            return least_distance(*rows, poses is not None)

    def ccd(
        self,
        poses: Any = None,
        *,
        which: Any = None,
        against: Any = None,
        pose: Any = None,
        vertices: dict[Any, Any] | None = None,
        min_distance: float = 0.0,
        tolerance: float = 1e-6,
        first: bool = False,
        self_collisions: bool = False,
        method: str = "bvh",
        joints: Any = None,
    ) -> SceneImpacts | MotionImpacts:
        """Find when objects first touch on their way to other poses or shapes.

        Each object moves on its own, as a rigid one in ``abut.Motion``; the links of a robot take
        other paths, for which there is ``joints``. The vertices of an object with new vertices
        move in straight lines. The query moves nothing.

        Args:
            poses: (n, 4, 4), poses of all objects at the end of the step, by index; None leaves all
                in place. (B, n, 4, 4) are the ends of B steps that all begin where objects are.
            which, against, pose: The part of the scene to test, as in ``collide``. A
                mesh or the objects of another scene rest.
            vertices: By index or name, (k, 3) vertices of objects at the end, in their frame.
            min_distance: Gap to keep [length unit of the scene].
            tolerance: How much earlier than the first contact a time may be [share of the step].
            first: Only the earliest impact, one row.
            self_collisions: Also features of one object, which share nothing but vertices of the
                same index.
            method: ``bvh``, or ``brute``, the reference.
            joints: (q0, q1), joint values of the robot at the start and at the end of a motion that
                is straight in joint space. Only min_distance, tolerance and first go with it.

        Returns:
            One row for each vertex-face or edge-edge impact; ``safe_step`` is free of contact. With
            a batch, steps come first, and ``first`` and ``safe_step`` have an entry for each. With
            ``joints``, one row for each pair of objects, as of ``robot.impacts``.

        Guarantee:
            Conservative. No impact is missed; no time is later than the true one.
        """
        if joints is not None:
            if any(x is not None for x in (poses, which, against, pose, vertices)):
                raise OptionError("ccd(joints=) moves the robot alone; drop the other operands.")
            if self_collisions or method != "bvh":
                raise OptionError("ccd(joints=) has neither self_collisions nor other methods.")
            if self.robot is None or len(joints) != 2:
                raise SceneError("joints=(q0, q1) are two configurations of the scene's robot.")
            options = {"min_distance": min_distance, "tolerance": tolerance, "first": first}
            return self.robot.impacts(*joints, **options)
        external = self._selections.external(against, pose)
        with self.lock:
            gap = number_from(min_distance, "min_distance", 0.0)
            tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
            brute = chosen(TREE_METHODS, method, "method") is Method.BRUTE
            options = {"own": self_collisions, "first": first, "brute": brute}
            bent = dict(self._objects.end_points(*item) for item in (vertices or {}).items())
            part = self._selections.part(which, against, external)
            return scene_impacts(part, poses, bent, gap, tolerance, **options)
