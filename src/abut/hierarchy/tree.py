"""Tree: the layout of a binary hierarchy.

Leaf k is node 2 k, and the inner node that splits leaves k | k + 1 is node 2 k + 1. So a subtree
is one block of nodes, parity tells leaf from inner node, and no index maps are needed. A node is
two rows of four float32: lower corner and first child (a leaf: its face); upper corner and rope,
the node that follows its subtree (-1 after the last). The right child is the left child's rope.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.atomics import load_wide


@wp.struct
class TreeView:
    """What kernels see of a tree. Boxes are relative to ``origin``."""

    nodes: wp.array[wp.vec4f]
    root: wp.array[wp.int32]
    origin: wp.vec3d


@wp.struct
class Node:
    """One node: lower corner and first child (or face), upper corner and rope."""

    low: wp.vec4f
    high: wp.vec4f


@wp.func
def load_node(nodes: wp.array[wp.vec4f], node: wp.int32):
    """Read a node, 32 bytes."""
    out = Node()
    out.low = load_wide(nodes, 2 * node)
    out.high = load_wide(nodes, 2 * node + 1)
    return out


@wp.func
def first_of(node: Node):
    """First child of an inner node, face of a leaf."""
    return wp.cast(node.low[3], wp.int32)


@wp.func
def rope_of(node: Node):
    """The node that follows the subtree; for a left child its sibling."""
    return wp.cast(node.high[3], wp.int32)


@wp.func
def with_int(v: wp.vec3f, i: wp.int32):
    """A row of a node: three floats and the bits of an integer."""
    return wp.vec4f(v[0], v[1], v[2], wp.cast(i, wp.float32))


@wp.func
def is_leaf(node: wp.int32):
    """Leaves have even indices."""
    return (node & 1) == 0


@wp.func
def subtree(tree: TreeView, item: wp.int32, depth: wp.int32):
    """Root of subtree ``item`` of the 2**depth at that depth, -1 for one that is not there.

    A leaf above that depth is the subtree of the first item below it.
    """
    node = tree.root[0]
    for level in range(depth):
        if node >= 0:
            bit = (item >> (depth - 1 - level)) & 1
            if is_leaf(node):
                if bit == 1:
                    node = -1
            else:
                node = first_of(load_node(tree.nodes, node))
                if bit == 1:
                    node = rope_of(load_node(tree.nodes, node))
    return node


@dataclass
class Tree:
    """A hierarchy of axis-aligned boxes over the faces of a mesh, one face a leaf."""

    nodes: wp.array
    parents: wp.array
    root: wp.array
    arrivals: wp.array
    origin: np.ndarray
    face_count: int
    built_cost: float = 0.0

    def view(self) -> TreeView:
        """The struct to pass to kernels."""
        view = TreeView()
        view.nodes = self.nodes
        view.root = self.root
        view.origin = wp.vec3d(*self.origin)
        return view

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        arrays = (self.nodes, self.parents, self.root, self.arrivals)
        return sum(a.capacity for a in arrays)
