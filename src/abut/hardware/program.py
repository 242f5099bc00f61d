"""Program: the input of a query: trees and triangles as integers, and the axes of a pose.

The integers are those of ``abut.collide(method="kdop")``. Triangles have 18 bits at any width: the
machine rotates those of a into b's frame. Numbers are rounded to the nearest, with a slack that
covers it (design/fixed-point-kdop.md). Simulators and boards take memory and registers as words.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.bounds.fixed import MAX_WIDTH
from abut.bounds.kdop import axis_choices
from abut.bvh.bvh_cache import bvh_of, kdops_of
from abut.bvh.node_kdops import KdopShape, NodeKdops
from abut.errors import CapacityError
from abut.geometry.poses import checked_poses
from abut.hardware.config import SIZE_BITS, SLOT_BITS, Machine
from abut.hardware.record_cache import relative_reaches
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.traversal.overlap.kdop_frames import kdop_frames

TRIANGLE_ONE = 1 << 15  # the larger mesh's extent, in units of corners
ROTATION_ONE = 1 << 16
FARTHEST = 6 * TRIANGLE_ONE  # distance of the centres; meshes farther apart are disjoint
LEAST_SLACK = 2.3  # units: rounding of corners, of rotations, and of their products
SLACK_UNIT = 1.25  # units that an exponent of 0 stands for
MOST_SLACK = 14  # as a power of two; exceeds all coordinates, so no axis separates
SIZE_STEPS = 4  # steps of a node's size per doubling


@dataclass(frozen=True)
class EncodedTree:
    """A tree in the machine's memory; integers have 64 bits."""

    reaches: np.ndarray  # (slots, k)
    links: np.ndarray  # (slots,) the first child's slot, or a leaf's face
    leaves: np.ndarray  # (slots,) bool
    sizes: np.ndarray  # (slots,) mean width of a DOP on a logarithmic scale
    triangles: np.ndarray  # (faces, 3, 3) corners

    @property
    def root(self) -> int:
        """Slot of the root, the last one."""
        return len(self.links) - 1


@dataclass(frozen=True)
class Program:
    """One query; integers have 64 bits."""

    machine: Machine
    a: EncodedTree
    b: EncodedTree
    axes: np.ndarray  # (n, 9) as in dop_frames: picks, weights, constants
    rotation: np.ndarray  # (3, 3) from a's frame to b's; 2**16 is one
    shift: np.ndarray  # (3,) in 2**-16 of a unit, half a unit included
    slack: int  # error bound of corners, as a power of two times SLACK_UNIT


def program(a: Mesh, b: Mesh, pose_a: Any, pose_b: Any, machine: Machine) -> Program:
    """Encode a query of two posed meshes, each with at least one face."""
    poses = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    trees = bvh_of(a), bvh_of(b)
    posed_a, posed_b = (
        make_posed_mesh(m.points, m.faces, p) for m, p in zip((a, b), poses, strict=True)
    )

    def dops_and_axes(width: int) -> tuple[tuple[NodeKdops, NodeKdops], np.ndarray]:
        shape = KdopShape(machine.sides, width)
        dops = kdops_of(a, trees[0], shape), kdops_of(b, trees[1], shape)
        choices = axis_choices(machine.sides, machine.axis_count)
        frames, task = kdop_frames(posed_a, posed_b, *dops, choices, 1)
        task.run()
        return dops, frames.axes.numpy()

    dops, axes = dops_and_axes(machine.width)
    if (machine.weight_bits, machine.constant_bits) != (machine.width, machine.width + 2):
        axes = axes_of_widths(dops_and_axes(MAX_WIDTH)[1], machine)
    motions = [np.eye(4) if p is None else p[0] for p in poses]
    one = 2.0 ** (machine.width - 1)
    extent = max(d.unit * one for d in dops)
    unit = extent / TRIANGLE_ONE
    pose = _triangle_frame(motions, dops, unit)
    tree_a, tree_b = (
        _encode(*of, unit, machine.delta_bits) for of in zip((a, b), trees, dops, strict=True)
    )
    return Program(machine, tree_a, tree_b, axes, *pose)


