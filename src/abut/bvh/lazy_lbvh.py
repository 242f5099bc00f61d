"""Build the top of a linear BVH, and defer the subtrees below, on the CPU.

Faces are sorted by the high bits of their codes only. The largest subtrees of at most SUBTREE
leaves are deferred: a search builds those that it comes to (see deferred_subtrees). Lazy
construction follows Hunt, Mark and Fussell (2007).
"""

import numpy as np
import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.float32 import row_xyz
from abut.bvh.deferred_subtrees import DEFERRED, GRAIN, place_upwards, slot_of
from abut.bvh.layout import Bvh, BvhView, root_of, vec4_with_int
from abut.bvh.lbvh import NO_SIBLING, allocate_bvh, build_lbvh, frame_origin
from abut.bvh.morton import cells_per_length
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SUBTREE = 64  # leaves of a deferred subtree; only those of one bin may be more
MOST_LEAVES = 512  # of a bin, beyond which nothing is deferred
FEW_FACES = 4096  # below, nothing is deferred
FACES_PER_BIN = 2

Bounds = wp.types.matrix(shape=(2, 3), dtype=wp.float64)

CORNERS = """
    typedef double v4 __attribute__((vector_size(32)));
    auto corner = [&](int face, int i) {
        v4 p = {};
        __builtin_memcpy(&p, points.data + faces.data[face].c[i], 24);
        return p;
    };
"""


@wp.func_native(f"""
#if !defined(__CUDA_ARCH__)
    {CORNERS}
    typedef int i4 __attribute__((vector_size(16)));
    const v4 least = {{lower.c[0], lower.c[1], lower.c[2], 0.0}};
    for (int face = first; face < end; ++face) {{
        const v4 centre = (corner(face, 0) + corner(face, 1) + corner(face, 2)) / 3.0;
        v4 at = (centre - least) * scale;
        at = at > 0.0 ? at : v4{{}};
        at = at < 1023.0 ? at : v4{{}} + 1023.0;
        i4 x = __builtin_convertvector(at, i4);
        x = (x | (x << 16)) & 0x030000FF;
        x = (x | (x << 8)) & 0x0300F00F;
        x = (x | (x << 4)) & 0x030C30C3;
        x = (x | (x << 2)) & 0x09249249;
        codes.data[face] = (x[0] << 2) | (x[1] << 1) | x[2];
    }}
#endif
""")
def code_faces(
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    lower: wp.vec3d,
    scale: wp.float64,
    first: wp.int32,
    end: wp.int32,
    codes: wp.array[wp.int32],
):
    """Compute the codes of faces first..end - 1, those of ``morton_kernel``."""
    ...


@wp.kernel
def face_codes_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    lower: wp.vec3d,
    scale: wp.float64,
    # out
    codes_out: wp.array[wp.int32],
):
    """Compute the code of each face."""
    code_faces(points, faces, lower, scale, span[0], span[1], codes_out)


@wp.func_native(f"""
#if !defined(__CUDA_ARCH__)
    const int count = faces.shape[0], bins = ends.shape[0], shift = 30 - __builtin_ctz(bins);
    int next = 0, subtrees = 0, most = 0;
    for (int i = 0; i < count; ++i) ++ends.data[faces.data[i] >> shift];
    for (int bin = 0; bin < bins; ++bin) {{
        const int size = ends.data[bin];
        ends.data[bin] = next;
        next += size;
    }}
    for (int i = 0; i < count; ++i) {{
        const int at = ends.data[faces.data[i] >> shift]++;
        codes.data[at] = faces.data[i];
        leaves.data[at] = ~i;
    }}
    for (int bin = 0, width; bin < bins; bin += width) {{
        const int first = bin ? ends.data[bin - 1] : 0;
        for (width = 1; !(bin & width) && 2 * width <= bins; width *= 2)
            if (ends.data[bin + 2 * width - 1] - first > {SUBTREE}) break;
        const int end = ends.data[bin + width - 1];
        if (end == first) continue;
        spans.data[subtrees++] = {{first, end}};
        most = end - first > most ? end - first : most;
    }}
    return {{subtrees, most}};
#else
    return {{}};
#endif
""")
def sort_into_subtrees(
    faces: wp.array[wp.int32],
    ends: wp.array[wp.int32],
    codes: wp.array[wp.int32],
    leaves: wp.array[wp.int32],
    spans: wp.array[wp.vec2i],
) -> wp.vec2i:
    """Sort the codes of faces by their high bits, and divide them into subtrees.

    ``ends`` are as many zeros as there are bins, a power of two. Returns the number of subtrees,
    whose leaves are ``spans``, and that of the leaves of the largest.
    """
    ...


@wp.kernel
def sort_into_subtrees_kernel(
    # in
    span: wp.vec3i,
    codes: wp.array[wp.int32],
    # out
    ends_out: wp.array[wp.int32],
    codes_out: wp.array[wp.int32],
    leaves_out: wp.array[wp.int32],
    spans_out: wp.array[wp.vec2i],
    sizes_out: wp.array[wp.vec2i],
):
    """Sort the codes of all faces by their high bits."""
    sizes_out[0] = sort_into_subtrees(codes, ends_out, codes_out, leaves_out, spans_out)


