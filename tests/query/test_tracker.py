"""Fronts give the rows of a fresh search, hold no pair twice and stay within bounds."""

import numpy as np
import pytest
import warp as wp

import abut
from abut.cases import icosphere, torus
from abut.query.bvtt_front import CLIMB_EVERY
from abut.query.ccd import impacts_of
from abut.query.ccd_candidates import CcdFronts
from abut.query.ccd_plan import CcdExecution
from abut.query.ccd_queues import CcdQueues
from shapes import random_poses


def waves(shape, count, height=0.4):
    """Frames in which a shape is bent to and fro and crumpled."""
    x = shape.vertices[:, 0]
    noise = np.random.default_rng(0).normal(size=shape.vertices.shape)
    for k in range(count):
        bent = shape.vertices + 0.1 * np.sin(0.4 * k) * noise
        bent[:, 2] *= 1.0 - 1.6 * height * np.sin(0.7 * k) * np.cos(2.0 * x)
        bent[:, 1] += height * np.sin(1.3 * k + 3.0 * x)
        yield bent


def front_of(tracker):
    front = tracker._search.front
    return front.queues[front.names[0]].keys.numpy()[: front.size]


def test_contacts_of_one_mesh(device):
    shape = torus(48, 24)
    mesh, other = (abut.Mesh(*shape, device=device) for _ in range(2))
    follow = abut.Tracker(mesh, method="front")
    met = 0
    for frame in waves(shape, 20):
        hits = follow.step(frame)
        other.deform(frame)
        fresh = abut.self_collide(other)
        assert np.array_equal(hits.pairs.numpy(), fresh.pairs.numpy())
        assert follow.front_size > 0
        pairs = front_of(follow)
        assert len(np.unique(pairs)) == len(pairs)
        met += len(hits)
    assert met > 0


def test_contacts_of_two_meshes(device):
    a, b = torus(40, 20), icosphere(1280)
    follow = abut.Tracker(
        (abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)), method="front"
    )
    mesh_a, mesh_b = abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)
    met = 0
    for k, frame in enumerate(waves(a, 16)):
        ball = b.vertices * 0.7 + np.array([np.cos(0.2 * k), np.sin(0.2 * k), 0.1])
        mesh_a.deform(frame)
        mesh_b.deform(ball)
        hits = follow.step(frame, ball)
        assert np.array_equal(hits.pairs.numpy(), abut.collide(mesh_a, mesh_b).pairs.numpy())
        pairs = front_of(follow)
        assert len(np.unique(pairs)) == len(pairs)
        met += len(hits)
    assert met > 100
    assert np.array_equal(follow.step(None, ball).pairs.numpy(), hits.pairs.numpy())


def test_front_moves_up_again(device):
    """After a disordered frame a front shrinks to about the size of a new one."""
    shape = icosphere(1280)
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    follow.step(shape.vertices)
    calm = follow.front_size
    rng = np.random.default_rng(0)
    follow.step(shape.vertices + 0.2 * rng.normal(size=shape.vertices.shape))
    wild = follow.front_size
    for _ in range(2 * CLIMB_EVERY):
        hits = follow.step(shape.vertices)
    assert calm <= follow.front_size < wild
    assert follow.front_size < 1.2 * calm
    assert len(hits) == 0


def test_front_that_grows_too_long_is_given_up(device):
    shape = torus(48, 24)
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    follow._most_pairs = 1000
    for frame in waves(shape, 3):
        hits = follow.step(frame)
        fresh = abut.self_collide(abut.Mesh(frame, shape.faces, device=device))
        assert np.array_equal(hits.pairs.numpy(), fresh.pairs.numpy())
        assert follow.front_size == 0


@pytest.mark.parametrize("method", ["bvh", "brute", "front"])
def test_all_methods_and_tiny_meshes(method, device):
    one = abut.Mesh(np.eye(3), [[0, 1, 2]], device=device)
    follow = abut.Tracker((one, abut.Mesh(*icosphere(20), device=device)), method=method)
    assert len(follow.step(np.eye(3) * 5)) == 0
    assert len(follow.step(np.eye(3))) > 0
    alone = abut.Tracker(one, method=method)
    assert len(alone.step()) == 0
    assert len(alone.advance(-np.eye(3))) == 0
    assert len(follow.advance(np.eye(3) * 5)) > 0
    point = abut.Mesh(np.zeros((1, 3)), [[0, 0, 0]], device=device)
    assert len(abut.Tracker(point, method=method).advance(np.ones((1, 3)))) == 0


