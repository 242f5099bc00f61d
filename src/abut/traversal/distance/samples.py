"""A first upper bound of the distance of two meshes: between some vertices of each."""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, face_of, load_node
from abut.core.lanes import lane_count, lane_index, warp_min_float32, warp_sync
from abut.core.team import store_word
from abut.operands.distance_queues import ROUNDING, slack_of
from abut.operands.posed_mesh import PosedMesh
from abut.operands.posed_pairs import PosedPair

COUNT = 64  # of each mesh
SAMPLES = wp.constant(COUNT)
COARSE = wp.constant(wp.float64(0.25 / float(ROUNDING)))  # a quarter of the reach of both meshes
UNDERFLOW = wp.constant(wp.float32(1e-34))  # below, squares lose digits
OVERFLOW = wp.constant(wp.float32(2.9e38))  # the squares of nearer samples are smaller


@wp.func
def sample_vertex(mesh: PosedMesh, tree: BvhView, sample: wp.int32, sample_count: wp.int32):
    """Return a vertex in the frame of a BVH; the samples are spread over its leaves."""
    leaf_count = wp.int64(tree.leaf_slots.shape[0])
    leaf = wp.int32(wp.int64(sample) * leaf_count / wp.int64(sample_count))
    slot = tree.leaf_slots[leaf]
    face = -1 - slot
    if slot >= 0:  # the leaf is not in a deferred subtree
        face = face_of(load_node(tree.nodes, slot))
    return to_vec3f(mesh.points[mesh.faces[face][0]] - tree.origin)


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    float least = 3.0e38f;
    for (int k = 0; k < count; ++k) {{
        float x, y, z;
        const unsigned at = (unsigned)samples + 4u * k;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(at + {4 * COUNT}u) : "memory");
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(z) : "r"(at + {8 * COUNT}u) : "memory");
        x -= p.c[0];
        y -= p.c[1];
        z -= p.c[2];
        least = fminf(least, fmaf(x, x, fmaf(y, y, z * z)));
    }}
    return least;
#else
    typedef float v8 __attribute__((vector_size(32)));
    const float* at = (const float*)samples;
    v8 least = v8{{}} + 3.0e38f;
    for (int k = 0; k < count; k += 8) {{
        v8 x, y, z;
        __builtin_memcpy(&x, at + k, 32);
        __builtin_memcpy(&y, at + {COUNT} + k, 32);
        __builtin_memcpy(&z, at + {2 * COUNT} + k, 32);
        x -= p.c[0];
        y -= p.c[1];
        z -= p.c[2];
        const v8 squared = x * x + y * y + z * z;
        least = squared < least ? squared : least;
    }}
    float out = least[0];
    for (int k = 1; k < 8; ++k) out = least[k] < out ? least[k] : out;
    return out;
#endif
""")
def least_squared(samples: wp.uint64, count: wp.int32, p: wp.vec3f) -> wp.float32:
    """Return the smallest squared distance of a point and some samples, all x, all y, all z."""
    ...


@wp.func
def samples_help(pair: PosedPair, bound: wp.float64):
    """Whether samples, which are an eighth of a mesh apart or so, may lie within a bound."""
    return bound > COARSE * slack_of(pair)


@wp.func
def sampled_distance(
    triples: wp.uint64, pair: PosedPair, frame: RelativeFrame, padding: wp.float32
):
    """Return an upper bound of the distance of a pair, by vertices that are spread over both.

    ``padding`` bounds the roundings of positions along any direction. All lanes must call this;
    the entries of the team are overwritten.
    """
    lane = lane_index()
    count_a = wp.min(SAMPLES, pair.a.faces.shape[0])
    count_b = wp.min(SAMPLES, pair.b.faces.shape[0])
    padded = (count_a + 7) & ~7
    for k in range(lane, padded, lane_count()):
        p = sample_vertex(pair.a, pair.tree_a, wp.min(k, count_a - 1), count_a)
        store_word(triples, k, p[0])
        store_word(triples, SAMPLES + k, p[1])
        store_word(triples, 2 * SAMPLES + k, p[2])
    warp_sync()
    least = wp.float32(wp.inf)
    for k in range(lane, count_b, lane_count()):
        vertex = to_vec4f(sample_vertex(pair.b, pair.tree_b, k, count_b))
        q = row_xyz(frame.rows * vertex + frame.shift)
        least = wp.min(least, least_squared(triples, padded, q))
    least = wp.max(warp_min_float32(least), UNDERFLOW)
    warp_sync()
    if not (least < OVERFLOW):
        return wp.float64(wp.inf)
    return wp.float64(wp.sqrt(least) * frame.stretch) + wp.float64(padding)
