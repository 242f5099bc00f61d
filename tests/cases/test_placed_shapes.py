"""Placed shapes: deterministic, disjoint where promised, of the expected size."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.cases.caps import triangulated
from abut.cases.clip import ClippedSolid


def volume(shape):
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    return np.einsum("ij,ij->", np.cross(a, b), c) / 6


def mesh(shape):
    return abut.Mesh(*shape, device="cpu")


def pieces_of(shape, count=12, seed=3, gap=1e-6):
    sites = cases.broken_sites(shape, count, shape.vertices[0], seed)
    return cases.shattered(shape, sites, gap)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cases.balls(7, 80),
        lambda: cases.boxes(20),
        lambda: cases.leaves(5, 600),
        lambda: cases.drape_table(200),
        lambda: cases.drape_ball(200),
        lambda: cases.breaking(1200, 8),
    ],
)
def test_placed_shapes_are_deterministic(make):
    first, again = make(), make()
    assert first.poses.shape == (len(first.shapes), 4, 4)
    assert np.array_equal(first.poses, again.poses)
    turns = first.poses[:, :3, :3]
    assert np.allclose(turns @ turns.transpose(0, 2, 1), np.eye(3))
    assert np.linalg.det(turns) == pytest.approx(np.ones(len(turns)))
    for shape, same in zip(first.shapes, again.shapes, strict=True):
        assert np.array_equal(shape.vertices, same.vertices)
        assert np.array_equal(shape.faces, same.faces)
        assert shape.faces.dtype == np.int32


def test_sizes_of_the_papers():
    assert cases.balls().face_count == 145_920
    tree, *leaves = cases.leaves().shapes
    assert len(leaves) == 150
    assert {len(leaf.faces) for leaf in leaves} == {156}
    assert 15_000 < len(tree.faces) < 18_000
    assert len(cases.drape_table().shapes[0].faces) == 20_000


def test_balls_do_not_touch():
    placed = cases.balls(30, 80).placed()
    assert not abut.self_collide(mesh(cases.joined(*placed)))


def test_some_boxes_touch():
    assert abut.self_collide(mesh(cases.joined(*cases.boxes(30).placed())))


def test_a_sheet_begins_above_its_obstacle():
    for crowd in (cases.drape_table(800), cases.drape_ball(800)):
        cloth, obstacle = map(mesh, crowd.placed())
        assert not abut.collide(cloth, obstacle)
        assert not abut.self_collide(cloth)
        assert obstacle.watertight and obstacle.oriented
        assert not abut.self_collide(obstacle)
        assert volume(crowd.shapes[1]) > 0


def test_leaves_bend_without_stretching():
    def lengths(shape):
        return np.linalg.norm(np.diff(shape.vertices.reshape(14, 7, 3)[:, 3], axis=0), axis=1)

    flat, bent = lengths(cases.leaf()), lengths(cases.leaf(1.0, 0.5))
    assert bent == pytest.approx(flat, rel=1e-3)
    assert not abut.self_collide(mesh(cases.leaf(1.0, 0.5)))


@pytest.mark.parametrize("name", ["icosphere", "torus", "gem"])
def test_pieces_fill_their_solid(name):
    whole = getattr(cases, name)()
    pieces = pieces_of(whole)
    assert len(pieces) >= 12
    assert all(mesh(piece).oriented for piece in pieces)
    assert min(map(volume, pieces)) > 0
    assert sum(map(volume, pieces)) == pytest.approx(volume(whole), rel=1e-4)


def test_pieces_lie_apart_and_in_their_cells():
    whole = cases.torus()
    sites = cases.broken_sites(whole, 12, whole.vertices[0], 3)
    pieces = cases.shattered(whole, sites, 1e-3)
    everything = mesh(cases.joined(*pieces))
    assert not abut.self_collide(everything)
    labels = np.repeat(np.arange(len(pieces)), [len(piece.faces) for piece in pieces])
    near = abut.within(everything, None, 0.99e-3).pairs.numpy()
    assert (labels[near[:, 0]] == labels[near[:, 1]]).all()
    for piece in pieces:
        nearest = np.argmin(np.linalg.norm(piece.vertices[:, None] - sites, axis=2), axis=1)
        assert len(set(nearest.tolist())) == 1


def test_holes_are_closed_before_breaking():
    ball = cases.icosphere(320)
    opened = cases.Shape(ball.vertices, ball.faces[7:])
    pieces = pieces_of(opened)
    assert all(mesh(piece).oriented for piece in pieces)
    assert sum(map(volume, pieces)) == pytest.approx(volume(ball), rel=0.03)


def test_cuts_through_vertices():
    """Planes through the corners of a box, and along its sides."""
    solid = ClippedSolid.of(cases.box())
    half = solid.clipped(np.array([1.0, 1.0, 0.0]), 0.0).compact().shape()
    assert mesh(half).oriented
    assert volume(half) == pytest.approx(0.5)
    same = solid.clipped(np.array([0.0, 0.0, 1.0]), 0.5).compact().shape()
    assert volume(same) == pytest.approx(1.0)
    assert solid.clipped(np.array([0.0, 0.0, 1.0]), -0.6).empty


def test_a_cut_through_a_hollow():
    """The region in the plane has a hole."""
    outer, inner = cases.icosphere(320), cases.icosphere(80, 0.5)
    hollow = cases.joined(outer, cases.Shape(inner.vertices, inner.faces[:, ::-1]))
    half = ClippedSolid.of(hollow).clipped(np.array([0.3, 0.2, 1.0]), 0.05).compact().shape()
    solid = ClippedSolid.of(outer).clipped(np.array([0.3, 0.2, 1.0]), 0.05).compact().shape()
    core = ClippedSolid.of(inner).clipped(np.array([0.3, 0.2, 1.0]), 0.05).compact().shape()
    assert mesh(half).oriented
    assert not abut.self_collide(mesh(half))
    assert volume(half) == pytest.approx(volume(solid) - volume(core))


@pytest.mark.parametrize("seed", range(5))
def test_flat_regions(seed):
    """Triangles over a star with a hole have its area, and none lies the wrong way round."""
    rng = np.random.default_rng(seed)
    turn = np.sort(rng.uniform(0, 2 * np.pi, 40))
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    points = np.concatenate([ring * rng.uniform(0.6, 2, (40, 1)), ring[::5] * 0.2])
    loops = [np.arange(40), np.arange(40, 48)[::-1]]
    faces = triangulated(points, loops)
    a, b, c = (points[corner] for corner in faces.T)
    u, v = b - a, c - a
    areas = (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]) / 2
    assert areas.min() >= -1e-12
    wanted = sum(
        0.5 * (p[:, 0] @ np.roll(p[:, 1], -1) - p[:, 1] @ np.roll(p[:, 0], -1))
        for p in (points[loop] for loop in loops)
    )
    assert areas.sum() == pytest.approx(wanted)
    assert len(faces) == 40 + 8 + 2 - 2


def test_labels_are_the_nearest_sites():
    ball = cases.icosphere(320)
    ball = ball.turned("x", 7).turned("y", 11)
    labels = cases.cell_labels(ball, np.eye(3))
    middles = ball.vertices[ball.faces].mean(axis=1)
    assert np.array_equal(labels, np.argmax(middles, axis=1))


@pytest.mark.slow
def test_the_dragon_breaks(data):
    import trimesh

    dragon = trimesh.load(data / "models" / "dragon_202k.ply", process=False)
    shape = cases.Shape(np.asarray(dragon.vertices, float), np.asarray(dragon.faces, np.int32))
    pieces = pieces_of(shape, 200, gap=1e-9)
    assert all(mesh(piece).oriented for piece in pieces)
    assert sum(map(volume, pieces)) == pytest.approx(volume(shape), rel=1e-5)
