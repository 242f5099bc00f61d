"""abut.ccd: complete, conservative, the same rows by every method."""

import os
import subprocess
import sys

import numpy as np
import pytest
import trimesh
import warp as wp

import abut
from abut.cases import box, icosphere, pair, plane, torus
from abut.query.ccd import impacts_of, plan_of
from abut.query.ccd_candidates import CcdStrategy
from abut.query.ccd_plan import CcdExecution
from abut.query.ccd_queues import CcdQueues
from abut.results import ImpactKind
from shapes import moved, random_poses, shift, soup


def shaken(shape, device, amount=0.2, seed=0):
    """A shape in motion: each vertex its own way."""
    rng = np.random.default_rng(seed)
    mesh = abut.Mesh(shape.vertices, shape.faces, device=device)
    return abut.Motion(mesh, shape.vertices + amount * rng.normal(size=shape.vertices.shape))


def rows_of(hits):
    """Rows as sets; times by row."""
    rows = hits.numpy()
    keys = zip(rows["kind"].tolist(), *rows["features"].T.tolist(), strict=True)
    return dict(zip(keys, rows["time"].tolist(), strict=True))


def test_self_rows_are_those_of_brute_force(device):
    move = shaken(icosphere(320), device)
    hits, brute = abut.ccd(move), abut.ccd(move, method="brute")
    assert len(hits) > 100
    assert rows_of(hits) == rows_of(brute)
    assert {0, 1} == set(hits.numpy()["kind"])


def test_pair_rows_are_those_of_brute_force(device):
    a, b = shaken(icosphere(320), device), shaken(torus(16, 8), device, seed=1)
    hits, brute = (
        abut.ccd(a, b, min_distance=0.01),
        abut.ccd(a, b, method="brute", min_distance=0.01),
    )
    assert rows_of(hits) == rows_of(brute)
    assert {0, 1, 2} == set(hits.numpy()["kind"])


def test_two_motions_of_one_mesh(device):
    """Each has trees of its own, in every piece of a turn."""
    mesh, copy = (abut.Mesh(*icosphere(80), device=device) for _ in range(2))
    starts, ends = random_poses(2, 2.0, seed=3), random_poses(2, 0.5, seed=5)
    one = abut.Motion(mesh, start_pose=starts[0], end_pose=ends[0])
    found = [
        abut.ccd(one, abut.Motion(other, start_pose=starts[1], end_pose=ends[1]), tolerance=1e-4)
        for other in (mesh, copy)
    ]
    assert len(found[0]) > 20
    assert np.array_equal(found[0].features.numpy(), found[1].features.numpy())
    assert np.array_equal(found[0].time.numpy(), found[1].time.numpy())


def test_swapped_operands_give_swapped_rows(device):
    a, b = shaken(icosphere(80), device), shaken(torus(8, 6), device, seed=1)
    swapped = {(2 - kind, y, x): time for (kind, x, y), time in rows_of(abut.ccd(b, a)).items()}
    found = rows_of(abut.ccd(a, b))
    assert found.keys() == swapped.keys()
    assert all(abs(found[row] - swapped[row]) < 1e-6 for row in found)


def test_rows_agree_with_primitives(device):
    move = shaken(icosphere(80), device)
    piece = next(iter(move.pieces(1)))
    start, end = piece.points_t0.numpy(), piece.points_t1.numpy()
    faces, edges = move.mesh.faces.numpy(), move.mesh.edges.numpy()
    truth = {}
    for v in range(len(start)):
        others = [f for f in range(len(faces)) if v not in faces[f]]
        ids = np.array([[v, *faces[f]] for f in others])
        times = abut.primitives.ccd_vertex_face(start[ids], end[ids]).numpy()
        truth |= {(0, v, f): t for f, t in zip(others, times, strict=True) if np.isfinite(t)}
    i, j = np.triu_indices(len(edges), 1)
    apart = ~(edges[i][:, :, None] == edges[j][:, None, :]).any(axis=(1, 2))
    ids = np.concatenate([edges[i[apart]], edges[j[apart]]], axis=1)
    times = abut.primitives.ccd_edge_edge(start[ids], end[ids]).numpy()
    rows = zip(i[apart].tolist(), j[apart].tolist(), times, strict=True)
    truth |= {(1, e, f): t for e, f, t in rows if np.isfinite(t)}
    assert rows_of(abut.ccd(move)) == truth


