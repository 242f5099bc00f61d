"""Joint trees: poses of the bodies of a robot for values of its joints."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class JointTree:
    """Joints of a robot, parents before children, and the bodies that they carry.

    The pose of a joint is that of its parent, times ``rest + cos(x) cosine + sin(x) sine`` of a
    hinge that is turned by x, or ``rest + x sine`` of a slide. A mimic joint shares the column of
    another one.
    """

    parents: wp.array[wp.int32]  # joint, -1 for the world
    columns: wp.array[wp.int32]  # of the values
    hinges: wp.array[wp.int32]  # 0 for a slide
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
def joint_motion(tree: JointTree, joint: wp.int32, value: wp.float64):
    """Return the pose of a joint in the frame of its parent."""
    x = value * tree.scales[joint] + tree.shifts[joint]
    if tree.hinges[joint] == 0:
        return tree.rest[joint] + x * tree.sine[joint]
    return tree.rest[joint] + wp.cos(x) * tree.cosine[joint] + wp.sin(x) * tree.sine[joint]


@wp.func
def pose_joints(
    tree: JointTree, values: wp.array2d[wp.float64], row: wp.int32, poses_out: wp.array[wp.mat44d]
):
    """Write the pose of each joint, of a row of values, from ``row * joints`` on."""
    joints = tree.parents.shape[0]
    for k in range(joints):
        pose = joint_motion(tree, k, values[row, tree.columns[k]])
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
