"""RobotDescription: groups, states and link pairs of a robot, beside its links and joints."""

from dataclasses import dataclass, field
from typing import NamedTuple


class LinkPair(NamedTuple):
    """Two links that are not tested against each other, and why.

    Attributes:
        link_a, link_b: Names of the links.
        reason: ``Adjacent``, ``Default`` (they meet at rest), ``Always`` (in nearly all samples),
            ``Never`` (in no sample), or what a file says.
    """

    link_a: str
    link_b: str
    reason: str = "User"


class JointGroup(NamedTuple):
    """Joints and links that belong together, such as an arm."""

    joints: list[str]
    links: list[str]


class EndEffector(NamedTuple):
    """A group of links that is mounted on a link."""

    group: str
    parent_link: str
    parent_group: str | None = None


@dataclass
class RobotDescription:
    """Names of a robot and of parts of it, and the link pairs that its files exclude.

    Attributes:
        name: Of the robot.
        groups: Joints and links by name.
        end_effectors: By name.
        pairs: Links that are not tested, with reasons.
    """

    name: str = "robot"
    groups: dict[str, JointGroup] = field(default_factory=dict)
    end_effectors: dict[str, EndEffector] = field(default_factory=dict)
    pairs: list[LinkPair] = field(default_factory=list)
