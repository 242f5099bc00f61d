"""The layout of a binary BVH over n faces.

Leaves are ordered along the Morton curve. An inner node is identified by its split s, the last
leaf of its left child. Its children are slots 2 s and 2 s + 1 of ``nodes``, side by side in 64
bytes, so that a traversal reads both at once; the root is the last slot, 2 n - 2. A slot is two
rows of four float32: the lower corner and a link, the upper corner and an escape. The link of an
inner node is its split, that of a leaf the complement of its face (negative). The escape is the
slot that follows the subtree in depth-first order, -1 after the last: a stackless traversal
follows it.
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

MAX_DEPTH = 61  # below the root: 30 bits of a code, then 31 of an index; stacks rely on it


@wp.struct
class BvhView:
    """The arrays of a BVH that kernels read. Boxes are relative to ``origin``."""

    nodes: wp.array[wp.vec4f]
    leaf_slots: wp.array[wp.int32]
    split_slots: wp.array[wp.int32]
    obbs: wp.array[wp.vec4f]  # four rows a slot, or empty (see node_obbs)
    rss: wp.array[wp.vec4f]  # four rows a slot, or empty
    codes: wp.array[wp.int32]  # of leaves, while subtrees are deferred; or empty
    origin: wp.vec3d


@wp.struct
class Node:
    """A slot: a box and a link."""

    low: wp.vec4f
    high: wp.vec4f


@wp.func
def load_node(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Read the node in a slot, 32 bytes."""
    out = Node()
    out.low = load_readonly_vec4f(nodes, 2 * slot)
    out.high = load_readonly_vec4f(nodes, 2 * slot + 1)
    return out


@wp.func
def root_of(tree: BvhView):
    """Return the slot of the root."""
    return 2 * tree.leaf_slots.shape[0] - 2


@wp.func
def link_of(node: Node):
    """Return the split of an inner node, or the complement of the face of a leaf."""
    return wp.cast(node.low[3], wp.int32)


@wp.func
def is_leaf(node: Node):
    """Return whether a node is a leaf."""
    return link_of(node) < 0


@wp.func
def face_of(node: Node):
    """Return the face of a leaf."""
    return -1 - link_of(node)