def axes_of_widths(fine: np.ndarray, machine: Machine) -> np.ndarray:
    """Axes with weights and constants of their own widths, from axes of 35 bits.

    Weights are rounded to the nearest, constants down, by the errors of weights too: as with one
    width, and with the half unit by which the weights of 35 bits may be off.
    """
    least = np.int64(-4) << (MAX_WIDTH - 1)
    share = -fine[:, 1:7] * 2.0 ** (machine.weight_bits - MAX_WIDTH)
    whole = np.minimum(np.floor(share + 0.5), 2.0 ** (machine.weight_bits - 1))
    errors = np.abs(share - whole) + 2.0 ** (machine.weight_bits - MAX_WIDTH)
    lost = errors.sum(axis=1, keepdims=True) * 2.0 ** (machine.width - machine.weight_bits)
    units = (2.0 ** (machine.width - 1) - 2) / (2.0 ** (MAX_WIDTH - 1) - 2)
    below = (fine[:, 7:] + 1.0) * units - lost - 2.0**-10
    below *= 2.0 ** (machine.constant_bits - machine.width - 2)
    limit = 2.0 ** (machine.constant_bits - 1)
    constants = np.clip(np.floor(below) - 1, -limit, limit - 1)
    constants = np.where(fine[:, 7:] == least, -limit, constants)
    return np.concatenate([fine[:, :1], -whole, constants], axis=1).astype(np.int64)


def _encode(mesh: Mesh, tree: Any, dops: NodeKdops, unit: float, delta_bits: int) -> EncodedTree:
    """Encode the tree and triangles of a mesh."""
    reaches = dops.reaches()
    if len(reaches) > 1 << SLOT_BITS:
        raise CapacityError(f"the machine's memory holds {1 << SLOT_BITS} nodes a tree.")
    links = tree.nodes.numpy()[0::2, 3].view(np.int32).astype(np.int64)
    slots, leaves = np.where(links < 0, -1 - links, 2 * links), links < 0
    if delta_bits:
        reaches = relative_reaches(reaches, slots, leaves, delta_bits)
    half = dops.sides // 2
    width = (reaches[:, :half] + reaches[:, half:]).sum(axis=1) * (min(dops.unit, 1e300) / half)
    with np.errstate(divide="ignore"):
        sizes = np.floor(SIZE_STEPS * np.log2(np.maximum(width, 1e-300))).astype(np.int64)
    corners = mesh.points.numpy()[mesh.faces.numpy()] - dops.centre
    with np.errstate(invalid="ignore", over="ignore"):
        corners = np.nan_to_num(np.rint(corners / unit))
    limit = 1 << (SIZE_BITS - 1)
    return EncodedTree(
        reaches,
        slots,
        leaves,
        np.clip(sizes, -limit, limit - 1),
        np.clip(corners, -2 * TRIANGLE_ONE, 2 * TRIANGLE_ONE).astype(np.int64),
    )


