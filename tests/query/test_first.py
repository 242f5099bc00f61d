"""abut.collide(first=True): one pair for each pose with contact."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import random_poses, strips

BOUNDS = list(abut.Bound)


def check_first(a, b, bound="aabb", **poses):
    """First pairs are among all pairs, one row for each pose with contact, always the same."""
    every = abut.collide(a, b, method="brute", **poses)
    found = abut.collide(a, b, first=True, bound=bound, **poses)
    np.testing.assert_array_equal(found.numpy()["colliding"], every.numpy()["colliding"])
    rows = [
        {(p, *row) for p, row in zip(pose_column(hits), hits.pairs.numpy().tolist(), strict=True)}
        for hits in (found, every)
    ]
    assert rows[0] <= rows[1]
    assert sorted(pose_column(found)) == sorted(set(pose_column(every)))
    again = abut.collide(a, b, first=True, bound=bound, **poses)
    assert found.pairs.numpy().tobytes() == again.pairs.numpy().tobytes()
    return found


def pose_column(hits):
    return [0] * len(hits) if hits.pose is None else hits.pose.numpy().tolist()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", cases.PAIRS)
def test_scenes(name, bound, device):
    """Also those where all contact is in a plane, so that no pair is settled by the filter."""
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 1000))
    found = check_first(a, b, bound)
    assert len(found) == (name not in ("apart", "nested"))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", ["tori", "needles", "stacked_boxes"])
def test_batch(name, bound, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 200))
    found = check_first(a, b, bound, pose_b=random_poses(40, 2.0))
    assert 3 < len(found) < 40


def test_brute_force_takes_the_lowest(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 200))
    poses = random_poses(10, 1.0)
    every = abut.collide(a, b, pose_b=poses)
    found = abut.collide(a, b, pose_b=poses, first=True, method="brute")
    _, lowest = np.unique(every.pose.numpy(), return_index=True)
    np.testing.assert_array_equal(found.pairs.numpy(), every.pairs.numpy()[lowest])


def test_many_undecided_pairs(device):
    """All in one plane, more than the queues hold at first, in several poses."""
    a, b = abut.Mesh(*strips(80), device), abut.Mesh(*strips(80, along=1), device)
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[1, 2, 3] = 1e-12
    assert check_first(a, b, pose_b=poses).pose.numpy().tolist() == [0, 2, 3]
