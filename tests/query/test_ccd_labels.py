"""Ignored labels of vertices: the rows without a filter, less those that the rule leaves out."""

import numpy as np
import pytest
import warp as wp

import abut
from abut.cases import icosphere, torus
from abut.query.ccd import impacts_of
from abut.query.ccd_candidates import CcdStrategy
from abut.query.ccd_plan import CcdExecution


def shaken(shape, device, amount=0.4, seed=0):
    """A mesh whose vertices move at random."""
    mesh = abut.Mesh(*shape, device)
    start = mesh.vertices.numpy()
    noise = np.random.default_rng(seed).normal(size=start.shape)
    return abut.Motion(mesh, start + amount * noise)


def vertices_of(mesh, kind, side, feature):
    """Vertices of a feature of a row."""
    if kind == abut.ImpactKind.EDGE_EDGE:
        return mesh.edges.numpy()[feature]
    is_face = (kind == abut.ImpactKind.VERTEX_FACE) == (side == 1)
    return mesh.faces.numpy()[feature] if is_face else [feature]


def kept_rows(hits, meshes, labels, ignored):
    """Rows of ``hits`` with two vertices whose labels are not ignored."""
    rows = hits.numpy()
    keep = []
    for kind, features in zip(rows["kind"], rows["features"], strict=True):
        sides = [labels[k][vertices_of(meshes[k], kind, k, features[k])].tolist() for k in range(2)]
        keep.append(any(not ignored(x, y) for x in sides[0] for y in sides[1]))
    return {name: values[keep] for name, values in rows.items()}


def check_same(hits, want):
    assert all(np.array_equal(hits.numpy()[name], want[name]) for name in want)


PAIRS = [[0, 0], [1, 2], [3, 0]]


def in_pairs(x, y):
    return [x, y] in PAIRS or [y, x] in PAIRS


RULES = {"same": ("same", lambda x, y: x == y), "pairs": (PAIRS, in_pairs)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_one_mesh(rule, seed, device):
    ignore, ignored = RULES[rule]
    move = shaken(icosphere(320), device, seed=seed)
    labels = np.random.default_rng(seed).integers(0, 4, size=move.mesh.vertex_count)
    labels[:20] = 3
    hits = abut.ccd(move)
    want = kept_rows(hits, (move.mesh, move.mesh), (labels, labels), ignored)
    assert 100 < len(want["time"]) < len(hits)
    for options in ({}, {"method": "brute"}):
        check_same(abut.ccd(move, labels=labels, ignore=ignore, **options), want)
    first = abut.ccd(move, labels=labels, ignore=ignore, first=True)
    assert first.first == want["time"].min()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("strategy", CcdStrategy)
def test_two_meshes(rule, strategy, device):
    ignore, ignored = RULES[rule]
    moves = shaken(icosphere(80), device), shaken(torus(12, 8), device, seed=1)
    rng = np.random.default_rng(5)
    labels = [rng.integers(0, 4, size=move.mesh.vertex_count) for move in moves]
    hits = abut.ccd(*moves)
    want = kept_rows(hits, [move.mesh for move in moves], labels, ignored)
    assert 20 < len(want["time"]) < len(hits) and set(want["kind"].tolist()) == {0, 1, 2}
    execution = CcdExecution(strategy)
    check_same(impacts_of(moves, labels=labels, ignore=ignore, execution=execution), want)


def test_turning_meshes(device):
    """Rotations are cut into pieces, and every piece has the filter."""
    turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    box = abut.Mesh(*icosphere(80), device)
    other = abut.Mesh(np.array([0.3, 0.0, 0.0]) + torus(12, 8).vertices, torus(12, 8).faces, device)
    moves = abut.Motion(box, end_pose=turn), abut.Motion(other, other.vertices)
    labels = [np.arange(move.mesh.vertex_count) % 3 for move in moves]
    hits = abut.ccd(*moves)
    want = kept_rows(hits, (box, other), labels, lambda x, y: x == y)
    assert 20 < len(want["time"]) < len(hits)
    check_same(abut.ccd(*moves, labels=labels, ignore="same"), want)


def test_labels_without_a_rule_collide(device):
    """Labels that no pair names collide with all, negative and large ones too."""
    move = shaken(icosphere(80), device)
    labels = np.full(move.mesh.vertex_count, 10_000_000, dtype=np.int64)
    labels[::2] = -7
    check_same(abut.ccd(move, labels=labels, ignore=[[0, 1]]), abut.ccd(move).numpy())
    check_same(abut.ccd(move, labels=labels, ignore=[]), abut.ccd(move).numpy())
    assert not abut.ccd(move, labels=0 * labels, ignore="same")


def test_labels_on_the_device(device):
    move = shaken(icosphere(80), device)
    labels = np.arange(move.mesh.vertex_count, dtype=np.int32) % 2
    there = wp.array(labels, device=device)
    want = abut.ccd(move, labels=labels, ignore="same").numpy()
    check_same(abut.ccd(move, labels=there, ignore="same"), want)


@pytest.mark.parametrize(
    ("labels", "ignore", "said"),
    [
        (np.zeros(42, int), None, "go together"),
        (None, "same", "go together"),
        (np.zeros(41, int), "same", "42 vertices"),
        (np.zeros(42), "same", "as many integers"),
        (np.zeros(42, int), "equal", "'same'"),
        (np.zeros(42, int), [0, 1], "(n, 2)"),
        (np.zeros(42, int), [[0, 5000]], "4095"),
        (np.full(42, 2**40), "same", "32 bits"),
    ],
)
def test_unfit_labels_are_refused(labels, ignore, said, device):
    move = shaken(icosphere(80), device)
    with pytest.raises(abut.OptionError) as error:
        abut.ccd(move, labels=labels, ignore=ignore)
    assert said in str(error.value)
    with pytest.raises(abut.OptionError):
        abut.ccd(move, move, labels=np.zeros(42, int), ignore="same")


@pytest.mark.parametrize("gap", [0.0, 0.02])
def test_rescaled_steps_stop_short_of_contact(gap, device):
    """At the end of the step all faces are farther apart than the gap."""
    for seed in range(4):
        ball, ring = abut.Mesh(*icosphere(80), device), abut.Mesh(*torus(12, 8), device)
        away = ball.vertices.numpy() + np.array([0.0, 0.0, 3.0])
        ball.deform(away)
        by = np.array([0.1 * seed, 0.2, -4.0])
        moves = abut.Motion(ball, away + by), abut.Motion(ring, ring.vertices)
        hits = abut.ccd(*moves, min_distance=gap)
        for share in (0.5, 0.9, 0.99):
            step = hits.rescaled_step(share)
            assert step == share * hits.first < hits.safe_step
            ball.deform(away + step * by)
            assert abut.distance(ball, ring).value > gap
        assert hits.rescaled_step() == hits.rescaled_step(0.9)
    assert abut.ccd(moves[0]).rescaled_step(0.5) == 1.0
    for share in (0.0, 1.0, -1.0, np.nan, "much"):
        with pytest.raises(abut.OptionError):
            hits.rescaled_step(share)
