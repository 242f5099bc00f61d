"""Scene: many objects that move, deform and break."""

from abut.scene.distance_results import LeastDistance, SceneDistances
from abut.scene.impacts import SceneImpacts
from abut.scene.robots.joint_motions import MotionImpacts, MotionVerdicts, RobotMotion
from abut.scene.robots.robot import Robot
from abut.scene.robots.robot_clearance import RobotClearance
from abut.scene.scene import Scene
from abut.scene.scene_object import SceneObject
from abut.scene.scene_results import SceneContacts, SceneGaps

__all__ = [
    "LeastDistance",
    "MotionImpacts",
    "MotionVerdicts",
    "Robot",
    "RobotClearance",
    "RobotMotion",
    "Scene",
    "SceneContacts",
    "SceneDistances",
    "SceneGaps",
    "SceneImpacts",
    "SceneObject",
]
