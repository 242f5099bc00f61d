"""Meeting: how a mesh lies in the field of an object, and how both move."""

import warp as wp

from abut.core.lanes import WARP
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import Sampled

POSE, VELOCITY, FIELD_VELOCITY = wp.constant(0), wp.constant(16), wp.constant(22)
CENTRE, MATERIAL, SPEED = wp.constant(28), wp.constant(31), wp.constant(35)
MARGIN = wp.constant(36)
Asked = wp.types.vector(length=37, dtype=wp.float64)  # what describes a meeting
WARP_SIZE = wp.constant(WARP)
ROUND_BITS = wp.constant(wp.float64(2.0**36))  # of the greatest force of a fragment


@wp.struct
class Meeting:
    """One mesh and one field, in the field's frame; velocities are those at ``centre``."""

    field: wp.int32
    mesh: wp.int32
    pose: wp.mat44d
    pixel: wp.float64  # side of a pixel
    share: wp.float64  # cells of the field for a pixel
    sides: wp.vec3d  # of the field's box, in pixels
    to_pixels: wp.mat44d  # from the mesh's frame, see pixels_from
    margin: wp.float32  # how near the object comes to the sides of the field's box
    centre: wp.vec3d  # torques are about this point
    velocity: wp.vec3d  # of the field's object
    spin: wp.vec3d
    other_velocity: wp.vec3d
    other_spin: wp.vec3d
    material: wp.vec4d  # stiffness, damping, friction, slip
    scale: wp.vec2d  # to whole numbers: of forces, and of lengths


@wp.struct
class Encounters:
    """Meshes that meet fields. Item i is face i - firsts[m] of meeting m, where there is one."""

    fields: wp.array[FieldGrid]
    meshes: wp.array[Sampled]
    meetings: wp.array[Meeting]
    firsts: wp.array[wp.int32]  # of each meeting the first item, see padded; at last all items
    sampling: wp.int32  # DOMINANT, VIEWS or FACES


DOMINANT, VIEWS, FACES = wp.constant(0), wp.constant(1), wp.constant(2)


@wp.func
def padded(face_count: wp.int32):
    """Items of a meeting: so many that lanes which act together are of one meeting."""
    return (face_count + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE


@wp.func
def meeting_of(encounters: Encounters, item: wp.int32):
    """The meeting that an item belongs to."""
    low = wp.int32(0)
    high = encounters.firsts.shape[0] - 1
    while high - low > 1:
        middle = (low + high) / 2
        if encounters.firsts[middle] <= item:
            low = middle
        else:
            high = middle
    return low


@wp.func
def pixels_from(pose: wp.mat44d, lower: wp.vec3d, pixel: wp.float64):
    """How points come to pixels from the lower corner of a box."""
    out = wp.mat44d()
    per_pixel = wp.float64(1.0) / pixel
    for x in range(3):
        for y in range(3):
            out[x, y] = pose[x, y] * per_pixel
        out[x, 3] = (pose[x, 3] - lower[x]) * per_pixel
    return out


@wp.func
def framed(meeting: Meeting, grid: FieldGrid):
    """A meeting that has a pose and pixels, with what follows from them."""
    out = meeting
    out.share = meeting.pixel / grid.spacing
    for x in range(3):
        out.sides[x] = wp.float64(grid.shape[x] - 1) / out.share
    out.to_pixels = pixels_from(meeting.pose, grid.lower, meeting.pixel)
    return out


@wp.func
def whole_scales(grid: FieldGrid, meeting: Meeting, speed: wp.float64):
    """Factors that make whole numbers of forces and of lengths without overflow.

    Sums of whole numbers do not depend on their order: they are the same bytes on every run.
    ``speed``: the greatest of the mesh's vertices, beside that of a rigid mesh.
    """
    sides = meeting.pixel * meeting.sides
    middle = grid.lower + wp.float64(0.5) * sides
    size = wp.length(sides) + wp.length(meeting.centre - middle)
    area = wp.float64(2.0) * meeting.pixel * meeting.pixel
    rolling = (wp.length(meeting.spin) + wp.length(meeting.other_spin)) * size
    fastest = speed + wp.length(meeting.velocity - meeting.other_velocity) + rolling
    push = meeting.material[0] * size + meeting.material[1] * fastest
    most = area * push * (wp.float64(1.0) + meeting.material[2])
    scale = wp.where(most > wp.float64(0.0), ROUND_BITS / most, wp.float64(0.0))
    return wp.vec2d(scale, wp.float64(1.0) / size)


@wp.func
def vector_at(asked: Asked, k: wp.int32):
    """Three numbers in a row."""
    return wp.vec3d(asked[k], asked[k + 1], asked[k + 2])


@wp.func
def read_pose(asked: Asked):
    """The pose that plain numbers describe."""
    out = wp.mat44d()
    for k in range(16):
        out[k / 4, k % 4] = asked[POSE + k]
    return out


@wp.func
def read_meeting(asked: Asked, grid: FieldGrid, pixel: wp.float64):
    """The meeting that plain numbers describe: of mesh 0 and field 0.

    Its velocities are those of the frames' origins; they are taken to the centre.
    """
    out = Meeting()
    out.pose = read_pose(asked)
    out.pixel = pixel
    out.margin = wp.float32(asked[MARGIN])
    out.centre = vector_at(asked, CENTRE)
    out.spin = vector_at(asked, FIELD_VELOCITY + 3)
    out.velocity = vector_at(asked, FIELD_VELOCITY) + wp.cross(out.spin, out.centre)
    origin = wp.vec3d(out.pose[0, 3], out.pose[1, 3], out.pose[2, 3])
    out.other_spin = vector_at(asked, VELOCITY + 3)
    lever = out.centre - origin
    out.other_velocity = vector_at(asked, VELOCITY) + wp.cross(out.other_spin, lever)
    for k in range(4):
        out.material[k] = asked[MATERIAL + k]
    out = framed(out, grid)
    out.scale = whole_scales(grid, out, asked[SPEED])
    return out