def test_poses_are_given_as_vertices(device):
    a, b = icosphere(320), torus(24, 12)
    follow = abut.Tracker(
        (abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)), method="front"
    )
    for pose in random_poses(12, reach=1.0):
        moved = b.vertices @ pose[:3, :3].T + pose[:3, 3]
        fresh = abut.collide(abut.Mesh(*a, device=device), abut.Mesh(moved, b.faces, device=device))
        assert np.array_equal(follow.step(None, moved).pairs.numpy(), fresh.pairs.numpy())


def impacts(hits):
    """Rows of impacts, to the last bit."""
    return {name: column.tobytes() for name, column in hits.numpy().items()}


def fresh_impacts(shapes, ends, device, **options):
    """Impacts by ``ccd`` of meshes without earlier steps."""
    meshes = [abut.Mesh(*shape, device=device) for shape in shapes]
    return abut.ccd(*(abut.Motion(m, end) for m, end in zip(meshes, ends, strict=True)), **options)


OPTIONS = [{}, {"min_distance": 0.02}, {"first": True}, {"solver": "cubic"}]


@pytest.mark.parametrize("method", ["front", "bvh"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "plain")
def test_impacts_of_one_mesh(method, options, device):
    shape = torus(24, 12)
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method=method)
    before, met = shape.vertices, 0
    for frame in waves(shape, 12, height=0.2):
        hits = follow.advance(frame, **options)
        fresh = fresh_impacts([(before, shape.faces)], [frame], device, **options)
        assert impacts(hits) == impacts(fresh) and hits.first == fresh.first
        assert (follow.front_size > 0) == (method == "front")
        before, met = frame, met + len(hits)
    assert met > 5
    assert np.array_equal(follow.meshes[0].vertices.numpy(), before)


def test_impacts_of_two_meshes(device):
    a, b = torus(24, 12), icosphere(320)
    meshes = tuple(abut.Mesh(*shape, device=device) for shape in (a, b))
    follow = abut.Tracker(meshes, method="front")
    before, kinds = [a.vertices, b.vertices], set()
    for k, frame in enumerate(waves(a, 12, height=0.2)):
        ball = b.vertices * 0.7 + np.array([np.cos(0.2 * k), np.sin(0.2 * k), 0.1])
        hits = follow.advance(frame, ball)
        shapes = (before[0], a.faces), (before[1], b.faces)
        assert impacts(hits) == impacts(fresh_impacts(shapes, [frame, ball], device))
        for front in follow._fronts.kept.values():
            pairs = front.queues[front.names[0]].keys.numpy()[: front.size]
            assert len(np.unique(pairs)) == len(pairs)
        before, kinds = [frame, ball], kinds | set(hits.kind.numpy().tolist())
    assert kinds == {0, 1, 2}
    assert len(follow.advance(None, None)) == len(follow.advance()) == 0


def test_ranges_of_a_front_give_the_same_impacts(device):
    """Candidates beyond what is held at once: the front is moved a part at a time."""
    shape = torus(24, 12)
    frames = list(waves(shape, 5, height=0.2))
    whole = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    want = [impacts(whole.advance(frame)) for frame in frames]
    mesh, fronts = abut.Mesh(*shape, device=device), CcdFronts(room=4)
    how = CcdExecution(fronts=fronts, queues=CcdQueues(mesh.device, 16, 1000))
    for frame, rows in zip(frames, want, strict=True):
        motion = abut.Motion(mesh, frame)
        assert impacts(impacts_of((motion,), execution=how)) == rows
        motion.arrive()
    for kind, front in whole._fronts.kept.items():
        other = fronts.kept[kind]
        pairs = [f.queues[f.names[0]].keys.numpy()[: f.size] for f in (front, other)]
        assert np.array_equal(*map(np.sort, pairs))


@pytest.mark.parametrize("most", [10, 4000])
def test_ccd_front_that_grows_too_long_is_given_up(most, device):
    """At once, or in the middle of a step, whose impacts are complete nevertheless."""
    shape = torus(24, 12)
    frames = list(waves(shape, 6, height=0.2))
    plain = abut.Tracker(abut.Mesh(*shape, device=device))
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    if most > 10:
        want, found = (tracker.advance(frames[0]) for tracker in (plain, follow))
        assert impacts(found) == impacts(want) and follow.front_size > most
    follow._fronts.most_pairs = most
    for frame in frames[1:]:
        assert impacts(follow.advance(frame)) == impacts(plain.advance(frame))
        assert len(follow._fronts.given_up) > 0
    assert follow.front_size <= 2 * most