def test_first_is_the_earliest_row(device):
    for seed in range(4):
        move = shaken(icosphere(320), device, amount=0.1 + 0.1 * seed, seed=seed)
        hits, first = abut.ccd(move), abut.ccd(move, first=True)
        assert len(hits) > 0 and len(first) == 1
        assert first.first == hits.first == hits.safe_step == hits.time.numpy().min()
        row = int(np.argmin(hits.time.numpy()))  # the first of equal ones
        assert first.numpy()["features"].tolist() == [hits.numpy()["features"][row].tolist()]


SAMPLED = CcdExecution(least_sampled=0)


def test_first_by_a_sample(device):
    for seed in range(3):
        move = shaken(icosphere(1280), device, amount=0.04 * (seed + 1), seed=seed)
        hits, first = abut.ccd(move), impacts_of((move,), first=True, execution=SAMPLED)
        row = int(np.argmin(hits.time.numpy()))
        assert first.first == hits.first < 1.0
        assert first.numpy()["features"].tolist() == [hits.numpy()["features"][row].tolist()]
    move = shaken(icosphere(1280), device, amount=0.001)
    apart = impacts_of((move,), first=True, execution=SAMPLED)
    assert len(apart) == 0 and apart.safe_step == 1.0


@pytest.mark.parametrize("gap, tolerance", [(0.0, 1e-6), (0.05, 1e-6), (0.05, 0.1)])
def test_first_of_a_flat_contact(gap, tolerance, device):
    """Boxes that were fitted to the time found in a sample lost the contact at that very time."""
    below, above = plane(24, 24, size=4.0), box().moved((0, 0, 3))
    floor, block = (abut.Mesh(*shape, device=device) for shape in (below, above))
    for aside in (0.0, 0.03):
        falls = abut.Motion(block, above.vertices - [aside, 0.0, 4.0])
        options = {"min_distance": gap, "tolerance": tolerance}
        moves = falls, abut.Motion(floor, floor.vertices)
        hits = abut.ccd(*moves, **options)
        first = impacts_of(moves, **options, first=True, execution=SAMPLED)
        assert len(hits) > 10 and first.first == hits.first < 1.0


def test_first_against_a_large_mesh(device):
    """Large enough for a sample to be asked first."""
    below, above = plane(160, 160, size=4.0), box().moved((0, 0, 3))
    floor, block = (abut.Mesh(*shape, device=device) for shape in (below, above))
    falls = abut.Motion(block, above.vertices - [0.0, 0.0, 4.0])
    hits = abut.ccd(falls, abut.Motion(floor, floor.vertices), first=True)
    true = above.vertices[:, 2].min() / 4.0
    assert true - 1e-6 <= hits.first <= true


def test_nothing_moves_nothing_meets(device):
    shape = icosphere(320)
    move = abut.Motion(abut.Mesh(shape.vertices, shape.faces, device=device), shape.vertices)
    for hits in (abut.ccd(move), abut.ccd(move, first=True)):
        assert not hits and len(hits) == 0
        assert hits.first == np.inf and hits.safe_step == 1.0
        assert hits.features.shape == (0, 2)


def test_neighbours_by_position(device):
    shape = soup(icosphere(80))
    end = shape.vertices * 1.5
    move = abut.Motion(abut.Mesh(shape.vertices, shape.faces, device=device), end)
    assert len(abut.ccd(move)) == 0
    assert abut.ccd(move, weld=False).first == 0.0


def test_a_box_falls_on_a_box(device):
    a, b = abut.Mesh(*box(), device=device), abut.Mesh(*box(), device=device)
    up, down = shift(0, 0, 4), shift(0, 0, -4)
    high = b.vertices.numpy()[:, 2].max() - b.vertices.numpy()[:, 2].min()
    still, falls = abut.Motion(a, a.vertices), abut.Motion(b, start_pose=up, end_pose=down)
    hits = abut.ccd(still, falls)
    assert abs(hits.first - (4 - high) / 8) <= 1e-6 and hits.first <= (4 - high) / 8
    near = abut.ccd(still, falls, min_distance=0.5)
    assert abs(near.first - (4 - high - 0.5) / 8) <= 1e-6
    assert hits.numpy()["converged"].all()


