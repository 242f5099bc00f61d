"""The pair picked from a list is the one that a descent comes upon first, on every device."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.bvh_cache import bvh_of
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import NO_KEY, KeyLayout, PairQueues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.traversal.overlap.descend import frames_alone, frames_kernel_for
from abut.traversal.overlap.first_path import path_kernel, pick_kernel
from shapes import random_poses


def picked(a, b, poses):
    """(pose, face, face) of the pairs with the lowest paths."""
    device, layout = a.device, KeyLayout.of(a.face_count, b.face_count)
    hits = abut.collide(a, b, pose_b=poses)
    rows = np.column_stack([hits.pose.numpy(), hits.pairs.numpy()]).astype(np.int64)
    rows = np.random.default_rng(0).permutation(rows)
    queues = PairQueues(device, certain=len(rows))
    keys = (rows[:, 0] << layout.width) | (rows[:, 1] << layout.bits_b) | rows[:, 2]
    queues["certain"].keys.assign(keys)
    queues["certain"].count.fill_(len(rows))
    trees = [bvh_of(mesh) for mesh in (a, b)]
    views, positions = [tree.view() for tree in trees], [tree.positions for tree in trees]
    sides = make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, poses)
    frames = wp.empty(len(poses), dtype=RelativeFrame, device=device)
    pairs = mesh_pairs(*sides, count=len(poses), trees=views)
    launch(frames_kernel_for(MeshPairs), len(poses), frames_alone(pairs, frames), device)
    paths = wp.empty(len(rows), dtype=wp.int64, device=device)
    lowest, best = (wp.full(len(poses), int(NO_KEY), dtype=wp.int64, device=device) for _ in "ab")
    args = [*views, *positions, frames, layout.bits, queues["certain"], paths, lowest]
    launch(path_kernel, UNKNOWN_COUNT, args, device)
    args = [layout.bits, queues["certain"], paths, lowest, best]
    launch(pick_kernel, UNKNOWN_COUNT, args, device)
    found = best.numpy()
    found = found[found != NO_KEY]
    columns = found >> layout.width, found >> layout.bits_b, found
    masks = -1, (1 << layout.bits_a) - 1, (1 << layout.bits_b) - 1
    return np.column_stack([c & m for c, m in zip(columns, masks, strict=True)])


@pytest.mark.parametrize("effort", [0, 10**6])
@pytest.mark.parametrize("name", ["knot", "tori", "nested"])
def test_the_same_pair_as_a_descent(name, effort, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 3000))
    for mesh in (a, b):
        bvh_of(mesh, effort=effort)
        bvh_of(mesh).search_effort = -(10**9)  # stays as it is
    poses = random_poses(20, 0.4)
    hits = abut.collide(a, b, pose_b=poses, first=True)
    want = np.column_stack([hits.pose.numpy(), hits.pairs.numpy()])
    np.testing.assert_array_equal(picked(a, b, poses), want)
