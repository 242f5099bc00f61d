"""Segments in which pairs of faces meet."""

from collections.abc import Callable

import warp as wp

from abut.core.launch import launch
from abut.geometry.segment_tri_tri import segment_tri_tri
from abut.operands.posed_mesh import PosedMesh, load_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def segments_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    pose: wp.array[wp.int32],
    # out
    segments_out: wp.array2d[wp.vec3d],
    coplanar_out: wp.array[wp.bool],
):
    """The segment in which each pair meets, and whether its faces are coplanar."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        segment = segment_tri_tri(
            load_face(a, pairs[i, 0], pose[i]), load_face(b, pairs[i, 1], pose[i])
        )
        segments_out[i, 0] = segment.p
        segments_out[i, 1] = segment.q
        coplanar_out[i] = segment.coplanar


def contact_segments(
    a: Callable[[], PosedMesh], b: Callable[[], PosedMesh], pairs: wp.array, pose: wp.array | None
) -> tuple[wp.array, wp.array]:
    """((n, 2, 3) float64 segments, (n,) bool coplanar) of pairs that meet.

    Args:
        a, b: Make the posed faces of the operands.
        pairs, pose: The pairs, and their poses where there is a batch.
    """
    device = pairs.device
    count = pairs.shape[0]
    if pose is None:
        pose = wp.zeros(count, dtype=wp.int32, device=device)
    segments = wp.zeros((count, 2), dtype=wp.vec3d, device=device)
    coplanar = wp.zeros(count, dtype=wp.bool, device=device)
    if count:
        args = [a(), b(), pairs, pose, segments, coplanar]
        launch(segments_kernel, count, args, device, grain=256)
    return segments.view(wp.float64), coplanar
