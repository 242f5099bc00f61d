"""abut.overlap: the verb, its batches, its laziness and its errors."""

import pickle

import numpy as np
import pytest
import trimesh
import warp as wp

import abut


def box(device, *extents):
    return abut.Mesh.from_trimesh(trimesh.creation.box(extents), device)


def shift(*offset):
    pose = np.eye(4)
    pose[:3, 3] = offset
    return pose


def test_duct_through_the_edge_of_a_slab(device):
    slab, duct = box(device, 4, 4, 0.2), box(device, 0.5, 0.5, 3)
    found = abut.overlap(slab, duct, pose_b=shift(1.9, 0, 0), volume=True)
    assert found.relation is abut.Relation.CROSSING
    assert found and found.overlapping
    assert found.inside_a == pytest.approx(0.1, abs=1e-6)
    assert found.inside_b == pytest.approx(0.25, abs=1e-6)
    assert found.separation.numpy() == pytest.approx([0.35, 0, 0], abs=1e-6)
    assert found.separation_bound == pytest.approx(0.25, abs=1e-6)
    assert found.volume == pytest.approx(0.35 * 0.5 * 0.2, rel=1e-12)
    assert found.centroid.numpy() == pytest.approx([1.825, 0, 0], abs=1e-12)
    bounds = found.inside_bounds.numpy()
    assert (bounds[:, 0] <= [0.1, 0.25]).all() and (bounds[:, 1] >= [0.1, 0.25]).all()
    x, y, z = found.separation.numpy()
    after = shift(x + 1.9, y, z)
    assert abut.overlap(slab, duct, pose_b=after).relation in ("touching", "apart")


def test_along_a_direction(device):
    slab, duct = box(device, 4, 4, 0.2), box(device, 0.5, 0.5, 3)
    found = abut.overlap(slab, duct, pose_b=shift(1.9, 0, 0), along=(0, 0, 5))
    assert found.separation.numpy() == pytest.approx([0, 0, 1.6], abs=1e-6)
    sideways = abut.overlap(slab, duct, pose_b=shift(1.9, 0, 0), along=(-1, 0, 0))
    assert sideways.separation.numpy() == pytest.approx([-4.15, 0, 0], abs=1e-6)


def test_batch_is_each_pose_alone(device):
    a, b = box(device, 1, 1, 1), box(device, 0.5, 0.5, 0.5)
    shifts = [(0, 0, 0), (0.5, 0, 0), (0.75, 0, 0), (2, 0, 0), (0.25, 0.25, 0.25)]
    poses = np.stack([shift(*s) for s in shifts])
    batch = abut.overlap(a, b, pose_b=poses, volume=True)
    names = list(abut.Relation)
    for k, pose in enumerate(poses):
        one = abut.overlap(a, b, pose_b=pose, volume=True)
        assert names[batch.relation.numpy()[k]] == one.relation
        assert batch.inside_a.numpy()[k] == one.inside_a
        assert batch.volume.numpy()[k] == one.volume
        assert batch.separation.numpy()[k] == pytest.approx(one.separation.numpy(), abs=1e-12)
        bounds = one.inside_bounds.numpy()
        assert batch.inside_bounds.numpy()[k] == pytest.approx(bounds, abs=1e-12)
        assert len(batch.regions[k]) == len(one.regions)
    assert [names[k] for k in batch.relation.numpy()] == [
        *("b_in_a", "crossing", "touching", "apart", "b_in_a")
    ]


def test_answers_do_not_depend_on_earlier_queries(device):
    a, b = (abut.Mesh(*shape, device=device) for shape in abut.cases.pair("spheres", 300))
    before = abut.overlap(a, b).numpy()
    abut.collide(a, b, pose_b=np.tile(np.eye(4), (5000, 1, 1)))  # improves their hierarchies
    b.deform(2 * b.vertices.numpy())
    abut.distance(a, b)
    b.deform(b.vertices.numpy() / 2)
    after = abut.overlap(a, b).numpy()
    assert {k: np.asarray(v).tolist() for k, v in before.items()} == {
        k: np.asarray(v).tolist() for k, v in after.items()
    }


