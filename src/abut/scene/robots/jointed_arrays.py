"""JointedBodies and JointedObjects of a robot among the objects of its scene."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.operands.jointed_bodies import JointedBodies, JointedObjects
from abut.scene.objects import ObjectTable
from abut.scene.robots.kinematics import Joint, Kinematics

OUTWARD = 1.0 + 2.0**-40  # for lengths that are upper bounds


@dataclass
class JointedBody:
    """A body that one joint moves.

    Attributes:
        parent: Index of another body; -1 for the world.
        frame: (4, 4), in the frame of the parent, with the joint at rest.
        joint: In the frame of the body.
    """

    parent: int
    frame: np.ndarray
    joint: Joint


def jointed_bodies_of(
    kinematics: Kinematics,
) -> tuple[list[JointedBody], list[tuple[int, np.ndarray]]]:
    """(bodies, body of each link and pose of the link in its frame).

    Links that are fixed to each other share a body. A link with several joints has several bodies.
    """
    bodies: list[JointedBody] = []
    links: list[tuple[int, np.ndarray]] = []
    for k, parent in enumerate(kinematics.parents):
        body, frame = links[parent] if parent >= 0 else (-1, np.eye(4))
        frame = frame @ kinematics.frames[k]
        for joint in kinematics.moves[k]:
            bodies.append(JointedBody(body, frame, joint))
            body, frame = len(bodies) - 1, np.eye(4)
        links.append((body, frame))
    return bodies, links


def arms_of(bodies: list[JointedBody]) -> np.ndarray:
    """(n,) distances between the anchors of bodies and of their parents, with joints at rest."""
    arms = np.zeros(len(bodies))
    for k, body in enumerate(bodies):
        if body.parent >= 0:
            anchor = body.frame[:3, :3] @ body.joint.anchor + body.frame[:3, 3]
            arms[k] = np.linalg.norm(anchor - bodies[body.parent].joint.anchor)
    return arms * OUTWARD


def common_body(bodies: list[JointedBody], a: int, b: int) -> int:
    """The nearest body that moves both bodies; -1 for the world."""
    while a != b:
        a, b = (bodies[a].parent, b) if a > b else (a, bodies[b].parent)
    return a


def spheres_of(
    objects: ObjectTable, body: np.ndarray, poses: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """((n, 3) centres, (n,) radii) of spheres around the objects on each body.

    Args:
        objects: Of the scene.
        body: (m,) of each object.
        poses: (m, 4, 4) of each object, in the frame of its body.
        count: Number of bodies. One without vertices has a radius of -1.
    """
    centres, radii = np.zeros((count, 3)), np.full(count, -1.0)
    for k in range(count):
        points = [np.empty((0, 3))]
        for row in np.flatnonzero(body == k):
            own, _ = objects.pool.arrays.points_and_faces(int(objects.shapes[row]))
            points.append(own.numpy() @ poses[row, :3, :3].T + poses[row, :3, 3])
        every = np.concatenate(points)
        if len(every):
            centres[k] = (every.min(axis=0) + every.max(axis=0)) / 2
            radii[k] = np.linalg.norm(every - centres[k], axis=1).max() * OUTWARD
    return centres, radii


class JointedArrays:
    """The structs of a robot, for the shapes and filters of its scene as they are.

    Args:
        objects: Of the scene.
        kinematics: The robot.
        rows: The object of each of its parts.

    Attributes:
        bodies: The bodies that joints move.
        body: (m,) of each object of the scene; -1 for objects at rest.
        poses: (m, 4, 4) of each object, in the frame of its body.
        balls: First columns of the quaternions of balls.
        pairs: (n, 3) objects that may not meet, one of them of the robot, and their common body.
        skew: How far frames are from rigid ones.
        body_view, object_view: The structs.
    """

    def __init__(self, objects: ObjectTable, kinematics: Kinematics, rows: np.ndarray) -> None:
        self.objects, self.device, self._rows = objects, objects.device, rows
        self._pads: dict[int, float] = {}
        self._followed = -1
        self.bodies, links = jointed_bodies_of(kinematics)
        self.balls = kinematics.balls
        self.poses = objects.poses.numpy().reshape(-1, 4, 4).copy()
        self.body = np.full(len(objects), -1, np.int32)
        for row, (link, pose) in zip(rows, kinematics.parts, strict=True):
            self.body[row], frame = links[link]
            self.poses[row] = frame @ pose
        turns = np.array([body.frame[:3, :3] for body in self.bodies]).reshape(-1, 3, 3)
        self.skew = float(np.abs(turns @ turns.swapaxes(1, 2) - np.eye(3)).sum())
        self.pairs = self._tested_pairs()
        self.body_view, self.object_view = self._body_view(), self._object_view()
        obstacles = np.setdiff1d(objects.living, rows).astype(np.int32)
        self._obstacles = wp.array(obstacles, device=self.device)

    def follow_obstacles(self) -> None:
        """Take over the poses of the other objects of the scene, where they may have moved."""
        known = self.objects.tracks_moves()
        if known and self.objects.moves.count == self._followed:
            return
        self._followed = self.objects.moves.count
        if self._obstacles.shape[0]:
            to, source = (
                wp.indexedarray(poses, [self._obstacles])
                for poses in (self.object_view.poses, self.objects.poses)
            )
            wp.copy(to, source)

    def set_pads(self, pads: dict[int, float]) -> None:
        """Take over the paddings of objects, by row."""
        if pads != self._pads:
            rows = np.zeros(len(self.body))
            rows[list(pads)] = list(pads.values())
            self.object_view.pads.assign(rows)
            self._pads = dict(pads)

    def _tested_pairs(self) -> np.ndarray:
        living = self.objects.living
        faces = self.objects.pool.arrays.table["face_count"][self.objects.shapes[living]]
        living = living[faces > 0]
        own = living[np.isin(living, self._rows)]
        pairs = np.stack(np.meshgrid(own, living, indexing="ij"), axis=-1).reshape(-1, 2)
        pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        pairs = pairs[self.objects.tested(pairs)]
        common = [common_body(self.bodies, *self.body[pair].tolist()) for pair in pairs]
        return np.column_stack([pairs, np.array(common, np.int64)]).astype(np.int32)

    def _object_view(self) -> Any:
        view = JointedObjects()
        view.bodies = self._array(self.body, wp.int32)
        view.poses = self._array(self.poses, wp.mat44d)
        view.shapes = self._array(self.objects.shapes, wp.int32)
        view.pads = wp.zeros(len(self.body), dtype=wp.float64, device=self.device)
        view.pairs = self._array(self.pairs, wp.vec3i)
        return view

    def _body_view(self) -> Any:
        joints = [body.joint for body in self.bodies]
        vectors = {name: [getattr(j, name) for j in joints] for name in ("axis", "anchor")}
        view = JointedBodies()
        view.parents = self._array([body.parent for body in self.bodies], wp.int32)
        frames = np.array([body.frame for body in self.bodies]).reshape(-1, 4, 4)
        view.frames = self._array(frames, wp.mat44d)
        view.axes = self._array(np.reshape(vectors["axis"], (-1, 3)), wp.vec3d)
        view.anchors = self._array(np.reshape(vectors["anchor"], (-1, 3)), wp.vec3d)
        view.kinds = self._array([int(joint.kind) for joint in joints], wp.int32)
        view.columns = self._array([joint.column for joint in joints], wp.int32)
        view.scales = self._array([joint.scale for joint in joints], wp.float64)
        view.shifts = self._array([joint.shift for joint in joints], wp.float64)
        view.arms = self._array(arms_of(self.bodies), wp.float64)
        spheres = spheres_of(self.objects, self.body, self.poses, len(self.bodies))
        view.centres = self._array(spheres[0], wp.vec3d)
        view.radii = self._array(spheres[1], wp.float64)
        return view

    def _array(self, rows: Any, dtype: Any) -> wp.array:
        return wp.array(np.asarray(rows), dtype=dtype, device=self.device)
