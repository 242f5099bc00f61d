"""Tree: the layout of a binary hierarchy over n faces.

Leaves lie along a curve; an inner node is known by its split s, the leaf after which it parts.
Its children are slots 2 s and 2 s + 1 of ``nodes``, side by side in 64 bytes, so that a walk reads
both at once; the root is the last slot, 2 n - 2. A slot is two rows of four float32: the lower
corner and a link, the upper corner and an escape. The link of an inner node is its split, that of
a leaf is the complement of its face (negative). The escape is the slot that follows the subtree
in depth-first order, -1 after the last: with it a walk needs no stack.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.atomics import atomic_increment_acq_rel
from abut.core.cache import RecentCache
from abut.core.launch import launch
from abut.core.memory_access import load_readonly_vec4f
from abut.options import Bound

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_LEVELS = 61  # below the root: 30 bits of a code, then 31 of an index; walks count on it


@wp.struct
class BvhView:
    """What kernels see of a tree. Boxes are relative to ``origin``."""

    nodes: wp.array[wp.vec4f]
    leaf_slots: wp.array[wp.int32]
    split_slots: wp.array[wp.int32]
    obbs: wp.array[wp.vec4f]  # three rows a slot, or none
    swept: wp.array[wp.vec4f]  # likewise
    origin: wp.vec3d


@wp.struct
class Node:
    """A slot: a box and a link."""

    low: wp.vec4f
    high: wp.vec4f


@wp.func
def load_node(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Read a slot, 32 bytes."""
    out = Node()
    out.low = load_readonly_vec4f(nodes, 2 * slot)
    out.high = load_readonly_vec4f(nodes, 2 * slot + 1)
    return out


@wp.func
def root_of(tree: BvhView):
    """Slot of the root."""
    return 2 * tree.leaf_slots.shape[0] - 2


@wp.func
def link_of(node: Node):
    """Split of an inner node, complement of the face of a leaf."""
    return wp.cast(node.low[3], wp.int32)


@wp.func
def is_leaf(node: Node):
    """Leaves have negative links."""
    return link_of(node) < 0


@wp.func
def face_of(node: Node):
    """Face of a leaf."""
    return -1 - link_of(node)


