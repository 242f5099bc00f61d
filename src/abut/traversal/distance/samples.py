"""A first upper bound of the distance of two meshes: between some vertices of each."""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, face_of, load_node
from abut.core.lanes import lane_count, lane_index, warp_min_float32, warp_sync
from abut.core.team import load_triple, store_triple
from abut.operands.posed_mesh import PosedMesh
from abut.operands.posed_pairs import PosedPair

MOST_SAMPLES = 64
CPU_SAMPLES = 16
UNDERFLOW = wp.constant(wp.float32(1e-34))  # below, squares lose digits


@wp.func
def sample_vertex(mesh: PosedMesh, tree: BvhView, sample: wp.int32, sample_count: wp.int32):
    """Return a vertex in the frame of a BVH; the samples are spread over its leaves."""
    leaf_count = wp.int64(tree.leaf_slots.shape[0])
    leaf = wp.int32(wp.int64(sample) * leaf_count / wp.int64(sample_count))
    face = mesh.faces[face_of(load_node(tree.nodes, tree.leaf_slots[leaf]))]
    return to_vec3f(mesh.points[face[0]] - tree.origin)


@wp.func
def sampled_distance(
    triples: wp.uint64,
    pair: PosedPair,
    frame: RelativeFrame,
    padding: wp.float32,
    sample_count: wp.int32,
):
    """Return an upper bound of the distance of a pair, by vertices that are spread over both.

    ``padding`` bounds the roundings of positions along any direction. All lanes must call this;
    the entries of the team are overwritten.
    """
    lane = lane_index()
    count_a = wp.min(sample_count, pair.a.faces.shape[0])
    count_b = wp.min(sample_count, pair.b.faces.shape[0])
    for k in range(lane, count_a, lane_count()):
        p = sample_vertex(pair.a, pair.tree_a, k, count_a)
        bits = wp.vec3i(wp.cast(p[0], wp.int32), wp.cast(p[1], wp.int32), wp.cast(p[2], wp.int32))
        store_triple(triples, k, bits)
    warp_sync()
    least = wp.float32(wp.inf)
    for k in range(lane, count_b, lane_count()):
        vertex = to_vec4f(sample_vertex(pair.b, pair.tree_b, k, count_b))
        q = row_xyz(frame.rows * vertex + frame.shift)
        for n in range(count_a):
            bits = load_triple(triples, n)
            p = wp.vec3f(
                wp.cast(bits[0], wp.float32),
                wp.cast(bits[1], wp.float32),
                wp.cast(bits[2], wp.float32),
            )
            least = wp.min(least, wp.length_sq(q - p))
    least = warp_min_float32(least)
    warp_sync()
    least = wp.max(least, UNDERFLOW)
    return wp.float64(wp.sqrt(least) * frame.stretch) + wp.float64(padding)
