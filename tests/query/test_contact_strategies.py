"""Every strategy of a contact query finds the same pairs, on either processor.

Queues start with room for four keys, so every strategy also has to grow them.
"""

import numpy as np
import pytest

import abut
from abut import cases
from abut.bounds.kdop import axis_choices
from abut.bvh.bvh_cache import bvh_of, kdops_of
from abut.bvh.node_kdops import KdopShape
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.geometry.common_corners import SHARED_BY_INDEX, SHARED_BY_POSITION, SHARED_NONE
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Bound
from abut.query import contact_stages
from abut.query.contact_plan import ContactPlan
from abut.query.contact_stages import Strategy
from abut.traversal.overlap.leaf_cluster_pairs import REST_QUEUES
from shapes import random_poses

PAIRS = ["apart", "nested", "tori", "stacked_boxes"]
QUEUES = ("hits", "undecided", "candidates", "clusters", "leaves", *REST_QUEUES)


def small_queues(device):
    return PairQueues(device, skipped=1, unfit=1, **dict.fromkeys(QUEUES, 4))


def plan_of(a, b, poses, strategy, bound=Bound.AABB, first=False, width=None):
    layout, count = KeyLayout.of(a.face_count, b.face_count), 1 if poses is None else len(poses)
    sides = make_posed_mesh(a.points, a.faces, poses), make_posed_mesh(b.points, b.faces)
    trees = bvh_of(a, bound), bvh_of(b, bound)
    dops, axes = (), None
    if width is not None:
        shape = KdopShape(width=width)
        dops = kdops_of(a, trees[0], shape), kdops_of(b, trees[1], shape)
        axes = axis_choices(shape.sides, shape.sides)
        if poses is None:
            axes = axes[axes[:, 0] < 0]
    return ContactPlan(
        a.device,
        *sides,
        trees,
        SHARED_NONE,
        layout,
        count,
        first,
        bound,
        dops,
        axes,
        width is not None,
        strategy,
        small_queues(a.device),
    )


def keys_of(plan):
    keys = plan.run()
    return keys if isinstance(keys, np.ndarray) else keys.numpy()


@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("bound", [Bound.AABB, Bound.OBB, Bound.RSS])
@pytest.mark.parametrize("strategy", [Strategy.DESCEND, Strategy.LEAF_WALK, Strategy.BALANCED])
@pytest.mark.parametrize("name", PAIRS)
def test_all_pairs(name, strategy, bound, posed, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 500))
    poses = random_poses(3, 1.0) if posed else None
    want = keys_of(plan_of(a, b, poses, Strategy.BRUTE))
    np.testing.assert_array_equal(keys_of(plan_of(a, b, poses, strategy, bound)), want)


@pytest.mark.parametrize("name", PAIRS)
def test_leaf_walks_of_many_poses(name, device):
    """From 64 rows on, the leaves of the smaller mesh walk the tree of the larger."""
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 300))
    poses = random_poses(70, 1.0)
    want = keys_of(plan_of(a, b, poses, Strategy.DESCEND))
    np.testing.assert_array_equal(keys_of(plan_of(a, b, poses, Strategy.LEAF_WALK)), want)


@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("width", [10, 18, 35])
@pytest.mark.parametrize("strategy", [Strategy.DESCEND, Strategy.LEAF_WALK])
@pytest.mark.parametrize("name", PAIRS)
def test_fixed_point_kdops(name, strategy, width, posed, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 500))
    poses = random_poses(3, 1.0) if posed else None
    want = keys_of(plan_of(a, b, poses, Strategy.BRUTE))
    plan = plan_of(a, b, poses, strategy, Bound.KDOP, width=width)
    np.testing.assert_array_equal(keys_of(plan), want)


@pytest.mark.parametrize("bound", [Bound.AABB, Bound.OBB])
@pytest.mark.parametrize("name", ["knot", *PAIRS])
def test_teams_find_the_first_pair_of_a_descent(name, bound, device):
    """Whatever the number of lanes: one on the CPU, 32 on CUDA."""
    if device == "cpu":
        pytest.skip("the CPU is what CUDA is compared with")
    found = []
    for where in ("cpu", device):
        a, b = (abut.Mesh(*shape, where) for shape in cases.pair(name, 1500))
        poses = random_poses(200, 0.4)
        found.append(keys_of(plan_of(a, b, poses, Strategy.FIRST, bound, first=True)))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("sharing", [SHARED_BY_POSITION, SHARED_BY_INDEX])
@pytest.mark.parametrize(
    "strategy", [Strategy.PACKETS, Strategy.CLUSTERS, Strategy.LEAF_WALK, Strategy.BALANCED]
)
@pytest.mark.parametrize("name", ["thick_knot", "folded_cloth", "needles"])
def test_self_collision(name, strategy, sharing, device):
    shape = cases.single(name, 1500)
    bent = shape.vertices + 0.05 * np.random.default_rng(0).normal(size=shape.vertices.shape)
    mesh = abut.Mesh(shape.vertices, shape.faces, device)
    bvh_of(mesh)
    mesh.deform(bent)
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    side, found = make_posed_mesh(mesh.points, mesh.faces), []
    for how in (Strategy.BRUTE, strategy):
        operands = (mesh.device, side, side, (bvh_of(mesh),), sharing, layout, 1)
        plan = ContactPlan(*operands, strategy=how, queues=small_queues(mesh.device))
        found.append(keys_of(plan))
    assert len(found[0]) > 0
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("full", [4, 40])
@pytest.mark.parametrize("tasks", [1, 3, 40])
def test_balanced_tasks_with_small_queues(tasks, full, device, monkeypatch):
    """Tasks end because their queues are empty or full, or because half of them have."""
    shape = cases.single("folded_cloth", 1500)
    mesh = abut.Mesh(*shape, device)
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    side = make_posed_mesh(mesh.points, mesh.faces)
    searches, make = [], contact_stages.BalancedSearch

    def small(*args):
        searches.append(make(*args, tasks=tasks, full=full))
        return searches[-1]

    monkeypatch.setattr(contact_stages, "BalancedSearch", small)
    found = []
    for how in (Strategy.BRUTE, Strategy.BALANCED):
        operands = (mesh.device, side, side, (bvh_of(mesh),), SHARED_BY_INDEX, layout, 1)
        found.append(keys_of(ContactPlan(*operands, strategy=how)))
    np.testing.assert_array_equal(*found)
    assert searches[-1].rounds > (20 if full == 4 else 0)


@pytest.mark.parametrize("faces", [2500, 9000])
def test_slices_that_end_within_a_block_of_leaves(faces, device):
    """Launches on the CPU are cut into slices at any leaf; walks of whole blocks lost some."""
    mesh = abut.Mesh(*cases.single("folded_cloth", faces), device)
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    side, found = make_posed_mesh(mesh.points, mesh.faces), []
    for how in (None, Strategy.LEAF_WALK):
        operands = (mesh.device, side, side, (bvh_of(mesh),), SHARED_BY_INDEX, layout, 1)
        plan = ContactPlan(*operands, strategy=how, queues=small_queues(mesh.device))
        found.append(keys_of(plan))
    assert len(found[0]) > 100
    np.testing.assert_array_equal(*found)
