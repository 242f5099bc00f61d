"""Random histories of scenes: after every step the rows equal those of brute force."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut.cases import box, icosphere, torus
from abut.scene import contact_search
from abut.scene.contact_search import ContactSearch
from shapes import random_poses

SHAPES = [icosphere(20), box((1.5, 0.7, 0.4)), torus(5, 4), icosphere(80, 0.6)]
MOST = 9
ACTS = {"move": 0.2, "write_poses": 0.1, "deform": 0.2, "split": 0.1, "remove": 0.1}
ACTS |= {"ignore": 0.05, "allow": 0.05, "allow_by_matrix": 0.05, "regroup": 0.1, "rename": 0.05}


def distances(near):
    """Rows of distances; faces and points of objects that meet are those a search finds first."""
    rows = {name: values.copy() for name, values in near.numpy().items()}
    for name in ("faces", "points"):
        rows[name][rows["value"] == 0] = -1
    return rows


ASKED = [
    lambda scene: scene.collide(self_collisions=True).numpy(),
    lambda scene: {"objects": scene.collide(first=True).objects.numpy()},
    lambda scene: scene.within(0.2).numpy(),
    lambda scene: distances(scene.distance()),
    lambda scene: distances(scene.distance(upper_bound=0.5)),
    lambda scene: distances(scene.distance(nearest=2)),
]


@dataclass
class Known:
    """An object as the reference has it."""

    vertices: np.ndarray
    faces: np.ndarray
    pose: np.ndarray
    static: bool
    group: int = 1
    mask: int = -1
    name: str | None = None

    def may_meet(self, other):
        in_groups = self.group & other.mask and other.group & self.mask
        return bool(in_groups) and not (self.static and other.static)


class History:
    """A scene and its reference: shapes, poses and filters in plain lists."""

    def __init__(self, device, seed):
        self.rng = np.random.default_rng(seed)
        self.device = device
        self.scene = abut.Scene(device)
        self.meshes = [abut.Mesh(*shape, device=device) for shape in SHAPES]
        self.known = {}  # by index
        self.ignored = set()
        self.named = 0

    def pose(self):
        return random_poses(1, 1.3, int(self.rng.integers(2**31)))[0]

    def some(self, most=3):
        count = min(len(self.known), int(self.rng.integers(1, most + 1)))
        return [int(i) for i in self.rng.choice(sorted(self.known), count, replace=False)]

    def add(self):
        kind = int(self.rng.integers(len(SHAPES)))
        count = int(self.rng.integers(1, 4))
        static = bool(self.rng.random() < 0.2)
        poses = np.stack([self.pose() for _ in range(count)])
        rows = self.scene.add(self.meshes[kind], poses, static=static)
        for row, pose in zip(rows.tolist(), poses, strict=True):
            assert row not in self.known
            self.known[row] = Known(*SHAPES[kind], pose, static)

    def move(self):
        rows = self.some()
        poses = np.stack([self.pose() for _ in rows])
        self.scene.move(rows, poses)
        for row, pose in zip(rows, poses, strict=True):
            self.known[row].pose = pose

    def write_poses(self):
        poses = self.scene.poses.numpy()
        for row in self.some():
            pose = self.pose()
            poses[row] = self.known[row].pose = pose
        self.scene.poses.assign(poses)

    def deform(self):
        rows = self.some()
        new = []
        for row in rows:
            vertices = self.known[row].vertices
            scale = self.rng.uniform(0.5, 1.6, 3)
            new.append(vertices * scale + self.rng.normal(0, 0.02, vertices.shape))
            self.known[row].vertices = new[-1]
        self.scene.deform(rows, np.concatenate(new))

    def split(self):
        (row,) = self.some(1)
        whole = self.known.pop(row)
        labels = self.rng.integers(-2, 3, len(whole.faces))
        shunned = {sum(p) - row for p in self.ignored if row in p}
        self.forget([row])
        pieces = self.scene.split(row, labels)
        for piece, label in zip(pieces.tolist(), np.unique(labels), strict=True):
            assert piece not in self.known
            used, corners = np.unique(whole.faces[labels == label], return_inverse=True)
            part = {"vertices": whole.vertices[used], "faces": corners.reshape(-1, 3)}
            self.known[piece] = replace(whole, **part, name=None)
            self.ignored |= {tuple(sorted((piece, other))) for other in shunned}

    def remove(self):
        rows = self.some(5)
        self.scene.remove(rows)
        for row in rows:
            del self.known[row]
        self.forget(rows)

    def ignore(self):
        if len(self.known) > 1:
            pair = tuple(sorted(self.some(2)))
            if len(pair) == 2:
                self.scene.ignore(*pair)
                self.ignored.add(pair)

    def allow(self):
        if self.ignored:
            pair = sorted(self.ignored)[int(self.rng.integers(len(self.ignored)))]
            self.scene.allow(*pair[:: int(self.rng.choice([-1, 1]))])
            self.ignored.remove(pair)

    def allow_by_matrix(self):
        """The collisions of some objects are allowed, those of others are not."""
        rows = self.some(5)
        matrix = np.triu(self.rng.random((len(rows), len(rows))) < 0.3, 1)
        self.scene.set_allowed_collisions(rows, matrix | matrix.T)
        for a, b in combinations(range(len(rows)), 2):
            pair = tuple(sorted((rows[a], rows[b])))
            (self.ignored.add if matrix[a, b] else self.ignored.discard)(pair)

    def regroup(self):
        rows = self.some()
        names = self.rng.permutation(["static", "group", "mask"])[: self.rng.integers(1, 4)]
        values = {"static": bool(self.rng.random() < 0.3), "group": 1 << int(self.rng.integers(3))}
        values["mask"] = int(self.rng.choice([-1, 3, 5]))
        changes = {name: values[name] for name in names.tolist()}
        self.scene.set(rows, **changes)
        for row in rows:
            self.known[row] = replace(self.known[row], **changes)

    def rename(self):
        (row,) = self.some(1)
        self.named += 1
        name = None if self.rng.random() < 0.2 else f"object {self.named}"
        self.scene.rename(self.known[row].name or row, name)
        self.known[row].name = name

    def forget(self, rows):
        self.ignored = {p for p in self.ignored if not set(p) & set(rows)}

    def step(self):
        if not self.known or (len(self.known) < MOST and self.rng.random() < 0.3):
            return self.add()
        if len(self.known) > 2 * MOST:
            return self.remove()
        return getattr(self, self.rng.choice(list(ACTS), p=list(ACTS.values())))()

    def tested(self, i, j):
        return (i, j) not in self.ignored and self.known[i].may_meet(self.known[j])

    def truth(self):
        rows = []
        meshes = {
            i: abut.Mesh(one.vertices, one.faces, device=self.device)
            for i, one in self.known.items()
        }
        for i in sorted(self.known):
            own = abut.self_collide(meshes[i], method="brute").pairs.numpy()
            rows += [(i, i, *pair) for pair in own.tolist()]
            for j in sorted(self.known):
                if j <= i or not self.tested(i, j):
                    continue
                poses = {"pose_a": self.known[i].pose, "pose_b": self.known[j].pose}
                hits = abut.collide(meshes[i], meshes[j], **poses, method="brute")
                rows += [(i, j, *pair) for pair in hits.pairs.numpy().tolist()]
        return np.array(sorted(rows), np.int32).reshape(-1, 4)

    def fresh(self):
        """A new scene of the same objects, by ascending index."""
        scene, rows = abut.Scene(self.device), sorted(self.known)
        for row in rows:
            one = self.known[row]
            mesh = abut.Mesh(one.vertices, one.faces, device=self.device)
            filters = {"static": one.static, "group": one.group, "mask": one.mask}
            scene.add(mesh, one.pose, one.name, **filters)
        if self.ignored:
            scene.ignore(*np.searchsorted(rows, sorted(self.ignored)).T)
        return scene, np.array(rows)

    def check_fresh(self):
        """Rows of all questions, names and ignored pairs are those of a new scene."""
        fresh, rows = self.fresh()
        for ask in ASKED:
            expected, found = ask(fresh), ask(self.scene)
            expected["objects"] = rows[expected["objects"]] if len(rows) else expected["objects"]
            for name, values in expected.items():
                np.testing.assert_array_equal(found[name], values)
        self.check_parts(fresh, rows)
        assert len(self.scene) == len(fresh) == len(rows)
        assert self.scene.names == {name: rows[k] for name, k in fresh.names.items()}
        assert self.scene.name_of(rows).tolist() == [self.known[k].name for k in rows.tolist()]
        assert self.scene.ignored_pairs.tolist() == [list(pair) for pair in sorted(self.ignored)]
        names, matrix = self.scene.allowed_collisions()
        assert np.array_equal(matrix, fresh.allowed_collisions()[1])
        assert names == [self.known[k].name or k for k in rows.tolist()]

    def check_parts(self, fresh, rows):
        """Questions about a part of the scene, whose verdicts a scene may keep."""
        assert self.scene.colliding() == fresh.colliding()
        for k, row in enumerate(rows.tolist()):
            assert self.scene.colliding(which=row) == fresh.colliding(which=k)
        pose = self.pose()
        external = {"against": self.meshes[int(self.rng.integers(len(SHAPES)))], "pose": pose}
        assert self.scene.colliding(**external) == fresh.colliding(**external)
        for part in ({}, external):
            found, expected = self.scene.least_distance(**part), fresh.least_distance(**part)
            assert found.value == expected.value
            if 0 < found.value < np.inf:
                known = rows[expected.objects.numpy()[: 1 if part else 2]]
                assert np.array_equal(found.objects.numpy()[: len(known)], known)
                assert np.array_equal(found.faces.numpy(), expected.faces.numpy())

    def rows(self, **options):
        hits = self.scene.collide(self_collisions=True, **options)
        assert self.scene.indices.tolist() == sorted(self.known)
        return np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)

    def check(self, **options):
        rows = self.rows(**options)
        assert np.array_equal(rows, self.truth())
        return len(rows)


@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_random_histories(device, seed):
    history = History(device, seed)
    for _ in range(12):
        history.step()
        history.check()
        history.check(method="front")
    history.check_fresh()
    for broad in ("all_pairs", "sweep", "tree"):
        history.check(broad=broad)
    history.check(method="brute")


@settings(max_examples=8)
@given(st.integers(0, 2**32))
def test_edits_equal_a_fresh_scene(device, seed):
    history = History(device, seed)
    for _ in range(20):
        history.step()
        history.check_fresh()


def test_changes_without_queries_between(device):
    """Several changes between two queries are all applied."""
    history = History(device, 3)
    met = 0
    for k in range(60):
        history.step()
        if k % 7 == 0:
            met += history.check()
            history.check(method="front")
    assert met > 0


@pytest.mark.slow
def test_ten_thousand_steps(device):
    """All methods agree at every step, and with the reference at a tenth of them."""
    met = 0
    for seed in range(100):
        history = History(device, seed)
        looked_at = {99, *np.random.default_rng(seed).choice(99, 9, replace=False).tolist()}
        for step in range(100):
            history.step()
            rows = history.rows(method="brute")
            for method in ("bvh", "front"):
                assert np.array_equal(history.rows(method=method), rows), (seed, step, method)
            if step in looked_at:
                assert np.array_equal(rows, history.truth()), (seed, step)
            met += len(rows)
    assert met > 100_000


@pytest.mark.parametrize("least", [0, 1024])
def test_rows_made_ahead(least, monkeypatch, device):
    """Rows made before their number is known, as on CUDA, whether there are more or fewer."""
    kept = []
    monkeypatch.setattr(contact_search, "LEAST_EXPECTED", least)
    monkeypatch.setattr(ContactSearch, "_foresees", property(lambda search: True))
    scene, plain = abut.Scene(device), abut.Scene(device)
    ball = abut.Mesh(*icosphere(80), device=device)
    poses = random_poses(12, 1.0)
    for one in (scene, plain):
        one.add(ball, poses)
    for k, spread in enumerate((2.0, 2.0, 1.9, 1.2, 1.21, 9.0, 2.0, 30.0)):
        moved = poses.copy()
        moved[:, :3, 3] *= spread
        for one in (scene, plain):
            one.move(np.arange(12), moved)
        with monkeypatch.context() as usual:
            usual.setattr(ContactSearch, "_foresees", property(lambda search: False))
            expected = plain.collide(self_collisions=k % 2 == 0)
        found = scene.collide(self_collisions=k % 2 == 0)
        kept.append((found, expected))
    for found, expected in kept:  # answers outlive those after them
        for name, rows in expected.numpy().items():
            np.testing.assert_array_equal(found.numpy()[name], rows)
        np.testing.assert_array_equal(found.segments.numpy(), expected.segments.numpy())
    assert len(kept[3][0]) > len(kept[2][0]) > len(kept[7][0]) == 0
    made = [s for _, s in scene._searches._recent._entries if s._ahead is not None]
    assert made
