"""Random histories of scenes: after every step the rows equal those of brute force."""

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


class History:
    """A scene and its reference: shapes and poses in plain lists."""

    def __init__(self, device, seed):
        self.rng = np.random.default_rng(seed)
        self.device = device
        self.scene = abut.Scene(device)
        self.meshes = [abut.Mesh(*shape, device=device) for shape in SHAPES]
        self.known = {}  # index: (vertices, faces, pose, static)
        self.ignored = set()

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
            self.known[row] = (SHAPES[kind].vertices, SHAPES[kind].faces, pose, static)

    def move(self):
        rows = self.some()
        poses = np.stack([self.pose() for _ in rows])
        self.scene.move(rows, poses)
        for row, pose in zip(rows, poses, strict=True):
            self.known[row] = (*self.known[row][:2], pose, self.known[row][3])

    def write_poses(self):
        poses = self.scene.poses.numpy()
        for row in self.some():
            pose = self.pose()
            poses[row] = pose
            self.known[row] = (*self.known[row][:2], pose, self.known[row][3])
        self.scene.poses.assign(poses)

    def deform(self):
        rows = self.some()
        new = []
        for row in rows:
            vertices, faces, *rest = self.known[row]
            scale = self.rng.uniform(0.5, 1.6, 3)
            new.append(vertices * scale + self.rng.normal(0, 0.02, vertices.shape))
            self.known[row] = (new[-1], faces, *rest)
        self.scene.deform(rows, np.concatenate(new))

    def split(self):
        (row,) = self.some(1)
        vertices, faces, *rest = self.known.pop(row)
        labels = self.rng.integers(-2, 3, len(faces))
        shunned = {sum(p) - row for p in self.ignored if row in p}
        self.forget([row])
        pieces = self.scene.split(row, labels)
        for piece, label in zip(pieces.tolist(), np.unique(labels), strict=True):
            assert piece not in self.known
            used, corners = np.unique(faces[labels == label], return_inverse=True)
            self.known[piece] = (vertices[used], corners.reshape(-1, 3), *rest)
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

    def forget(self, rows):
        self.ignored = {p for p in self.ignored if not set(p) & set(rows)}

    def step(self):
        if not self.known or (len(self.known) < MOST and self.rng.random() < 0.3):
            return self.add()
        acts = [self.move, self.write_poses, self.deform, self.split, self.remove, self.ignore]
        if len(self.known) > 2 * MOST:
            return self.remove()
        return acts[self.rng.choice(6, p=[0.3, 0.1, 0.25, 0.15, 0.15, 0.05])]()

    def truth(self):
        rows = []
        meshes = {
            i: abut.Mesh(shape[0], shape[1], device=self.device) for i, shape in self.known.items()
        }
        for i in sorted(self.known):
            own = abut.self_collide(meshes[i], method="brute").pairs.numpy()
            rows += [(i, i, *pair) for pair in own.tolist()]
            for j in sorted(self.known):
                static = self.known[i][3] and self.known[j][3]
                if j <= i or static or (i, j) in self.ignored:
                    continue
                poses = {"pose_a": self.known[i][2], "pose_b": self.known[j][2]}
                hits = abut.collide(meshes[i], meshes[j], **poses, method="brute")
                rows += [(i, j, *pair) for pair in hits.pairs.numpy().tolist()]
        return np.array(sorted(rows), np.int32).reshape(-1, 4)

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
    for broad in ("all_pairs", "sweep", "tree"):
        history.check(broad=broad)
    history.check(method="brute")


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
