"""The same bytes on every run, with any number of threads, and from any Python thread."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from shapes import random_poses, soup, strips


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def hits_digest(hits):
    return digest(*hits.numpy().values(), hits.segments.numpy())


def tree_of(device):
    tree = bvh_of(abut.Mesh(*cases.icosphere(20000), device))
    return digest(tree.nodes.numpy())


def careful_tree(device):
    tree = bvh_of(abut.Mesh(*cases.icosphere(20000), device), effort=10**6)
    assert tree.improved
    return digest(tree.nodes.numpy())


def refitted_tree(device):
    ball = cases.icosphere(20000)
    mesh = abut.Mesh(*ball, device)
    bvh_of(mesh)
    mesh.deform(ball.vertices * [1, 1.2, 0.9])
    return digest(bvh_of(mesh).nodes.numpy())


def pairs_of(name, faces=20000, **options):
    def query(device):
        a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, faces))
        return hits_digest(abut.collide(a, b, **options))

    return query


def self_pairs(device):
    return hits_digest(abut.self_collide(abut.Mesh(*cases.single("thick_knot", 20000), device)))


def nearest_of(name, faces=20000, **options):
    def query(device):
        a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, faces))
        return digest(*abut.distance(a, b, **options).numpy().values())

    return query


def near_of(name, distance, **options):
    def query(device):
        a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 3000))
        return digest(*abut.within(a, b, distance, **options).numpy().values())

    return query


def self_near(device):
    cloth = abut.Mesh(*cases.single("folded_cloth", 3000), device)
    return digest(*abut.within(cloth, None, 0.01).numpy().values())


def swept_volumes(device):
    return digest(bvh_of(abut.Mesh(*cases.icosphere(20000), device), abut.Bound.RSS).rss.numpy())


def flat_pairs(device):
    """All undecided by the filter."""
    a, b = abut.Mesh(*strips(100), device), abut.Mesh(*strips(100, along=1), device)
    return hits_digest(abut.collide(a, b)) + hits_digest(abut.collide(a, b, first=True))


def closest_points(signed, shape=None, count=20000):
    def query(device):
        mesh = abut.Mesh(*(shape or cases.gem(5000)), device)
        points = np.random.default_rng(0).uniform(-1.2, 1.2, size=(count, 3))
        return digest(*abut.closest_point(mesh, points, signed=signed).numpy().values())

    return query


POSES = random_poses(50, 1.5)
QUERIES = {
    "tree": tree_of,
    "refit": refitted_tree,
    "pairs": pairs_of("knot"),
    "twins": pairs_of("twins", 1000),
    "first": pairs_of("knot", first=True),
    "batch": pairs_of("tori", pose_b=POSES),
    "batch first": pairs_of("tori", pose_b=POSES, first=True),
    "self": self_pairs,
    "flat": flat_pairs,
    "closest": closest_points("pseudonormal"),
    "closest, open": closest_points(True, cases.folded_cloth(40, 30)),
    "closest, soup": closest_points(True, soup(cases.gem(500)), 2000),
    "nearest": nearest_of("nested"),
    "nearest of a batch": nearest_of("tori", pose_b=POSES, bound="rss"),
    "near": near_of("tori", 0.05),
    "near in a batch": near_of("tori", 0.02, pose_b=POSES[:10]),
    "near itself": self_near,
    "swept": swept_volumes,
    **{f"bound {b}": pairs_of("needles", bound=b, pose_a=POSES[0]) for b in abut.Bound},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_any_number_of_threads(query, threads, device):
    found = set()
    for count in (1, 2, 5):
        threads(count)
        found |= {query(device), query(device)}
    assert len(found) == 1


def queries_on_shared_meshes(device):
    """Meshes and plans kept between calls; the answers of a fresh set are the truth."""
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 1000))
    knot = abut.Mesh(*cases.single("thick_knot", 1000), device)

    def ask(i):
        if i % 3 == 0:
            return digest(abut.self_collide(knot).pairs.numpy())
        return hits_digest(abut.collide(a, b, pose_b=POSES[i], first=i % 3 == 1))

    return ask


def in_new_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_every_python_thread_gets_the_same(device):
    truth = queries_on_shared_meshes(device)
    ask = queries_on_shared_meshes(device)
    for i in range(3):
        want = truth(i)
        assert [in_new_thread(lambda i=i: ask(i)) for _ in range(3)] == [want] * 3
        assert ask(i) == want


def test_many_python_threads_at_once(device):
    truth = queries_on_shared_meshes(device)
    want = [truth(i) for i in range(50)]
    ask = queries_on_shared_meshes(device)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(50))) == want


def test_earlier_results_are_not_touched_by_later_queries(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 500))
    results = [abut.collide(a, b, pose_b=pose) for pose in POSES[:5]]
    alone = [hits_digest(abut.collide(a, b, pose_b=pose)) for pose in POSES[:5]]
    assert [hits_digest(hits) for hits in results] == alone
    assert len(set(alone)) > 1


@pytest.mark.parametrize("name", cases.PAIRS)
def test_cpu_and_cuda_give_the_same_rows(name, device):
    if device == "cpu":
        pytest.skip("needs a CUDA device beside the CPU")
    here, there = (
        [abut.Mesh(*shape, where) for shape in cases.pair(name, 5000)] for where in ("cpu", device)
    )
    for options in ({}, {"first": True}, {"pose_b": POSES}, {"pose_b": POSES, "first": True}):
        want, got = (abut.collide(*pair, **options).numpy() for pair in (here, there))
        for key in want:
            np.testing.assert_array_equal(got[key], want[key])
    points = np.random.default_rng(0).uniform(-1.5, 1.5, size=(2000, 3))
    for mine, theirs in zip(here, there, strict=True):
        want, got = (abut.closest_point(m, points, signed=True).numpy() for m in (mine, theirs))
        for key in want:
            np.testing.assert_array_equal(got[key], want[key])
        nodes = bvh_of(theirs).nodes.numpy()
        assert digest(bvh_of(mine).nodes.numpy()) == digest(nodes)
