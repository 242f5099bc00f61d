"""OMPL's StateValidityChecker and MotionValidator, answered by the robot of a Scene.

Configurations are decided exactly on the meshes, and motions for their whole way, without a
resolution. Needs the extra ``ompl``.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from abut.errors import SceneError, ToolError
from abut.scene import Robot
from abut.scene.robots.joint_values import known_name
from abut.scene.robots.kinematics import JointKind

# Where a motion is looked at before it is certified: most motions of a planner that meet something
# do so at one of these, which takes a fraction of the time.
LOOKS = np.array([1.0, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875])[:, None]


class PlannedJoints:
    """The joints that a planner moves; the others keep their values.

    Args:
        robot: The robot of a scene.
        joints: A group of its SRDF, or names of joints; None takes all.
        at: Values of the other joints, as ``robot.values`` takes them; None takes rest.
        bounds: Lowest and highest value by joint, in place of its limits. A hinge without either is
            planned within half a turn to both sides of 0.

    Attributes:
        low, high: (n,) bounds; infinite where there are none.
    """

    def __init__(
        self,
        robot: Robot,
        joints: str | Sequence[str] | None = None,
        at: Any = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
    ):
        if isinstance(joints, str):
            joints = robot.groups[known_name(joints, robot.groups, "group")].joints
        names = robot.joints if joints is None else list(joints)
        self.robot = robot
        self.columns = [robot.joints.index(known_name(x, robot.joints, "joint")) for x in names]
        self.others = robot.values({} if at is None else at)
        if self.others.ndim != 1:
            raise SceneError("the other joints need one configuration, not a batch.")
        limits = robot.limits.copy()
        for moves in robot.kinematics.moves:
            for joint in moves:
                if joint.kind == JointKind.HINGE and not np.isfinite(limits[joint.column]).all():
                    limits[joint.column] = -np.pi, np.pi
        for name, ends in (bounds or {}).items():
            limits[robot.joints.index(known_name(name, robot.joints, "joint"))] = ends
        self.low, self.high = limits[self.columns].T

    def __len__(self) -> int:
        """Number of joints."""
        return len(self.columns)

    def values(self, state: Any) -> np.ndarray:
        """(k,) values of all joints for a state of ``state_space``."""
        values = self.others.copy()
        values[self.columns] = [state[k] for k in range(len(self.columns))]
        return values

    def state_values(self, values: Any) -> np.ndarray:
        """Values of the planned joints, of values as ``robot.values`` takes them."""
        return self.robot.values(values)[..., self.columns]


def state_space(joints: PlannedJoints) -> Any:
    """A ``RealVectorStateSpace`` with the bounds of the joints.

    Raises:
        SceneError: A joint has no bounds, or is one of the values of a rotation.
    """
    base = _base()
    space, bounds = base.RealVectorStateSpace(len(joints)), base.RealVectorBounds(len(joints))
    turning = {k for first in joints.robot.kinematics.balls for k in range(first, first + 4)}
    for k, column in enumerate(joints.columns):
        low, high, name = float(joints.low[k]), float(joints.high[k]), joints.robot.joints[column]
        if column in turning:
            raise SceneError(f"{name} is part of a quaternion, which this space does not plan.")
        if not (np.isfinite([low, high]).all() and low <= high):
            raise SceneError(f"joint {name} has no limits to plan within; bounds= gives it some.")
        bounds.setLow(k, low)
        bounds.setHigh(k, high)
    space.setBounds(bounds)
    return space


def validity_checker(information: Any, joints: PlannedJoints) -> Any:
    """A ``StateValidityChecker``: within the bounds, and ``robot.valid``.

    Guarantee:
        That of ``Robot.valid``.
    """
    return _classes()[0](information, joints)


def motion_validator(information: Any, joints: PlannedJoints) -> Any:
    """A ``MotionValidator`` of straight motions in joint space, by ``robot.valid_motions``.

    It needs no resolution: ``setStateValidityCheckingResolution`` has no effect on it. OMPL 2.0
    does not let a Python validator return the last valid state, which LBKPIECE, RLRT and PDST use.

    Guarantee:
        Conservative. A motion that is called valid has no contact at any time.
    """
    return _classes()[1](information, joints)


def simple_setup(
    robot: Robot,
    joints: str | Sequence[str] | None = None,
    at: Any = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Any:
    """An ``ompl.geometric.SimpleSetup`` with space, checker and validator of a robot.

    Args:
        robot, joints, at, bounds: As ``PlannedJoints`` takes them.
    """
    _base()
    from ompl import geometric

    planned = PlannedJoints(robot, joints, at, bounds)
    setup = geometric.SimpleSetup(state_space(planned))
    information = setup.getSpaceInformation()
    setup.setStateValidityChecker(validity_checker(information, planned))
    information.setMotionValidator(motion_validator(information, planned))
    return setup


def _base() -> Any:
    try:
        from ompl import base
    except ImportError as error:
        raise ToolError("ompl is missing; pip install 'abut[ompl]' brings it.") from error
    return base


@cache
def _classes() -> tuple[type, type]:
    """The checker and the validator, classes that need OMPL to be made."""
    base = _base()

    class Checker(base.StateValidityChecker):
        """Decides states by ``robot.valid``."""

        def __init__(self, information: Any, joints: PlannedJoints) -> None:
            super().__init__(information)
            self.joints, self.information = joints, information

        def isValid(self, state: Any) -> bool:
            """Whether a state is within the bounds, and free."""
            inside = self.information.satisfiesBounds(state)
            return bool(inside and self.joints.robot.valid(self.joints.values(state)))

    class Validator(base.MotionValidator):
        """Decides motions by ``robot.valid_motions``."""

        def __init__(self, information: Any, joints: PlannedJoints) -> None:
            super().__init__(information)
            self.joints = joints

        def checkMotion(self, start: Any, end: Any, *_: Any) -> bool:
            """Whether the straight motion between two states is free."""
            robot = self.joints.robot
            q0, q1 = self.joints.values(start), self.joints.values(end)
            if not robot.valid(q0 + LOOKS * (q1 - q0)).numpy().all():
                return False
            return bool(robot.valid_motions(q0, q1))

    return Checker, Validator
