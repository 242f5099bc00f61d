"""Faces that may be nearest to a point, for the lanes of a CUDA warp whose points are neighbours.

Lanes search together (see descent) and measure faces in float32 by triangle frames, with an error
bound: a handful of faces remain for each point, among them every face that may be the nearest. A
second kernel chooses the nearest of them in float64, so that the search needs few registers and no
lane waits for the float64 of another. A point with too many candidates, such as the centre of a
ball, is left to a thread that searches alone.
"""

import warp as wp

from abut.bounds.probe import probe_limit
from abut.bvh.triangle_frames import SQUARED_DISTANCE_CODE, TRIANGLE_FRAME_ROWS
from abut.bvh.wide import BLOCK, BLOCK_LINKS, NO_CHILD, wide_reach, wide_root
from abut.core.pair_queue import PairQueue, push_pair, queue_stop
from abut.geometry.closest_point_tri import closest_point_tri
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.descent import DESCENT
from abut.point.nearest_face import (
    STACK,
    nearer_face,
    no_face_within,
    probe_at,
    search_nearest_face,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CANDIDATES = wp.constant(24)  # of a point, at most
TOO_MANY = wp.constant(-1)
ROUND_UP = wp.constant(wp.float32(1.0 + 2.0**-18))

_WALK = (
    "const bool together = true;"
    + DESCENT
    + SQUARED_DISTANCE_CODE
    + f"""
    const int block = {BLOCK}, nothing = {NO_CHILD}, names_row = {BLOCK_LINKS};
    const int frame_rows = {TRIANGLE_FRAME_ROWS}, room = {CANDIDATES + 8}, most_kept = {CANDIDATES};
    int links[{STACK}];
    float gaps[{STACK}];
"""
    + """
    const float largest = 3e38f, up = 1.0f + 0x1p-18f;
    const auto smaller = [](float a, float b) { return a < b ? a : b; };
    // The limit for boxes that a face sets; the largest distance of a face within a limit.
    const auto limit_from = [&](float squared) {
        const float far = sqrtf(squared) + error;
        return smaller((far * far * stretch + slack) * up, largest);
    };
    const auto reach_past = [&](float limit) {
        const float far = sqrtf(limit) + error;
        return smaller(far * far * up, largest);
    };
    const auto measure_face = [&](int face) {
        alignas(16) float r[20];
        #pragma unroll
        for (int i = 0; i < 5; ++i) {
#if defined(__CUDA_ARCH__)
            *(float4*)(r + 4 * i) = __ldg((const float4*)frames.data + frame_rows * face + i);
#else
            memcpy(r + 4 * i, &frames.data[frame_rows * face + i], 16);
#endif
        }
        return measured(r, 0.5f * (lower.c[0] + upper.c[0]), 0.5f * (lower.c[1] + upper.c[1]),
                        0.5f * (lower.c[2] + upper.c[2]));
    };
    int faces[room];
    float squares[room];
    int depth = 0, count = 0;
    float most = reach_past(within);
    const auto drop = [&] {  // what has turned out to be too far
        int kept = 0;
        for (int k = 0; k < count; ++k)
            if (squares[k] <= most) {
                faces[kept] = faces[k];
                squares[kept++] = squares[k];
            }
        count = kept;
    };
    const auto note = [&](const int* names) {
        float near[4];
        #pragma unroll
        for (int k = 0; k < 4; ++k)
            near[k] = names[k] == nothing ? 3.4e38f : measure_face(-1 - names[k]);
        const float least = smaller(smaller(near[0], near[1]), smaller(near[2], near[3]));
        if (!(least <= most))
            return;
        within = smaller(within, limit_from(least));
        most = reach_past(within);
        #pragma unroll
        for (int k = 0; k < 4; ++k)
            if (near[k] <= most) {
                faces[count] = -1 - names[k];
                squares[count++] = near[k];
            }
        if (count > room - 4)
            drop();
    };
    bool searching = true;
    while (searching) {
        if (link < 0 || link >= block) {
            alignas(16) int names[4] = {link, nothing, nothing, nothing};
            if (link >= block) {
#if defined(__CUDA_ARCH__)
                const int row = node_rows * (link - block) + names_row;
                *(int4*)names = __ldg((const int4*)wide.data + row);
#else
                memcpy(names, &wide.data[node_rows * (link - block) + names_row], 16);
#endif
            }
            note(names);
            if (count > room - 4)
                within = most = -1.0f;  // too many: nothing else is wanted
            searching = back(link, depth, within, links, gaps);
        } else {
            searching = down(link, depth, within, links, gaps);
        }
    }
    if (count <= room - 4)
        drop();
    for (int k = 0; k < count && k < most_kept; ++k)
        out.data[k * out.shape[1] + column] = faces[k];
    return count <= most_kept ? count : too_many;
"""
)


@wp.func_native(_WALK)
def find_candidates(
    lower: wp.vec4f,
    upper: wp.vec4f,
    within: wp.float32,
    error: wp.float32,
    stretch: wp.float32,
    slack: wp.float32,
    wide: wp.array[wp.vec4f],
    frames: wp.array[wp.vec4f],
    link: wp.int32,
    column: wp.int32,
    too_many: wp.int32,
    out: wp.array2d[wp.int32],
) -> wp.int32:
    """Write all faces that may be nearest into a column; returns how many, or TOO_MANY.

    Boxes beyond ``within`` are skipped. ``Probe`` documents the error bounds.
    """
    ...


@wp.kernel(cuda_max_registers=64)
def candidates_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    poses: wp.array[wp.mat44d],
    origin: wp.vec3d,
    wide: wp.array[wp.vec4f],
    frames: wp.array[wp.vec4f],
    bound: wp.float64,
    # out
    count_out: wp.array[wp.int32],
    face_out: wp.array2d[wp.int32],
    crowded_out: PairQueue,
):
    """Candidates of every (pose, point of the order), one a column from the span's first on."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / points.shape[0]
        i = order[work - pose * points.shape[0]]
        probe = probe_at(points[i], poses, pose, origin, wide_reach(wide))
        count = find_candidates(
            probe.lower,
            probe.upper,
            wp.float32(probe_limit(probe, bound)),
            probe.frame_error,
            wp.float32(probe.stretch * probe.stretch) * ROUND_UP,
            wp.float32(wp.float64(2.0) * probe.slack) * ROUND_UP,
            wide,
            frames,
            wide_root(wide),
            work - span[0],
            TOO_MANY,
            face_out,
        )
        count_out[work - span[0]] = count
        if count == TOO_MANY:
            push_pair(crowded_out, wp.int64(work))


@wp.kernel
def nearest_candidate_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    bound: wp.float64,
    counts: wp.array[wp.int32],
    candidates: wp.array2d[wp.int32],
    # out
    face_out: wp.array2d[wp.int32],
):
    """The nearest candidate of every (pose, point of the order), NO_FACE where there is none."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / points.shape[0]
        i = order[work - pose * points.shape[0]]
        column = work - span[0]
        best = no_face_within(bound)
        for k in range(counts[column]):
            face = candidates[k, column]
            foot = closest_point_tri(points[i], load_face(side, face, pose))
            best = nearer_face(best, foot.squared, face)
        face_out[pose, i] = best.face


@wp.kernel(cuda_max_registers=128)
def crowded_points_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    origin: wp.vec3d,
    wide: wp.array[wp.vec4f],
    bound: wp.float64,
    crowded: PairQueue,
    candidates: wp.array2d[wp.int32],
    first: wp.int32,
    # out
    face_out: wp.array2d[wp.int32],
):
    """The nearest face where there are too many candidates, beginning with one of them."""
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    for item in range(span[0] + wp.tid(), queue_stop(crowded, span[1]), span[2]):
        work = wp.int32(crowded.keys[item])
        pose = work / points.shape[0]
        i = order[work - pose * points.shape[0]]
        known = candidates[0, work - first]
        face = search_nearest_face(points[i], known, side, pose, origin, wide, bound, links, gaps)
        face_out[pose, i] = face
