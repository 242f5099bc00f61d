"""DistanceField.closest: beside abut.distance, and against all samples looked at one by one."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import bowl, moved, random_poses, shift


def field_of(shape, device, resolution=48, **options):
    return abut.DistanceField(abut.Mesh(*shape, device), resolution=resolution, **options)


@pytest.mark.parametrize("sampling", abut.Sampling)
def test_closest_against_the_true_distance(sampling, device):
    """Apart: within a cell and a pixel of it; inside: as deep as the deepest of many points."""
    gem, ring = cases.gem(800), cases.torus(40, 20, thick=0.2)
    mesh, other = abut.Mesh(*gem, device), abut.Mesh(*ring, device)
    field = abut.DistanceField(mesh, resolution=64, margin=2.0)
    poses = random_poses(20, 2.0, seed=4)
    got = field.closest(other, poses, pixels=256, sampling=sampling)
    true = abut.distance(mesh, other, pose_b=poses).value.numpy()
    apart = true > 0
    assert 4 < apart.sum() < 18
    slack = field.box.spacing * (1 + 64 / 256)
    value = got.value.numpy()
    assert np.abs(value - true)[apart].max() < slack
    assert (value[~apart] < slack).all()
    for k in np.flatnonzero(~apart):
        points = moved(_dense(ring), poses[k])
        deepest = abut.closest_point(mesh, points, signed=True).distance.numpy().min()
        assert abs(value[k] - deepest) < slack


def _dense(shape, parts=6):
    """Return random points of a shape."""
    weights = np.array(
        [[i, j, parts - i - j] for i in range(parts + 1) for j in range(parts + 1 - i)]
    )
    return np.einsum("wk,fkx->fwx", weights / parts, shape.vertices[shape.faces]).reshape(-1, 3)


def test_points_and_face(device):
    field = field_of(cases.icosphere(5000), device, 64, margin=1.0)
    ring = cases.torus(40, 20, thick=0.2)
    other = abut.Mesh(*ring, device)
    for pose in (shift(0.2, 0.1, 1.6), shift(1.9, 0.2, 0.1), shift(0.5, 0, 0.3)):
        got = field.closest(other, pose, pixels=400)
        q, p = got.points.numpy()
        assert abs(np.linalg.norm(p - q) - abs(got.value)) < 1e-6
        assert abs(np.linalg.norm(q) - 1) < field.box.spacing  # on the ball
        assert (got.value < 0) == (np.linalg.norm(p) < 1)
        placed = abut.Mesh(moved(ring.vertices, pose), ring.faces, device)
        on_ring = abut.closest_point(placed, p[None])
        assert on_ring.distance.numpy()[0] < 0.02 * field.box.spacing
        corners = placed.points.numpy()[ring.faces[got.face]]
        assert np.linalg.norm(corners - p, axis=1).min() < 0.3


def test_a_tie_goes_to_the_first_sample_of_the_lowest_face(device):
    """A sheet above the level top of a box: everything over the top is as near as anything."""
    field = field_of(cases.box(), device, 33, margin=0.5)
    sheet = cases.plane(6, 6, size=0.8)
    to_raster = cases.Shape(sheet.vertices, sheet.faces[::-1].copy())
    for shape in (sheet, to_raster):
        got = field.closest(abut.Mesh(*shape, device), shift(0, 0, 0.625), pixels=64)
        assert got.value == 0.125
        assert got.face == 0
        middle = moved(shape.vertices, shift(0, 0, 0.625))[shape.faces[0]].mean(axis=0)
        np.testing.assert_allclose(got.points.numpy()[1], middle, atol=1e-12)


def test_ties_on_one_face_go_to_the_first_pixel(device):
    """One large face, nearest along a line of pixels; the answer is the first of them."""
    field = field_of(cases.box(), device, 33, margin=0.5)
    tent = abut.Mesh([[-4, -4, 0], [4, -4, 0], [0, 4, 0]], [[0, 1, 2]], device)
    rows = [field.closest(tent, shift(0, 1.0, 0.75), pixels=200) for _ in range(3)]
    assert rows[0].value == 0.25
    for row in rows[1:]:
        np.testing.assert_array_equal(row.points.numpy(), rows[0].points.numpy())


def test_a_batch_equals_its_single_poses(device):
    field = field_of(cases.gem(500), device)
    other = abut.Mesh(*cases.torus(24, 12), device)
    poses = random_poses(15, 3.0)
    together = field.closest(other, poses, pixels=128).numpy()
    for k in range(15):
        alone = field.closest(other, poses[k], pixels=128).numpy()
        for name, value in alone.items():
            np.testing.assert_array_equal(value, together[name][k])


@pytest.mark.parametrize("shape", [cases.gem(500), bowl()], ids=["closed", "open"])
@pytest.mark.parametrize("sampling", abut.Sampling)
def test_culling_keeps_the_closest_sample(sampling, shape, device, monkeypatch):
    """No culled face would have been closer; near, straddling and far."""
    from abut.sdf import closest_sample

    field = field_of(shape, device, 40)
    other = abut.Mesh(*cases.torus_knot(64, 10), device)
    poses = np.concatenate([random_poses(6, 1.5, seed=5), [shift(4, 0, 0), shift(2.2, 2.2, 0)]])
    fast = field.closest(other, poses, pixels=150, sampling=sampling).numpy()
    stages = closest_sample.ClosestPlan.stages

    def all_of_them(plan):
        found = list(stages(plan))
        least, best, _ = plan._buffers
        nowhere = closest_sample.wp.full_like(least, -1e30)
        all_faces = plan.over_items(
            closest_sample.cull_far_faces_kernel, nowhere, best, plan.queues["faces"]
        )
        return [("cull", all_faces) if n == "cull" else (n, run) for n, run in found]

    monkeypatch.setattr(closest_sample.ClosestPlan, "stages", all_of_them)
    fresh = abut.Mesh(other.vertices.numpy(), other.faces, device)
    slow = field.closest(fresh, poses, pixels=150, sampling=sampling).numpy()
    for name, value in slow.items():
        np.testing.assert_array_equal(value, fast[name])


@pytest.mark.parametrize("sampling", ["dominant", "views"])
def test_a_tiny_object_beside_huge_faces(sampling, device):
    """Faces of thousands of pixels are sampled near the object only."""
    from abut.sdf import field_plan

    field = field_of(cases.icosphere(320, 1e-3), device, 16)
    room = abut.Mesh(*cases.box((3.0, 2.0, 2.5)), device)
    pixel = max(field.box.upper - field.box.lower) / 64
    for pose, wall in ((shift(1.49, 0.1, 0.2), 0.01), (shift(-0.3, 0.2, 1.2), 0.05)):
        found = field.closest(room, pose, pixels=64, sampling=sampling)
        true = abut.distance(
            abut.Mesh(*cases.icosphere(320, 1e-3), device), room, pose_b=pose
        ).value
        assert true == pytest.approx(wall - 1e-3, abs=1e-5)
        assert -field.box.spacing < found.value - true < pixel + field.box.spacing
        counts = field_plan._last.entry[3]()._read_counts()
        assert counts["large"] >= 2
        assert counts["blocks"] < 2000  # of millions


def test_a_mesh_below_a_pixel(device):
    field = field_of(cases.icosphere(2000), device, margin=1.0)
    dot = abut.Mesh(*cases.icosphere(20, radius=1e-4), device)
    got = field.closest(dot, shift(1.5, 0, 0), pixels=16)
    assert abs(got.value - 0.5) < field.box.spacing


def test_far_outside_the_box(device):
    """Not below the true distance by more than a cell, and of the right size."""
    gem = cases.gem(500)
    mesh, other = abut.Mesh(*gem, device), abut.Mesh(*cases.torus(24, 12), device)
    field = abut.DistanceField(mesh, resolution=48)
    poses = np.stack([shift(5, 0, 0), shift(0, 40, 3), shift(-9, 9, 9), shift(2.6, 0, 0)])
    got = field.closest(other, poses, pixels=128).value.numpy()
    true = abut.distance(mesh, other, pose_b=poses).value.numpy()
    assert (got > true - field.box.spacing).all()
    assert (got < true + 0.25).all()


def test_a_deforming_mesh(device):
    field = field_of(cases.gem(500), device, margin=1.0)
    ring = cases.torus(32, 16)
    other = abut.Mesh(*ring, device)
    for size in (1.0, 0.7, 1.1):
        other.deform(ring.vertices * [1, 1, size])
        got = field.closest(other, shift(0, 0, 1.8), pixels=64)
        fresh = abut.Mesh(ring.vertices * [1, 1, size], ring.faces, device)
        assert got.value == field.closest(fresh, shift(0, 0, 1.8), pixels=64).value


def test_models(data, device):
    cow = abut.Mesh.load(data / "models" / "cow_5k.ply", device)
    field = abut.DistanceField(cow, resolution=96, margin=0.5 * np.ptp(cow.bounds, axis=0).max())
    poses = random_poses(8, 0.8 * np.ptp(cow.bounds, axis=0).max(), seed=2)
    got = field.closest(cow, poses, pixels=512).value.numpy()
    true = abut.distance(cow, cow, pose_b=poses).value.numpy()
    assert (true > 0).sum() >= 3
    assert np.abs(got - true)[true > 0].max() < field.box.spacing


def test_no_poses_and_bad_input(device):
    field = field_of(cases.box(), device, 16)
    box = abut.Mesh(*cases.box(), device)
    assert field.closest(box, np.zeros((0, 4, 4))).value.shape == (0,)
    empty = abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), int), device)
    with pytest.raises(abut.MeshError, match="no faces"):
        field.closest(empty)
    with pytest.raises(abut.OptionError, match="pixels must be"):
        field.closest(box, pixels=0)
    with pytest.raises(abut.OptionError, match="sampling must be one of"):
        field.closest(box, sampling="random")
    with pytest.raises(abut.PoseError):
        field.closest(box, np.ones((4, 4)))