def turned(angle, axis=2):
    pose = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    pose[i, i] = pose[j, j] = np.cos(angle)
    pose[j, i], pose[i, j] = np.sin(angle), -np.sin(angle)
    return pose


@pytest.mark.parametrize("gap", [0.0, 0.13])
def test_a_mesh_that_turns_touches_itself_where_it_did(gap, device):
    """However far it turns, and although straight pieces of its way cut corners."""
    mesh = abut.Mesh(*pair("knot", 300)[0], device=device)
    still = abut.ccd(abut.Motion(mesh, end=mesh.vertices), min_distance=gap)
    for angle in (0.1, 3.0):
        end = shift(1.0, -2.0, 0.5) @ turned(angle)
        for method in ("bvh", "brute"):
            hits = abut.ccd(abut.Motion(mesh, end_pose=end), min_distance=gap, method=method)
            assert rows_of(hits) == dict.fromkeys(rows_of(still), 0.0)
    assert bool(still) == (gap > 0)


def test_a_turning_bar_meets_a_post(device):
    bar = abut.Mesh(box().vertices * [3.0, 0.01, 0.5], box().faces, device=device)
    post = abut.Mesh(box().vertices * 0.05 + [0.0, 1.0, 0.0], box().faces, device=device)
    half = float(np.abs(box().vertices).max())
    turning = abut.Motion(bar, end_pose=turned(np.pi * 0.9))
    standing = abut.Motion(post, post.vertices)
    hits = abut.ccd(turning, standing)
    # the post's nearer lower corner, seen from the axis, less the bar's half width
    corner = np.array([0.05 * half, 1.0 - 0.05 * half])
    angle = np.arctan2(corner[1], corner[0]) - np.arcsin(0.01 * half / np.linalg.norm(corner))
    truth = angle / (0.9 * np.pi)
    assert truth - 1e-6 <= hits.first <= truth
    assert hits.numpy()["converged"].all()
    first = abut.ccd(turning, standing, first=True)
    assert first.first == hits.first and len(first) == 1
    assert rows_of(abut.ccd(turning, standing, method="brute")) == rows_of(hits)
    assert turning.piece_count > 1
    missed = abut.ccd(abut.Motion(bar, end_pose=turned(0.45 * np.pi)), standing)
    assert not missed


def test_rigid_pieces_hold_the_true_path(device):
    shape = icosphere(80)
    mesh = abut.Mesh(shape.vertices + np.array([3.0, 0, 0]), shape.faces, device=device)
    end = shift(1.0, -2.0, 0.5) @ turned(2.0, axis=0) @ turned(1.0)
    move = abut.Motion(mesh, start_pose=turned(0.3), end_pose=end)
    count = 7
    for k, piece in enumerate(move.pieces(count)):
        start, stop = piece.points_t0.numpy(), piece.points_t1.numpy()
        for s in (0.1, 0.5, 0.8):
            pose = pose_at(turned(0.3), end, (k + s) / count)
            true = moved(mesh.vertices.numpy(), pose)
            off = np.linalg.norm((1 - s) * start + s * stop - true, axis=1).max()
            assert off <= piece.deviation
            assert (true >= piece.bounds[0] - piece.deviation).all()
    assert piece.deviation < 0.1


def test_rigid_motions_against_discrete_poses(device):
    ball, ring = (abut.Mesh(*shape, device=device) for shape in (icosphere(80), torus(16, 8)))
    starts, ends = random_poses(16, reach=4.0, seed=1), random_poses(16, reach=4.0, seed=2)
    met = 0
    for start, end in zip(starts, ends, strict=True):
        hits = abut.ccd(
            abut.Motion(ball, ball.vertices), abut.Motion(ring, start_pose=start, end_pose=end)
        )
        if abut.collide(ball, ring, pose_b=start):
            continue  # faces cut each other from the start, which no pair of features tells
        times = np.linspace(0.0, hits.safe_step, 400, endpoint=False)
        poses = np.array([pose_at(start, end, t) for t in times])
        assert not abut.collide(ball, ring, pose_b=poses).colliding.numpy().any()
        if 0.0 < hits.first < 1.0:
            met += 1
            soon = pose_at(start, end, min(hits.first + 1e-4, 1.0))
            assert abut.collide(ball, ring, pose_b=soon)
    assert met >= 3


