"""Position of a point of a moving mesh at a time."""

import warp as wp


@wp.struct
class MotionPath:
    """Rigid motion with constant linear and angular velocity, or straight lines.

    Points on straight lines have two positions, points of a rigid mesh one (in its own frame).
    """

    rigid: wp.bool
    rotation: wp.mat33d  # at the start
    axis: wp.vec3d
    angle: wp.float64
    shift_t0: wp.vec3d
    shift_t1: wp.vec3d
    deviation: wp.float64  # from a straight line over the step; over a part, times its square
    rounding: wp.float64  # of positions


@wp.func
def position_on(path: MotionPath, p: wp.vec3d, q: wp.vec3d, t: wp.float64):
    """Position at a time, rounded; p and q are the start and the end of a straight line."""
    s = wp.float64(1.0) - t
    if not path.rigid:
        return s * p + t * q
    arm = path.rotation * p
    sine = wp.sin(t * path.angle)
    half = wp.sin(wp.float64(0.5) * t * path.angle)
    lifted = wp.cross(path.axis, arm)
    rotated = arm + sine * lifted + wp.float64(2.0) * half * half * wp.cross(path.axis, lifted)
    return rotated + s * path.shift_t0 + t * path.shift_t1
