"""A batch of poses gives what as many single calls give, and what brute force gives."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from shapes import random_poses, strips

COUNTS = [1, 2, 31, 32, 33, 100, 1000]
GAP = 0.05


def with_flat_faces(shape):
    """A shape with faces of no area added: an edge twice over, a line and a point."""
    vertices, faces = np.asarray(shape.vertices, float), np.asarray(shape.faces)
    middle = vertices[faces[0, :2]].mean(axis=0)
    end, first = len(vertices), faces[0]
    more = [[first[0], first[1], first[0]], [first[0], end, first[1]], [first[2]] * 3]
    return np.concatenate([vertices, [middle]]), np.concatenate([faces, more]).astype(np.int32)


def one_face():
    return np.array([[-1.0, -1, 0], [1, -1, 0.1], [0, 1.2, -0.1]]), np.array([[0, 1, 2]], np.int32)


def huge_and_tiny():
    """Two faces a million times as long as the other forty."""
    vertices, faces = cases.icosphere(20)
    vertices = np.concatenate([vertices, vertices * [2e-1, 2e-1, 2e-1] + 0.3])
    wide = np.array([[-1e4, -1e4, 0], [1e4, -1e4, 0.0], [0, 1e4, 0.2], [0, 0, 1e4]])
    at = len(vertices)
    more = [[at, at + 1, at + 2], [at, at + 1, at + 3]]
    faces = np.concatenate([faces, faces + at // 2, more]).astype(np.int32)
    return np.concatenate([vertices * 0.01, wide]), faces


SHAPES = {
    "tori": (cases.torus(8, 5), cases.torus(7, 6)),
    "faces without area": (with_flat_faces(cases.torus(6, 4)), with_flat_faces(cases.gem(40))),
    "one face": (one_face(), one_face()),
    "one face and many": (cases.torus(8, 5), one_face()),
    "huge and tiny faces": (huge_and_tiny(), cases.gem(40)),
    "in one plane": (strips(6), strips(7, along=1)),
}


def meshes(name, device):
    return [abut.Mesh(*shape, device) for shape in SHAPES[name]]


def batch_of(count):
    """Poses of which some are in contact, some near, some far, and some in one plane."""
    poses = random_poses(count, 1.5, seed=count)
    poses[3::7, :3, 3] *= 20.0
    poses[::5, :3, :3] = np.eye(3)
    poses[::10, :3, 3] = np.round(poses[::10, :3, 3])
    return poses


def every_pair(a, b, **options):
    return abut.collide(a, b, **options)


def one_pair(a, b, **options):
    return abut.collide(a, b, first=True, **options)


def near_pairs(a, b, **options):
    return abut.within(a, b, GAP, **options)


def nearest(a, b, **options):
    return abut.distance(a, b, **options)


VERBS = [every_pair, one_pair, near_pairs, nearest]


def columns(result):
    return {name: np.asarray(value) for name, value in result.numpy().items()}


def joined(singles):
    """The rows of single calls, with the pose that each belongs to."""
    parts = [columns(result) for result in singles]
    ragged = isinstance(singles[0], abut.Contacts | abut.Gaps)
    if not ragged:
        return {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    rows = {}
    for name in parts[0]:
        scalars = parts[0][name].ndim == 0
        rows[name] = (np.array if scalars else np.concatenate)([part[name] for part in parts])
    sizes = [len(part["pairs"]) for part in parts]
    return rows | {"pose": np.repeat(np.arange(len(parts)), sizes)}


def same(found, want):
    assert found.keys() == want.keys()
    for name in want:
        np.testing.assert_array_equal(found[name], want[name], err_msg=name)


def without_free_choices(verb, found):
    """Columns that every way to ask must repeat: which of several contacts is named is free."""
    if verb is one_pair:
        return {"colliding": found["colliding"], "pose": found["pose"]}
    if verb is nearest:
        free = found["value"] == 0
        faces = np.where(free[..., None], -1, found["faces"])
        points = np.where(free[..., None, None], 0.0, found["points"])
        return {"value": found["value"], "faces": faces, "points": points}
    return found


def same_answer(verb, found, want):
    """Compare two ways to ask one question."""
    assert found.keys() == want.keys()
    same(without_free_choices(verb, found), without_free_choices(verb, want))


def check(verb, a, b, single, batch):
    """Compare a batch with single calls and with brute force."""
    found = columns(verb(a, b, **batch))
    alone = joined([verb(a, b, **options) for options in single])
    truth = columns(verb(a, b, method="brute", **batch))
    for other in (alone, truth):
        same_answer(verb, found, other)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_is_its_single_calls_and_brute_force(name, count, verb, device):
    a, b = meshes(name, device)
    poses = batch_of(count)
    check(verb, a, b, [{"pose_b": pose} for pose in poses], {"pose_b": poses})


@pytest.mark.parametrize("name", SHAPES)
def test_batches_have_contacts_and_gaps(name, device):
    """The shapes above are in contact at some poses, and apart at others."""
    hits = abut.collide(*meshes(name, device), pose_b=batch_of(1000), first=True)
    assert 5 < np.count_nonzero(hits.colliding.numpy()) < 995


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("moved", ["a", "both", "a one pose", "b one pose"])
def test_either_mesh_or_both_may_move(moved, verb, device):
    a, b = meshes("tori", device)
    poses, others = batch_of(33), random_poses(33, 0.3, seed=5)
    if moved == "a":
        single, batch = [{"pose_a": pose} for pose in poses], {"pose_a": poses}
    elif moved == "both":
        both = zip(others, poses, strict=True)
        single = [{"pose_a": p, "pose_b": q} for p, q in both]
        batch = {"pose_a": others, "pose_b": poses}
    else:
        few, many = ("pose_a", "pose_b") if moved == "a one pose" else ("pose_b", "pose_a")
        single = [{few: others[0], many: pose} for pose in poses]
        batch = {few: others[0], many: poses}
    check(verb, a, b, single, batch)


@pytest.mark.parametrize("verb", VERBS)
def test_named_contacts_are_contacts(verb, device):
    """Also where any one of several may be named."""
    a, b = meshes("tori", device)
    poses = batch_of(100)
    every = abut.collide(a, b, pose_b=poses).numpy()
    met = {tuple(row) for row in np.column_stack([every["pose"], every["pairs"]]).tolist()}
    found = columns(verb(a, b, pose_b=poses))
    if verb is nearest:
        touching = np.flatnonzero(found["value"] == 0)
        named = np.column_stack([touching, found["faces"][touching]])
    else:
        zero = found["distance"] == 0 if verb is near_pairs else slice(None)
        named = np.column_stack([found["pose"], found["pairs"]])[zero]
    assert len(named) > 10
    assert {tuple(row) for row in named.tolist()} <= met


def as_torch(poses, device):
    torch = pytest.importorskip("torch")
    return torch.tensor(poses, device="cuda" if device.startswith("cuda") else "cpu")


GIVEN = {
    "float64": lambda poses, device: poses,
    "float32": lambda poses, device: poses.astype(np.float32),
    "nested lists": lambda poses, device: poses.tolist(),
    "list of arrays": lambda poses, device: list(poses),
    "Fortran order": lambda poses, device: np.asfortranarray(poses),
    "every second": lambda poses, device: np.repeat(poses, 2, axis=0)[::2],
    "mat44d": lambda poses, device: wp.array(poses, dtype=wp.mat44d, device=device),
    "mat44f": lambda poses, device: wp.array(poses, dtype=wp.mat44f, device=device),
    "Warp, three axes": lambda poses, device: wp.array(poses, dtype=wp.float64, device=device),
    "Warp, on the CPU": lambda poses, device: wp.array(poses, dtype=wp.mat44d, device="cpu"),
    "Torch": as_torch,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", GIVEN)
def test_poses_in_any_form(form, verb, device):
    a, b = meshes("tori", device)
    poses = batch_of(33)
    given = GIVEN[form](poses, device)
    plain = poses.astype(np.float32).astype(float) if form in ("float32", "mat44f") else poses
    same_answer(verb, columns(verb(a, b, pose_b=given)), columns(verb(a, b, pose_b=plain)))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", ["float64", "mat44d"])
def test_poses_may_be_overwritten_after_the_call(form, verb, device):
    """Results that compute columns on request keep the poses of the call."""
    a, b = meshes("tori", device)
    poses = batch_of(33)
    want = columns(verb(a, b, pose_b=poses))
    given = GIVEN[form](poses.copy(), device)
    result = verb(a, b, pose_b=given)
    given.fill(np.nan) if form == "float64" else given.fill_(0.0)
    same_answer(verb, columns(result), want)


@pytest.mark.parametrize("verb", VERBS)
def test_batches_of_changing_size(verb, device):
    """Plans are kept between calls; the size of the last batch leaves no trace."""
    a, b = meshes("faces without area", device)
    for count in [1, 1000, 2, 100, 33, 1, 1000, 32]:
        fresh = meshes("faces without area", device)
        found, want = (columns(verb(*pair, pose_b=batch_of(count))) for pair in ((a, b), fresh))
        same_answer(verb, found, want)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["tori", "in one plane"])
def test_the_same_bytes_every_time_with_any_number_of_threads(name, verb, threads, device):
    found = set()
    for count in (1, 2, 1):
        threads(count)
        rows = columns(verb(*meshes(name, device), pose_b=batch_of(1000)))
        found.add(b"".join(rows[key].tobytes() for key in sorted(rows)))
    assert len(found) == 1


@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_batch(verb, device):
    a, b = meshes("tori", device)
    found = columns(verb(a, b, pose_b=np.empty((0, 4, 4))))
    assert all(len(column) == 0 for column in found.values())
