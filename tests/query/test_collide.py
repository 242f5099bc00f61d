"""abut.collide: every method and bound finds the same, right pairs."""

import numpy as np
import pytest
import trimesh

import abut
import oracle
from abut import cases
from abut.options import TREE_METHODS
from shapes import moved, random_poses, shift, strips, walls

BOUNDS = list(abut.Bound)


def rows(hits):
    return [tuple(row) for row in hits.pairs.numpy().tolist()]


def check_same(hits, other):
    """Two results with equal rows."""
    for name, value in other.numpy().items():
        np.testing.assert_array_equal(hits.numpy()[name], value)


def check_against_brute(a, b, **options):
    """Every bound gives the rows of brute force, which are returned."""
    truth = abut.collide(a, b, method="brute", **options)
    for bound in BOUNDS:
        check_same(abut.collide(a, b, bound=bound, **options), truth)
    return truth


def meshes(name, faces, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(name, faces)]


@pytest.mark.parametrize("name", cases.PAIRS)
def test_scenes_against_brute_force(name, device):
    a, b = meshes(name, 1500, device)
    hits = check_against_brute(a, b)
    assert bool(hits) is (name not in ("apart", "nested"))
    assert len(hits) == len(rows(hits)) and rows(hits) == sorted(set(rows(hits)))


@pytest.mark.parametrize("name", cases.PAIRS)
def test_small_scenes_against_fractions(name, device):
    a, b = cases.pair(name, 60)
    hits = check_against_brute(abut.Mesh(*a, device), abut.Mesh(*b, device))
    assert rows(hits) == oracle.pairs_between(*a, *b)


@pytest.mark.parametrize("name", cases.PAIRS)
def test_swapping_the_meshes_swaps_the_rows(name, device):
    a, b = meshes(name, 500, device)
    swapped = [(j, i) for i, j in rows(abut.collide(b, a))]
    assert rows(abut.collide(a, b)) == sorted(swapped)


def test_models(data, device):
    cow = abut.Mesh.load(data / "models" / "cow_5k.ply", device)
    assert len(check_against_brute(cow, cow)) > cow.face_count
    for pose in random_poses(2, 0.1 * np.ptp(cow.bounds)):
        assert len(check_against_brute(cow, cow, pose_b=pose)) > 100


def test_a_robot_in_many_poses(data, device):
    """FCL's benchmark: 25 random placements, all at once."""
    room = abut.Mesh.load(data / "fcl" / "env.obj", device)
    robot = abut.Mesh.load(data / "fcl" / "rob.obj", device)
    hits = check_against_brute(room, robot, pose_b=random_poses(25, 2500))
    assert 3 < hits.colliding.numpy().sum() < 25


def test_models_against_cgal(data):
    cgal = pytest.importorskip("igl.copyleft.cgal", reason="needs libigl")
    cow = abut.Mesh.load(data / "models" / "cow_5k.ply", "cpu")
    vertices, faces = cow.points.numpy(), cow.faces.numpy().astype(np.int64)
    other = moved(vertices, random_poses(1, 0.1 * np.ptp(vertices))[0])
    found = cgal.intersect_other(vertices, faces, other, faces, detect_only=True)[0]
    hits = abut.collide(cow, abut.Mesh(other, faces, "cpu"))
    assert rows(hits) == sorted(map(tuple, found.tolist())) and len(hits) > 100


def test_large_models_against_cgal(data):
    cgal = pytest.importorskip("igl.copyleft.cgal", reason="needs libigl")
    a = abut.Mesh.load(data / "models" / "dragon_202k.ply", "cpu")
    b = abut.Mesh.load(data / "models" / "bunny_69k.ply", "cpu")
    fitted = (b.points.numpy() - b.bounds.mean(axis=0)) * (np.ptp(a.bounds) / np.ptp(b.bounds))
    b.deform(fitted + a.bounds.mean(axis=0))
    arrays = [m.numpy() for m in (a.points, a.faces, b.points, b.faces)]
    arrays = [x.astype(np.int64) if x.dtype == np.int32 else x for x in arrays]
    found = cgal.intersect_other(*arrays, detect_only=True)[0]
    assert rows(abut.collide(a, b)) == sorted(map(tuple, found.tolist())) and len(found) > 1000