def test_no_poses(device):
    a = box(device, 1, 1, 1)
    found = abut.overlap(a, a, pose_b=np.zeros((0, 4, 4)), volume=True)
    assert found.relation.shape == (0,) and not found
    assert found.inside_a.shape == (0,) and found.volume.shape == (0,)
    assert found.separation.shape == (0, 3) and found.regions == []


def test_measures_refer_to_the_shape_asked_about(device):
    a, b = box(device, 1, 1, 1), box(device, 1, 1, 1)
    found = abut.overlap(a, b, pose_b=shift(0.75, 0, 0), volume=True)
    b.deform(b.vertices.numpy() * 3)
    assert found.volume == pytest.approx(0.25, rel=1e-12)
    assert found.inside_a == pytest.approx(0.25, abs=1e-6)


def test_results_survive_pickling(device):
    a = box(device, 1, 1, 1)
    found = abut.overlap(a, a, pose_b=shift(0.75, 0, 0), volume=True)
    again = pickle.loads(pickle.dumps(found))
    assert again.relation == "crossing" and again.volume == found.volume
    assert again.separation.numpy().tolist() == found.separation.numpy().tolist()
    assert len(again.regions) == len(found.regions)


def test_volume_is_measured_only_when_asked(device):
    a = box(device, 1, 1, 1)
    found = abut.overlap(a, a)
    assert found.relation == "equal"
    assert found.volume is None and found.centroid is None and found.areas is None
    assert "volume" not in found.numpy()


def test_refusals(device):
    a = box(device, 1, 1, 1)
    opened = abut.Mesh(a.vertices.numpy(), a.faces.numpy()[1:], device)
    with pytest.raises(abut.MeshError, match="b is open"):
        abut.overlap(a, opened)
    with pytest.raises(abut.MeshError, match="a has no faces"):
        abut.overlap(abut.Mesh(np.zeros((1, 3)), np.zeros((0, 3), int), device), a)
    with pytest.raises(abut.OptionError, match="along"):
        abut.overlap(a, a, along=(0, 0, 0))
    with pytest.raises(abut.OptionError, match="tolerance"):
        abut.overlap(a, a, tolerance=-1)
    with pytest.raises(abut.PoseError):
        abut.overlap(a, a, pose_b=2 * np.eye(4))


def test_unoriented_inverted_and_cleaned_meshes(device):
    a = box(device, 2, 2, 2)
    faces = a.faces.numpy().copy()
    faces[::2] = faces[::2, ::-1]
    mixed = abut.Mesh(a.vertices.numpy(), faces, device)
    inverted = abut.Mesh(a.vertices.numpy(), a.faces.numpy()[:, ::-1], device)
    small = box(device, 1, 1, 1)
    for mesh in (mixed, inverted):
        assert abut.overlap(mesh, small).relation == "b_in_a"
        assert abut.overlap(mesh, a).relation == "equal"
        found = abut.overlap(mesh, small, pose_b=shift(1.25, 0, 0), volume=True)
        assert found.relation == "crossing"
        assert found.volume == pytest.approx(0.25, rel=1e-12)


def test_cavity(device):
    outer, hole = trimesh.creation.box((4, 4, 4)), trimesh.creation.box((2, 2, 2))
    hole.invert()
    shell = abut.Mesh.from_trimesh(trimesh.util.concatenate([outer, hole]), device)
    for size, relation in ((1, "apart"), (2, "touching"), (2.5, "crossing"), (4.5, "a_in_b")):
        assert abut.overlap(shell, box(device, size, size, size)).relation == relation
    assert (
        abut.overlap(shell, box(device, 0.5, 0.5, 0.5), pose_b=shift(1.5, 0, 0)).relation
        == "b_in_a"
    )


