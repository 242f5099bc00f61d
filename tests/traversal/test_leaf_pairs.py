"""A walk per leaf, which CUDA takes, lists the pairs that packets of leaves list."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core.launch import launch
from abut.core.pair_queue import PairQueues
from abut.query.ccd import plan_of
from abut.traversal.overlap.leaf_packets import packet_count_of, packet_pairs_kernel
from abut.traversal.overlap.leaf_pairs import leaf_pairs_kernel


@pytest.mark.parametrize("swapped", [False, True])
def test_leaves_of_moving_meshes(swapped):
    """The pairs of edges of two moving tori."""
    moves = [abut.Motion(abut.Mesh(*s, "cpu"), s.vertices + 0.1) for s in cases.pair("tori", 500)]
    plan = plan_of(*moves)
    trees = [plan.candidates.tree(side, "edge") for side in range(2)]
    views = [tree.view() for tree in (trees[::-1] if swapped else trees)]
    found = []
    packets = packet_count_of(trees[0].face_count)
    ways = (
        (packet_pairs_kernel, packets, [tree.view() for tree in trees], []),
        (leaf_pairs_kernel, trees[int(swapped)].face_count, views, [swapped]),
    )
    for kernel, count, args, last in ways:
        queues = PairQueues(wp.get_device("cpu"), candidates=1 << 18)
        inputs = [*args, plan.layout.bits, *last, queues["candidates"]]
        launch(kernel, count, inputs, queues.device)
        total = queues.read()["candidates"]
        found.append(np.sort(queues["candidates"].keys.numpy()[:total]))
    assert len(found[0]) > 1000
    np.testing.assert_array_equal(*found)
