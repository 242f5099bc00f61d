"""Where a point of a turning mesh is at a time."""

import warp as wp


@wp.struct
class Path:
    """Constant linear velocity of the origin and constant angular velocity; or straight ways.

    Points that go straight have two positions, those of a rigid mesh one (in its own frame).
    """

    rigid: wp.bool
    turn: wp.mat33d  # at the start
    axis: wp.vec3d
    angle: wp.float64
    shift_t0: wp.vec3d
    shift_t1: wp.vec3d
    stray: wp.float64  # from a straight way, over the whole step; of a part, times its square
    rounding: wp.float64  # of positions


@wp.func
def place_on(path: Path, p: wp.vec3d, q: wp.vec3d, t: wp.float64):
    """Position at a time, rounded; p and q at the start and at the end of a straight way."""
    s = wp.float64(1.0) - t
    if not path.rigid:
        return s * p + t * q
    arm = path.turn * p
    sine = wp.sin(t * path.angle)
    half = wp.sin(wp.float64(0.5) * t * path.angle)
    lifted = wp.cross(path.axis, arm)
    turned = arm + sine * lifted + wp.float64(2.0) * half * half * wp.cross(path.axis, lifted)
    return turned + s * path.shift_t0 + t * path.shift_t1