def _triangle_frame(
    motions: list[np.ndarray], dops: tuple[NodeKdops, NodeKdops], unit: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Rotation and shift from a's corners to b's frame, and the slack of the test."""
    (rotation_a, at_a), (rotation_b, at_b) = ((m[:3, :3], m[:3, 3]) for m in motions)
    back = np.linalg.inv(rotation_b)
    centres = [
        rotation @ d.centre + at
        for rotation, d, at in zip((rotation_a, rotation_b), dops, (at_a, at_b), strict=True)
    ]
    world = sum(np.abs(x).max() for x in (at_a, at_b, dops[0].centre, dops[1].centre))
    if not np.isfinite(unit):
        return np.zeros((3, 3), np.int64), np.zeros(3, np.int64), MOST_SLACK
    rotation = np.rint(back @ rotation_a * ROTATION_ONE).astype(np.int64)
    shift = np.clip(back @ (centres[0] - centres[1]) / unit, -FARTHEST, FARTHEST)
    slack = LEAST_SLACK + 2.0**-44 * (world / unit + 16 * TRIANGLE_ONE)
    exponent = min(int(np.ceil(np.log2(slack / SLACK_UNIT))), MOST_SLACK)
    return rotation, np.rint(shift * ROTATION_ONE).astype(np.int64) + ROTATION_ONE // 2, exponent


def packed(numbers: np.ndarray, bits: int) -> int:
    """Concatenate numbers of ``bits`` bits, the first lowest."""
    mask, word = (1 << bits) - 1, 0
    for place, number in enumerate(numbers.ravel().tolist()):
        word |= (number & mask) << (bits * place)
    return word


def picks_of(axes: np.ndarray) -> np.ndarray:
    """(n, 6) indices of normals: three of a, three of b."""
    return (axes[:, :1] >> (5 * np.arange(6))) & 31


def axis_rows(program: Program) -> list[int]:
    """The axis table as the machine's words, one for each axis: picks, weights, constants.

    A pick is coded as row (three bits), odd, swapped: slabs lie two a row, each with its opposite.
    """
    machine = program.machine
    picks = picks_of(program.axes)
    slabs = picks % machine.half
    codes = (slabs >> 1) | ((slabs & 1) << 3) | ((picks >= machine.half) << 4)
    words = []
    for code, row in zip(codes, program.axes, strict=True):
        word = packed(code, 5) | packed(row[1:7], machine.weight_bits) << 30
        at = 30 + 6 * machine.weight_bits
        words.append(word | packed(row[7:], machine.constant_bits) << at)
    return words


def idle_row(machine: Machine) -> int:
    """A row that separates nothing, for pipelines that have no axis left."""
    bits = machine.constant_bits
    return packed(np.full(2, 1 << (bits - 1)), bits) << (machine.axis_bits - 2 * bits)


def record_beats(program: Program, tree: EncodedTree, slot: int) -> list[int]:
    """The beats of a record: link, leaf and size, then the values of two slabs or of one a beat."""
    machine = program.machine
    head = int(tree.links[slot]) | int(tree.leaves[slot]) << SLOT_BITS
    head |= (int(tree.sizes[slot]) & ((1 << SIZE_BITS) - 1)) << (SLOT_BITS + 1)
    slabs = np.zeros(4 * -(-machine.half // 2), np.int64)
    slabs[: machine.sides] = tree.reaches[slot].reshape(2, machine.half).T.ravel()
    values = slabs.reshape(-1, 4 // machine.row_beats)
    return [head, *(packed(some, machine.width) for some in values)]


def triangle_beats(program: Program, tree: EncodedTree, face: int) -> list[int]:
    """The beats of a face: nine coordinates of 18 bits."""
    bits = program.machine.triangle_beat_bits
    word = packed(tree.triangles[face], 18)
    return [word >> (bits * n) & ((1 << bits) - 1) for n in range(program.machine.triangle_beats)]


def table_words(program: Program) -> list[tuple[int, int, int]]:
    """(pipeline, row, word) of the axis table; axes are dealt to pipelines round robin."""
    machine = program.machine
    rows = axis_rows(program)
    rows += [idle_row(machine)] * (machine.steps * machine.pipelines - len(rows))
    return [(n % machine.pipelines, n // machine.pipelines, word) for n, word in enumerate(rows)]


def register_words(program: Program) -> dict[str, int]:
    """Registers that stay constant during a query."""
    return {
        "root_a": program.a.root,
        "root_b": program.b.root,
        "turn": packed(program.rotation, 18),
        "shift": packed(program.shift, 36),
        "slack": program.slack,
    }