def pose_at(start, end, t):
    """Constant velocities, by the eigenvectors of the turn: independent of the library."""
    turn = end[:3, :3] @ start[:3, :3].T
    values, vectors = np.linalg.eig(turn)
    pose = np.eye(4)
    power = vectors @ np.diag(np.exp(t * np.log(values.astype(complex)))) @ np.linalg.inv(vectors)
    pose[:3, :3] = power.real @ start[:3, :3]
    pose[:3, 3] = (1 - t) * start[:3, 3] + t * end[:3, 3]
    return pose


def test_cubic_solver_finds_plain_impacts(device):
    move = shaken(icosphere(320), device)
    sure, fast = rows_of(abut.ccd(move)), rows_of(abut.ccd(move, solver="cubic"))
    assert len(fast.keys() ^ sure.keys()) <= 0.01 * len(sure)
    both = fast.keys() & sure.keys()
    assert np.median([abs(fast[row] - sure[row]) for row in both]) < 1e-9


@pytest.mark.parametrize("strategy", [CcdStrategy.PACKETS, CcdStrategy.LEAF_WALK])
def test_small_queues_give_the_same_rows(strategy, device):
    move = shaken(icosphere(320), device)
    whole = abut.ccd(move).numpy()
    queues = CcdQueues(wp.get_device(device), 16, 1000)
    parts = impacts_of((move,), execution=CcdExecution(strategy, queues=queues)).numpy()
    assert all((whole[name] == parts[name]).all() for name in whole)
    assert queues["candidates"].keys.shape[0] < 5000


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("strategy", [CcdStrategy.PACKETS, CcdStrategy.LEAF_WALK])
def test_every_strategy_finds_the_rows_of_brute_force(strategy, first, device):
    one, two = (shaken(shape, device) for shape in (icosphere(320), torus(16, 8)))
    for moves in ((one,), (one, two), (two, one)):
        ways = (strategy, CcdStrategy.BRUTE)
        found = [impacts_of(moves, first=first, execution=CcdExecution(way)) for way in ways]
        assert len(found[0]) > 0 and rows_of(found[0]) == rows_of(found[1])


def test_rows_do_not_depend_on_threads(tmp_path):
    code = (
        "import sys, numpy as np, abut; from abut.cases import icosphere;"
        "s = icosphere(1280); v = np.array(s.vertices, dtype=np.float64);"
        "m = abut.Mesh(v, s.faces, device='cpu');"
        "e = v + 0.1 * np.random.default_rng(0).normal(size=v.shape);"
        "np.savez(sys.argv[1], **abut.ccd(abut.Motion(m, e)).numpy())"
    )
    out = tmp_path / "rows.npz"
    env = os.environ | {"ABUT_THREADS": "3"}
    subprocess.run([sys.executable, "-c", code, str(out)], check=True, env=env, capture_output=True)
    shape = icosphere(1280)
    vertices = np.array(shape.vertices, dtype=np.float64)
    end = vertices + 0.1 * np.random.default_rng(0).normal(size=vertices.shape)
    here = abut.ccd(abut.Motion(abut.Mesh(vertices, shape.faces, device="cpu"), end)).numpy()
    there = np.load(out)
    assert len(here["time"]) > 100
    assert all(here[name].tobytes() == there[name].tobytes() for name in here)


def test_float32_and_float64_agree(device):
    shape = icosphere(320)
    start = shape.vertices.astype(np.float32)
    rng = np.random.default_rng(3)
    end = (start + 0.2 * rng.normal(size=start.shape)).astype(np.float32)
    single = abut.Motion(abut.Mesh(start, shape.faces, device=device), end)
    double = abut.Motion(
        abut.Mesh(start.astype(np.float64), shape.faces, device=device), end.astype(np.float64)
    )
    assert rows_of(abut.ccd(single)) == rows_of(abut.ccd(double))