@wp.func_native(f"""
    wp::mat_t<2, 3, wp::float64> out;
#if !defined(__CUDA_ARCH__)
    {CORNERS}
    v4 low = v4{{}} + __builtin_inf(), high = -low;
    for (int k = first; k < end; ++k)
        for (int i = 0; i < 3; ++i) {{
            const v4 p = corner(~leaves.data[k], i);
            low = p < low ? p : low;
            high = p > high ? p : high;
        }}
    for (int i = 0; i < 3; ++i) {{ out.data[0][i] = low[i]; out.data[1][i] = high[i]; }}
#endif
    return out;
""")
def bounds_of_leaves(
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    leaves: wp.array[wp.int32],
    first: wp.int32,
    end: wp.int32,
) -> Bounds:
    """Return the lowest and highest coordinates of some leaves."""
    ...


@wp.kernel
def fit_subtrees_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    spans: wp.array[wp.vec2i],
    # out
    boxes_out: wp.array[wp.vec4f],
):
    """Fit the boxes of subtrees to their faces."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        box = bounds_of_leaves(points, faces, tree.leaf_slots, spans[i][0], spans[i][1])
        lower, upper = fit_aabb(box[0], box[1], box[1], tree.origin)
        boxes_out[2 * i] = vec4_with_int(lower, 0)
        boxes_out[2 * i + 1] = vec4_with_int(upper, 0)


@wp.kernel
def build_top_kernel(
    # in
    span: wp.vec3i,
    spans: wp.array[wp.vec2i],
    boxes: wp.array[wp.vec4f],
    # out
    tree_out: BvhView,
    slots_out: wp.array[wp.int32],
):
    """Build the nodes above all subtrees, and write the slots of these."""
    count = tree_out.leaf_slots.shape[0]
    for i in range(span[0], span[1]):
        tree_out.split_slots[wp.min(spans[i][1], count - 1) - 1] = NO_SIBLING
    lower = wp.vec3f(wp.inf)
    upper = wp.vec3f(-wp.inf)
    link = wp.int32(DEFERRED)
    for i in range(span[0], span[1]):
        first = spans[i][0]
        end = spans[i][1]
        low = row_xyz(boxes[2 * i])
        high = row_xyz(boxes[2 * i + 1])
        lower = wp.min(lower, low)
        upper = wp.max(upper, high)
        below = wp.where(end == first + 1, tree_out.leaf_slots[first], DEFERRED)
        link = place_upwards(tree_out, first, end - 1, below, low, high, 0, count)
        slots_out[i] = slot_of(tree_out, first, end - 1, 0, count)
    tree_out.nodes[2 * root_of(tree_out)] = vec4_with_int(lower, link)
    tree_out.nodes[2 * root_of(tree_out) + 1] = vec4_with_int(upper, -1)
    tree_out.split_slots[link] = root_of(tree_out)


def build_lazy_lbvh(points: wp.array, faces: wp.array, bounds: np.ndarray) -> Bvh:
    """Build the top of an LBVH on the CPU; all of it where the faces are few or badly spread."""
    device, count = faces.device, faces.shape[0]
    if count < FEW_FACES:
        return build_lbvh(points, faces, bounds)
    tree = allocate_bvh(count, frame_origin(bounds), device)
    tree.codes = wp.empty(count, dtype=wp.int32, device=device)
    spans, most = _divided(points, faces, bounds, tree)
    if most > MOST_LEAVES:
        return build_lbvh(points, faces, bounds)
    boxes = wp.empty(2 * spans.shape[0], dtype=wp.vec4f, device=device)
    args = [points, faces, tree.view(), spans, boxes]
    launch(fit_subtrees_kernel, spans.shape[0], args, device, grain=GRAIN)
    tree.deferred = wp.empty(spans.shape[0], dtype=wp.int32, device=device)
    args = [spans, boxes, tree.view(), tree.deferred]
    launch(build_top_kernel, spans.shape[0], args, device, grain=spans.shape[0])
    return tree


def _divided(
    points: wp.array, faces: wp.array, bounds: np.ndarray, tree: Bvh
) -> tuple[wp.array, int]:
    """Sort faces into subtrees; returns the leaves of each, and the number in the largest."""
    device, count = faces.device, faces.shape[0]
    bins = 1 << (count // FACES_PER_BIN).bit_length() - 1
    codes = wp.empty(count, dtype=wp.int32, device=device)
    spans = wp.empty(bins, dtype=wp.vec2i, device=device)
    sizes = wp.empty(1, dtype=wp.vec2i, device=device)
    grid = [wp.vec3d(*bounds[0]), wp.float64(cells_per_length(bounds))]
    launch(face_codes_kernel, count, [points, faces, *grid, codes], device)
    outputs = [wp.zeros(bins, dtype=wp.int32, device=device), tree.codes, tree.leaf_slots]
    launch(sort_into_subtrees_kernel, 1, [codes, *outputs, spans, sizes], device)
    subtrees, most = sizes.numpy()[0].tolist()
    return spans[:subtrees], most
