"""abut.cull through the graphics pipeline: conservative, and close to the kernels."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut import cases
from abut.visibility.gl.driver import driver, unavailable
from shapes import random_poses, shift

WHY_NOT = unavailable()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
METHODS = ("cullide", "quick_cullide", "far")


def meshes_of(name, faces, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(name, faces)]


def left_over(culled):
    return {tuple(row) for row in culled.faces.numpy().tolist()}


def touched(a, b, **options):
    """Intersecting faces (object, face) of two meshes."""
    pairs = abut.collide(a, b, method="brute", **options).pairs.numpy()
    return {(side, face) for side in (0, 1) for face in pairs[:, side].tolist()}


def seen(meshes, **options):
    return abut.cull(meshes, backend="gl", **options)


@pytest.mark.parametrize("pixels", [1, 16, 100])
@pytest.mark.parametrize("name", cases.PAIRS)
@pytest.mark.parametrize("method", ["far", "quick_cullide"])
def test_boxes_are_conservative(method, name, pixels, device):
    meshes = meshes_of(name, 300, device)
    culled = seen(meshes, pixels=pixels, method=method, conservative=True)
    assert touched(*meshes) <= left_over(culled)
    assert set(culled.objects.numpy()) == {side for side, _ in left_over(culled)}


corner = st.tuples(*[st.integers(0, 6)] * 3)
soups = st.lists(st.tuples(corner, corner, corner), min_size=1, max_size=6)


@settings(max_examples=60)
@given(a=soups, b=soups, pixels=st.integers(1, 40), turned=st.integers(0, 9), far=st.booleans())
def test_far_is_conservative_for_any_soup(a, b, pixels, turned, far):
    """Corners on a small grid: flat, doubled, touching and empty faces in plenty."""
    scale, offset = (1e-9, 0.0) if far else (1.0, 1e6)
    pose = random_poses(1, 0.5, turned)[0] if turned else np.eye(4)
    meshes = []
    for side in (a, b):
        points = np.array(side, dtype=np.float64).reshape(-1, 3) * scale + offset
        meshes.append(abut.Mesh(points, np.arange(len(points)).reshape(-1, 3), "cpu"))
    options = {"poses": [None, pose], "pixels": pixels, "conservative": True}
    kept = left_over(seen(meshes, **options))
    quick = left_over(seen(meshes, method="quick_cullide", **options))
    assert touched(*meshes, pose_b=pose) <= quick <= kept


@pytest.mark.parametrize("seed", range(3))
def test_posed(seed, device):
    meshes = meshes_of("tori", 400, device)
    poses = random_poses(2, 1.0, seed)
    kept = left_over(seen(meshes, poses=poses, pixels=128))
    assert touched(*meshes, pose_a=poses[0], pose_b=poses[1]) <= kept
    assert len(seen(meshes, poses=[None, shift(50, 0, 0)], pixels=128)) == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("views", ["xyz", "XYZ", "zX"])
def test_prunes_like_kernels(method, views, device):
    meshes = meshes_of("knot", 1500, device)
    ours = abut.cull(meshes, method=method, pixels=200, views=views, order="drawn")
    theirs = seen(meshes, method=method, pixels=200, views=views)
    slack = {"far": 1.25}.get(method, 1.1)  # boxes are larger than the part of a face in a pixel
    assert len(ours) / slack <= len(theirs) <= len(ours) * slack
    if method == "far":
        assert touched(*meshes) <= left_over(theirs)


@pytest.mark.parametrize("method", METHODS)
def test_objects(method, device):
    crowd = cases.leaves(40, 500)
    crowd.poses[20:, :3, 3] *= 3.0  # half of the leaves are far off
    meshes = [abut.Mesh(*shape, device) for shape in crowd.shapes]
    options = {"poses": crowd.poses, "method": method, "pixels": 256, "level": "object"}
    ours, theirs = abut.cull(meshes, order="drawn", **options), seen(meshes, **options)
    few, many = sorted([set(x.objects.numpy().tolist()) for x in (ours, theirs)], key=len)
    assert 5 < len(few)
    assert len(many) < 41
    assert len(many) - len(few) <= 3
    assert few <= many


def test_quick_cullide_prunes_more(device):
    cloth = abut.Mesh(*cases.single("folded_cloth", 2000), device)
    options = {"pixels": 300, "self_collisions": True, "views": "xz"}
    plain, quick = (seen([cloth], method=m, **options) for m in METHODS[:2])
    assert 0 < len(quick) < len(plain)
    ours = abut.cull([cloth], method="quick_cullide", **options)
    assert len(quick) == pytest.approx(len(ours), rel=0.15)


@pytest.mark.parametrize("distance", [0.1, 0.4, 100.0])
def test_distance(distance, device):
    meshes = meshes_of("apart", 200, device)
    rows = abut.within(*meshes, distance).pairs.numpy()
    near = {(side, face) for side in (0, 1) for face in rows[:, side].tolist()}
    assert near
    for pixels in (16, 128):
        kept = left_over(seen(meshes, pixels=pixels, distance=distance))
        assert near <= kept
    if distance < 0.2:
        assert len(kept) < 300


@pytest.mark.parametrize("seed", range(6))
def test_distance_in_a_flat_scene(seed, device):
    """Pixels are no squares there, and balls no balls."""
    rng = np.random.default_rng(seed)
    shrink = np.array([1.0, 0.02, 0.3])[rng.permutation(3)]
    points = (rng.uniform(size=(2, 40, 1, 3)) + 0.05 * rng.normal(size=(2, 40, 3, 3))) * shrink
    faces = np.arange(120).reshape(-1, 3)
    meshes = [abut.Mesh(side.reshape(-1, 3), faces, device) for side in points]
    for distance in (0.003, 0.03, 0.5, 30.0):
        rows = abut.within(*meshes, distance).pairs.numpy()
        near = {(side, face) for side in (0, 1) for face in rows[:, side].tolist()}
        assert near <= left_over(seen(meshes, pixels=40, distance=distance))


def test_statistics(device):
    culled = seen(meshes_of("tori", 400, device), pixels=64)
    assert [(row.level, row.view) for row in culled.statistics] == [
        (level, view) for level in ("object", "face") for view in "xyz"
    ]
    faces = culled.statistics[-1]
    assert faces.bfv + faces.ffv + faces.sfv + faces.nfv == 2 * len(
        cases.pair("tori", 400)[0].faces
    )
    assert faces.ffv + faces.sfv + faces.nfv == len(culled)
    assert all(row.milliseconds > 0 for row in culled.statistics)


def test_no_faces(device):
    empty = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), device)
    assert len(seen([empty, empty])) == 0
    ball = abut.Mesh(*cases.icosphere(80), device)
    assert len(seen([empty, ball, empty])) == 0


def test_refusals(device):
    meshes = meshes_of("tori", 100, device)
    with pytest.raises(abut.OptionError, match="fat neighbours"):
        seen(meshes, self_collisions=True)
    with pytest.raises(abut.OptionError, match="order='drawn'"):
        seen(meshes, order="free")


def test_another_context_stays_current(device):
    import moderngl

    other = moderngl.create_context(standalone=True, backend="egl")
    buffers = [other.buffer(b"mine") for _ in range(20)]
    for _ in range(3):
        seen(meshes_of("tori", 100, device), pixels=32)
        assert all(buffer.read() == b"mine" for buffer in buffers)
    other.release()
    with driver().current() as context:
        assert context.error == "GL_NO_ERROR"


def test_threads_have_their_own_context(device):
    found = []

    def work():
        found.append(left_over(seen(meshes_of("knot", 500, device), pixels=64)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    work()
    assert found[0] == found[1] == found[2]