@pytest.mark.parametrize("power", [-1000, -60, 60, 500, 1000])
def test_any_scale_finds_all(power, device):
    """Coordinates that float32 boxes or float64 products cannot hold lose nothing."""
    shape = icosphere(80)
    rng = np.random.default_rng(3)
    end = shape.vertices + 0.3 * rng.normal(size=shape.vertices.shape)
    scale = 2.0**power
    for gap in (0.0, 0.01):
        plain = abut.Motion(abut.Mesh(*shape, device=device), end)
        scaled = abut.Motion(abut.Mesh(shape.vertices * scale, shape.faces, device), end * scale)
        small = rows_of(abut.ccd(plain, min_distance=gap))
        large = rows_of(abut.ccd(scaled, min_distance=gap * scale))
        assert len(small) > 10 and small.keys() <= large.keys()
        assert all(large[row] <= small[row] + 1e-6 for row in small)
        if abs(power) < 100:
            assert small.keys() == large.keys()


def test_a_motion_outlives_a_deform(device):
    shape = icosphere(320)
    start = shape.vertices.astype(np.float32)
    end = (start * [1.0, 1.0, -1.0]).astype(np.float32)
    mesh = abut.Mesh(start, shape.faces, device=device)
    move = abut.Motion(mesh, end)
    before = rows_of(abut.ccd(move))
    for k in range(4):
        mesh.deform((start * (2 + k)).astype(np.float32))
    assert len(before) > 0 and rows_of(abut.ccd(move)) == before


def test_empty_and_single_faces(device):
    none = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device=device)
    one = abut.Mesh(np.eye(3), [[0, 1, 2]], device=device)
    still, moving = abut.Motion(none, np.zeros((0, 3))), abut.Motion(one, np.eye(3) + 1.0)
    assert len(abut.ccd(still)) == len(abut.ccd(moving)) == len(abut.ccd(moving, still)) == 0
    assert abut.ccd(moving, abut.Motion(one, np.eye(3))).first == 0.0


def test_bad_input_is_refused(device):
    mesh = abut.Mesh(*box(), device=device)
    with pytest.raises(abut.OptionError, match="either end"):
        abut.Motion(mesh)
    with pytest.raises(abut.OptionError, match="either end"):
        abut.Motion(mesh, mesh.vertices, end_pose=np.eye(4))
    with pytest.raises(abut.MeshError, match="end needs shape"):
        abut.Motion(mesh, np.zeros((3, 3)))
    bad = mesh.vertices.numpy().astype(float)
    bad[2, 1] = np.inf
    with pytest.raises(abut.MeshError, match=r"end\[2\]"):
        abut.Motion(mesh, bad)
    with pytest.raises(abut.PoseError, match="one pose"):
        abut.Motion(mesh, end_pose=np.tile(np.eye(4), (2, 1, 1)))
    move = abut.Motion(mesh, mesh.vertices)
    with pytest.raises(abut.MeshError, match=r"a must be an abut\.Motion"):
        abut.ccd(mesh)
    for name, value in (("min_distance", -1), ("tolerance", 0.0), ("tolerance", np.nan)):
        with pytest.raises(abut.OptionError, match=name):
            abut.ccd(move, **{name: value})
    with pytest.raises(abut.OptionError, match="solver"):
        abut.ccd(move, solver="magic")


def test_kinds_are_named():
    assert ImpactKind.VERTEX_FACE == 0 and ImpactKind.EDGE_EDGE == 1


def frames(data, name, files, device):
    meshes = [trimesh.load(data / "ccd_frames" / name / file, process=False) for file in files]
    mesh = abut.Mesh(np.array(meshes[0].vertices), np.array(meshes[0].faces), device=device)
    return abut.Motion(mesh, np.array(meshes[1].vertices))


