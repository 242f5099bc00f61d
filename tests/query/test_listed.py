"""The stages that only CUDA takes, on the CPU: they find the same, from queues that must grow."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bounds.relative_frame import RelativeFrame
from abut.core.launch import Task, launch
from abut.core.pair_queue import PairQueues
from abut.query import near_plan, nearest_plan
from abut.query.ccd import plan_of
from abut.traversal.overlap.leaf_packets import groups_kernel, packet_count_of
from abut.traversal.overlap.leaf_pairs import list_leaves_kernel
from abut.traversal.two_trees import relative_kernel
from shapes import random_poses

SCENES = ["apart", "nested", "tori", "stacked_boxes"]


def frames_of(plan, trees):
    frames = wp.empty(plan.pose_count, dtype=RelativeFrame, device=plan.device)
    args = [plan.a, plan.b, trees[0], trees[-1], frames]
    return frames, Task(relative_kernel, plan.pose_count, args, plan.device)


def nearest_stages(plan, query, queues):
    trees = [tree.view() for tree in plan.trees]
    frames, task = frames_of(plan, trees)
    yield "frames", task
    yield from plan._listed([query, *trees, frames], query, queues)


def near_stages(plan, search, queues):
    trees = [tree.view() for tree in plan.trees]
    frames, task = frames_of(plan, trees)
    yield "frames", task
    yield from plan._listed(search, queues, trees, frames)


def answers(name):
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair(name, 500))
    poses = random_poses(3, 2.0)
    return [
        abut.distance(a, b).numpy(),
        abut.distance(a, b, pose_a=poses).numpy(),
        abut.distance(a, b, pose_a=poses, upper_bound=0.1).numpy(),
        abut.within(a, b, 0.1).numpy(),
        abut.within(a, b, 0.1, pose_b=poses).numpy(),
        abut.within(a, None, 0.1).numpy(),
    ]


@pytest.mark.parametrize("name", SCENES)
def test_listing_finds_what_walking_finds(name, monkeypatch):
    want = answers(name)
    rooms = dict.fromkeys(("hits", "undecided", "near", "candidates"), 4)
    queues = PairQueues(wp.get_device("cpu"), **rooms)
    for module in (nearest_plan, near_plan):
        monkeypatch.setattr(module, "shared_queues", lambda device, room: queues)
    monkeypatch.setattr(nearest_plan.NearestPlan, "_stages", nearest_stages)
    monkeypatch.setattr(near_plan.NearPlan, "_stages", near_stages)
    for one, other in zip(answers(name), want, strict=True):
        for column, value in other.items():
            np.testing.assert_array_equal(one[column], value)


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
