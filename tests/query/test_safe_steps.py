"""Stepping as far as ccd says is safe leaves nothing that cuts, whatever meshes and motions."""

import numpy as np
import pytest

import abut
from abut.cases import icosphere, plane, torus
from shapes import moved, random_poses

SEEDS = [range(8), pytest.param(range(8, 200), marks=pytest.mark.slow)]


def crumpling(rng, faces):
    """A sheet without self-intersections, and where it is going: in waves and noise."""
    side = max(2, int(np.sqrt(faces / 2)))
    shape = plane(side, side, size=2.0)
    u, v = shape.vertices[:, 0], shape.vertices[:, 1]
    start = shape.vertices.astype(float)
    start[:, 2] = 0.1 * np.sin(3 * u + rng.normal()) * np.cos(2 * v)
    end = start.copy()
    end[:, 0] += rng.normal() * np.sin(4 * v + 3 * u)
    end[:, 2] += rng.normal() * np.cos(5 * u) + 0.02 * rng.normal(size=len(u))
    return start, end, shape.faces


def at(start, end, t):
    return (1.0 - t) * start + t * end


@pytest.mark.parametrize("seeds", SEEDS)
def test_sheets_against_themselves(seeds, device):
    for seed in seeds:
        check_sheet(seed, device)


def check_sheet(seed, device):
    rng = np.random.default_rng(seed)
    start, end, faces = crumpling(rng, rng.integers(20, 3000))
    mesh = abut.Mesh(start, faces, device)
    move = abut.Motion(mesh, end)
    gap = (0.0, 1e-3)[seed % 2]
    hits = abut.ccd(move, min_distance=gap)
    first = abut.ccd(move, min_distance=gap, first=True)
    assert first.first == hits.first == min([*hits.time.numpy(), np.inf])
    if gap == 0.0:
        assert not abut.self_collide(mesh)
        for share in (0.5, 0.999):
            mesh.deform(at(start, end, share * hits.safe_step))
            assert not abut.self_collide(mesh)
        if 0.0 < hits.first < 0.99 and hits.converged.numpy().all():
            mesh.deform(at(start, end, hits.first + 1e-6))
            soon = abut.ccd(abut.Motion(mesh, at(start, end, hits.first + 2e-6)))
            assert abut.self_collide(mesh) or soon


@pytest.mark.parametrize("seeds", SEEDS)
def test_two_that_meet(seeds, device):
    for seed in seeds:
        check_two(seed, device)


def check_two(seed, device):
    """One bends, the other bends, goes straight, turns by up to half a turn, or stands."""
    rng = np.random.default_rng([seed, 1])
    start, end, faces = crumpling(rng, rng.integers(20, 1200))
    sheet = abut.Mesh(start, faces, device)
    shape = (icosphere(int(rng.integers(20, 400))), torus(12, 7))[seed % 2]
    poses = random_poses(2, 1.5, seed)
    poses[0, 2, 3] += 3.0
    other = abut.Mesh(shape.vertices, shape.faces, device)
    there = [moved(shape.vertices, pose) for pose in poses]
    if seed % 4 == 0:
        move = abut.Motion(abut.Mesh(there[0], shape.faces, device), there[1])
        path = lambda t: {"b": abut.Mesh(at(*there, t), shape.faces, device)}  # noqa: E731
    elif seed % 4 == 1:
        move = abut.Motion(other, start_pose=poses[0], end_pose=poses[0])
        path = lambda t: {"b": other, "pose_b": poses[0]}  # noqa: E731
    else:
        move = abut.Motion(other, start_pose=poses[0], end_pose=poses[1])
        path = lambda t: {"b": other, "pose_b": pose_at(*poses, t)}  # noqa: E731
    bends = abut.Motion(sheet, end)
    hits = abut.ccd(bends, move)
    first = abut.ccd(bends, move, first=True)
    assert first.first == hits.first
    assert not abut.collide(sheet, **path(0.0))
    for share in np.append(np.linspace(0.1, 0.9, 5), 0.9999):
        t = share * hits.safe_step
        assert not abut.collide(abut.Mesh(at(start, end, t), faces, device), **path(t))
    if 0.0 < hits.first < 0.99:
        swapped = abut.ccd(move, bends)
        assert abs(swapped.first - hits.first) < 1e-6 and len(swapped) == len(hits)


@pytest.mark.parametrize("seeds", SEEDS)
def test_both_turn(seeds, device):
    """By up to half a turn each, far from their origins too; a gap is kept until it is told."""
    met = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 2])
        shapes = icosphere(int(rng.integers(20, 200))), torus(10, 6)
        away = (0.0, 0.0, 5.0, 50.0)[seed % 4]
        meshes = [abut.Mesh(s.moved((away, 0, 0)).vertices, s.faces, device) for s in shapes]
        paths = [random_poses(2, 1.5, 10 * seed + k) for k in range(2)]
        for poses in paths:  # so that the meshes, not their origins, are where the poses say
            poses[:, :3, 3] -= away * poses[:, :3, 0]
        moves = [
            abut.Motion(mesh, start_pose=start, end_pose=end)
            for mesh, (start, end) in zip(meshes, paths, strict=True)
        ]
        gap = (0.0, 0.05)[seed % 2]
        hits = abut.ccd(*moves, min_distance=gap)
        assert abut.ccd(*moves, min_distance=gap, first=True).first == hits.first
        if abut.distance(*meshes, pose_a=paths[0][0], pose_b=paths[1][0]).value <= gap:
            continue  # faces that cut each other from the start make no impact
        times = np.linspace(0.0, 0.9999, 60) * hits.safe_step
        poses = [np.array([pose_at(*path, t) for t in times]) for path in paths]
        apart = abut.distance(*meshes, pose_a=poses[0], pose_b=poses[1]).value.numpy()
        assert (apart > gap).all()
        if 0.0 < hits.first < 0.999:
            soon = [pose_at(*path, hits.first + 1e-4) for path in paths]
            near = abut.distance(*meshes, pose_a=soon[0], pose_b=soon[1]).value
            assert near <= gap + 1e-2 * (1.0 + away)
            met += 1
    assert met >= len(seeds) // 8


def pose_at(start, end, t):
    """Constant velocities, by the eigenvectors of the turn: independent of the library."""
    values, vectors = np.linalg.eig(end[:3, :3] @ start[:3, :3].T)
    power = vectors @ np.diag(np.exp(t * np.log(values.astype(complex)))) @ np.linalg.inv(vectors)
    pose = np.eye(4)
    pose[:3, :3] = power.real @ start[:3, :3]
    pose[:3, 3] = (1 - t) * start[:3, 3] + t * end[:3, 3]
    return pose
