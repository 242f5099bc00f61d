"""Wide nodes: the four grandchildren of a binary node side by side, for searches from points.

Ten rows a split, of four float32 each, one for each grandchild. A node has lower x, lower y, lower
z, upper x, upper y, upper z, links. Where all grandchildren are faces it is a block, and has them
instead of their boxes: x, y and z of the first corners, of the second, of the third, rounded to
float32, and links. Links are as in a tree, plus BLOCK for the split of a block; a place without a
grandchild (a child is a leaf already) has the link NOTHING and a box that nothing comes near.

Every split has room, though a search from the root meets only those of every other level: half of
it buys a layout without an index. The last row of all has the link to begin with, and the largest
coordinate of any box.
"""

import warp as wp

from abut.bounds.rows import single_of
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
def grandchild_slot(nodes: wp.array[wp.vec4f], split: wp.int32, place: wp.int32):
    """The slot of a grandchild, 0 to 3, of a split; -1 for the second place of a leaf."""
    child = 2 * split + place / 2
    node = load_node(nodes, child)
    slot = 2 * link_of(node) + place % 2
    if is_leaf(node):
        slot = wp.where(place % 2 == 0, child, -1)
    return slot


@wp.func
def is_block(nodes: wp.array[wp.vec4f], split: wp.int32):
    """Are all grandchildren of a split faces?"""
    leaves = wp.bool(True)
    for place in range(4):
        slot = grandchild_slot(nodes, split, place)
        if slot >= 0:
            leaves = leaves and is_leaf(load_node(nodes, slot))
    return leaves


@wp.func
def root_row(nodes: wp.array[wp.vec4f], root: wp.int32):
    """The last row."""
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
    """Gather the grandchildren of each split; the item after the last one is the root."""
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
        for place in range(4):
            slot = grandchild_slot(nodes, split, place)
            if slot >= 0:
                node = load_node(nodes, slot)
                link = link_of(node)
                if link >= 0:
                    if is_block(nodes, link):
                        link += BLOCK
                links[place] = wp.cast(link, wp.float32)
                for x in range(3):
                    lower[x, place] = node.low[x]
                    upper[x, place] = node.high[x]
                if block:
                    face = faces[face_of(node)]
                    for corner in range(3):
                        p = single_of(points[face[corner]] - origin)
                        for x in range(3):
                            corners[3 * corner + x, place] = p[x]
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
    """The link to begin with."""
    return wp.cast(load_readonly_vec4f(wide, wide.shape[0] - 1)[0], wp.int32)


@wp.func
def wide_reach(wide: wp.array[wp.vec4f]):
    """The largest coordinate of any box."""
    return wp.float64(load_readonly_vec4f(wide, wide.shape[0] - 1)[1])


def wide_nodes_of(mesh: Mesh, tree: Bvh) -> wp.array:
    """The rows of the wide nodes of a mesh's tree, which is up to date."""
    with mesh.lock:
        held = mesh.cache.get("wide")
        if held is None or held[0] is not tree or held[1] != mesh.version:
            rows = held[2] if held is not None and held[0] is tree else None
            if rows is None:
                count = WIDE_ROWS * (tree.face_count - 1) + 1
                rows = wp.zeros(count, dtype=wp.vec4f, device=mesh.device)
            with stage("hierarchy", mesh.device):
                args = [tree.nodes, mesh.points, mesh.faces, wp.vec3d(*tree.origin), rows]
                launch(wide_nodes_kernel, tree.face_count, args, mesh.device)
            held = mesh.cache["wide"] = (tree, mesh.version, rows)
        return held[2]
