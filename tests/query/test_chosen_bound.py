"""The volumes that ``collide`` chooses by itself: the same rows before and after."""

import numpy as np

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of, obbs_pay
from shapes import random_poses

POSES = random_poses(6, 0.4)


def rows_of(hits):
    return {name: array.tolist() for name, array in hits.numpy().items()}


def test_searches_for_all_pairs_come_to_use_oriented_boxes(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("knot", 2000))
    want = rows_of(abut.collide(a, b, pose_b=POSES, method="brute"))
    assert len(want["pairs"]) > 0
    on_cpu = a.device.is_cpu
    assert not obbs_pay(a, b)
    for _ in range(40):
        assert rows_of(abut.collide(a, b, pose_b=POSES)) == want
    assert obbs_pay(a, b) == on_cpu and (bvh_of(a).obbs is not None) == on_cpu


def test_searches_for_one_pair_stay_with_aligned_boxes(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("knot", 500))
    for mesh in (a, b):
        bvh_of(mesh, effort=10**6)
    before = rows_of(abut.collide(a, b, pose_b=POSES, first=True))
    abut.collide(a, b, pose_b=POSES)
    assert rows_of(abut.collide(a, b, pose_b=POSES, first=True)) == before
    named = abut.collide(a, b, pose_b=POSES, first=True, bound="obb")
    assert rows_of(named) == before


def test_a_bound_that_is_asked_for_is_used(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("knot", 500))
    for mesh in (a, b):
        bvh_of(mesh, effort=10**6)
    abut.collide(a, b, pose_b=POSES, bound="aabb")
    assert bvh_of(a).obbs is None
    every = [abut.collide(a, b, pose_b=POSES, bound=bound).pairs.numpy() for bound in abut.Bound]
    assert all(np.array_equal(every[0], pairs) for pairs in every)
