"""Batches asked about in chunks, and batches of poses that are sent to a CUDA device."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core.pair_queue import KeyLayout, pose_room
from abut.operands.pose_upload import on_host, upload_poses
from abut.query.shared import in_chunks
from shapes import random_poses


@pytest.mark.parametrize("room", [1, 3, 7, 100])
def test_chunks_join_to_the_whole(room, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 300))
    pose_a, pose_b = random_poses(20, 0.5), random_poses(1, 0.1)

    def ask(poses, count):
        assert count <= room
        hits = abut.collide(a, b, pose_a=poses[0], pose_b=poses[1][0])
        return hits.pairs, hits.pose, hits.colliding

    rows = in_chunks(ask, (pose_a, pose_b), 20, room)
    want = abut.collide(a, b, pose_a=pose_a, pose_b=pose_b[0])
    assert 0 < want.colliding.numpy().sum()
    for got, array in zip(rows, (want.pairs, want.pose, want.colliding), strict=True):
        assert got.device == a.device
        np.testing.assert_array_equal(got.numpy(), array.numpy())


def test_room_for_poses():
    """Keys have 63 bits, and brute force numbers its work items with 31."""
    layout = KeyLayout.of(100_000, 100_000)
    assert pose_room(layout, 1) > 1_000_000
    assert pose_room(layout, 100_000) == (2**31 - 1) // 100_000
    assert pose_room(KeyLayout.of(2**31, 2**31), 1) == 2


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("where", ["host", "device", "strided"])
@pytest.mark.parametrize("count", [1, 31, 20_000])
def test_uploaded_poses(count, where, kind, device):
    want = random_poses(count, 1.0).astype(kind)
    pose = want
    if where == "device":
        pose = wp.array(want, device=device)
    elif where == "strided":
        pose = np.repeat(want, 2, axis=0)[::2]
    got = upload_poses(pose, "pose", wp.get_device(device))
    np.testing.assert_array_equal(on_host([got])[0], want)
    want[:] = np.nan  # nobody reads it again
    assert np.isfinite(on_host([got])[0]).all()


@pytest.mark.parametrize("bad", [np.nan, 2.0])
@pytest.mark.parametrize("first", [False, True])
def test_refused_poses_are_named(first, bad, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 300))
    poses = random_poses(100, 1.0)
    good = abut.collide(a, b, pose_b=poses, first=first).numpy()
    poses[37, 0, 0] = bad
    for pose in (poses, wp.array(poses, dtype=wp.mat44d, device=device)):
        with pytest.raises(abut.PoseError, match=r"pose_b\[37\]"):
            abut.collide(a, b, pose_b=pose, first=first)
    again = abut.collide(a, b, pose_b=random_poses(100, 1.0), first=first).numpy()
    for name, array in good.items():
        np.testing.assert_array_equal(again[name], array)