def check_truth(data, name, move):
    """No listed impact missed, none later than listed; returns the number of surplus rows."""
    truth = np.load(data / "ccd_frames" / name / "truth.npz")
    found = rows_of(abut.ccd(move))
    edges = move.mesh.edges.numpy().astype(np.int64) @ [move.mesh.vertex_count, 1]
    listed = np.sort(truth["E"].astype(np.int64), axis=1) @ [move.mesh.vertex_count, 1]
    numbers = np.searchsorted(edges, listed)
    known = 0
    for kind, key in enumerate(("vf", "ee")):
        rows = truth[key] if kind == 0 else np.sort(numbers[truth[key]], axis=1)
        meets = truth[f"{key}_collides"]
        times = truth.get(f"{key}_toi", np.full(len(rows), np.nan))
        for row, time in zip(rows[meets].tolist(), times[meets], strict=True):
            assert not found[kind, *row] > time
            assert not found[kind, *row] < time - 1e-6
        known += int(meets.sum())
    return len(found) - known


def test_cloth_funnel(data, device):
    move = frames(data, "cloth-funnel", ("227.ply", "228.ply"), device)
    assert check_truth(data, "cloth-funnel", move) == 0


@pytest.mark.slow
def test_cloth_ball(data, device):
    move = frames(data, "cloth-ball", ("cloth_ball92.ply", "cloth_ball93.ply"), device)
    assert check_truth(data, "cloth-ball", move) == 0


@pytest.mark.parametrize("gap", [0.0, 1e-13])
def test_misses_by_a_hair_with_and_without_boxes(gap, device):
    """Coordinates that should be 0 and are 1e-17: boxes tell such features apart."""
    a, b = (abut.Mesh(*shape, device) for shape in pair("knot", faces=200))
    up = abut.Motion(a, end=a.vertices.numpy() + np.array([0, 0, 0.5]))
    away = abut.Motion(b, end=b.vertices.numpy() + np.array([10, 0, 0]))
    fast, slow = (abut.ccd(up, away, min_distance=gap, method=m).numpy() for m in ("bvh", "brute"))
    assert len(fast["time"]) > 800
    for column in fast:
        np.testing.assert_array_equal(fast[column], slow[column])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("strategy", [CcdStrategy.PACKETS, CcdStrategy.LEAF_WALK])
def test_all_kinds_without_a_wait_in_between(strategy, first, device):
    """As on CUDA: what is expected to fit is searched at once, and again where it does not."""
    shapes = pair("tori", 500)
    steps = []

    def ask(reach, how):
        moves = [abut.Motion(m, m.points.numpy() + reach * k) for k, m in enumerate(meshes)]
        some = (tuple(moves), (moves[1],))
        rows = [impacts_of(each, first=first, execution=how).numpy() for each in some]
        return [*rows, plan_of(*moves, execution=how).candidate_count()]

    reaches = (0.01, 0.01, 0.4, 0.4, 1.5, 1.5, 0.01)
    for at_once in (False, True):
        queues = CcdQueues(wp.get_device(device), 64)
        how = CcdExecution(strategy, at_once=at_once, queues=queues)
        meshes = [abut.Mesh(*shape, device) for shape in shapes]
        steps.append([ask(reach, how) for reach in reaches])
    for (*rows, count), (*others, other_count) in zip(*steps, strict=True):
        assert count == other_count
        for one, other in zip(rows, others, strict=True):
            for name, column in one.items():
                np.testing.assert_array_equal(column, other[name])
    assert len({count for *_, count in steps[0]}) == 3


@pytest.mark.parametrize("tolerance", [1e-6, 0.05, 0.3])
def test_the_earliest_of_times_within_the_tolerance(tolerance, device):
    """An impact that is earlier than another by less than the tolerance is not left out."""
    floor = abut.Mesh([[-9.0, -9, 0], [9, -9, 0], [0, 15, 0]], [[0, 1, 2]], device)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        heights = rng.uniform(0.45, 0.6, 40)
        corners = rng.uniform(-1, 1, (40, 1, 3)) + 0.1 * rng.uniform(-1, 1, (40, 3, 3))
        corners[..., 2] += heights[:, None] - corners[..., 2].min(axis=1, keepdims=True)
        rain = abut.Mesh(corners.reshape(-1, 3), np.arange(120).reshape(-1, 3), device)
        way = abut.Motion(rain, end=rain.points.numpy() - [0, 0, 1.0])
        still = abut.Motion(floor, end=floor.points.numpy())
        options = {"tolerance": tolerance, "first": True}
        found = impacts_of((way, still), **options, execution=SAMPLED).first
        assert heights.min() - tolerance - 1e-9 <= found <= heights.min()
