"""Wide nodes: the four grandchildren of a binary node side by side, for searches from points.

Ten rows of four float32 a split, one column for each grandchild. A node has lower x, lower y,
lower z, upper x, upper y, upper z, links. If all grandchildren are faces the node is a block, and
has their corners instead of boxes: x, y and z of the first corners, of the second, of the third,
rounded to float32, and links. Links are as in the binary BVH, plus BLOCK for the split of a block.
An empty column (a child is a leaf already) has the link NO_CHILD and an empty box.

Every split has rows, though a search from the root visits only every other level: this wastes half
of the memory and needs no index. The last row has the link of the root and the largest coordinate
of any box.
"""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.bvh.bvh_cache import version_of_tree
from abut.bvh.layout import Bvh, face_of, is_leaf, link_of, load_node, max_abs_coordinate
from abut.core.launch import launch
from abut.core.memory_access import load_readonly_vec4f
from abut.core.timing import stage
from abut.mesh import Mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

WIDE_ROWS = wp.constant(10)
BOX_LINKS = wp.constant(6)  # row of a node's links
BLOCK_LINKS = wp.constant(9)  # row of a block's links
BLOCK = wp.constant(1 << 30)
NO_CHILD = wp.constant(-2147483648)


@wp.func
def grandchild_slot(nodes: wp.array[wp.vec4f], split: wp.int32, column: wp.int32):
    """Return the slot of grandchild 0 to 3 of a split; -1 for the second column of a leaf."""
    child = 2 * split + column / 2
    node = load_node(nodes, child)
    slot = 2 * link_of(node) + column % 2
    if is_leaf(node):
        slot = wp.where(column % 2 == 0, child, -1)
    return slot


@wp.func
def is_block(nodes: wp.array[wp.vec4f], split: wp.int32):
    """Return whether all grandchildren of a split are faces."""
    leaves = wp.bool(True)
    for column in range(4):
        slot = grandchild_slot(nodes, split, column)
        if slot >= 0:
            leaves = leaves and is_leaf(load_node(nodes, slot))
    return leaves


@wp.func
def root_row(nodes: wp.array[wp.vec4f], root: wp.int32):
    """Return the last row."""
    node = load_node(nodes, root)
    link = link_of(node)
    if link >= 0:
        if is_block(nodes, link):
            link += BLOCK
    return wp.vec4f(wp.cast(link, wp.float32), wp.float32(max_abs_coordinate(node)), 0.0, 0.0)


@wp.kernel
def wide_nodes_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Write the rows of each split; the item after the last split writes the last row."""
    for split in range(span[0] + wp.tid(), span[1], span[2]):
        first = WIDE_ROWS * split
        if 2 * split == nodes.shape[0] / 2 - 1:
            rows_out[rows_out.shape[0] - 1] = root_row(nodes, 2 * split)
            continue
        links = wp.vec4f(wp.cast(NO_CHILD, wp.float32))
        lower = wp.matrix(wp.float32(wp.inf), shape=(3, 4), dtype=wp.float32)
        upper = wp.matrix(wp.float32(-wp.inf), shape=(3, 4), dtype=wp.float32)
        corners = wp.matrix(wp.float32(0.0), shape=(9, 4), dtype=wp.float32)
        block = is_block(nodes, split)
        for column in range(4):
            slot = grandchild_slot(nodes, split, column)
            if slot >= 0:
                node = load_node(nodes, slot)
                link = link_of(node)
                if link >= 0:
                    if is_block(nodes, link):
                        link += BLOCK
                links[column] = wp.cast(link, wp.float32)
                for x in range(3):
                    lower[x, column] = node.low[x]
                    upper[x, column] = node.high[x]
                if block:
                    face = faces[face_of(node)]
                    for corner in range(3):
                        p = to_vec3f(points[face[corner]] - origin)
                        for x in range(3):
                            corners[3 * corner + x, column] = p[x]
        if block:
            for k in range(9):
                rows_out[first + k] = corners[k]
            rows_out[first + BLOCK_LINKS] = links
        else:
            for x in range(3):
                rows_out[first + x] = lower[x]
                rows_out[first + 3 + x] = upper[x]
            rows_out[first + BOX_LINKS] = links


@wp.func
def wide_root(wide: wp.array[wp.vec4f]):
    """Return the link of the root."""
    return wp.cast(load_readonly_vec4f(wide, wide.shape[0] - 1)[0], wp.int32)


@wp.func
def wide_reach(wide: wp.array[wp.vec4f]):
    """Return the largest absolute coordinate of any box."""
    return wp.float64(load_readonly_vec4f(wide, wide.shape[0] - 1)[1])


def wide_nodes_of(mesh: Mesh, tree: Bvh) -> wp.array:
    """Return the wide nodes of an up-to-date BVH of a mesh, cached with the mesh."""
    with mesh.lock:
        entry, version = mesh.cache.get("wide"), version_of_tree(mesh, tree)
        if entry is None or entry[0] is not tree or entry[1] != version:
            rows = entry[2] if entry is not None and entry[0] is tree else None
            rows = make_wide_nodes(tree, mesh.points, mesh.faces, rows)
            entry = mesh.cache["wide"] = (tree, version, rows)
        return entry[2]


def make_wide_nodes(
    tree: Bvh, points: wp.array, faces: wp.array, rows: wp.array | None = None
) -> wp.array:
    """Return the wide nodes of a BVH, in ``rows`` if there are some of another shape."""
    if rows is None:
        count = WIDE_ROWS * (tree.face_count - 1) + 1
        rows = wp.zeros(count, dtype=wp.vec4f, device=points.device)
    with stage("hierarchy", points.device):
        args = [tree.nodes, points, faces, wp.vec3d(*tree.origin), rows]
        launch(wide_nodes_kernel, tree.face_count, args, points.device)
    return rows
