"""Joint trees: poses of the bodies of a robot for values of its joints."""

import warp as wp

from abut.geometry.poses import translation_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# Kinds of joints.
SLIDE = wp.constant(0)
HINGE = wp.constant(1)
BALL = wp.constant(2)


@wp.struct
class JointTree:
    """Joints of a robot, parents before children, and the bodies that they carry.

    The pose of a joint is that of its parent, times ``rest + cos(x) cosine + sin(x) sine`` of a
    hinge that is turned by x, or ``rest + x sine`` of a slide. Of a ball it is ``rest``, its
    rotation, and the translation of ``sine``. A mimic joint shares the column of another one.
    """

    parents: wp.array[wp.int32]  # joint, -1 for the world
    columns: wp.array[wp.int32]  # of the values; the first of a ball's quaternion w x y z
    kinds: wp.array[wp.int32]
    scales: wp.array[wp.float64]  # x = value * scale + shift
    shifts: wp.array[wp.float64]
    rest: wp.array[wp.mat44d]
    cosine: wp.array[wp.mat44d]
    sine: wp.array[wp.mat44d]
    body_joints: wp.array[wp.int32]  # of each body, -1 for the world
    body_poses: wp.array[wp.mat44d]  # in the frame of the joint
    body_plain: wp.array[wp.int32]  # whether that is the identity


@wp.func
def compose_poses(a: wp.mat44d, b: wp.mat44d):
    """Return the product of two affine maps, whose last rows are 0 0 0 1."""
    out = wp.identity(n=4, dtype=wp.float64)
    for i in range(3):
        for j in range(4):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        out[i, 3] += a[i, 3]
    return out


@wp.func
def quaternion_at(values: wp.array2d[wp.float64], row: wp.int32, column: wp.int32):
    """Return the quaternion whose values w x y z begin at a column."""
    return wp.quatd(
        values[row, column + 1],
        values[row, column + 2],
        values[row, column + 3],
        values[row, column],
    )


@wp.func
def are_rotations(tree: JointTree, values: wp.array2d[wp.float64], row: wp.int32):
    """Whether the quaternions of all balls have a length that can be made 1."""
    good = wp.bool(True)
    for k in range(tree.kinds.shape[0]):
        if tree.kinds[k] == BALL:
            length = wp.length(quaternion_at(values, row, tree.columns[k]))
            if not (length >= wp.float64(1e-6) and length <= wp.float64(1e6)):
                good = False
    return good


@wp.func
def ball_motion(tree: JointTree, joint: wp.int32, values: wp.array2d[wp.float64], row: wp.int32):
    """Return the pose of a ball in the frame of its parent."""
    turn = wp.quat_to_matrix(wp.normalize(quaternion_at(values, row, tree.columns[joint])))
    at = turn * translation_of(tree.sine[joint])
    motion = wp.identity(n=4, dtype=wp.float64)
    for i in range(3):
        for j in range(3):
            motion[i, j] = turn[i, j]
        motion[i, 3] = at[i]
    return compose_poses(tree.rest[joint], motion)


@wp.func
def joint_motion(tree: JointTree, joint: wp.int32, values: wp.array2d[wp.float64], row: wp.int32):
    """Return the pose of a joint in the frame of its parent."""
    if tree.kinds[joint] == BALL:
        return ball_motion(tree, joint, values, row)
    x = values[row, tree.columns[joint]] * tree.scales[joint] + tree.shifts[joint]
    if tree.kinds[joint] == SLIDE:
        return tree.rest[joint] + x * tree.sine[joint]
    return tree.rest[joint] + wp.cos(x) * tree.cosine[joint] + wp.sin(x) * tree.sine[joint]


@wp.func
def pose_joints(
    tree: JointTree, values: wp.array2d[wp.float64], row: wp.int32, poses_out: wp.array[wp.mat44d]
):
    """Write the pose of each joint, of a row of values, from ``row * joints`` on."""
    joints = tree.parents.shape[0]
    for k in range(joints):
        pose = joint_motion(tree, k, values, row)
        if tree.parents[k] >= 0:
            pose = compose_poses(poses_out[row * joints + tree.parents[k]], pose)
        poses_out[row * joints + k] = pose


@wp.func
def body_pose(tree: JointTree, poses: wp.array[wp.mat44d], row: wp.int32, body: wp.int32):
    """Return the pose of a body, of a row of ``pose_joints``."""
    joint = tree.body_joints[body]
    out = tree.body_poses[body]
    if joint >= 0:
        at = poses[row * tree.parents.shape[0] + joint]
        if tree.body_plain[body] != 0:
            out = at
        else:
            out = compose_poses(at, out)
    return out