def test_few_faces_and_none(device):
    none = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device)
    no_faces = abut.Mesh(np.eye(3), np.zeros((0, 3), int), device)
    one = abut.Mesh(np.eye(3), [[0, 1, 2]], device)
    two = abut.Mesh(np.eye(3), [[0, 1, 2], [2, 2, 2]], device)
    assert len(check_against_brute(none, one)) == 0
    assert len(check_against_brute(two, no_faces)) == 0
    assert rows(check_against_brute(one, one)) == [(0, 0)]
    assert rows(check_against_brute(two, two)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    hits = check_against_brute(one, none, pose_a=random_poses(4, 1.0))
    assert hits.colliding.numpy().tolist() == [False] * 4


@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f4", "f8"), ("f8", "f4")])
def test_coordinates_are_kept_as_given(dtypes, device):
    """Float32 answers are about the float32 numbers."""
    shapes = cases.pair("tori", 800)
    given = [s.vertices.astype(dtype) for s, dtype in zip(shapes, dtypes, strict=True)]
    wide = [abut.Mesh(v.astype(float), s.faces, device) for v, s in zip(given, shapes, strict=True)]
    kept = [abut.Mesh(v, s.faces, device) for v, s in zip(given, shapes, strict=True)]
    assert len(abut.collide(*kept)) > 0
    check_same(abut.collide(*kept), check_against_brute(*wide))


# ---- large, small, far away


@pytest.mark.parametrize("posed", [False, True], ids=["unmoved", "posed"])
@pytest.mark.parametrize("exponent", [-1000, -500, -30, 30, 100, 130, 500, 1000])
def test_scale_changes_nothing(exponent, posed, device):
    """Powers of two scale exactly, so the rows stay; also beyond the range of float32."""
    shapes = cases.pair("spheres", 80)
    scaled = [abut.Mesh(np.ldexp(s.vertices, exponent), s.faces, device) for s in shapes]
    options = {"pose_b": np.eye(4)} if posed else {}
    want = abut.collide(*(abut.Mesh(*s, device) for s in shapes))
    for bound in BOUNDS:
        check_same(abut.collide(*scaled, bound=bound, **options), want)


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**20), 2.0**28])
def test_offset_changes_nothing(offset, device):
    """Coordinates of few bits move exactly, so the rows stay."""
    shapes = [cases.Shape(np.round(s.vertices, 6), s.faces) for s in cases.pair("tori", 800)]
    shapes = [cases.Shape(np.rint(s.vertices * 2**20) / 2**20, s.faces) for s in shapes]
    far = [abut.Mesh(*s.moved((offset, -offset, offset)), device) for s in shapes]
    want = check_against_brute(*(abut.Mesh(*s, device) for s in shapes))
    assert len(want) > 0
    check_same(check_against_brute(*far), want)
    check_same(check_against_brute(*far, pose_a=np.eye(4)), want)


def test_meshes_in_different_places_brought_together(device):
    """Each mesh far from the origin and from the other; poses bring them into contact."""
    a, b = cases.pair("spheres", 500)
    far_a, far_b = a.moved((1e6, 0, 0)), b.moved((0, -1e6, 1e5))
    poses = {"pose_a": shift(-1e6, 0, 0), "pose_b": shift(0, 1e6, -1e5)}
    assert check_against_brute(abut.Mesh(*far_a, device), abut.Mesh(*far_b, device), **poses)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_huge_and_tiny_faces(size, device):
    """A ball on a floor of two faces, a million million times larger."""
    floor = cases.plane(2, 2, size)
    ball = cases.icosphere(300).moved((0.123 * size, 0.1, 0.5))
    hits = check_against_brute(abut.Mesh(*floor, device), abut.Mesh(*ball, device))
    assert rows(hits) == oracle.pairs_between(*floor, *ball) != []


def test_a_small_mesh_far_out_on_a_huge_one(device):
    tip = abut.Mesh(np.eye(3) * 2.0**930 + [2.0**990, 0, 0], [[0, 1, 2]], device)
    sheet = cases.plane(2, 2, 2.0**991)
    assert len(check_against_brute(tip, abut.Mesh(*sheet, device))) > 0


# ---- complete


def test_more_pairs_than_the_queues_hold_at_first(device):
    count = 400
    a, b = abut.Mesh(*strips(count), device), abut.Mesh(*walls(count), device)
    want = np.stack(np.divmod(np.arange(count**2), count), axis=1)
    for method in TREE_METHODS:
        np.testing.assert_array_equal(abut.collide(a, b, method=method).pairs.numpy(), want)