def test_arrays_may_be_written_to_afterwards(device):
    """A program that moves its vertices in place gets its motions nevertheless."""
    shape = icosphere(80)
    vertices = np.array(shape.vertices, dtype=np.float64)
    mesh = abut.Mesh(vertices, shape.faces, device=device)
    follow = abut.Tracker(mesh)
    vertices[:, 2] *= -1.0
    found = follow.advance(vertices)
    want = fresh_impacts([shape], [vertices], device)
    assert len(found) > 0 and impacts(found) == impacts(want)
    vertices[:, 2] *= -1.0
    assert len(follow.advance(vertices)) > 0


def test_impacts_far_from_the_origin(device):
    """Boxes keep their origin while they can: fronts and hierarchies live on."""
    shape = torus(24, 12)
    far = np.array([1e5, 0.0, 0.0])
    follow = abut.Tracker(abut.Mesh(shape.vertices + far, shape.faces, device), method="front")
    follow.advance(shape.vertices + far)
    fronts = list(follow._fronts.kept.values())
    before = shape.vertices + far
    for k in range(3):
        end = before * [1.0, 1.0, -0.9] + 0.1 * k
        fresh = fresh_impacts([(before, shape.faces)], [end], device)
        assert impacts(follow.advance(end)) == impacts(fresh)
        before = end
    assert [front in fronts for front in follow._fronts.kept.values()] == [True, True]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["bvh", "brute", "front"])
def test_bad_vertices_leave_the_mesh_where_it_was(method, kind, device):
    """On CUDA they are refused when the search that ran meanwhile is done."""
    shape = torus(48, 24)
    frames = [frame.astype(kind) for frame in waves(shape, 6)]
    mesh = abut.Mesh(frames[0], shape.faces, device)
    follow = abut.Tracker(mesh, method=method)
    before = follow.step(frames[1]).pairs.numpy()
    for value in (np.nan, np.inf):
        for rows in ([7], slice(None)):
            bad = frames[2].copy()
            bad[rows, 1] = value
            first = 7 if rows == [7] else 0
            with pytest.raises(abut.MeshError, match=rf"vertices\[{first}\] is"):
                follow.step(bad)
            assert np.array_equal(mesh.vertices.numpy(), frames[1])
            assert np.array_equal(follow.step().pairs.numpy(), before)
    for frame in frames[2:]:
        fresh = abut.self_collide(abut.Mesh(frame, shape.faces, device), method="brute")
        assert np.array_equal(follow.step(frame).pairs.numpy(), fresh.pairs.numpy())


def test_mesh_that_moves_far_away(device):
    """Boxes of a hierarchy made for somewhere else would all overlap."""
    shape = torus(48, 24)
    for kind in (np.float32, np.float64):
        follow = abut.Tracker(abut.Mesh(shape.vertices.astype(kind), shape.faces, device))
        for k, frame in enumerate(waves(shape, 8)):
            far = (frame * 1e-3 + (1e4 if k % 3 == 2 else 0.0)).astype(kind)
            fresh = abut.self_collide(abut.Mesh(far, shape.faces, device))
            assert np.array_equal(follow.step(far).pairs.numpy(), fresh.pairs.numpy())


def test_bad_input_is_refused(device):
    mesh = abut.Mesh(*icosphere(20), device=device)
    with pytest.raises(abut.OptionError, match="one mesh or two"):
        abut.Tracker((mesh, mesh, mesh))
    with pytest.raises(abut.MeshError, match=r"b must be an abut\.Mesh"):
        abut.Tracker((mesh, 3))
    with pytest.raises(abut.OptionError, match="2 arrays of vertices for 1 mesh"):
        abut.Tracker(mesh).step(None, None)
    with pytest.raises(abut.OptionError, match="method must be one of"):
        abut.self_collide(mesh, method="front")
    with pytest.raises(abut.MeshError, match="deform needs shape"):
        abut.Tracker(mesh).step(np.zeros((3, 3)))
    with pytest.raises(abut.MeshError, match="deform needs shape"):
        mesh.deform(wp.zeros(3, dtype=wp.vec3f, device=device))
    one = abut.Mesh(np.eye(3), [[0, 1, 2]], device=device)
    with pytest.raises(abut.MeshError, match=r"vertices\[0\] is"):
        abut.Tracker(one).step(np.eye(3) * np.nan)


def test_dancer_contacts_equal_those_from_the_root(data, device):
    frames = np.load(data / "anim" / "rumba_dancing_25k_f0-59.npz")
    follow = abut.Tracker(abut.Mesh(frames["V"][0], frames["F"], device=device), method="front")
    fresh = abut.Tracker(abut.Mesh(frames["V"][0], frames["F"], device=device))
    for vertices in frames["V"][:12]:
        found = follow.step(vertices).pairs.numpy()
        assert np.array_equal(found, fresh.step(vertices).pairs.numpy())
    assert len(found) > 100
