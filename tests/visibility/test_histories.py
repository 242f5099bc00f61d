"""Answers of cull depend on current positions alone, not on earlier calls."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut.visibility.adjacency import Coincidence
from abut.visibility.gl.driver import unavailable
from shapes import shift

WHY_NO_GL = unavailable()
TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
CORNERS = 9  # of a mesh here
GAPS = np.array([0.0, 2.0**-30, 2.0**-6, 2.0**-4, 1.0])

DISTANCES = [0.0, 2.0**-30, 2.0**-6, 0.1, 1.0]
CHANGES = ("nudge", "snap", "scatter", "move", "turn", "stay")
changes = st.tuples(st.sampled_from(CHANGES), st.integers(0, 2), st.integers(0, 999))
histories = st.lists(changes, min_size=1, max_size=5)
questions = st.fixed_dictionaries(
    {
        "distance": st.sampled_from(DISTANCES),
        "pixels": st.sampled_from([1, 16, 64, 200]),
        "order": st.sampled_from(["free", "drawn"]),
        "self_collisions": st.booleans(),
    }
)


def lifted(height):
    return TRIANGLE + np.array([0.0, 0.0, height])


def one_face(device, height=0.0):
    return abut.Mesh(lifted(height), [[0, 1, 2]], device)


def near(meshes, **options):
    return abut.cull(meshes, self_collisions=True, distance=0.1, pixels=64, **options)


@pytest.mark.parametrize("order", abut.Order)
def test_faces_that_separate(order, device):
    """By less than the distance: by a deformation, by a pose, within one mesh."""
    a, b = one_face(device), one_face(device)
    assert len(near([a, b], order=order)) == 2
    for height, left in ((0.02, 2), (0.2, 0), (0.0, 2), (0.09, 2)):
        assert len(near([a, b], poses=[None, shift(0, 0, height)], order=order)) == left
    b.deform(lifted(0.02))
    parted = near([a, b], order=order)
    assert len(parted) == 2
    assert parted.pairs.numpy().tolist() == [[0, 0]]
    both = abut.Mesh(np.tile(TRIANGLE, (2, 1)), np.arange(6).reshape(2, 3), device)
    assert len(near([both], order=order)) == 2
    both.deform(np.concatenate([TRIANGLE, lifted(0.02)]))
    assert len(near([both], order=order)) == 2


def test_faces_that_come_together(device):
    """Neighbours that are not folded are no candidates, whenever they became neighbours."""
    wing = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, -1.0, 1.0]])
    mesh = abut.Mesh(np.concatenate([TRIANGLE, wing]), np.arange(6).reshape(2, 3), device)
    assert len(near([mesh])) == 0
    for _ in range(2):
        mesh.deform(np.concatenate([TRIANGLE, wing - [0, 0, 1]]))  # an edge in common
        assert len(near([mesh])) == 0
        mesh.deform(np.concatenate([TRIANGLE, wing - [0, 0, 1.05]]))
        assert len(near([mesh])) == 2


def test_candidate_pairs_are_of_their_call(device):
    """Candidate pairs are listed lazily, with the adjacency of their call."""
    a, b = one_face(device), one_face(device, 0.02)
    apart = near([a, b])
    b.deform(TRIANGLE)
    together = near([a, b])
    b.deform(lifted(5))
    assert len(near([a, b])) == 0
    assert apart.pairs.numpy().tolist() == together.pairs.numpy().tolist() == [[0, 0]]


def test_refused_poses_change_nothing(device):
    a, b = one_face(device), one_face(device)
    assert len(near([a, b])) == 2
    b.deform(lifted(5))
    with pytest.raises(abut.PoseError):
        near([a, b], poses=[None, 2 * np.eye(4)])
    assert len(near([a, b])) == 0


class History:
    """Three meshes of three faces, many of them coincident, as meshes or as a scene.

    Coordinates have few bits and poses rotate by 0 or 180 degrees: moved points are exact.
    """

    def __init__(self, device, seed, as_scene):
        rng = np.random.default_rng(seed)
        self.device, self.as_scene = device, as_scene
        grid = rng.integers(-2, 3, size=(CORNERS, 3)) / 2
        self.vertices = [rng.permutation(grid) for _ in range(3)]
        self.faces = [
            rng.integers(0, CORNERS, size=(3, 3)),
            *[np.arange(CORNERS).reshape(3, 3)] * 2,
        ]
        self.poses = np.tile(np.eye(4), (3, 1, 1))
        self.kept = self.fresh()

    def fresh(self):
        """Fresh meshes at the current positions."""
        pairs = zip(self.vertices, self.faces, strict=True)
        meshes = [abut.Mesh(v, f, self.device) for v, f in pairs]
        if not self.as_scene:
            return meshes
        scene = abut.Scene(self.device)
        for mesh, pose in zip(meshes, self.poses, strict=True):
            scene.add(mesh, pose)
        return scene

    def change(self, kind, which, seed):
        rng = np.random.default_rng(seed)
        chosen = rng.random(CORNERS) < 0.5
        places = np.concatenate(self.vertices)
        vertices = self.vertices[which].copy()
        if kind == "nudge":
            gaps = rng.choice(GAPS, size=(CORNERS, 3)) * rng.choice([-1, 1], size=(CORNERS, 3))
            vertices[chosen] += gaps[chosen]
        elif kind == "snap":
            vertices[chosen] = rng.choice(places, size=CORNERS)[chosen]
        elif kind == "scatter":
            vertices = rng.integers(-2, 3, size=(CORNERS, 3)) / 2
        elif kind == "move":
            self.poses[which, :3, 3] = rng.choice(GAPS, size=3)
        elif kind == "turn":
            self.poses[which, :3, :3] = np.diag(rng.permutation([1, -1, -1]))
        if self.as_scene:
            self.kept.move(which, self.poses[which])
        if kind in ("nudge", "snap", "scatter"):
            self.vertices[which] = vertices
            self.kept.deform(which, vertices) if self.as_scene else self.kept[which].deform(
                vertices
            )

    def asked(self, what, options):
        """The answer for the kept meshes, or for fresh ones."""
        poses = {} if self.as_scene else {"poses": self.poses}
        return abut.cull(what, **poses, **options)

    def near(self, distance, within):
        """Rows (object, object, face, face) that brute force finds."""
        moved = [
            abut.Mesh(v @ pose[:3, :3].T + pose[:3, 3], f, self.device)
            for v, f, pose in zip(self.vertices, self.faces, self.poses, strict=True)
        ]
        rows = set()
        for i in range(3):
            for j in range(i + 1 - within, 3):
                other = moved[j] if i != j else None
                found = abut.within(moved[i], other, distance, method="brute").pairs.numpy()
                rows |= {(i, j, *row) for row in found.tolist()}
        return rows


def answer(culled):
    pairs = np.concatenate([culled.pair_objects.numpy(), culled.pairs.numpy()], axis=1)
    return SimpleNamespace(
        faces=culled.faces.numpy().tolist(),
        objects=culled.objects.numpy().tolist(),
        pairs=pairs.tolist(),
    )


def check(past, history, options, complete=True):
    """Ask after every change; at the end, and of all answers, nothing may be amiss."""
    answers = [(past.asked(past.kept, options), answer(past.asked(past.fresh(), options)))]
    for change in history:
        past.change(*change)
        given = past.asked(past.kept, options)
        answers.append((given, answer(past.asked(past.fresh(), options))))
        if complete:
            rows = past.near(options.get("distance", 0.0), options["self_collisions"])
            kept = set(map(tuple, given.faces.numpy().tolist()))
            assert {(r[k], r[2 + k]) for r in rows for k in (0, 1)} <= kept
            assert rows <= set(map(tuple, answers[-1][1].pairs))
    for given, expected in answers:
        assert answer(given) == expected


@given(st.integers(0, 999), st.booleans(), histories, questions)
@settings(max_examples=60)
def test_far_after_any_history(device, seed, as_scene, history, options):
    check(History(device, seed, as_scene), history, options)


@given(st.integers(0, 999), histories, st.lists(questions, min_size=2, max_size=4))
@settings(max_examples=40)
def test_many_queries_after_one_history(device, seed, history, asked):
    """Each keeps buffers of its own with the same meshes."""
    past = History(device, seed, False)
    for change in [*history, ("stay", 0, 0)]:
        past.change(*change)
        for options in asked:
            given, expected = (past.asked(x, options) for x in (past.kept, past.fresh()))
            assert answer(given) == answer(expected)


@given(st.integers(0, 999), histories, st.sampled_from(["cullide", "quick_cullide"]), st.booleans())
@settings(max_examples=30)
def test_sampled_after_any_history(device, seed, history, method, within):
    options = {"method": method, "pixels": 64, "self_collisions": within}
    check(History(device, seed, False), history, options, complete=False)


@pytest.mark.skipif(WHY_NO_GL is not None, reason=str(WHY_NO_GL))
@given(st.integers(0, 999), st.booleans(), histories, st.sampled_from(DISTANCES))
@settings(max_examples=20)
def test_graphics_pipeline_after_any_history(device, seed, as_scene, history, distance):
    """``far`` between objects; within them ``gl`` has the sampled methods alone."""
    options = {"pixels": 16, "distance": distance, "self_collisions": False, "backend": "gl"}
    check(History(device, seed, as_scene), history[:3], options)
    options = {"pixels": 16, "method": "cullide", "self_collisions": True, "backend": "gl"}
    check(History(device, seed, as_scene), history[:3], options, complete=False)


@given(st.integers(0, 999), histories, st.booleans())
@settings(max_examples=40)
def test_contacts_after_any_history(device, seed, history, weld):
    past = History(device, seed, False)
    for change in [*history, ("stay", 0, 0)]:
        past.change(*change)
        for mesh in past.kept:
            want = abut.self_collide(mesh, method="brute", weld=weld).pairs.numpy()
            found = abut.self_collide(mesh, method="far", weld=weld, pixels=16).pairs.numpy()
            assert np.array_equal(found, want)


def test_many_coincident_points(device):
    """Parted, joined, exchanged, and zeros of either sign; many more points than one slice has."""
    rng = np.random.default_rng(5)
    count = 50_000
    points = rng.integers(-3, 4, size=(count, 3)) / 8 + rng.integers(0, 40, size=(count, 1))
    at = wp.array(points, dtype=wp.vec3d, device=device)
    soup = SimpleNamespace(device=wp.get_device(device), points=at, moves=0)
    known = Coincidence(soup)

    def changed(moved):
        soup.moves += 1
        at.assign(moved)
        told = known.update(soup)
        assert np.array_equal(known.joined, Coincidence(soup).joined)
        return told

    assert not known.update(soup)
    assert not changed(points * 2)
    assert not changed(np.where(points == 0, -0.0, points))
    assert len(np.unique(known.joined)) < count // 2
    joined = np.flatnonzero(known.joined != np.arange(count))
    for vertex in joined[[0, len(joined) // 2, -1]]:
        parted = points.copy()
        parted[vertex] += 2.0**-30
        assert changed(parted)
        assert changed(points)
    assert changed(points[::-1])
    assert changed(np.zeros_like(points))
    assert changed(rng.normal(size=points.shape))
    assert not changed(rng.normal(size=points.shape))
