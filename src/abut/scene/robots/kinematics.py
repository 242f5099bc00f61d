"""Kinematics: the links and joints of a robot, and poses for joint values."""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from abut.geometry import joint_tree
from abut.geometry.poses import rotated_by
from abut.scene.robots.joint_rotations import (
    require_rotations,
    rotations_of,
    shorter_quaternions,
)
from abut.scene.robots.joint_values import joint_rows, require_finite


class JointKind(IntEnum):
    """Kinds of joints; a ball turns freely about its anchor."""

    SLIDE = joint_tree.SLIDE
    HINGE = joint_tree.HINGE
    BALL = joint_tree.BALL


@dataclass
class Joint:
    """A hinge, a slide or a ball of a link, in the link's frame.

    Attributes:
        axis: (3,) of length 1; a ball has none.
        kind: A JointKind.
        anchor: (3,) a point of the axis, or the centre of a ball.
        column: Index of the joint value that moves it; of a ball the first of four, a quaternion
            w x y z of any length.
        scale, shift: A hinge or slide moves by value * scale + shift.
    """

    axis: np.ndarray
    kind: int
    anchor: np.ndarray
    column: int
    scale: float = 1.0
    shift: float = 0.0

    def motions(self, values: np.ndarray) -> np.ndarray:
        """(B, 4, 4) for (B, k) values of all joints."""
        out = np.tile(np.eye(4), (len(values), 1, 1))
        if self.kind == JointKind.BALL:
            out[:, :3, :3] = rotations_of(values[:, self.columns])
        else:
            amount = values[:, self.column] * self.scale + self.shift
            if self.kind == JointKind.SLIDE:
                out[:, :3, 3] = amount[:, None] * self.axis
                return out
            out[:, :3, :3] = rotated_by(out, amount[:, None] * self.axis)
        out[:, :3, 3] = self.anchor - out[:, :3, :3] @ self.anchor
        return out

    @property
    def columns(self) -> list[int]:
        """Indices of the joint values that move it."""
        return list(range(self.column, self.column + (4 if self.kind == JointKind.BALL else 1)))


@dataclass
class Kinematics:
    """The links of a robot, parents before children.

    Attributes:
        joints: Names of the joints that move, in the order of their values; a joint of several
            values has a name for each, ``base/trans_x``.
        links: Names of the links.
        parents: The parent link of each, -1 for the world.
        frames: (n, 4, 4), pose of each in the frame of its parent when all joints are at rest.
        moves: The joints of each link, in order.
        parts: (link, pose in its frame) of each object of the robot's scene.
        limits: (k, 2), the range of each joint; infinite where there is none.
        has_world: The first link is the world, which may hold other objects too.
        rest: (k,) values of the joints at rest; None for zeros.
        states: Named states: values by joint. Other joints are at rest.
        wide: Columns of the values of joints that have several, by name.
    """

    joints: list[str]
    links: list[str]
    parents: list[int]
    frames: np.ndarray
    moves: list[list[Joint]]
    parts: list[tuple[int, np.ndarray]] = field(default_factory=list)
    limits: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    has_world: bool = False
    rest: np.ndarray | None = None
    states: dict[str, dict[str, float]] = field(default_factory=dict)
    wide: dict[str, list[int]] = field(default_factory=dict)

    def poses(self, values: Any) -> np.ndarray:
        """Poses of all objects for values of the joints [radians or length unit].

        Args:
            values: (k,), or a batch (B, k); or as ``rows_of`` takes them.

        Returns:
            (n, 4, 4), or (B, n, 4, 4) as ``scene.collide(poses=…)`` takes them.
        """
        links = self.link_poses(values)
        poses = links[..., [link for link, _ in self.parts], :, :]
        return poses @ np.array([pose for _, pose in self.parts]).reshape(-1, 4, 4)

    def link_poses(self, values: Any) -> np.ndarray:
        """Poses of all links, (n, 4, 4) or (B, n, 4, 4), for values as ``poses`` takes them."""
        values = self.rows_of(values)
        self.require(values)
        rows = values[None] if values.ndim == 1 else values
        links = np.empty((len(rows), len(self.links), 4, 4))
        for k, parent in enumerate(self.parents):
            above = np.eye(4) if parent < 0 else links[:, parent]
            links[:, k] = above @ self.frames[k]
            for joint in self.moves[k]:
                links[:, k] = links[:, k] @ joint.motions(rows)
        return links[0] if values.ndim == 1 else links

    def rows_of(self, values: Any) -> np.ndarray:
        """(k,) or (B, k) float64 of values of the joints, on the host.

        Args:
            values: An array; a dict of numbers, or of (B,) arrays, by joint; or the name of a
                state.

        Raises:
            SceneError: The shape is another one, or there is no such joint or state.
        """
        rest = np.zeros(len(self.joints)) if self.rest is None else self.rest
        return joint_rows(values, self.joints, rest, self.states, self.wide)

    @cached_property
    def balls(self) -> list[int]:
        """First columns of the quaternions of balls."""
        every = (joint for moves in self.moves for joint in moves)
        return [joint.column for joint in every if joint.kind == JointKind.BALL]

    def require(self, values: np.ndarray) -> None:
        """Refuse values (k,) or (B, k) that are not finite, and quaternions that are no rotation.

        Raises:
            SceneError: Names the joint.
        """
        require_finite(values, self.joints)
        require_rotations(values, self.balls, self.joints)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """(k,) or (B, k) bool: values outside the limits; q and -q are one rotation."""
        low, high = self.limits.reshape(-1, 2).T
        for column in self.balls:
            values = values.copy()
            part = values[..., column : column + 4]
            part[:] = shorter_quaternions(part)
        return (values < low) | (values > high)

    @property
    def static(self) -> np.ndarray:
        """(n,) bool: links that no joint moves."""
        static = np.empty(len(self.links), bool)
        for k, parent in enumerate(self.parents):
            static[k] = not self.moves[k] and (parent < 0 or static[parent])
        return static

    def rigid_groups(self) -> np.ndarray:
        """(n,) the first link of those that each link is fixed to; the world has no others."""
        groups = np.empty(len(self.links), int)
        for k, parent in enumerate(self.parents):
            free = bool(self.moves[k]) or parent < 0 or (self.has_world and parent == 0)
            groups[k] = k if free else groups[parent]
        return groups

    def neighbours(self) -> np.ndarray:
        """(n, n) bool: links that are fixed to each other or joined by one hinge or slide.

        Links that are fixed or joined to the world are not neighbours of other objects there.
        """
        groups = self.rigid_groups()
        near = groups[:, None] == groups
        wide = {column for columns in self.wide.values() for column in columns}
        for k, parent in enumerate(self.parents):
            joined = bool({joint.column for joint in self.moves[k]} - wide)
            if joined and parent >= 0 and not (self.has_world and parent == 0):
                pair = (groups[:, None] == k) & (groups == groups[parent])
                near |= pair | pair.T
        return near
