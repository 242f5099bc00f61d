"""Leaf clusters list the pairs of leaves whose boxes overlap, on every device."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bvh.lbvh import build_lbvh
from abut.bvh.leaf_clusters import CLUSTER_SIZE, leaf_clusters_of
from abut.bvh.ploc import build_ploc
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import PairQueues
from abut.traversal.overlap.leaf_cluster_pairs import (
    list_clusters_kernel,
    open_clusters_kernel,
    resume_walks_kernel,
)
from trees import leaf_boxes, links_of

BALL = cases.icosphere(1280)
FAR = np.array([[-9, -9, -9], [9, 9, -8], [8, 9, 9], [9, -9, 9], [-9, 8, 9], [9, 9, -9.0]])
BITS = wp.vec2i(20, 20)
ROOM = 1 << 17
SHAPES = {
    "ball": BALL,
    "two large faces": cases.Shape(
        np.concatenate([BALL.vertices, FAR]),
        np.concatenate([BALL.faces, len(BALL.vertices) + np.arange(6).reshape(2, 3)]),
    ),
    "knot": cases.single("thick_knot", 3000),
    "needles": cases.needles(60),
    "one face": cases.Shape(np.eye(3), np.array([[0, 1, 2]])),
    "five faces": cases.Shape(np.eye(3), np.tile([[0, 1, 2]], (5, 1))),
    "equal faces": cases.Shape(np.eye(3), np.tile([[0, 1, 2]], (300, 1))),
}


@pytest.fixture(params=SHAPES)
def mesh(request, device):
    return abut.Mesh(*SHAPES[request.param], device)


@pytest.fixture(params=[build_lbvh, build_ploc])
def tree(request, mesh):
    return request.param(mesh.points, mesh.faces, mesh.bounds)


def overlapping(tree):
    boxes = leaf_boxes(tree)
    low, high = boxes[:, 0], boxes[:, 1]
    both = (low[:, None] <= high[None]).all(axis=2) & (low[None] <= high[:, None]).all(axis=2)
    return np.argwhere(np.triu(both, 1))


def listed(tree, most, largest):
    """Pairs of faces, when other threads resume walks after ``most`` visits in parts."""
    device = tree.nodes.device
    queues = PairQueues(device, clusters=ROOM, rest=ROOM, late=ROOM, candidates=ROOM)
    view, clusters, found = tree.view(), leaf_clusters_of(tree), queues["clusters"]
    rest, late = queues["rest"], queues["late"]
    args = [view, clusters, most, largest, found, rest]
    launch(list_clusters_kernel, clusters.shape[0], args, device)
    args = [view, clusters, most, largest, rest, found, late]
    launch(resume_walks_kernel, UNKNOWN_COUNT, args, device)
    args = [view, clusters, UNKNOWN_COUNT, largest, late, found, rest]
    launch(resume_walks_kernel, UNKNOWN_COUNT, args, device)
    for name in ("rest", "late"):
        parts = queues[name].keys.numpy()[: queues.read()[name]] & 0x7FFFFFFF
        assert max((leaf_count(tree, slot) for slot in parts), default=0) <= largest
    count = CLUSTER_SIZE * queues.read()["clusters"]
    args = [view, BITS, False, found, queues["candidates"]]
    launch(open_clusters_kernel, count, args, device, grain=7)
    count = queues.read()["candidates"]
    keys = np.sort(queues["candidates"].keys.numpy()[:count])
    return np.stack([keys >> 20, keys & ((1 << 20) - 1)], axis=1)


def leaf_count(tree, slot):
    """Leaves below a slot."""
    links, stack, size = links_of(tree), [slot], 0
    while stack:
        link = links[stack.pop()]
        size += link < 0
        stack += [] if link < 0 else [2 * link, 2 * link + 1]
    return size


@pytest.mark.parametrize("largest", [UNKNOWN_COUNT, 50, 4])
@pytest.mark.parametrize("most", [UNKNOWN_COUNT, 7, 1])
def test_every_pair_of_overlapping_leaves_once(most, largest, tree):
    np.testing.assert_array_equal(listed(tree, most, largest), overlapping(tree))


def test_clusters_cover_the_leaves(tree):
    sizes = [leaf_count(tree, slot) for slot in leaf_clusters_of(tree).numpy()]
    assert max(sizes) <= CLUSTER_SIZE and sum(sizes) == tree.face_count
