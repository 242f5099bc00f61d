"""Robot: the robot of a scene, its joints and links, and the objects that they carry."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.errors import SceneError
from abut.geometry.poses import checked_poses
from abut.options import LEAST_TOLERANCE, number_from
from abut.scene.files.robot_description import EndEffector, JointGroup, LinkPair, RobotDescription
from abut.scene.inputs import require_count
from abut.scene.robots.attachments import Attachment, attach_objects, detach_objects
from abut.scene.robots.joint_motions import (
    MotionImpacts,
    MotionVerdicts,
    RobotMotion,
    at_times,
    checked_values,
    motion_impacts,
    motion_verdicts,
    pieces_of,
)
from abut.scene.robots.joint_values import check_limits, known_name
from abut.scene.robots.jointed_arrays import JointedArrays, spheres_of
from abut.scene.robots.kinematics import Kinematics
from abut.scene.robots.motion_paths import path_contacts
from abut.scene.robots.motion_search import MotionSearch
from abut.scene.robots.padding import set_padding
from abut.scene.robots.robot_clearance import RobotClearance, clearance_of
from abut.scene.robots.robot_model import NoObjects, RobotModel
from abut.scene.robots.robot_poses import RobotPoses
from abut.scene.robots.sampled_pairs import sample_pairs
from abut.scene.robots.untested_links import untested_links

if TYPE_CHECKING:
    from abut.scene.files.planning_scene import MotionRequest
    from abut.scene.scene import Scene


@dataclass
class RobotState:
    """A robot as its scene keeps it.

    Attributes:
        kinematics: Its links and joints, and ``parts``: a link and a pose there for each object.
        objects: (n,) rows of these objects in the scene.
        description: Its groups, end effectors and link pairs that are not tested.
        at: Values of the joints that it was last moved to.
        attached: What attached objects were before, by row.
        padding: Distances by row of the scene, of obstacles too.
        version: Grows when parts or objects change.
        prepared: Searches by name, made for a version; not pickled.
    """

    kinematics: Kinematics
    objects: np.ndarray
    description: RobotDescription = field(default_factory=RobotDescription)
    at: Any = field(default_factory=dict)
    attached: dict[int, Attachment] = field(default_factory=dict)
    padding: dict[int, float] = field(default_factory=dict)
    version: int = 0
    prepared: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is prepared."""
        return {**self.__dict__, "prepared": {}}

    def carry(self, objects: np.ndarray, link: int, poses: np.ndarray) -> None:
        """Let a link carry more objects, at poses in its frame."""
        self.kinematics.parts += [(link, pose) for pose in poses]
        self.objects = np.concatenate([self.objects, objects]).astype(np.int64)
        self.version += 1

    def drop(self, objects: Any) -> None:
        """Detach these objects from their links; they may have been obstacles."""
        for row in np.atleast_1d(objects).tolist():
            self.attached.pop(row, None)
            self.padding.pop(row, None)
        kept = ~np.isin(self.objects, objects)
        if not kept.all():
            parts = self.kinematics.parts
            self.kinematics.parts = [parts[k] for k in np.flatnonzero(kept)]
            self.objects = self.objects[kept]
            self.version += 1

    def replace(self, whole: int, pieces: np.ndarray) -> None:
        """Let the link of an object carry its pieces in its place."""
        for at in np.flatnonzero(self.objects == whole):
            link, pose = self.kinematics.parts[at]
            padding, attached = self.padding.get(whole), self.attached.get(whole)
            self.drop(whole)
            if padding is not None:
                self.padding |= dict.fromkeys(pieces.tolist(), padding)
            if attached is not None:
                self.attached |= dict.fromkeys(pieces.tolist(), attached)
            self.carry(pieces, link, np.tile(pose, (len(pieces), 1, 1)))


