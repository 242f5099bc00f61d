"""JointColumns: the values of the joints of a robot, one after the other as a file names them."""

from dataclasses import dataclass, field

import numpy as np

from abut.scene.robots.kinematics import Joint, JointKind, Kinematics

ORIGIN = np.zeros(3)
POSITIONS = ("trans_x", "trans_y", "trans_z")  # as in MoveIt
ROTATIONS = ("rot_w", "rot_x", "rot_y", "rot_z")
PLANAR = ("x", "y", "theta")
ENDLESS = (-np.inf, np.inf)


@dataclass
class JointColumns:
    """Names, limits and values at rest of the joints so far.

    Attributes:
        wide: Columns of joints of several values, by name.
    """

    names: list[str] = field(default_factory=list)
    limits: list[tuple[float, float]] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
    wide: dict[str, list[int]] = field(default_factory=dict)

    def single(
        self,
        name: str,
        axis: np.ndarray,
        hinge: bool,
        limits: tuple[float, float],
        anchor: np.ndarray = ORIGIN,
        rest: float = 0.0,
    ) -> Joint:
        """Add a hinge or slide, which does not move where it has its value at rest."""
        kind = JointKind.HINGE if hinge else JointKind.SLIDE
        return Joint(axis, kind, anchor, self._add(name, limits, rest), 1.0, -rest)

    def follower(
        self, axis: np.ndarray, hinge: bool, column: int, scale: float, shift: float
    ) -> Joint:
        """A hinge or slide that the value of another joint moves."""
        kind = JointKind.HINGE if hinge else JointKind.SLIDE
        return Joint(axis, kind, ORIGIN, column, scale, shift)

    def planar(self, name: str, normal: np.ndarray) -> list[Joint]:
        """Add x, y and a turn about the normal of a plane, which x y z turn to the shortest way."""
        frame = _frame_about(normal)
        columns = [self._add(f"{name}/{part}", ENDLESS, 0.0) for part in PLANAR]
        self.wide[name] = columns
        kinds = (JointKind.SLIDE, JointKind.SLIDE, JointKind.HINGE)
        axes = (*frame.T[:2], normal)
        return [Joint(*row) for row in zip(axes, kinds, [ORIGIN] * 3, columns, strict=True)]

    def floating(
        self, name: str, position: np.ndarray = ORIGIN, rotation: tuple = (1.0, 0.0, 0.0, 0.0)
    ) -> list[Joint]:
        """Add a position and a rotation in the frame of the link above, and where they rest."""
        at = zip(POSITIONS, position, strict=True)
        columns = [self._add(f"{name}/{part}", ENDLESS, float(x)) for part, x in at]
        slides = zip(np.eye(3), columns, strict=True)
        moves = [Joint(axis, JointKind.SLIDE, ORIGIN, column) for axis, column in slides]
        moves.append(self.ball(name, ORIGIN, ENDLESS, rotation))
        self.wide[name] = [*columns, *moves[-1].columns]
        return moves

    def ball(
        self,
        name: str,
        centre: np.ndarray,
        cosines: tuple[float, float] = ENDLESS,
        rotation: tuple = (1.0, 0.0, 0.0, 0.0),
    ) -> Joint:
        """Add a quaternion w x y z about a centre, with limits of w: cosines of half the turn."""
        limits = (cosines, *[ENDLESS] * 3)
        parts = zip(ROTATIONS, limits, rotation, strict=True)
        columns = [self._add(f"{name}/{part}", ends, float(x)) for part, ends, x in parts]
        self.wide[name] = columns
        return Joint(ORIGIN, JointKind.BALL, centre, columns[0])

    def describe(self, kinematics: Kinematics) -> None:
        """Write names, limits and values at rest to a robot."""
        kinematics.joints, kinematics.wide = self.names, self.wide
        kinematics.limits = np.array(self.limits, float).reshape(-1, 2)
        kinematics.rest = np.array(self.rest, float)

    def _add(self, name: str, limits: tuple[float, float], rest: float) -> int:
        self.names.append(name)
        self.limits.append(limits)
        self.rest.append(rest)
        return len(self.names) - 1


def _frame_about(normal: np.ndarray) -> np.ndarray:
    """(3, 3) the least rotation that takes z to a unit normal; half a turn about x for -z."""
    x, y, z = normal
    if z < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    cross = np.array([[0, 0, x], [0, 0, y], [-x, -y, 0]])
    return np.eye(3) + cross + cross @ cross / (1 + z)
