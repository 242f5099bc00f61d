"""Overlap of the k-DOPs of two posed trees, along axes computed once per pose.

Everything that does not depend on a node is computed once per pose (Raabe et al. 2006, section
3.2.2): axes, the three normals that bound a DOP along each, their weights, and one constant for
either side, which covers every rounding made here (design/fixed-point-kdop.md).
"""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.fixed import (
    NARROW,
    NARROW_ROWS,
    overlap_kdop_narrow,
    overlap_kdop_wide,
    word_count,
)
from abut.bounds.kdop import AXIS_COLUMNS, PICK_BITS, kdop_normals, normal_cones, overlap_kdop
from abut.bounds.relative_frame import max_abs
from abut.bvh.node_kdops import NodeKdops
from abut.core.launch import Task
from abut.geometry.poses import rotation_of, translation_of
from abut.operands.posed_mesh import PosedMesh, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FLOAT32_KDOPS = wp.constant(1)
NARROW_KDOPS = wp.constant(2)
WIDE_KDOPS = wp.constant(3)
PICKS_OF_A = wp.constant((1 << 15) - 1)

PARALLEL = wp.constant(wp.float64(1e-3))  # least sine of the angle of two normals that make an axis
WORLD_ROUNDING = wp.constant(wp.float64(2.0**-46))  # 128 roundings of world coordinates
WEIGHT_GUARD = wp.constant(wp.float64(2.0**-12))  # units; covers the rounding of a weight and more
FLOAT32_ROUNDING = wp.constant(wp.float64(2.0**-20))  # 16 float32 roundings of a sum
FLOAT32_GUARD = wp.constant(wp.float64(2.0**-40))
STEP_DOWN = wp.constant(wp.float64(2.0**-22))  # covers the rounding to float32


@wp.struct
class KdopFrames:
    """DOPs of two trees and the axes of every pose; ``kind`` selects the arrays."""

    kind: wp.int32
    width: wp.int32
    half: wp.int32  # normals, k / 2
    stride: wp.int32  # pairs of words of a slot
    axis_count: wp.int32
    words_a: wp.array[wp.vec2i]
    words_b: wp.array[wp.vec2i]
    axes: wp.array2d[wp.int64]
    narrow_axes: wp.array[wp.vec4i]  # ``axes`` in 32 bits, where they fit
    float32_axes: wp.array2d[wp.float32]


@wp.func
def overlap_kdops(dops: KdopFrames, pose: wp.int32, i: wp.int32, j: wp.int32):
    """Whether the DOPs of slot i of a and slot j of b may overlap; True without DOPs."""
    first = pose * dops.axis_count
    stop = first + dops.axis_count
    at_a = dops.stride * i
    at_b = dops.stride * j
    if dops.kind == NARROW_KDOPS:
        rows = dops.narrow_axes
        return overlap_kdop_narrow(
            rows, first, stop, dops.half, dops.width, dops.words_a, at_a, dops.words_b, at_b
        )
    if dops.kind == WIDE_KDOPS:
        return overlap_kdop_wide(
            dops.axes, first, stop, dops.half, dops.width, dops.words_a, at_a, dops.words_b, at_b
        )
    if dops.kind == FLOAT32_KDOPS:
        return overlap_kdop(
            dops.float32_axes, first, stop, dops.half, dops.words_a, at_a, dops.words_b, at_b
        )
    return True


@wp.struct
class KdopUnit:
    """Centre and unit of the DOPs of one operand."""

    centre: wp.vec3d
    unit: wp.float64


@wp.struct
class Projection:
    """Bound of a DOP along an axis: three normals and their weights."""

    picks: wp.int32
    weights: wp.vec3d


@wp.func
def project(axis: wp.vec3d, triples: wp.array[wp.vec3i], inverses: wp.array[wp.mat33d]):
    """Find the triple of normals around -axis, and its weights."""
    best = wp.float64(-1e30)
    out = Projection()
    for f in range(triples.shape[0]):
        weights = -(inverses[f] * axis)
        least = wp.min(wp.min(weights[0], weights[1]), weights[2])
        if least > best:
            best = least
            t = triples[f]
            out.picks = t[0] | (t[1] << PICK_BITS) | (t[2] << (2 * PICK_BITS))
            out.weights = weights
    out.weights = wp.max(out.weights, wp.vec3d())
    return out