class Robot:
    """The robot of a scene, as ``scene.robot`` returns it.

    Its links carry some of the objects of the scene. All other objects are obstacles; they may be
    added, moved and removed at any time.

    Attributes:
        scene: The scene.
    """

    def __init__(self, scene: "Scene", state: RobotState) -> None:
        self.scene, self._state = scene, state

    @property
    def kinematics(self) -> Kinematics:
        """Links, joints, and the link and pose of each object."""
        return self._state.kinematics

    @property
    def joints(self) -> list[str]:
        """Names of the joints that move, in the order of their values."""
        return self.kinematics.joints

    @property
    def links(self) -> list[str]:
        """Names of the links, parents before children."""
        return self.kinematics.links

    @property
    def limits(self) -> np.ndarray:
        """(k, 2), the range of each joint; infinite where there is none."""
        return self.kinematics.limits

    @property
    def states(self) -> dict[str, dict[str, float]]:
        """Named states of its files: values by joint; others are at rest.

        Calls that take values of the joints take such a dict, or the name of a state.
        """
        return self.kinematics.states

    @property
    def groups(self) -> dict[str, JointGroup]:
        """Groups of joints and links of its SRDF."""
        return self._state.description.groups

    @property
    def end_effectors(self) -> dict[str, EndEffector]:
        """End effectors of its SRDF."""
        return self._state.description.end_effectors

    @property
    def pairs(self) -> list[LinkPair]:
        """Pairs of links that are not tested now, with reasons.

        No object of one link is tested against any of the other, attached objects aside: their
        pairs are ignored, or their groups do not meet. Pairs with a link without objects are those
        of its files.
        """
        with self.scene.lock:
            return untested_links(self)

    def allowed_pairs(self, samples: int = 10_000, seed: int = 0) -> list[LinkPair]:
        """Find pairs of links that need no test, as MoveIt's setup assistant does.

        Obstacles, attached objects, and what is ignored now have no part in it. Closed meshes are
        solids. The same seed gives the same pairs on every machine.

        Args:
            samples: Number of configurations, uniform within the limits.
            seed: Of the samples.

        Returns:
            Links and the reason: ``Adjacent`` (joined or fixed, or only links without geometry
            between them), ``Default`` (in contact at rest, where that is
            within the limits), ``Always`` (in at least 95 % of the
            samples) or ``Never`` (in none). The last is no proof: a pair may meet elsewhere.

        Raises:
            SceneError: A slide has no limits.
        """
        with self.scene.lock:
            return sample_pairs(self, require_count(samples, "samples"), seed)

    def set_allowed_pairs(self, pairs: Iterable[LinkPair | tuple[str, str]]) -> None:
        """Ignore these pairs of links, and test all other pairs of different links.

        Args:
            pairs: Names of two links, and a reason or none.
        """
        rows = [LinkPair(*pair) for pair in pairs]
        names = [tuple(known_name(x, self.links, "link") for x in pair[:2]) for pair in rows]
        allowed = {frozenset(pair) for pair in names}
        own = {link: self.objects_of(link) for link in self.links}
        with self.scene.lock:
            for k, a in enumerate(self.links):
                for b in self.links[k + 1 :]:
                    change = self.scene.ignore if {a, b} in allowed else self.scene.allow
                    if own[a] and own[b]:
                        change(np.repeat(own[a], len(own[b])), np.tile(own[b], len(own[a])))
            self._state.description.pairs = rows

    def write_srdf(self, path: Any) -> None:
        """Write groups, states, end effectors and the pairs of links as an SRDF file.

        The pairs are those of ``pairs``, so that the URDF loaded with this file tests the links
        that are tested now. Where some objects of two links are tested and others are not, an SRDF
        has no words for it, and all of them will be tested.
        """
        from abut.scene.files.srdf_file import write_srdf

        description = replace(self._state.description, pairs=self.pairs)
        write_srdf(path, description, self.states, self.kinematics)

    def values(self, values: Any, *, limits: str = "ignore") -> np.ndarray:
        """Values of all joints, checked.

        Args:
            values: (k,) or (B, k), in the order of ``joints``; a dict of numbers, or of (B,)
                arrays, by joint, where others are at rest; or the name of a state.
            limits: ``ignore``, ``warn`` or ``refuse`` values outside ``limits``.

        Returns:
            (k,) or (B, k) float64.

        Raises:
            SceneError: Names the joint that there is not, or whose value is NaN, infinite or
                outside its limits; or the shape is another one.
        """
        rows = self.kinematics.rows_of(values)
        self.kinematics.require(rows)
        check_limits(rows, self.kinematics.outside(rows), self.joints, self.limits, limits)
        return rows

    @property
    def objects(self) -> np.ndarray:
        """(n,) indices of the objects that its links carry."""
        return self._state.objects.copy()

    def __repr__(self) -> str:
        """Counts."""
        counts = f"{len(self.joints)} joints, {len(self.links)} links"
        return f"{type(self).__name__}({counts}, {len(self._state.objects)} objects)"

    def object_poses(self, values: Any) -> np.ndarray:
        """Poses of the objects that the robot carries, in the order of ``objects``.

        Args:
            values: (k,) of the joints, or a batch (B, k) [radians or length unit].

        Returns:
            (n, 4, 4), or (B, n, 4, 4).
        """
        rows = self.kinematics.rows_of(values)
        self.kinematics.require(rows)
        with self.scene.lock:
            version, posing = self._state.prepared.get("poses", (-1, None))
            if version != self._state.version:
                posing = RobotPoses(self.kinematics, wp.get_device("cpu"))
                self._state.prepared["poses"] = (self._state.version, posing)
            poses = posing.of(np.atleast_2d(rows))
        return poses[0] if rows.ndim == 1 else poses

    def poses(self, values: Any) -> np.ndarray:
        """Poses of all objects of the scene: the robot's for joint values, others as they are.

        Args:
            values: (k,) of the joints, or a batch (B, k) [radians or length unit].

        Returns:
            (m, 4, 4), or (B, m, 4, 4) as ``scene.collide(poses=…)`` takes them.
        """
        own = self.object_poses(values)
        with self.scene.lock:
            now = self.scene._objects.poses.numpy().reshape(-1, 4, 4)
            every = np.empty((*own.shape[:-3], *now.shape))
            every[:] = now
            every[..., self._state.objects, :, :] = own
        return every

    def valid(self, values: Any, *, limits: bool = False) -> Any:
        """Whether the robot is free of contact: a bool, or (B,) of them for a batch.

        Its objects are tested against each other and against all obstacles, as far as the filters
        of the scene leave pairs of them. Obstacles are not tested against each other. Closed
        meshes are solids: one inside another is a contact. The query moves nothing.

        Args:
            values: (k,) of the joints, or a batch (B, k) [radians or length unit].
            limits: Values outside the limits of their joints are not valid either.

        Returns:
            A bool; for a batch a Warp array on the device of the scene.

        Raises:
            SceneError: A value is not a finite number.

        Guarantee:
            Exact for the poses that the joints have in float64, as ``collide(solid=True)``.
        """
        scene = self.scene
        given = None if limits else self._device_rows(values)
        rows: Any = self.kinematics.rows_of(values) if given is None else given
        try:
            with scene.lock:
                pads = self._state.padding
                model = self._model(pads) if len(self._state.objects) else NoObjects(scene.device)
                if rows.ndim == 1:
                    free = model.is_free(rows)
                    return free and not (limits and self._outside(rows[None])[0])
                free = model.are_free(np.atleast_2d(rows) if given is None else rows)
        except SceneError:
            self.kinematics.require(self.kinematics.rows_of(values))  # names the joint
            raise
        if limits:
            host = free.numpy() & ~self._outside(rows)
            free = wp.array(host, dtype=wp.bool, device=free.device)
        return free

    def _device_rows(self, values: Any) -> wp.array | None:
        """A batch of float64 values that is on the CUDA device of the scene, as it is."""
        if self.scene.device.is_cpu or isinstance(values, np.ndarray | list | dict | str):
            return None
        rows = to_plain(values)
        here = isinstance(rows, wp.array) and rows.device == self.scene.device
        if not here or rows.dtype != wp.float64 or rows.ndim != 2:
            return None
        return rows if rows.shape[1] == len(self.joints) and rows.is_contiguous else None

    def prepare(self) -> None:
        """Build now the tables that later queries would build when it pays.

        Of each two objects with one or two joints between them, this is a grid of joint values for
        which they cannot meet.
        """
        with self.scene.lock:
            if len(self._state.objects):
                self._model(self._state.padding).improve(every=True)

    def _outside(self, rows: np.ndarray) -> np.ndarray:
        return np.any(self.kinematics.outside(rows), axis=1)

    def _model(self, pads: dict[int, float] | None = None) -> RobotModel:
        """The robot and the scene as they are, prepared for searches, with paddings or without."""
        scene, state = self.scene, self._state
        scene._objects.pool.flush()
        name = "padded model" if pads else "model"
        version, model = state.prepared.get(name, (-1, None))
        if model is None or version != state.version or not model.serves():
            known = (state.prepared.get(x, (-1, None)) for x in (name, "model", "padded model"))
            grids = next((held.grids for at, held in known if at == state.version), None)
            model = RobotModel(scene._searches, state.kinematics, state.objects, grids)
            state.prepared[name] = (state.version, model)
        model.follow()
        model.set_pads(pads or {})
        return model

    def move(self, values: Any) -> None:
        """Move the objects of the robot to their poses for (k,) joint values."""
        rows = self.values(values)
        self.scene.move(self.objects, self.object_poses(rows))
        self._state.at = rows.copy()

    def objects_of(self, link: Any) -> list[int]:
        """Indices of the objects that a link carries, by its name or number."""
        if isinstance(link, str):
            link = self.links.index(known_name(link, self.links, "link"))
        parts = zip(self._state.objects.tolist(), self.kinematics.parts, strict=True)
        return [row for row, (at, _) in parts if at == link]

    def attach(
        self,
        handles: Any,
        link: str,
        pose: Any = None,
        *,
        at: Any = None,
        touch_links: Iterable[str] = (),
    ) -> None:
        """Let a link carry objects of the scene, such as a part in a gripper.

        They move with the link and are tested against all other objects, as the link's are. They
        are not tested against the link, links fixed to it, ``touch_links``, and each other.

        Args:
            handles: Index or name of an object that is an obstacle now; or several.
            link: The link.
            pose: (4, 4) or one for each, in the frame of the link; None leaves them in place.
            at: Values of the joints now; None takes those of the last ``move``, or of rest.
            touch_links: Links that the objects may touch.

        Raises:
            SceneError: There is no such link, or the robot carries an object already.
        """
        attach_objects(self, handles, link, pose, at, touch_links)

    def detach(self, handles: Any) -> None:
        """Leave attached objects where they are in the scene, as obstacles again.

        Their filters and the pairs that are tested are those before ``attach``.

        Raises:
            SceneError: An object is not attached.
        """
        detach_objects(self, handles)

    @property
    def attached(self) -> dict[int, str]:
        """The link of each attached object, by its index."""
        return {row: held.link for row, held in self._state.attached.items()}

    def pad(self, distances: Any) -> None:
        """Set distances around objects, below which ``valid`` counts them as in contact.

        Two objects are in contact when they are no farther apart than both paddings together.
        Pairs that are not tested stay so.

        Args:
            distances: One for all links; or a dict of them by link, which pads all objects that
                the link carries now, or by index or name of an object [length unit]. 0 removes
                a padding.

        Raises:
            SceneError: There is no such link or object, or a distance is negative or not finite.
        """
        with self.scene.lock:
            set_padding(self, distances)

    @property
    def padding(self) -> dict[int, float]:
        """Padding by index, of objects that have one."""
        return dict(self._state.padding)

    def read_request(self, path: Any) -> "MotionRequest":
        """Read start and goals of a motion request of MoveIt, a YAML file.

        Raises:
            FileError: The file cannot be read as one.
            ToolError: PyYAML is missing: ``pip install 'abut[robots]'``.
        """
        from abut.scene.files.planning_scene import read_request

        return read_request(path, self.kinematics)

    def motion(self, q0: Any, q1: Any) -> RobotMotion:
        """The motion from one configuration to another that is straight in joint space.

        Args:
            q0, q1: (k,) joint values at the start and at the end [radians or length unit].
        """
        ends = [checked_values(self.kinematics, q) for q in (q0, q1)]
        if ends[0].ndim != 1 or ends[1].ndim != 1:
            raise SceneError("a motion needs q0 and q1 of shape (k,).")
        with self.scene.lock:
            arrays = self._motion_search().arrays
            args = (arrays.objects, arrays.body, arrays.poses, len(arrays.bodies))
            return RobotMotion(self.kinematics, spheres_of(*args), *ends)

    def valid_motions(
        self,
        q0: Any,
        q1: Any = None,
        *,
        times: Any = None,
        min_distance: float = 0.0,
        tolerance: float = 1e-6,
    ) -> MotionVerdicts:
        """Whether motions that are straight in joint space are free of contact, all the way.

        Links travel on their true, curved paths. The objects of the robot are tested against each
        other and against all other objects of the scene, which rest; filters apply.

        Args:
            q0, q1: (k,) joint values at the start and at the end, or batches (B, k). Without
                ``q1``, ``q0`` are the waypoints (m, k) of a path, or (B, m, k) of several, with
                straight motions between them.
            times: (m,) of the waypoints of a trajectory, increasing, in which ``time`` is given
                then.
            min_distance: Gap to keep [length unit of the scene]; of padded objects (see ``pad``) at
                least both paddings together.
            tolerance: How much earlier than the first contact a time may be [share of a motion].

        Returns:
            Whether each is free, and when, where and between which objects contact begins.

        Raises:
            SceneError: Values have a wrong shape, or are not finite.

        Guarantee:
            Conservative. A motion that is called free has no contact at any time; no time is later
            than that of the first contact. A gap is contact where it exceeds ``min_distance`` by no
            more than rounding.
        """
        gap = number_from(min_distance, "min_distance", 0.0)
        tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
        starts, ends, pieces, single = pieces_of(self.kinematics, q0, q1)
        with self.scene.lock:
            search = self._motion_search()
            found = path_contacts(self, search, starts, ends, pieces, gap, tolerance)
        if times is not None:
            found = at_times(found, times, q0, q1)
        return motion_verdicts(found, single, self.scene.device)

    def impacts(
        self,
        q0: Any,
        q1: Any,
        *,
        min_distance: float = 0.0,
        tolerance: float = 1e-6,
        first: bool = False,
    ) -> MotionImpacts:
        """When pairs of objects first touch during a motion that is straight in joint space.

        Objects are tested as by ``valid_motions``, with paddings, by their surfaces alone: an
        object inside another one has no impact. ``scene.ccd(joints=(q0, q1))`` is the same.

        Args:
            q0, q1: (k,) joint values at the start and at the end [radians or length unit].
            min_distance: Gap to keep [length unit of the scene].
            tolerance: How much earlier than the first contact a time may be [share of the motion].
            first: Only the earliest impact, one row.

        Returns:
            One row for each pair of objects that touch; ``safe_step`` is free of contact.

        Guarantee:
            Conservative. No pair that touches is missed; no time is later than the true one.
        """
        gap = number_from(min_distance, "min_distance", 0.0)
        tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
        start, end = (checked_values(self.kinematics, q) for q in (q0, q1))
        if start.ndim != 1 or end.ndim != 1:
            raise SceneError("one motion is expected: q0 and q1 of shape (k,).")
        with self.scene.lock:
            search = self._motion_search()
            run = search.run if first else search.run_pairs
            found = run(start[None], end[None], gap, tolerance)
        return motion_impacts(found, self.scene.device)

    def clearance(self, values: Any) -> RobotClearance:
        """The least distance of the robot's objects to each other and to all other objects.

        Pairs are those that ``valid`` tests; the paddings of both objects are taken off.

        Args:
            values: (k,) of the joints, or a batch (B, k) [radians or length unit].

        Returns:
            Distances, and the objects and faces that are nearest; ``scene.least_distance`` at the
            same poses has the points too.

        Guarantee:
            Exact, up to rounding of the distance: 0 where ``valid`` is False, limits aside, and
            positive elsewhere.
        """
        rows = checked_values(self.kinematics, values)
        with self.scene.lock:
            found = clearance_of(self, np.atleast_2d(rows))
        distance, objects, faces = found
        if rows.ndim == 1:
            return RobotClearance(float(distance[0]), objects[0], faces[0])
        columns = ((distance, wp.float64), (objects, wp.int32), (faces, wp.int32))
        device = self.scene.device
        return RobotClearance(*(wp.array(x, dtype=kind, device=device) for x, kind in columns))

    def free_of_contact(self, rows: np.ndarray) -> np.ndarray:
        """(n,) bool, as ``valid`` of (n, k) values without limits and paddings."""
        if not len(rows) or not len(self._state.objects):
            return np.ones(len(rows), bool)
        if len(rows) == 1:
            return np.array([self._model().is_free(rows[0])])
        return self._model().are_free(rows).numpy()

    def _motion_search(self) -> MotionSearch:
        """The search for the scene as it is."""
        objects, state = self.scene._objects, self._state
        objects.pool.flush()
        if objects.exposed:  # a caller may have written poses
            checked_poses(objects.poses.numpy()[objects.living], "poses")
        key = (state.version, objects.version, objects.pool.version, objects.pool.arrays.generation)
        known, search = state.prepared.get("motions", (None, None))
        if known != key:
            arrays = JointedArrays(objects, self.kinematics, state.objects)
            search = MotionSearch(arrays)
            state.prepared["motions"] = key, search
        search.arrays.follow_obstacles()
        search.arrays.set_pads(state.padding)
        return search
