"""k-DOPs for the nodes of a BVH, in float32 or fixed point, merged bottom-up."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.bounds.fixed import FLOAT32, LOW_BITS, LOW_MASK, word_count
from abut.bounds.float32 import round_down
from abut.bounds.kdop import kdop_normals, max_projection
from abut.bvh.layout import Bvh, BvhView, leaf_face, parent_if_second
from abut.core.launch import launch
from abut.core.memory_access import load_l2_vec2i
from abut.mesh import Mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

UNIT_GUARD = wp.constant(wp.float64(2.0**-10))  # units; covers the rounding of a projection
SINGLE_GUARD = wp.constant(wp.float64(2.0**-45))
MARGIN = 1 + 2.0**-20  # covers the rounding of centre and extent
LEAST_EXTENT, MOST_EXTENT = 1e-270, 1e270  # beyond, scaled coordinates might overflow


@dataclass(frozen=True)
class KdopShape:
    """A kind of k-DOP: number of sides, and bits of a reach (0: float32)."""

    sides: int = 24
    width: int = FLOAT32


@dataclass
class NodeKdops:
    """k-DOPs of all slots of a BVH.

    Attributes:
        sides: Faces of a k-DOP, k.
        width: Bits of a reach; 0 for float32.
        centre: Origin of the reaches.
        unit: Length of one unit of a reach; infinite if coordinates are out of range.
        words: Reaches along a normal and against it, side by side, ``sides // 2`` pairs a slot:
            bits of float32, integers, or high parts of wide integers followed by low parts.
    """

    sides: int
    width: int
    centre: np.ndarray
    unit: float
    words: wp.array

    def reaches(self) -> np.ndarray:
        """Return (slots, sides) reaches along all normals, then against them; float32 or int64."""
        words = self.words.numpy()
        numbers = words.view(np.float32) if self.width == FLOAT32 else words.astype(np.int64)
        parts = numbers.reshape(-1, max(word_count(self.width), 1), self.sides // 2, 2)
        parts = parts.transpose(1, 0, 3, 2).reshape(parts.shape[1], -1, self.sides)
        return parts[0] if len(parts) == 1 else (parts[0] << LOW_BITS) | parts[1]


@wp.func
def pack_reach(reach: wp.float64, parts: wp.int32):
    """Return a reach rounded up: as float32, as an integer, or its high part."""
    if parts == 0:
        return wp.cast(-round_down(-(reach + SINGLE_GUARD)), wp.int32)
    up = wp.int64(wp.ceil(reach + UNIT_GUARD))
    if parts == 2:
        up = up >> wp.int64(LOW_BITS)
    return wp.int32(up)


@wp.func
def pack_reach_low(reach: wp.float64):
    """Return the low part of a wide reach rounded up."""
    return wp.int32(wp.int64(wp.ceil(reach + UNIT_GUARD)) & wp.int64(LOW_MASK))


@wp.func
def is_longer(x: wp.int32, low_x: wp.int32, y: wp.int32, low_y: wp.int32, parts: wp.int32):
    """Return whether the first of two packed reaches is at least the second."""
    if parts == 0:
        return wp.cast(x, wp.float32) >= wp.cast(y, wp.float32)
    return x > y or (x == y and low_x >= low_y)


@wp.func
def merge_reaches(
    words: wp.array[wp.vec2i],
    at: wp.int32,
    at_x: wp.int32,
    at_y: wp.int32,
    parts: wp.int32,
    half: wp.int32,
):
    """Write the larger of two reaches that other threads may have written in this launch."""
    x = load_l2_vec2i(words, at_x)
    y = load_l2_vec2i(words, at_y)
    low_x = wp.vec2i()
    low_y = wp.vec2i()
    if parts == 2:
        low_x = load_l2_vec2i(words, at_x + half)
        low_y = load_l2_vec2i(words, at_y + half)
    for i in range(2):
        if not is_longer(x[i], low_x[i], y[i], low_y[i], parts):
            x[i] = y[i]
            low_x[i] = low_y[i]
    words[at] = x
    if parts == 2:
        words[at + half] = low_x


@wp.kernel
def fit_node_kdops_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    normals: wp.array[wp.vec3d],
    centre: wp.vec3d,
    scale: wp.float64,
    parts: wp.int32,
    tree: BvhView,
    arrivals: wp.array[wp.int32],
    # out
    words_out: wp.array[wp.vec2i],
):
    """Fit the leaves, rounding reaches up once, and merge upwards."""
    half = normals.shape[0]
    stride = wp.max(parts, 1) * half
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        face = faces[leaf_face(tree.nodes, slot)]
        for j in range(half):
            up = wp.float64(0.0)
            down = wp.float64(0.0)
            if scale > wp.float64(0.0):
                p0 = points[face[0]]
                p1 = points[face[1]]
                p2 = points[face[2]]
                up = max_projection(normals[j], p0, p1, p2, centre, scale)
                down = max_projection(-normals[j], p0, p1, p2, centre, scale)
            at = stride * slot + j
            words_out[at] = wp.vec2i(pack_reach(up, parts), pack_reach(down, parts))
            if parts == 2:
                words_out[at + half] = wp.vec2i(pack_reach_low(up), pack_reach_low(down))
        parent = parent_if_second(tree, slot, arrivals)
        while parent >= 0:
            own = stride * slot
            other = stride * (slot ^ 1)
            slot = parent
            for j in range(half):
                above = stride * slot + j
                merge_reaches(words_out, above, own + j, other + j, parts, half)
            parent = parent_if_second(tree, slot, arrivals)


def fit_node_kdops(tree: Bvh, mesh: Mesh, sides: int, width: int) -> NodeKdops:
    """Fit k-DOPs to all nodes of an up-to-date BVH."""
    device = tree.nodes.device
    centre, extent = _measure(mesh.bounds)
    unit = extent if width == FLOAT32 else extent / (2 ** (width - 1) - 2)
    scale = 0.0 if np.isinf(unit) else 1.0 / unit
    normals = wp.array(kdop_normals(sides), dtype=wp.vec3d, device=device)
    slots = 2 * tree.face_count - 1
    words = wp.empty(slots * sides // 2 * max(word_count(width), 1), dtype=wp.vec2i, device=device)
    shape = [mesh.points, mesh.faces, normals, wp.vec3d(*centre), wp.float64(scale)]
    args = [*shape, word_count(width), tree.view(), tree.arrivals, words]
    launch(fit_node_kdops_kernel, tree.face_count, args, device, grain=1024)
    return NodeKdops(sides, width, centre, unit, words)


def _measure(bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the centre of a mesh and a bound on the distance of its vertices, or infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        half = (bounds[1] - bounds[0]) / 2
        centre = bounds[0] + half
        extent = float(np.hypot(np.hypot(half[0], half[1]), half[2])) * MARGIN
    if not extent < MOST_EXTENT or not np.isfinite(centre).all():
        return np.zeros(3), np.inf
    return centre, max(extent, LEAST_EXTENT)