@wp.func
def axis_of(turn_a: wp.mat33d, turn_b: wp.mat33d, choice: wp.vec2i, normals: wp.array[wp.vec3d]):
    """An axis in world coordinates, of length 1 but for rounding; any axis is sound."""
    if choice[0] < 0:
        return turn_b * normals[choice[1]]
    along = turn_a * normals[choice[0]]
    if choice[1] < 0:
        return along
    across = wp.cross(along, turn_b * normals[choice[1]])
    size = wp.sqrt(wp.dot(across, across))
    if size > PARALLEL:
        return across / size
    return along


@wp.func
def fixed_constant(x: wp.float64, width: wp.int32):
    """The integer below x, less one for the strict test, clamped to width + 2 bits.

    Clamping changes no decision: beyond the limit all sums have one sign.
    """
    limit = wp.float64(wp.int64(1) << wp.int64(width + 1))
    if not (x > -limit):  # NaN too
        return -wp.int64(limit)
    below = wp.floor(wp.min(x, limit - wp.float64(1.0))) - wp.float64(1.0)
    return wp.int64(wp.max(below, -limit))


@wp.func
def float32_constant(x: wp.float64):
    """A float32 below x; minus infinity for NaN."""
    if not (x > wp.float64(-1e30)):
        return wp.float32(-wp.inf)
    near = wp.min(x, wp.float64(1e30))
    return wp.float32(near - wp.abs(near) * STEP_DOWN - wp.float64(1e-40))


@wp.func
def store_fixed(
    axes: wp.array2d[wp.int64],
    row: wp.int32,
    picks: wp.int32,
    on_a: wp.vec3d,
    on_b: wp.vec3d,
    shift: wp.float64,
    slack: wp.float64,
    width: wp.int32,
):
    """Write an axis in fixed point; the rounding errors of its weights are added to the slack."""
    one = wp.float64(wp.int64(1) << wp.int64(width - 1))
    lost = slack
    axes[row, 0] = wp.int64(picks)
    for i in range(6):
        share = wp.where(i < 3, on_a[i % 3], on_b[i % 3]) * one
        whole = wp.min(wp.floor(share + wp.float64(0.5)), one)
        if not (
            whole > wp.float64(0.0)
        ):  # NaN for coordinates beyond all scales: the constants decide
            whole = wp.float64(0.0)
        lost += wp.abs(share - whole) + WEIGHT_GUARD
        axes[row, 1 + i] = -wp.int64(whole)
    axes[row, 7] = fixed_constant(shift - lost, width)
    axes[row, 8] = fixed_constant(-shift - lost, width)


@wp.func
def store_float32(
    axes: wp.array2d[wp.float32],
    row: wp.int32,
    picks: wp.int32,
    on_a: wp.vec3d,
    on_b: wp.vec3d,
    shift: wp.float64,
    slack: wp.float64,
):
    """Write an axis in float32; the rounding errors of its weights are added to the slack."""
    lost = slack
    axes[row, 0] = wp.cast(picks, wp.float32)
    for i in range(6):
        share = wp.where(i < 3, on_a[i % 3], on_b[i % 3])
        weight = -wp.float32(share)
        lost += wp.abs(share + wp.float64(weight)) + FLOAT32_GUARD
        axes[row, 1 + i] = weight
    lost += FLOAT32_ROUNDING * (wp.float64(4.0) + wp.abs(shift))
    axes[row, 7] = float32_constant(shift - lost)
    axes[row, 8] = float32_constant(-shift - lost)


@wp.func
def store_narrow(axes: wp.array2d[wp.int64], row: wp.int32, rows: wp.array[wp.vec4i]):
    """Write an axis in 32 bits too: picks and weights of a, those of b, the constants."""
    picks = wp.int32(axes[row, 0])
    on_a = wp.vec4i(picks & PICKS_OF_A, 0, 0, 0)
    on_b = wp.vec4i(picks >> (3 * PICK_BITS), 0, 0, 0)
    for i in range(3):
        on_a[1 + i] = wp.int32(axes[row, 1 + i])
        on_b[1 + i] = wp.int32(axes[row, 4 + i])
    rows[NARROW_ROWS * row] = on_a
    rows[NARROW_ROWS * row + 1] = on_b
    rows[NARROW_ROWS * row + 2] = wp.vec4i(wp.int32(axes[row, 7]), wp.int32(axes[row, 8]), 0, 0)


