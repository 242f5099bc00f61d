"""Pairs of leaves whose boxes overlap, by packets of neighbouring leaves: for the CPU.

Neighbours along the Morton curve overlap much the same nodes. One walk with the box around four of
them takes a third of the steps of four walks; each of the four is then compared with the short list
of leaves found. Within one tree a packet climbs to the root and descends wherever it comes up from
the left, so that every pair is found once, by its first leaf. Walks read two children at a time and
do not branch on whether boxes overlap, which no processor can predict. Measured in
design/traversal.md.
"""

import warp as wp

from abut.bvh.layout import BvhView, Node, face_of, link_of, load_node, root_of
from abut.core.pair_queue import PairQueue, pack_pair, push_all_pairs
from abut.operands.contact_queues import ContactQueues, test_own
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.traversal.overlap.leaf_cluster_pairs import overlap_nodes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PACKET = wp.constant(4)
STACK = wp.constant(64)  # a tree is at most 30 + 31 deep
FOUND = wp.constant(64)
FULL = wp.constant(62)  # a step finds two at most


@wp.func
def keep_slot(
    node: Node,
    slot: wp.int32,
    overlap: wp.int32,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Put an overlapping inner node on the stack, or the slot of a leaf among those found."""
    link = link_of(node)
    leaf = wp.int32(link < 0)
    stack[at[0]] = link
    found[at[1]] = slot
    return wp.vec2i(at[0] + (overlap & (1 - leaf)), at[1] + (overlap & leaf))


@wp.func
def open_top(
    tree: BvhView,
    box: Node,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Take a node off the stack and keep those of its children that ``box`` overlaps."""
    child = 2 * stack[at[0] - 1]
    left = load_node(tree.nodes, child)
    right = load_node(tree.nodes, child + 1)
    at = keep_slot(left, child, overlap_nodes(box, left), wp.vec2i(at[0] - 1, at[1]), stack, found)
    return keep_slot(right, child + 1, overlap_nodes(box, right), at, stack, found)


@wp.func
def climb(
    tree: BvhView,
    slot: wp.int32,
    box: Node,
    at: wp.vec2i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Keep the right sibling of a slot if ``box`` overlaps it."""
    sibling = load_node(tree.nodes, slot | 1)
    overlap = (1 - (slot & 1)) & overlap_nodes(box, sibling)
    return keep_slot(sibling, slot | 1, overlap, at, stack, found)


@wp.func
def is_later(slot: wp.int32, k: wp.int32):
    """1 when the leaf in a slot, 2 s or 2 s - 1 for the leaf s, comes after leaf k."""
    return wp.int32(((slot + 1) >> 1) > k)


@wp.func
def packet_box(tree: BvhView, first: wp.int32, stop: wp.int32):
    """The box around the leaves of a packet."""
    out = load_node(tree.nodes, tree.leaf_slots[first])
    for k in range(first + 1, stop):
        leaf = load_node(tree.nodes, tree.leaf_slots[k])
        out.low = wp.min(out.low, leaf.low)
        out.high = wp.max(out.high, leaf.high)
    return out


@wp.func
def list_packet(
    tree_a: BvhView,
    tree_b: BvhView,
    first: wp.int32,
    stop: wp.int32,
    within: wp.bool,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    queue: PairQueue,
):
    """List pairs of a packet's leaves and the leaves found; within one tree only later ones."""
    keys = wp.zeros(shape=(FOUND,), dtype=wp.int64)
    for k in range(first, stop):
        leaf = load_node(tree_a.nodes, tree_a.leaf_slots[k])
        face = face_of(leaf)
        held = wp.int32(0)
        for i in range(count):
            slot = found[i]
            node = load_node(tree_b.nodes, slot)
            other = face_of(node)
            low = wp.int32(face)
            high = wp.int32(other)
            hit = overlap_nodes(leaf, node)
            if within:
                low = wp.min(face, other)
                high = wp.max(face, other)
                hit = hit & is_later(slot, k)
            keys[held] = pack_pair(0, low, high, bits)
            held += hit
        push_all_pairs(queue, keys, 0, held)


@wp.func
def test_packet(
    mesh: PosedMesh,
    tree: BvhView,
    sharing: wp.int32,
    queues: ContactQueues,
    rank: wp.int32,
    first: wp.int32,
    stop: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
):
    """Test the faces of a packet against the later ones found whose boxes overlap theirs."""
    others = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    for k in range(first, stop):
        leaf = load_node(tree.nodes, tree.leaf_slots[k])
        held = wp.int32(0)
        for i in range(count):
            node = load_node(tree.nodes, found[i])
            others[held] = face_of(node)
            held += overlap_nodes(leaf, node) & is_later(found[i], k)
        if held > 0:
            face = face_of(leaf)
            corners = load_face(mesh, face, 0)
            for i in range(held):
                test_own(mesh, sharing, queues, rank, face, corners, others[i])


@wp.func
def find_later(
    tree: BvhView,
    box: Node,
    at: wp.vec3i,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Find leaves after a slot that overlap a box, until FULL are found or there are no more.

    ``at`` is the slot that the walk has climbed to, the size of the stack, and the number found.
    """
    root = root_of(tree)
    slot = at[0]
    held = wp.vec2i(at[1], at[2])
    while held[1] < FULL and (slot != root or held[0] > 0):
        if held[0] > 0:
            held = open_top(tree, box, held, stack, found)
        else:
            held = climb(tree, slot, box, held, stack, found)
            slot = tree.split_slots[slot >> 1]
    return wp.vec3i(slot, held[0], held[1])


@wp.func
def test_own_packet(
    mesh: PosedMesh,
    tree: BvhView,
    sharing: wp.int32,
    queues: ContactQueues,
    rank: wp.int32,
    packet: wp.int32,
    stack: wp.array[wp.int32],
    found: wp.array[wp.int32],
):
    """Test the faces of a packet against the later ones of the same mesh."""
    first = packet * PACKET
    stop = wp.min(first + PACKET, tree.leaf_slots.shape[0])
    box = packet_box(tree, first, stop)
    at = wp.vec3i(tree.leaf_slots[first], 0, 0)
    while at[0] != root_of(tree) or at[1] > 0:
        at = find_later(tree, box, at, stack, found)
        test_packet(mesh, tree, sharing, queues, rank, first, stop, found, at[2])
        at = wp.vec3i(at[0], at[1], 0)


@wp.kernel
def packet_kernel(
    # in
    span: wp.vec3i,
    mesh: PosedMesh,
    tree: BvhView,
    sharing: wp.int32,
    # out
    queues_out: ContactQueues,
):
    """Test the faces of each packet of leaves against the later faces of the mesh."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
    found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    for packet in range(span[0] + wp.tid(), span[1], span[2]):
        test_own_packet(mesh, tree, sharing, queues_out, 0, packet, stack, found)


@wp.kernel
def self_packet_pairs_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """List the pairs of overlapping leaves of one tree, each once, packet by packet."""
    root = root_of(tree)
    leaf_count = tree.leaf_slots.shape[0]
    stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
    found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    for packet in range(span[0] + wp.tid(), span[1], span[2]):
        first = packet * PACKET
        stop = wp.min(first + PACKET, leaf_count)
        box = packet_box(tree, first, stop)
        at = wp.vec3i(tree.leaf_slots[first], 0, 0)
        while at[0] != root or at[1] > 0:
            at = find_later(tree, box, at, stack, found)
            list_packet(tree, tree, first, stop, True, found, at[2], bits, candidates_out)
            at = wp.vec3i(at[0], at[1], 0)


@wp.kernel
def packet_pairs_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    bits: wp.vec2i,
    # out
    candidates_out: PairQueue,
):
    """List the pairs of overlapping leaves of two trees in one frame, by packets of a's leaves."""
    root = root_of(tree_b)
    leaf_count = tree_a.leaf_slots.shape[0]
    stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
    found = wp.zeros(shape=(FOUND,), dtype=wp.int32)
    top = load_node(tree_b.nodes, root)
    for packet in range(span[0] + wp.tid(), span[1], span[2]):
        first = packet * PACKET
        stop = wp.min(first + PACKET, leaf_count)
        box = packet_box(tree_a, first, stop)
        at = keep_slot(top, root, overlap_nodes(box, top), wp.vec2i(0, 0), stack, found)
        walking = at[0] + at[1] > 0
        while walking:
            if at[0] > 0:
                at = open_top(tree_b, box, at, stack, found)
            walking = at[0] > 0
            if at[1] >= FULL or not walking:
                list_packet(tree_a, tree_b, first, stop, False, found, at[1], bits, candidates_out)
                at = wp.vec2i(at[0], 0)


def packet_count_of(leaf_count: int) -> int:
    """Number of packets of so many leaves."""
    return -(-leaf_count // int(PACKET))
