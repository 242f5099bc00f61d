"""Poses of the objects of a robot, by kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.call import Call
from abut.core.launch import Task, launch
from abut.geometry.joint_tree import JointTree, body_pose, pose_joints
from abut.scene.robots.kinematics import Joint, JointKind, Kinematics

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def robot_poses_kernel(
    # in
    span: wp.vec3i,
    tree: JointTree,
    values: wp.array2d[wp.float64],
    # out
    joints_out: wp.array[wp.mat44d],
    poses_out: wp.array[wp.mat44d],
):
    """Write the poses of all joints and of all bodies for each row of values."""
    bodies = tree.body_joints.shape[0]
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        pose_joints(tree, values, row, joints_out)
        for body in range(bodies):
            poses_out[row * bodies + body] = body_pose(tree, joints_out, row, body)


@dataclass
class MovingJoint:
    """A joint that moves.

    Attributes:
        above: The moving joint above, -1 for the world.
        frame: (4, 4), its pose at rest in the frame of the joint above.
    """

    above: int
    joint: Joint
    frame: np.ndarray


def moving_joints(
    kinematics: Kinematics,
) -> tuple[list[MovingJoint], list[tuple[int, np.ndarray]]]:
    """The joints that move, and the (joint, pose there) of each part; fixed links are merged."""
    fixed: list[tuple[int, np.ndarray]] = []  # joint above each link, and the link's pose there
    rows: list[MovingJoint] = []
    for k, parent in enumerate(kinematics.parents):
        above, frame = fixed[parent] if parent >= 0 else (-1, np.eye(4))
        frame = frame @ kinematics.frames[k]
        for joint in kinematics.moves[k]:
            rows.append(MovingJoint(above, joint, frame))
            above, frame = len(rows) - 1, np.eye(4)
        fixed.append((above, frame))
    return rows, [(fixed[link][0], fixed[link][1] @ pose) for link, pose in kinematics.parts]


def joint_tree_of(kinematics: Kinematics, device: wp.Device) -> Any:
    """The joints that move, with all fixed transformations merged, as kernels receive them."""
    rows, bodies = moving_joints(kinematics)
    terms = [_terms(row.joint, row.frame) for row in rows]

    def integers(items: Any) -> wp.array:
        return wp.array(np.array(list(items), np.int32), device=device)

    def numbers(items: Any) -> wp.array:
        return wp.array(np.array(list(items), np.float64), device=device)

    def poses(items: Any) -> wp.array:
        host = np.array(list(items), np.float64).reshape(-1, 4, 4)
        return wp.array(host, dtype=wp.mat44d, device=device)

    tree = JointTree()
    tree.parents = integers(row.above for row in rows)
    tree.columns = integers(row.joint.column for row in rows)
    tree.kinds = integers(row.joint.kind for row in rows)
    tree.scales = numbers(row.joint.scale for row in rows)
    tree.shifts = numbers(row.joint.shift for row in rows)
    tree.rest, tree.cosine, tree.sine = (poses(term[i] for term in terms) for i in range(3))
    tree.body_joints = integers(joint for joint, _ in bodies)
    tree.body_poses = poses(pose for _, pose in bodies)
    tree.body_plain = integers(np.array_equal(pose, np.eye(4)) for _, pose in bodies)
    return tree


def _terms(joint: Joint, frame: np.ndarray) -> list[np.ndarray]:
    """The constant, cosine and sine of ``frame`` times the motion of a joint, as JointTree has."""
    rest, cosine, sine = frame.copy(), np.zeros((4, 4)), np.zeros((4, 4))
    if joint.kind == JointKind.BALL:
        rest[:3, 3] += frame[:3, :3] @ joint.anchor
        sine[:3, 3] = -joint.anchor
        return [rest, cosine, sine]
    if joint.kind == JointKind.SLIDE:
        sine[:3, 3] = frame[:3, :3] @ joint.axis
        return [rest, cosine, sine]
    x, y, z = joint.axis
    outer = np.outer(joint.axis, joint.axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = frame[:3, :3]
    for out, part in ((rest, outer), (cosine, np.eye(3) - outer), (sine, cross)):
        out[:3, :3] = turn @ part
        out[:3, 3] = -out[:3, :3] @ joint.anchor
    rest[:3, 3] += frame[:3, 3] + turn @ joint.anchor
    return [rest, cosine, sine]


class RobotPoses:
    """Poses of the objects of a robot for values of its joints.

    Args:
        kinematics: The robot, whose parts are the objects.
        device: Where poses are computed.
    """

    def __init__(self, kinematics: Kinematics, device: wp.Device) -> None:
        self.tree, self.device = joint_tree_of(kinematics, device), device
        self.joint_count = self.tree.parents.shape[0]
        self.body_count = len(kinematics.parts)
        self._columns = len(kinematics.joints)
        self._one: Call | None = None

    def of(self, values: np.ndarray) -> np.ndarray:
        """(B, n, 4, 4) for (B, k) values on the host."""
        if len(values) == 1 and self.device.is_cpu:
            call = self._call()
            call.inputs[0][:] = values
            call.run()
            return call.outputs[0].reshape(1, -1, 4, 4).copy()
        rows = wp.array(values, dtype=wp.float64, device=self.device)
        poses = wp.empty(len(values) * self.body_count, dtype=wp.mat44d, device=self.device)
        self.write(rows, poses)
        return poses.numpy().reshape(len(values), self.body_count, 4, 4)

    def write(self, values: wp.array, poses: wp.array) -> None:
        """Write poses for (B, k) values on the device."""
        count = values.shape[0]
        joints = wp.empty(count * self.joint_count, dtype=wp.mat44d, device=self.device)
        launch(robot_poses_kernel, count, [self.tree, values, joints, poses], self.device)

    def _call(self) -> Call:
        if self._one is None:
            values = wp.zeros((1, self._columns), dtype=wp.float64, device=self.device)
            joints = wp.zeros(self.joint_count, dtype=wp.mat44d, device=self.device)
            poses = wp.zeros(self.body_count, dtype=wp.mat44d, device=self.device)
            args = [self.tree, values, joints, poses]
            task = Task(robot_poses_kernel, 1, args, self.device)
            self._one = Call([task], [values], [poses])
        return self._one