@wp.kernel
def kdop_axes_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    side_a: KdopUnit,
    side_b: KdopUnit,
    width: wp.int32,
    choices: wp.array[wp.vec2i],
    normals: wp.array[wp.vec3d],
    triples: wp.array[wp.vec3i],
    inverses: wp.array[wp.mat33d],
    # out
    axes_out: wp.array2d[wp.int64],
    narrow_axes_out: wp.array[wp.vec4i],
    float32_axes_out: wp.array2d[wp.float32],
):
    """Compute every axis of every pose."""
    count = choices.shape[0]
    unit = wp.max(side_a.unit, side_b.unit)
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        pose_a = pose_of(a, row / count)
        pose_b = pose_of(b, row / count)
        turn_a = rotation_of(pose_a)
        turn_b = rotation_of(pose_b)
        at_a = translation_of(pose_a)
        at_b = translation_of(pose_b)
        axis = axis_of(turn_a, turn_b, choices[row - row / count * count], normals)
        near_a = project(wp.transpose(turn_a) * axis, triples, inverses)
        near_b = project(wp.transpose(turn_b) * axis, triples, inverses)
        between = (turn_a * side_a.centre + at_a) - (turn_b * side_b.centre + at_b)
        world = max_abs(at_a) + max_abs(at_b) + max_abs(side_a.centre) + max_abs(side_b.centre)
        reach = wp.float64(wp.int64(1) << wp.int64(wp.max(width - 1, 0))) * (
            side_a.unit + side_b.unit
        )
        shift = wp.dot(axis, between) / unit
        slack = WORLD_ROUNDING * (world + wp.float64(2.0) * reach) / unit
        picks = near_a.picks | (near_b.picks << (3 * PICK_BITS))
        on_a = near_a.weights * (side_a.unit / unit)
        on_b = near_b.weights * (side_b.unit / unit)
        if width > 0:
            store_fixed(axes_out, row, picks, on_a, on_b, shift, slack, width)
            if narrow_axes_out.shape[0] > 0:
                store_narrow(axes_out, row, narrow_axes_out)
        else:
            store_float32(float32_axes_out, row, picks, on_a, on_b, shift, slack)


def kdop_frames(
    a: Any, b: Any, dops_a: NodeKdops, dops_b: NodeKdops, choices: np.ndarray, pose_count: int
) -> tuple[Any, Task]:
    """Make the struct for kernels, and the launch that fills in its axes for the current poses."""
    device = a.points.device
    sides, width, axis_count = dops_a.sides, dops_a.width, len(choices)
    rows = pose_count * axis_count
    out = KdopFrames()
    out.kind = FLOAT32_KDOPS if not width else NARROW_KDOPS if width <= NARROW else WIDE_KDOPS
    out.width, out.half, out.axis_count = width, sides // 2, axis_count
    out.stride = sides // 2 * max(word_count(width), 1)
    out.words_a, out.words_b = dops_a.words, dops_b.words
    fixed_rows, float32_rows = (rows, 0) if width else (0, rows)
    narrow_rows = NARROW_ROWS * rows if out.kind == NARROW_KDOPS else 0
    out.narrow_axes = wp.empty(narrow_rows, dtype=wp.vec4i, device=device)
    out.axes = wp.empty((fixed_rows, AXIS_COLUMNS), dtype=wp.int64, device=device)
    out.float32_axes = wp.empty((float32_rows, AXIS_COLUMNS), dtype=wp.float32, device=device)
    triples, inverses = normal_cones(sides)
    tables = [
        wp.array(choices, dtype=wp.vec2i, device=device),
        wp.array(kdop_normals(sides), dtype=wp.vec3d, device=device),
        wp.array(triples, dtype=wp.vec3i, device=device),
        wp.array(inverses, dtype=wp.mat33d, device=device),
    ]
    outputs = [out.axes, out.narrow_axes, out.float32_axes]
    args = [a, b, _side(dops_a), _side(dops_b), width, *tables, *outputs]
    return out, Task(kdop_axes_kernel, rows, args, device, grain=64)


def _side(dops: NodeKdops) -> Any:
    side = KdopUnit()
    side.centre, side.unit = wp.vec3d(*dops.centre), wp.float64(dops.unit)
    return side