@wp.func
def link_at(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Return the link of a slot, of nodes that this launch may write."""
    return wp.cast(nodes[2 * slot][3], wp.int32)


@wp.func
def leaf_face(nodes: wp.array[wp.vec4f], slot: wp.int32):
    """Return the face of the leaf in a slot, of nodes that this launch may write."""
    return -1 - link_at(nodes, slot)


@wp.func
def parent_if_second(tree: BvhView, slot: wp.int32, arrivals: wp.array[wp.int32]):
    """Return the parent's slot to the second of two siblings that call this, -1 to the first."""
    parent = wp.int32(-1)
    if slot != root_of(tree):
        if atomic_increment_acq_rel(arrivals, slot >> 1) % 2 == 1:
            parent = tree.split_slots[slot >> 1]
    return parent


@wp.func
def escape_of(node: Node):
    """Return the slot that follows the subtree, or -1."""
    return wp.cast(node.high[3], wp.int32)


@wp.func
def next_slot(node: Node, opened: wp.bool):
    """Return the next slot of a stackless traversal; only inner nodes can be opened."""
    return wp.where(opened and not is_leaf(node), 2 * link_of(node), escape_of(node))


@wp.func
def max_abs_coordinate(node: Node):
    """Return the largest absolute coordinate of a box."""
    far = wp.max(wp.abs(node.low), wp.abs(node.high))
    return wp.float64(wp.max(wp.max(far[0], far[1]), far[2]))


@wp.func
def half_area(node: Node):
    """Return half the surface area of a box."""
    side = node.high - node.low
    return side[0] * side[1] + side[1] * side[2] + side[2] * side[0]


@wp.func
def vec4_with_int(v: wp.vec3f, i: wp.int32):
    """Pack three floats and the bits of an integer into a row."""
    return wp.vec4f(v[0], v[1], v[2], wp.cast(i, wp.float32))


@wp.func
def descendant(nodes: wp.array[wp.vec4f], slot: wp.int32, item: wp.int32, levels: wp.int32):
    """Return slot ``item`` of the 2**levels slots that many levels below, -1 if it is missing.

    A leaf above that level counts as the first item below it.
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
def subtree_slot(tree: BvhView, item: wp.int32, depth: wp.int32):
    """Return slot ``item`` of the 2**depth subtrees at a depth; see ``descendant``."""
    return descendant(tree.nodes, root_of(tree), item, depth)


@wp.kernel
def leaf_position_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    # out
    positions_out: wp.array[wp.int32],
):
    """Write the leaf of each face."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        positions_out[face_of(load_node(nodes, leaf_slots[k]))] = k


@dataclass
class Bvh:
    """A BVH of axis-aligned boxes over the faces of a mesh, one face a leaf.

    Attributes:
        nodes: The slots, two rows each.
        leaf_slots: Slot of each leaf.
        split_slots: Slot of each inner node, by split.
        origin: Origin of the boxes.
        face_count: Number of leaves.
        built_cost: Traversal cost when the BVH was built; measured before the first refit.
        refits: Number of refits since.
        max_refits: Number of refits after which the BVH is rebuilt.
        search_effort: Searches so far (see bvh_cache).
        improved: Whether PLOC built it.
        refit_tasks: Launches of refits, for the last few arrays of points.
        volume_tasks: Launches that fit ``obbs`` and ``rss``, for the last few arrays of points.
        obbs: Oriented boxes, four rows a slot, if used (see node_obbs).
        rss: Rectangle swept spheres, four rows a slot, if used (see node_obbs).
        fitted_versions: Version of the mesh that ``obbs`` and ``rss`` were last fitted to.
        cleared_version: Version of the mesh since which searches fit ``rss`` (see bvh_cache).
        rss_threads: Threads whose searches have fitted ``rss``.
        codes: Codes of the leaves while subtrees are deferred (see lazy_lbvh).
        deferred: Slots of the subtrees that were deferred; None where all are built.
        leaf_clusters: Slots of the leaf clusters, if used (see leaf_clusters).
        leaf_corners: Corners of the faces in leaf order, if used (see leaf_corners).
        kdops: k-DOPs of each shape used, with the version of the mesh (see bvh_cache).
        cost: Sums the present traversal cost on the device (see refit); None before a refit.
        views: Structs for kernels, each with the volumes that it holds.
    """

    nodes: wp.array
    leaf_slots: wp.array
    split_slots: wp.array
    origin: np.ndarray
    face_count: int
    built_cost: float = 0.0
    refits: int = 0
    max_refits: int = 2
    search_effort: int = 0
    improved: bool = False
    refit_tasks: RecentCache = field(default_factory=RecentCache)
    volume_tasks: RecentCache = field(default_factory=RecentCache)
    obbs: wp.array | None = None
    rss: wp.array | None = None
    fitted_versions: dict[Bound, int] = field(default_factory=dict)
    cleared_version: int | None = None
    rss_threads: set[int] = field(default_factory=set)
    codes: wp.array | None = None
    deferred: wp.array | None = None
    leaf_clusters: wp.array | None = None
    leaf_corners: wp.array | None = None
    kdops: dict[Any, Any] = field(default_factory=dict)
    cost: Any = None
    views: dict[Bound, tuple[wp.array | None, Any]] = field(default_factory=dict)

    def view(self, bound: Bound = Bound.AABB) -> BvhView:
        """Return the struct to pass to kernels, with the node volumes of ``bound``."""
        volumes = self.volumes(bound)
        entry = self.views.get(bound)
        if entry is None or entry[0] is not volumes:
            entry = self.views[bound] = (volumes, self._view(bound, volumes))
        return entry[1]

    def volumes(self, bound: Bound) -> wp.array | None:
        """Return the array of the node volumes of ``bound``, None where there is none."""
        return self.obbs if bound is Bound.OBB else self.rss if bound is Bound.RSS else None

    def _view(self, bound: Bound, volumes: wp.array | None) -> BvhView:
        view = BvhView()
        view.nodes = self.nodes
        view.leaf_slots = self.leaf_slots
        view.split_slots = self.split_slots
        if bound is Bound.OBB:
            view.obbs = volumes
        if bound is Bound.RSS:
            view.rss = volumes
        if self.codes is not None:
            view.codes = self.codes
        view.origin = wp.vec3d(*self.origin)
        return view

    @cached_property
    def arrivals(self) -> wp.array:
        """Scratch of refits, by split."""
        return wp.zeros_like(self.split_slots)

    @cached_property
    def positions(self) -> wp.array:
        """The leaf of each face."""
        positions = wp.empty_like(self.leaf_slots)
        args = [self.nodes, self.leaf_slots, positions]
        launch(leaf_position_kernel, self.face_count, args, self.nodes.device)
        return positions

    @property
    def nbytes(self) -> int:
        """Device memory in bytes."""
        arrays = (self.nodes, self.leaf_slots, self.split_slots, self.split_slots)  # for arrivals
        extras = (self.obbs, self.rss, self.codes, self.leaf_clusters, self.leaf_corners)
        return sum(array.capacity for array in (*arrays, *extras) if array is not None)
