"""The stages that only CUDA takes, on the CPU: they find the same, from queues that must grow."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core.launch import launch
from abut.core.pair_queue import PairQueues
from abut.query.ccd import plan_of
from abut.traversal.overlap.leaf_packets import groups_kernel, packet_count_of
from abut.traversal.overlap.leaf_pairs import list_leaves_kernel


@pytest.mark.parametrize("swapped", [False, True])
def test_leaves_of_moving_meshes(swapped):
    """Each leaf by itself finds what groups of leaves find."""
    moves = [abut.Motion(abut.Mesh(*s, "cpu"), s.vertices + 0.1) for s in cases.pair("tori", 500)]
    plan = plan_of(*moves)
    trees = [plan._tree(side, "edge", 1.0) for side in range(2)]
    views = [tree.view() for tree in (trees[::-1] if swapped else trees)]
    found = []
    ways = (
        (groups_kernel, packet_count_of(trees[0].face_count), [tree.view() for tree in trees], []),
        (list_leaves_kernel, trees[int(swapped)].face_count, views, [swapped]),
    )
    for kernel, count, args, last in ways:
        queues = PairQueues(wp.get_device("cpu"), candidates=1 << 18)
        inputs = [*args, plan.layout.bits, *last, queues["candidates"]]
        launch(kernel, count, inputs, queues.device)
        total = queues.read()["candidates"]
        found.append(np.sort(queues["candidates"].keys.numpy()[:total]))
    assert len(found[0]) > 1000
    np.testing.assert_array_equal(*found)