def test_more_undecided_pairs_than_the_queues_hold_at_first(device):
    """All in one plane: every pair needs exact arithmetic."""
    count = 150
    a, b = abut.Mesh(*strips(count), device), abut.Mesh(*strips(count, 1), device)
    want = np.stack(np.divmod(np.arange(count**2), count), axis=1)
    np.testing.assert_array_equal(abut.collide(a, b).pairs.numpy(), want)
    assert len(abut.collide(a, b, first=True)) == 1


def test_more_pairs_in_a_batch_than_the_queues_hold_at_first(device):
    a, b = abut.Mesh(*strips(50), device), abut.Mesh(*walls(50), device)
    poses = np.stack([shift(0, 0, z) for z in np.linspace(-0.1, 0.1, 20)])
    hits = check_against_brute(a, b, pose_b=poses)
    assert len(hits) == 20 * 50 * 50


# ---- results


def test_results_as_numpy(device):
    a, b = meshes("spheres", 100, device)
    plain = abut.collide(a, b).numpy()
    assert set(plain) == {"pairs", "colliding"}
    assert plain["pairs"].dtype == np.int32 and plain["pairs"].shape[1] == 2
    assert plain["colliding"].dtype == bool and plain["colliding"].shape == ()
    batch = abut.collide(a, b, pose_b=random_poses(3, 1.0), solid=True).numpy()
    assert set(batch) == {"pairs", "colliding", "pose", "contained"}
    assert batch["pose"].shape == (len(batch["pairs"]),) and batch["pose"].dtype == np.int32
    assert batch["colliding"].shape == batch["contained"].shape == (3,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_outlive_deformations(dtype, device):
    """Segments are computed when asked for, of the shape at the time of the query."""
    shapes = cases.pair("spheres", 100)
    a, b = (abut.Mesh(s.vertices.astype(dtype), s.faces, device) for s in shapes)
    results, want = [], []
    for step in range(5):
        b.deform((shapes[1].vertices - 0.1 * step).astype(dtype))
        results.append(abut.collide(a, b))
        want.append(abut.collide(a, b).segments.numpy())
    b.deform(b.vertices.numpy() + dtype(5))
    for hits, segments in zip(results, want, strict=True):
        np.testing.assert_array_equal(hits.segments.numpy(), segments)


def test_members_and_their_names_are_options(device):
    a, b = meshes("spheres", 100, device)
    check_same(
        abut.collide(a, b, method=abut.Method.BRUTE, bound=abut.Bound.AABB),
        abut.collide(a, b, method="brute", bound="aabb"),
    )
    with pytest.raises(abut.OptionError, match=r"method must be one of 'brute', 'bvh'.*'fast'"):
        abut.collide(a, b, method="fast")
    with pytest.raises(abut.OptionError, match=r"bound must be one of 'aabb'.*not 'ball'"):
        abut.collide(a, b, bound="ball")


def test_meshes_on_different_devices_are_refused(device):
    if device == "cpu":
        pytest.skip("needs a second device")
    a, b = cases.pair("spheres", 100)
    with pytest.raises(abut.DeviceError, match=r"cpu.*cuda:0.*\.to\(device\)"):
        abut.collide(abut.Mesh(*a, "cpu"), abut.Mesh(*b, device))


def test_a_trimesh_collides_like_its_arrays(device):
    shape = trimesh.creation.annulus(0.5, 1.0, 1.0)
    ring = abut.Mesh.from_trimesh(shape, device)
    same = abut.Mesh(np.array(shape.vertices), np.array(shape.faces), device)
    check_same(
        check_against_brute(ring, ring, pose_b=shift(0.3, 0.2, 0.1)),
        abut.collide(same, same, pose_b=shift(0.3, 0.2, 0.1)),
    )


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_one_common_point_far_away(far, device):
    """Each mesh has boxes in a frame of its own, and the way between the frames is rounded."""
    rng = np.random.default_rng(0)
    ball = cases.icosphere(80)
    for _ in range(100):
        first = ball.vertices * 10 ** rng.uniform(-2, 2) + rng.uniform(-far, far, 3)
        second = ball.vertices * np.ptp(first[:, 0]) * rng.uniform(0.1, 2)
        high, low = np.argmax(first[:, 0]), np.argmin(second[:, 0])
        second += first[high] - second[low]
        second[low] = first[high]
        a, b = (abut.Mesh(vertices, ball.faces, device) for vertices in (first, second))
        assert abut.collide(a, b) and abut.collide(a, b, first=True)
