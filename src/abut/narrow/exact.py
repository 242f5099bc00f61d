"""Decide the pairs that the filter left undecided, by exact arithmetic."""

from functools import cache
from typing import Any

import warp as wp

from abut.core.lanes import lane_count, lane_index, warp_or
from abut.core.pair_queue import push_pair, queue_stop, unpack_pair
from abut.core.plan import QueueLaunch, Stage
from abut.geometry.common_corners import common_corners
from abut.geometry.intersect_tri_tri_exact import intersect_tri_tri_exact
from abut.geometry.orientation_table import TABLE_SIZE, fill_orientation_table, scale_exactly
from abut.operands.contact_queues import ContactQueues
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import pair_at

# Loops stay loops: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

EXACT_THREADS = 1 << 15  # on CUDA; they take so much memory that no more run at once


@cache
def exact_kernel_for(pairs_type: type) -> wp.Kernel:
    """The kernel of the exact stage, for a type of posed pairs."""

    @wp.kernel(
        module="unique",
        module_options={"enable_backward": False, "fuse_fp": False, "max_unroll": 0},
    )
    def exact_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        # out
        queues_out: ContactQueues,
    ):
        """Push the undecided pairs that meet; the lanes of a warp share the signs of a pair."""
        points = wp.zeros(shape=(6,), dtype=wp.vec3d)
        table = wp.zeros(shape=(TABLE_SIZE,), dtype=wp.int32)
        lane = lane_index()
        lanes = lane_count()
        stop = queue_stop(queues_out.undecided, span[1])
        for i in range(span[0] + wp.tid() / lanes, stop, span[2] / lanes):
            key = queues_out.undecided.keys[i]
            row = unpack_pair(key, queues_out.bits)
            pair = pair_at(pairs, row[0])
            a = load_face(pair.a, row[1], pair.pose)
            b = load_face(pair.b, row[2], pair.pose)
            for k in range(3):
                points[k] = a[k]
                points[3 + k] = b[k]
            for k in range(TABLE_SIZE):
                table[k] = 0
            scale_exactly(points)
            fill_orientation_table(points, table, lane, lanes)
            for k in range(TABLE_SIZE):
                table[k] = warp_or(table[k])
            index_a = pair.a.faces[row[1]]
            index_b = pair.b.faces[row[2]]
            common = common_corners(pair.sharing, a, b, index_a, index_b)
            if intersect_tri_tri_exact(points, table, common) and lane == 0:
                push_pair(queues_out.hits, key)

    return exact_kernel


def exact_stage(rows: Any, queues: Any) -> Stage:
    """The stage that decides the undecided pairs of ContactQueues, for MeshRows or SceneRows."""
    kernel, args = exact_kernel_for(rows.kind), [rows.view, queues]
    return "exact", QueueLaunch(kernel, queues.undecided, args, threads=EXACT_THREADS).run
