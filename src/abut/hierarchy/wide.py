"""Wide nodes: the four grandchildren of a binary node side by side, for searches from points.

Eight rows a split: lower x of the four, lower y, lower z, upper x, upper y, upper z, links, and one
to fill up 128 bytes. A leaf that is a child already stands in for its two children; the place left
over has a box that nothing comes near. Every split has a record, though a search from the root
meets only those of every other level: half of the room buys a layout without an index.
"""

import warp as wp

from abut.hierarchy.tree import Tree, is_leaf, link_of, load_node
from abut.mesh import Mesh
from abut.runtime import Task, stage

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

WIDE_ROWS = wp.constant(8)


@wp.func
def slot_below(nodes: wp.array[wp.vec4f], child: wp.int32, place: wp.int32):
    """The slot of a child's first (0) or second (1) child; -1 for the second of a leaf."""
    node = load_node(nodes, child)
    slot = 2 * link_of(node) + place
    if is_leaf(node):
        slot = wp.where(place == 0, child, -1)
    return slot


@wp.kernel
def widen_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Gather the grandchildren of each split."""
    for split in range(span[0] + wp.tid(), span[1], span[2]):
        lower = wp.matrix(wp.float32(wp.inf), shape=(4, 4), dtype=wp.float32)
        upper = wp.matrix(wp.float32(-wp.inf), shape=(4, 4), dtype=wp.float32)
        for place in range(4):
            slot = slot_below(nodes, 2 * split + place / 2, place % 2)
            if slot >= 0:
                node = load_node(nodes, slot)
                lower[place] = node.low
                upper[place] = node.high
        boxes_lower = wp.transpose(lower)
        boxes_upper = wp.transpose(upper)
        for x in range(3):
            rows_out[WIDE_ROWS * split + x] = boxes_lower[x]
            rows_out[WIDE_ROWS * split + 3 + x] = boxes_upper[x]
        rows_out[WIDE_ROWS * split + 6] = boxes_lower[3]  # the bits of links


def wide_nodes_of(mesh: Mesh, tree: Tree) -> wp.array:
    """The rows of the wide nodes of a mesh's tree, which is up to date."""
    with mesh.lock:
        held = mesh.held.get("wide")
        if held is None or held[0] is not tree:
            splits = tree.face_count - 1
            rows = wp.zeros(WIDE_ROWS * max(splits, 1), dtype=wp.vec4f, device=mesh.device)
            task = Task(widen_kernel, splits, [tree.nodes, rows], mesh.device)
            held = (tree, -1, rows, task)
        if held[1] != mesh.version:
            with stage("hierarchy", mesh.device):
                held[3].run()
            mesh.held["wide"] = (tree, mesh.version, *held[2:])
        return held[2]