def test_scene_rows(device):
    scene = abut.Scene(device=device)
    big, small = box(device, 4, 4, 4), box(device, 1, 1, 1)
    scene.add(big, name="big")
    for name, at in (("in", 0), ("touch", 2.5), ("cross", 2.2), ("far", 9)):
        scene.add(small, shift(at, {"cross": 3}.get(name, 0) * 0.55, 0), name=name)
    found = scene.overlap(volume=True)
    names = list(abut.Relation)
    rows = {
        tuple(scene.name_of(pair)): names[code]
        for pair, code in zip(found.objects.numpy(), found.relation.numpy(), strict=True)
    }
    assert rows[("big", "in")] == "b_in_a" and rows[("big", "touch")] == "touching"
    assert rows[("big", "cross")] == "crossing" and "far" not in np.ravel(list(rows)).tolist()
    for k, (i, j) in enumerate(found.objects.numpy()):
        one = abut.overlap(
            scene.mesh(i),
            scene.mesh(j),
            pose_a=scene.pose_of(i),
            pose_b=scene.pose_of(j),
            volume=True,
        )
        assert names[found.relation.numpy()[k]] == one.relation
        assert found.inside_a.numpy()[k] == one.inside_a
        assert found.volume.numpy()[k] == one.volume
    contacts = scene.collide(solid=True)
    assert contacts.contained.numpy().tolist() == [[0, 1]] and contacts.colliding
    assert scene.collide(solid=True, which="in").contained.numpy().tolist() == [[1, 0]]
    alone = scene.overlap(which="far")
    assert len(alone) == 0 and not alone and alone.inside_a.shape == (0,)


def test_scene_against_a_mesh(device):
    scene = abut.Scene(device=device)
    scene.add(box(device, 1, 1, 1), name="a")
    found = scene.overlap(against=box(device, 3, 3, 3))
    assert found.objects.numpy().tolist() == [[0, 0]]
    assert list(abut.Relation)[found.relation.numpy()[0]] == "a_in_b"


def test_scene_refuses_open_objects_that_may_meet(device):
    scene = abut.Scene(device=device)
    a = box(device, 1, 1, 1)
    opened = abut.Mesh(a.vertices.numpy(), a.faces.numpy()[1:], device)
    scene.add(a, name="whole")
    scene.add(opened, shift(9, 0, 0), name="opened")
    assert len(scene.overlap()) == 0
    scene.move("opened", shift(0.5, 0, 0))
    with pytest.raises(abut.MeshError, match="opened"):
        scene.overlap()
    assert scene.collide(solid=True).contained.shape == (0, 2)


# A plate of two faces, and the projective plane: closed, but neither encloses anything.
PLATE = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0]]), [[0, 1, 2], [0, 2, 1]]
AROUND = [(k, k % 5 + 1) for k in range(1, 6)]
PLANE = (
    np.random.default_rng(0).normal(0, 0.1, (6, 3)),
    [[0, i, j] for i, j in AROUND] + [[i, j, (i + 2) % 5 + 1] for i, j in AROUND],
)


@pytest.mark.parametrize("shape", [PLATE, PLANE])
def test_closed_meshes_without_interior_inside_a_solid(shape, device):
    """Regression: scene.collide(solid=True) refused them."""
    mesh, outer = abut.Mesh(*shape, device), box(device, 2, 2, 2)
    assert mesh.watertight and abut.collide(mesh, outer, solid=True).contained
    scene = abut.Scene([mesh, outer])
    assert scene.collide(solid=True).contained.numpy().tolist() == [[0, 1]]


def test_warp_arrays_come_out(device):
    found = abut.overlap(box(device, 1, 1, 1), box(device, 1, 1, 1), pose_b=shift(0.5, 0, 0))
    assert isinstance(found.deepest, wp.array) and found.deepest.device == wp.get_device(device)


@pytest.mark.parametrize("exponent", [-900, -340, -60, 60, 340, 900])
def test_any_size(device, exponent):
    cube, ball = trimesh.creation.box(), trimesh.creation.icosphere(1)
    pose = shift(0.9, 0.3, 0.2)
    found = []
    for scale in (1.0, np.ldexp(1.0, exponent)):
        a, b = (abut.Mesh(m.vertices * scale, m.faces, device) for m in (cube, ball))
        at = pose.copy()
        at[:3, 3] *= scale
        found.append((abut.overlap(a, b, pose_b=at, volume=True), scale))
    (one, _), (other, scale) = found
    assert other.relation == one.relation == "crossing"
    assert other.inside_a / scale == pytest.approx(one.inside_a, rel=1e-12)
    for name in ("deepest", "separation", "centroid"):
        numbers = getattr(other, name).numpy() / scale
        assert numbers == pytest.approx(getattr(one, name).numpy(), abs=1e-12)
    assert other.regions.depth / scale == pytest.approx(one.regions.depth, rel=1e-12)
    if abs(exponent) <= 340:
        assert other.volume / scale / scale / scale == pytest.approx(one.volume, rel=1e-12)
