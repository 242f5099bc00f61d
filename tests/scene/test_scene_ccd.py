"""Impacts in scenes are those of pairs of motions."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, torus
from shapes import random_poses


def rows_of(hits, objects):
    data = hits.numpy()
    kinds = zip(data["kind"].tolist(), data["features"].tolist(), strict=True)
    return {
        (*objects, kind, *pair): time
        for (kind, pair), time in zip(kinds, data["time"], strict=True)
    }


def expected(scene, ends, tolerance=1e-6, gap=0.0, skip=()):
    """Rows of all pairs by abut.ccd."""
    starts, rows = scene.poses.numpy(), {}
    for i in scene.indices.tolist():
        for j in scene.indices.tolist():
            if i < j and (i, j) not in skip:
                moves = [
                    abut.Motion(scene.mesh(k), start_pose=starts[k], end_pose=ends[k])
                    for k in (i, j)
                ]
                hits = abut.ccd(*moves, tolerance=tolerance, min_distance=gap)
                rows |= rows_of(hits, (i, j))
    return rows


def ours(hits):
    data = hits.numpy()
    columns = zip(
        data["objects"].tolist(), data["kind"].tolist(), data["features"].tolist(), strict=True
    )
    return {
        (*pair, kind, *features): time
        for (pair, kind, features), time in zip(columns, data["time"], strict=True)
    }


def random_scene(device, count=6, spread=3.0):
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(20), torus(6, 5), box())]
    for k, pose in enumerate(random_poses(count, spread)):
        scene.add(shapes[k % 3], pose)
    return scene


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_translations(device, gap):
    scene = random_scene(device)
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.4
    hits = scene.ccd(ends, min_distance=gap)
    truth = expected(scene, ends, gap=gap)
    mine = ours(hits)
    assert mine.keys() == truth.keys()
    assert len(mine) > 50
    assert max(abs(mine[k] - truth[k]) for k in mine) <= 1e-6
    assert hits.first == min(mine.values())
    assert list(mine) == sorted(mine)
    one = scene.ccd(ends, min_distance=gap, first=True)
    assert len(one) == 1
    assert one.first == hits.first == one.safe_step


def test_rotations(device):
    scene = random_scene(device)
    ends = random_poses(6, 1.2, seed=5)
    hits = scene.ccd(ends, tolerance=1e-4)
    truth = expected(scene, ends, tolerance=1e-4)
    mine = ours(hits)
    differ = set(mine) ^ set(truth)
    assert len(differ) <= 0.01 * len(truth)  # pairs that almost touch may go either way
    both = mine.keys() & truth.keys()
    assert max(abs(mine[k] - truth[k]) for k in both) <= 2e-4
    assert len(both) > 50
    assert abs(hits.first - min(truth.values())) <= 2e-4


def test_a_safe_step_is_safe(device):
    scene = random_scene(device)
    starts, ends = scene.poses.numpy().copy(), scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.4
    part = scene.ccd(ends).safe_step
    assert 0 < part < 1
    between = starts.copy()
    between[:, :3, 3] = (1 - part) * starts[:, :3, 3] + part * ends[:, :3, 3]
    scene.move(scene.indices, between)
    assert not scene.colliding()


def test_rescaled_steps_of_a_batch(device):
    """Each step is rescaled by itself; one without an impact is whole."""
    scene = random_scene(device)
    rest = scene.poses.numpy()
    ends = rest.copy()
    ends[:, :3, 3] *= 0.4
    steps = scene.ccd(np.stack([ends, rest])).rescaled_step(0.8).numpy()
    assert steps.tolist() == [scene.ccd(ends).rescaled_step(0.8), 1.0] and 0.0 < steps[0] < 0.8
    with pytest.raises(abut.OptionError):
        scene.ccd(np.stack([ends, rest])).rescaled_step(1.0)


def test_deforming_objects(device):
    scene = abut.Scene(device)
    ball = icosphere(80)
    mesh = abut.Mesh(*ball, device=device)
    far = np.eye(4)
    far[0, 3] = 3
    scene.add(mesh)
    scene.add(mesh, far, name="right")
    later = ball.vertices * [2.5, 1, 1]
    hits = scene.ccd(vertices={"right": later})
    moves = (
        abut.Motion(mesh, start_pose=np.eye(4), end_pose=np.eye(4)),
        abut.Motion(
            abut.Mesh(ball.vertices + far[:3, 3], ball.faces, device=device),
            end=later + far[:3, 3],
        ),
    )
    truth = rows_of(abut.ccd(*moves), (0, 1))
    assert ours(hits).keys() == truth.keys()
    assert abs(hits.first - 2 / 3) < 1e-3
    assert np.array_equal(scene.mesh("right").vertices.numpy(), ball.vertices)


def test_filters_and_self(device):
    scene = random_scene(device, count=4, spread=0.6)
    ends = scene.poses.numpy().copy()
    scene.ignore(0, 1)
    truth = expected(scene, ends, skip={(0, 1)})
    assert ours(scene.ccd()).keys() == truth.keys()
    flat = icosphere(80)
    own = scene.add(abut.Mesh(*flat, device=device), random_poses(1, 9.0, 3)[0] + 0)
    squeezed = flat.vertices * [1, 1, -1]
    hits = scene.ccd(vertices={own: squeezed}, self_collisions=True)
    rows = [row for row in ours(hits) if row[:2] == (own, own)]
    motion = abut.Motion(abut.Mesh(*flat, device=device), end=squeezed)
    assert len(rows) == pytest.approx(len(abut.ccd(motion, weld=False)), rel=0.02)


def test_static_scene(device):
    scene = abut.Scene(device)
    assert not scene.ccd()
    scene.add(abut.Mesh(*icosphere(20), device=device))
    assert scene.ccd().first == np.inf
    with pytest.raises(abut.PoseError):
        scene.ccd(np.eye(4)[None].repeat(2, axis=0))
    with pytest.raises(abut.SceneError):
        scene.ccd(vertices={0: np.zeros((3, 3))})
