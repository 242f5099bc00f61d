"""ReadOptions and RobotFile: how a robot's file is read, and its contents."""

from dataclasses import dataclass, field
from typing import Any

from abut.errors import OptionError
from abut.scene.files.package_paths import checked_packages
from abut.scene.files.robot_description import RobotDescription
from abut.scene.files.robot_parts import LinkGeometry, checked_chord
from abut.scene.robots.kinematics import Kinematics

GEOMETRIES = ("collision", "visual")


@dataclass
class ReadOptions:
    """Options of the readers of robots' files.

    Attributes:
        geometry: ``collision`` or ``visual``.
        packages: Folders of packages by name, or folders to search.
        chord: The largest deviation of polyhedra from round shapes; None for the default.
        convex: Take the convex hulls of meshes, as MuJoCo does.
        srdf: The SRDF of a URDF; True takes the one beside it.
    """

    geometry: str = "collision"
    packages: Any = None
    chord: Any = None
    convex: bool = False
    srdf: Any = None

    def __post_init__(self) -> None:
        """Check the options."""
        if self.geometry not in GEOMETRIES:
            raise OptionError(f"geometry must be one of {GEOMETRIES}, not {self.geometry!r}.")
        checked_packages(self.packages)
        self.chord = checked_chord(self.chord)

    def require_for(self, kind: str) -> None:
        """Refuse options that a kind of file, ``.urdf``, does not have."""
        if self.packages is not None and kind != ".urdf":
            raise OptionError("packages are for URDF files.")
        if self.srdf not in (None, False) and kind != ".urdf":
            raise OptionError("srdf is for URDF files.")
        if self.convex and kind not in (".xml", ".mjcf"):
            raise OptionError("convex is for MJCF files.")


@dataclass
class RobotFile:
    """Links and joints of a robot, its geometry, and what its files say about it.

    Attributes:
        children: The link that each joint moves, fixed joints included.
    """

    kinematics: Kinematics
    parts: list[LinkGeometry]
    description: RobotDescription
    children: dict[str, int] = field(default_factory=dict)
