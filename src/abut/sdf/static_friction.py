"""Penalty, damping and static friction, summed over the fragments inside an object.

A fragment is a part of a face, which moves with the mesh, so its spring can be found again in the
next step. The spring pulls along the surface towards its anchor, and slides where its force would
exceed the friction coefficient times the normal force (Coulomb).
"""

from functools import cache

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.core.lanes import lane_count
from abut.sdf.draw_batches import Patches, batch_range, lane_pixels
from abut.sdf.field_pairs import FieldOperands, FieldPair
from abut.sdf.field_probe import interpolate_gradient
from abut.sdf.footprint import BOUND
from abut.sdf.grid_properties import DepthImages
from abut.sdf.penalty import (
    HALF,
    Fragment,
    FragmentSums,
    fixed_point_sums,
    fragment_inside,
    relative_velocity,
    round_to_integer,
    vertex_velocity_at,
    warp_add_sums,
)
from abut.sdf.pixel_patch import (
    FIRST_SUBTRIANGLE,
    SUBDIVISION,
    Patch,
    patch_face,
    patch_pixel,
)
from abut.sdf.tangential_springs import SpringTable, add_spring, find_spring

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class HeldForce:
    """A force per unit of area, and how far its spring is stretched after it has slid."""

    force: wp.vec3f
    stretch: wp.vec3f


@wp.func
def shortened(v: wp.vec3f, most: wp.float32):
    """Return a vector with its length at most ``most``."""
    size = wp.length(v)
    if size > most:
        return (most / size) * v
    return v


@wp.func
def held_force(
    material: wp.vec4f,
    tangential: wp.float32,
    way: wp.vec3f,
    depth: wp.float32,
    approach: wp.vec3f,
    stretch: wp.vec3f,
):
    """Return the force on the object with static friction; arguments as for ``penalty_force``.

    ``stretch``: from the spring's anchor to the fragment's foot, along the surface.
    """
    along = wp.dot(approach, way)
    push = material[0] * depth + material[1] * along
    most = material[2] * wp.max(push, wp.float32(0.0))
    out = HeldForce()
    out.stretch = stretch
    if tangential > wp.float32(0.0):
        out.stretch = shortened(stretch, most / tangential)
    drag = tangential * out.stretch + material[1] * (approach - along * way)
    out.force = push * way + shortened(drag, most)
    return out


@cache
def static_friction_kernel_for(bending: bool) -> wp.Kernel:
    """Return the kernel with or without velocities of the mesh's vertices."""

    @wp.func
    def held_sums(
        operands: FieldOperands,
        pair: FieldPair,
        owner: wp.vec2i,
        patch: Patch,
        index: wp.int32,
        held: Fragment,
        springs: SpringTable,
    ):
        """Return the share of a fragment inside in the sums, and keep its spring."""
        grid = operands.fields[pair.field]
        cell = wp.float32(grid.spacing)
        at = wp.vec3f(held[0], held[1], held[2])
        depth = -held[3]
        way = -interpolate_gradient(grid, at)
        lever = to_vec3f(grid.lower - pair.centre) + cell * at
        foot = lever - depth * way
        v = relative_velocity(pair, lever, foot)
        if wp.static(bending):
            if operands.meshes[pair.mesh].velocities.shape[0] > 0:
                p = wp.vec3d(at) / pair.cells_per_pixel
                v += to_vec3f(vertex_velocity_at(operands, pair, patch_face(patch), p))
        touched = at - (depth / cell) * way
        place = wp.vec2i(patch[FIRST_SUBTRIANGLE] + index, patch[SUBDIVISION])
        slot = find_spring(springs, owner, patch_face(patch), place)
        stretch = wp.vec3f()
        if slot >= 0:
            stretch = cell * (touched - springs.anchors[slot])
            stretch -= wp.dot(stretch, way) * way
        material = wp.vec4f(pair.material)
        tangential = springs.ratio * material[0]
        found = held_force(material, tangential, way, depth, v, stretch)
        anchor = touched - found.stretch / cell
        add_spring(springs, 1 - springs.turn[0], owner, patch_face(patch), place, anchor)
        push = found.force
        out = fixed_point_sums(pair, held[4], push, wp.cross(foot, push), depth)
        stored = HALF * wp.float64(tangential * wp.dot(found.stretch, found.stretch))
        area = wp.float64(held[4]) * (pair.pixel * pair.pixel * pair.scale[0])
        out[7] += round_to_integer(area * pair.scale[1] * stored)
        return out

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def static_friction_kernel(
        # in
        span: wp.vec3i,
        operands: FieldOperands,
        owners: wp.array[wp.vec2i],
        patches: Patches,
        copies: wp.int32,
        # out
        springs_out: SpringTable,
        sums_out: wp.array[wp.int64],
    ):
        """Draw the patches of subtriangles, and add up the fragments inside."""
        thread = span[0] + wp.tid()
        lane = thread % lane_count()
        copy = (thread / lane_count()) % copies
        columns = DepthImages()
        mine = batch_range(patches, span, thread)
        for i in range(mine[0], mine[1]):
            work = lane_pixels(patches, i, mine[1], lane)
            pair = operands.pairs[work.pair]
            owner = owners[work.pair]
            grid = operands.fields[pair.field]
            cells_per_pixel = wp.float32(pair.cells_per_pixel)
            pixel = wp.vec2i(0, 0)
            total = FragmentSums()
            for k in range(work.steps):
                pixel = patch_pixel(work.patch, work.first + k, pixel)
                held = fragment_inside(grid, work.patch, pixel, cells_per_pixel, columns, BOUND)
                if work.is_valid and held[3] < wp.float32(0.0):
                    index = pixel[0]
                    total += held_sums(operands, pair, owner, work.patch, index, held, springs_out)
            warp_add_sums(sums_out, work.pair * copies + copy, total, lane)

    return static_friction_kernel
