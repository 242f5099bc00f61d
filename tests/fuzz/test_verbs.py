"""Random hostile meshes: every verb against brute force, and CUDA against the CPU, to the bit."""

import numpy as np
import pytest
import warp as wp

import abut

DEVICES = ["cpu", *(["cuda:0"] if wp.is_cuda_available() else [])]


def random_mesh(rng):
    """Return vertices and faces: soups with repeated corners, slivers and planes, at a scale."""
    count = int(rng.integers(3, 30))
    vertices = rng.normal(size=(count, 3))
    if rng.random() < 0.5:
        vertices = np.round(vertices * 2) / 2  # coincident and coplanar
    if rng.random() < 0.2:
        vertices[:, rng.integers(3)] = 0
    faces = rng.integers(0, count, (int(rng.integers(1, 40)), 3)).astype(np.int32)
    scale = 10.0 ** rng.integers(-3, 4)
    kind = np.float32 if rng.random() < 0.5 else np.float64
    return (vertices * scale).astype(kind), faces, scale


def random_pose(rng, scale):
    """Return a rigid motion; half of them only shift."""
    pose = np.eye(4)
    if rng.random() < 0.5:
        pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        pose[:3, 0] *= np.sign(np.linalg.det(pose[:3, :3]))
    pose[:3, 3] = np.round(rng.normal(size=3) * 2) / 2 * scale
    return pose


def plain(answer):
    return {name: np.asarray(array).tobytes() for name, array in answer.numpy().items()}


def near(answer):
    """Return the distance alone: of faces equally near, methods may choose others."""
    return {"value": np.asarray(answer.value).tobytes()}


def questions(rng, scale):
    """Return the verbs as functions of two meshes and a method."""
    pose, gap = random_pose(rng, scale), float(abs(rng.normal()) * 0.3 * scale)
    points = rng.normal(size=(5, 3)) * 2 * scale
    return {
        "collide": lambda a, b, method: plain(abut.collide(a, b, pose_b=pose, method=method)),
        "self_collide": lambda a, b, method: plain(abut.self_collide(a, method=method)),
        "within": lambda a, b, method: plain(abut.within(a, b, gap, pose_a=pose, method=method)),
        "distance": lambda a, b, method: near(abut.distance(a, b, pose_b=pose, method=method)),
        "closest_point": lambda a, b, m: plain(abut.closest_point(a, points, pose=pose, method=m)),
    }


def check(seed):
    """Compare all verbs, methods and devices for one seed."""
    rng = np.random.default_rng(seed)
    (*first, scale), (*second, _) = random_mesh(rng), random_mesh(rng)
    for name, ask in questions(rng, scale).items():
        answers = {}
        for device in DEVICES:
            a, b = abut.Mesh(*first, device), abut.Mesh(*second, device)
            for method in ("bvh", "brute", "bvh"):  # the second time from kept trees and plans
                answers[device, method] = ask(a, b, method)
        want = answers["cpu", "brute"]
        wrong = [at for at, answer in answers.items() if answer != want]
        assert not wrong, f"seed {seed}: {name} differs from brute force by {wrong}"


def test_some_random_meshes():
    for seed in range(25):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_meshes(block):
    """200 seeds a block: 20,000 answers of five verbs on each device."""
    for seed in range(10_000 + 200 * block, 10_000 + 200 * (block + 1)):
        check(seed)
