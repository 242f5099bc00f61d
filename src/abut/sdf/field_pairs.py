"""FieldPair: a mesh posed in the frame of an object's field, and how both move."""

import warp as wp

from abut.core.lanes import WARP_SIZE
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import SampledMesh

POSE, VELOCITY, FIELD_VELOCITY = wp.constant(0), wp.constant(16), wp.constant(22)
CENTRE, MATERIAL, SPEED = wp.constant(28), wp.constant(31), wp.constant(35)
MARGIN = wp.constant(36)
PairInput = wp.types.vector(length=37, dtype=wp.float64)  # one pose of a call
WARP_SIZE = wp.constant(WARP_SIZE)
ROUND_BITS = wp.constant(wp.float64(2.0**36))  # the greatest force of a fragment in integer steps


@wp.struct
class FieldPair:
    """One mesh and one field, in the field's frame; velocities are those at ``centre``."""

    field: wp.int32
    mesh: wp.int32
    pose: wp.mat44d
    pixel: wp.float64  # side of a pixel
    cells_per_pixel: wp.float64  # of the field
    box_size: wp.vec3d  # of the field [pixels]
    to_pixels: wp.mat44d  # from the mesh's frame
    margin: wp.float32  # lower bound of the gap between object and box sides
    centre: wp.vec3d  # torques are about this point
    velocity: wp.vec3d  # of the field's object
    spin: wp.vec3d
    other_velocity: wp.vec3d
    other_spin: wp.vec3d
    material: wp.vec4d  # stiffness, damping, friction, slip
    scale: wp.vec2d  # to integers: of forces, and of lengths


@wp.struct
class FieldOperands:
    """Pairs of fields and meshes. Item i is face i - first_item[p] of pair p, or padding."""

    fields: wp.array[FieldGrid]
    meshes: wp.array[SampledMesh]
    pairs: wp.array[FieldPair]
    first_item: wp.array[wp.int32]  # per pair, see padded_item_count; last: all items
    sampling: wp.int32  # DOMINANT, VIEWS or FACES


DOMINANT, VIEWS, FACES = wp.constant(0), wp.constant(1), wp.constant(2)


@wp.func
def padded_item_count(face_count: wp.int32):
    """Return the items of a pair: its faces, rounded up so that a warp has items of one pair."""
    return (face_count + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE


@wp.func
def pair_of_item(operands: FieldOperands, item: wp.int32):
    """Return the index of an item's pair."""
    low = wp.int32(0)
    high = operands.first_item.shape[0] - 1
    while high - low > 1:
        middle = (low + high) / 2
        if operands.first_item[middle] <= item:
            low = middle
        else:
            high = middle
    return low


@wp.func
def pixel_transform(pose: wp.mat44d, lower: wp.vec3d, pixel: wp.float64):
    """Return the matrix from the mesh's frame to pixels from the lower corner of a box."""
    out = wp.mat44d()
    per_pixel = wp.float64(1.0) / pixel
    for x in range(3):
        for y in range(3):
            out[x, y] = pose[x, y] * per_pixel
        out[x, 3] = (pose[x, 3] - lower[x]) * per_pixel
    return out


@wp.func
def with_raster_frame(pair: FieldPair, grid: FieldGrid):
    """Return a pair that has a pose and a pixel size with its raster frame filled in."""
    out = pair
    out.cells_per_pixel = pair.pixel / grid.spacing
    for x in range(3):
        out.box_size[x] = wp.float64(grid.shape[x] - 1) / out.cells_per_pixel
    out.to_pixels = pixel_transform(pair.pose, grid.lower, pair.pixel)
    return out


@wp.func
def fixed_point_scales(grid: FieldGrid, pair: FieldPair, speed: wp.float64):
    """Return the factors of forces and of lengths that make integers without overflow.

    Sums of integers do not depend on their order, so every run gives the same bytes.
    ``speed``: of the mesh's fastest vertex, beside its rigid motion.
    """
    box_size = pair.pixel * pair.box_size
    middle = grid.lower + wp.float64(0.5) * box_size
    size = wp.length(box_size) + wp.length(pair.centre - middle)
    area = wp.float64(2.0) * pair.pixel * pair.pixel
    rolling = (wp.length(pair.spin) + wp.length(pair.other_spin)) * size
    fastest = speed + wp.length(pair.velocity - pair.other_velocity) + rolling
    push = pair.material[0] * size + pair.material[1] * fastest
    most = area * push * (wp.float64(1.0) + pair.material[2])
    scale = wp.where(most > wp.float64(0.0), ROUND_BITS / most, wp.float64(0.0))
    return wp.vec2d(scale, wp.float64(1.0) / size)


@wp.func
def vec3_at(inputs: PairInput, k: wp.int32):
    """Return three consecutive numbers."""
    return wp.vec3d(inputs[k], inputs[k + 1], inputs[k + 2])


@wp.func
def read_pose(inputs: PairInput):
    """Return the pose in the inputs."""
    out = wp.mat44d()
    for k in range(16):
        out[k / 4, k % 4] = inputs[POSE + k]
    return out


@wp.func
def read_pair(inputs: PairInput, grid: FieldGrid, pixel: wp.float64):
    """Return the pair of mesh 0 and field 0 that the inputs describe.

    The inputs hold velocities of the frames' origins, the pair those at the centre.
    """
    out = FieldPair()
    out.pose = read_pose(inputs)
    out.pixel = pixel
    out.margin = wp.float32(inputs[MARGIN])
    out.centre = vec3_at(inputs, CENTRE)
    out.spin = vec3_at(inputs, FIELD_VELOCITY + 3)
    out.velocity = vec3_at(inputs, FIELD_VELOCITY) + wp.cross(out.spin, out.centre)
    origin = wp.vec3d(out.pose[0, 3], out.pose[1, 3], out.pose[2, 3])
    out.other_spin = vec3_at(inputs, VELOCITY + 3)
    lever = out.centre - origin
    out.other_velocity = vec3_at(inputs, VELOCITY) + wp.cross(out.other_spin, lever)
    for k in range(4):
        out.material[k] = inputs[MATERIAL + k]
    out = with_raster_frame(out, grid)
    out.scale = fixed_point_scales(grid, out, inputs[SPEED])
    return out