@wp.func
def link_at(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """The link of a slot, where nodes are being written."""
    return wp.cast(nodes[2 * slot][3], wp.int32)


@wp.func
def leaf_face(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Face of the leaf in a slot, likewise."""
    return -1 - link_at(nodes, slot)


@wp.func
def parent_if_second(
    slot: wp.int32,
    root: wp.int32,
    arrivals: wp.array[wp.int32],
    split_slots: wp.array[wp.int32],
):
    """The parent's slot for the second of two siblings to come here, which climbs on; else -1."""
    parent = wp.int32(-1)
    if slot != root:
        if atomic_increment_acq_rel(arrivals, slot >> 1) % 2 == 1:
            parent = split_slots[slot >> 1]
    return parent


@wp.func
def escape_of(node: Node):
    """The slot that follows the subtree, or -1."""
    return wp.cast(node.high[3], wp.int32)


@wp.func
def next_slot(node: Node, opened: wp.bool):
    """The slot that a walk without a stack looks at next; only inner nodes can be opened."""
    return wp.where(opened and not is_leaf(node), 2 * link_of(node), escape_of(node))


@wp.func
def reach_of(node: Node):
    """Largest absolute coordinate of a box."""
    far = wp.max(wp.abs(node.low), wp.abs(node.high))
    return wp.float64(wp.max(wp.max(far[0], far[1]), far[2]))


@wp.func
def half_area(node: Node):
    """Half the surface of a box."""
    side = node.high - node.low
    return side[0] * side[1] + side[1] * side[2] + side[2] * side[0]


@wp.func
def with_integer(v: wp.vec3f, i: wp.int32):
    """A row of a slot: three floats and the bits of an integer."""
    return wp.vec4f(v[0], v[1], v[2], wp.cast(i, wp.float32))


@wp.func
def descendant(nodes: wp.array[wp.vec4f], slot: wp.int32, item: wp.int32, levels: wp.int32):
    """Slot of ``item`` of the 2**levels that are so many levels below, -1 for one not there.

    A leaf above that level is the first item below it.
    """
    at = wp.int32(slot)
    for level in range(levels):
        if at >= 0:
            node = load_node(nodes, at)
            if not is_leaf(node):
                at = 2 * link_of(node) + ((item >> (levels - 1 - level)) & 1)
            elif (item & ((1 << (levels - level)) - 1)) != 0:
                at = -1
    return at


@wp.func
def subtree(tree: BvhView, item: wp.int32, depth: wp.int32):
    """Slot of subtree ``item`` of the 2**depth at that depth, as ``descendant`` of the root."""
    return descendant(tree.nodes, root_of(tree), item, depth)


@wp.kernel
def position_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    # out
    positions_out: wp.array[wp.int32],
):
    """Where along the curve each face lies."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        positions_out[face_of(load_node(nodes, leaf_slots[k]))] = k


@dataclass
class Bvh:
    """A hierarchy of axis-aligned boxes over the faces of a mesh, one face a leaf.

    Attributes:
        nodes: The slots, two rows each.
        leaf_slots: Slot of each leaf, along the curve.
        split_slots: Slot of each inner node, by split.
        arrivals: Scratch of refits, by split.
        origin: What boxes are relative to.
        face_count: Number of leaves.
        built_cost: Traversal cost when the tree was built.
        refits: How often the boxes were fitted anew since.
        patience: After how many refits to build anew in any case.
        served: Effort of the searches so far (see owner).
        improved: Built with care.
        refitting: Launches of refits, for the last few arrays of points.
        sweeping: Launches that fit swept spheres, likewise.
        obbs: Oriented boxes, three rows a slot, where they were asked for (see oriented).
        swept: Rectangle swept spheres, likewise (see rss).
        fitted: The version of the mesh that each of these was last fitted to.
        twigs: Slots of small subtrees, likewise (see twigs).
        corners: Of the faces of leaves, likewise (see corners).
        dops: DOPs of the kinds asked for, each with the version of the mesh (see owner).
        cost: Sums the present traversal cost on the device (see refit).
        views: Structs for kernels, each with the volumes that it holds.
    """

    nodes: wp.array
    leaf_slots: wp.array
    split_slots: wp.array
    arrivals: wp.array
    origin: np.ndarray
    face_count: int
    built_cost: float = 0.0
    refits: int = 0
    patience: int = 2
    served: int = 0
    improved: bool = False
    refitting: RecentCache = field(default_factory=RecentCache)
    sweeping: RecentCache = field(default_factory=RecentCache)
    obbs: wp.array | None = None
    swept: wp.array | None = None
    fitted: dict[Bound, int] = field(default_factory=dict)
    twigs: wp.array | None = None
    corners: wp.array | None = None
    dops: dict[Any, Any] = field(default_factory=dict)
    cost: Any = None
    views: dict[Bound, tuple[wp.array | None, Any]] = field(default_factory=dict)

    def view(self, bound: Bound = Bound.AABB) -> BvhView:
        """The struct to pass to kernels, with the volumes that go beyond boxes where asked for."""
        volumes = self.obbs if bound is Bound.OBB else self.swept if bound is Bound.RSS else None
        held = self.views.get(bound)
        if held is None or held[0] is not volumes:
            held = self.views[bound] = (volumes, self._view(bound))
        return held[1]

    def _view(self, bound: Bound) -> BvhView:
        view = BvhView()
        view.nodes = self.nodes
        view.leaf_slots = self.leaf_slots
        view.split_slots = self.split_slots
        if bound is Bound.OBB:
            view.obbs = self.obbs
        if bound is Bound.RSS:
            view.swept = self.swept
        view.origin = wp.vec3d(*self.origin)
        return view

    @cached_property
    def positions(self) -> wp.array:
        """Where along the curve each face lies."""
        positions = wp.empty_like(self.leaf_slots)
        args = [self.nodes, self.leaf_slots, positions]
        launch(position_kernel, self.face_count, args, self.nodes.device)
        return positions

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        arrays = (self.nodes, self.leaf_slots, self.split_slots, self.arrivals)
        extras = (self.obbs, self.swept, self.twigs, self.corners)
        return sum(array.capacity for array in (*arrays, *extras) if array is not None)
