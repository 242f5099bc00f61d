"""JointedBodies: bodies that joints move at constant rates, and pairs of objects on them."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

WORLD = wp.constant(-1)  # the body that does not move


@wp.struct
class JointedBodies:
    """Bodies, parents before children; each has one joint in its own frame.

    A hinge or slide moves by value * scale + shift; a ball turns about one axis in a motion, after
    its rotation at the start. A sphere in the frame of a body holds all objects that
    it carries; its radius is negative where there are none.
    """

    parents: wp.array[wp.int32]  # WORLD for none
    frames: wp.array[wp.mat44d]  # in the frame of the parent, with the joint at rest
    axes: wp.array[wp.vec3d]  # unit vectors
    anchors: wp.array[wp.vec3d]  # points of the axes
    kinds: wp.array[wp.int32]  # SLIDE, HINGE or BALL
    columns: wp.array[wp.int32]  # of the joint values
    scales: wp.array[wp.float64]
    shifts: wp.array[wp.float64]
    arms: wp.array[wp.float64]  # distance between the anchors of a body and of its parent, at rest
    centres: wp.array[wp.vec3d]
    radii: wp.array[wp.float64]


@wp.struct
class JointedObjects:
    """Objects on bodies or in the world, and the pairs of them that may not meet."""

    bodies: wp.array[wp.int32]  # WORLD for objects at rest
    poses: wp.array[wp.mat44d]  # in the frame of the body
    shapes: wp.array[wp.int32]  # slices of the batched BVHs
    pads: wp.array[wp.float64]  # two objects are in contact where both are no farther apart
    pairs: wp.array[wp.vec3i]  # two objects, and the nearest body that moves both


@wp.struct
class JointMotions:
    """Motions straight in joint space, one a row."""

    start: wp.array2d[wp.float64]
    rates: wp.array2d[wp.float64]  # end - start; the angle and the axis x y z of a ball's turn
    min_distance: wp.float64
    rounding: wp.float64  # bound of the rounding of positions, over their size


@wp.struct
class BodyStates:
    """Scratch of teams: where bodies are in the middle of an interval, and how they move there.

    Velocities of a body are a spin and the drift of its point at the origin of the world. A bend
    bounds accelerations of a body in the frame of another body above it.
    """

    rotations: wp.array[wp.mat33d]
    positions: wp.array[wp.vec3d]
    axes: wp.array[wp.vec3d]
    anchors: wp.array[wp.vec3d]
    spins: wp.array[wp.vec3d]
    drifts: wp.array[wp.vec3d]
    speeds: wp.array[wp.float64]  # sums of the absolute rates of turns, from the world on
    bends: wp.array[wp.float64]  # body_count + 1 of each body, by the index of the other body + 1
    object_rotations: wp.array[wp.mat33d]
    object_positions: wp.array[wp.vec3d]
