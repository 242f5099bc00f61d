"""Every strategy of a distance query finds the same faces, on either processor.

Queues start with room for four keys, so every strategy also has to grow them.
"""

import numpy as np
import pytest

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.cases.shape import grid_faces
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.geometry.common_corners import SHARED_BY_POSITION, SHARED_NONE
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.distance import mesh_extent
from abut.query.distance_plan import NearestPlan, NearPlan
from shapes import random_poses

PAIRS = ["apart", "nested", "tori", "stacked_boxes"]
QUEUES = ("hits", "undecided", "near", "candidates", "skipped")
WITH_TREES = [Strategy.DESCEND, Strategy.LEAF_WALK]


def operands(a, b, poses, strategy, bound=Bound.AABB):
    """Device, posed meshes and trees, as both plans take them."""
    sides = make_posed_mesh(a.points, a.faces, poses), make_posed_mesh(b.points, b.faces)
    meshes = (a,) if a is b else (a, b)
    trees = () if strategy is Strategy.BRUTE else tuple(bvh_of(mesh, bound) for mesh in meshes)
    return a.device, *sides, trees


def about(a, b, poses):
    layout = KeyLayout.of(a.face_count, b.face_count)
    return layout, 1 if poses is None else len(poses)


def small_queues(device):
    return PairQueues(device, **dict.fromkeys(QUEUES, 4))


def nearest(a, b, poses, strategy, bound=Bound.AABB, upper_bound=np.inf, far=False, rounds=None):
    """(distances, keys of faces that are apart)."""
    *sides, trees = operands(a, b, poses, strategy, bound)
    plan = NearestPlan(
        *sides,
        tuple(tree.view(bound) for tree in trees),
        *about(a, b, poses),
        bound=bound,
        extents=(mesh_extent(a), mesh_extent(b)) if far else (),
        rounds=rounds,
        queues=small_queues(a.device),
    )
    value, keys = plan.run(upper_bound)
    return value, keys[(value > 0) & (value < np.inf)]


def near(a, b, poses, strategy, distance):
    sharing = SHARED_BY_POSITION if a is b else SHARED_NONE
    plan = NearPlan(
        *operands(a, b, poses, strategy),
        sharing,
        *about(a, b, poses),
        distance,
        strategy,
        small_queues(a.device),
    )
    keys = plan.run()
    return keys if isinstance(keys, np.ndarray) else keys.numpy()


def flat_plate(side):
    """A square of two triangles a cell."""
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    vertices = np.stack([x, y, 0 * x], axis=2).reshape(-1, 3) / side
    return vertices, grid_faces(side, side, wrap=(False, False))


def same(found, want):
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("bound", [Bound.AABB, Bound.OBB, Bound.RSS])
@pytest.mark.parametrize("rounds", [None, (), (1,), (2, 3, 1)])
@pytest.mark.parametrize("name", PAIRS)
def test_nearest(name, rounds, bound, posed, device):
    if rounds is not None and device == "cpu":
        pytest.skip("on the CPU there is one pass")
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 500))
    poses = random_poses(3, 2.0) if posed else None
    want = nearest(a, b, poses, Strategy.BRUTE)
    descend = Strategy.DESCEND
    same(nearest(a, b, poses, descend, bound, rounds=rounds), want)
    same(nearest(a, b, poses, descend, bound, far=True, rounds=rounds), want)


@pytest.mark.parametrize("rounds", [None, (1,), (1, 1, 1)])
def test_nearest_of_many_poses(rounds, device):
    """More chunks than there is room for, where a pass ends early."""
    if rounds is not None and device == "cpu":
        pytest.skip("on the CPU there is one pass")
    a, b = abut.Mesh(*cases.gem(40), device), abut.Mesh(*cases.gem(64), device)
    poses = random_poses(20_000 if rounds else 200, 2.0)
    want = nearest(a, b, poses, Strategy.BRUTE)
    same(nearest(a, b, poses, Strategy.DESCEND, Bound.RSS, rounds=rounds), want)


@pytest.mark.parametrize("name", PAIRS)
def test_nearest_under_a_bound(name, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 500))
    poses = random_poses(12, 2.0)
    want = nearest(a, b, poses, Strategy.BRUTE, upper_bound=0.1)
    same(nearest(a, b, poses, Strategy.DESCEND, upper_bound=0.1), want)


def test_rows_near_and_far(device):
    """Rows of every field, also with flat sides that face each other."""
    plate, other = (abut.Mesh(*flat_plate(8), device) for _ in range(2))
    poses = random_poses(12, 1.0)
    poses[:, :3, 3] *= np.repeat([0.5, 1e3, 1e6, 1e12], 3)[:, None]
    for pair in ((plate, abut.Mesh(*cases.torus(20, 12), device)), (plate, other)):
        poses[::3, :3, :3] = np.eye(3)
        poses[::3, :2, 3] = 0.0
        want = nearest(*pair, poses, Strategy.BRUTE, far=True)
        same(nearest(*pair, poses, Strategy.DESCEND, far=True), want)


@pytest.mark.parametrize("distance", [0.0, 0.1])
@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("strategy", WITH_TREES)
@pytest.mark.parametrize("name", PAIRS)
def test_within(name, strategy, posed, distance, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 500))
    poses = random_poses(3, 2.0) if posed else None
    want = near(a, b, poses, Strategy.BRUTE, distance)
    np.testing.assert_array_equal(near(a, b, poses, strategy, distance), want)


@pytest.mark.parametrize("strategy", WITH_TREES)
@pytest.mark.parametrize("name", ["apart", "nested", "tori"])
def test_within_one_mesh(name, strategy, device):
    a = abut.Mesh(*cases.pair(name, 500)[0], device)
    want = near(a, a, None, Strategy.BRUTE, 0.5)
    assert len(want) > 0
    np.testing.assert_array_equal(near(a, a, None, strategy, 0.5), want)
