"""Spheres that cover a mesh, and spheres inside it, proved by rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import abut
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import BvhView
from abut.cases import box, icosphere, torus
from abut.core.launch import launch
from abut.scene.robots.sphere_covers import inner_spheres, is_near_tree, outer_spheres

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SHAPES = {
    "box": box((1.0, 0.02, 3.0)),
    "ball": icosphere(320),
    "torus": torus(24, 12),
    "needle": ([[0, 0, 0], [5, 1e-7, 0], [5, 0, 1e-7]], [[0, 1, 2]]),
    "point": ([[1, 2, 3]] * 3, [[0, 1, 2]]),
}


def mesh_of(name, offset=0.0, scale=1.0):
    vertices, faces = SHAPES[name]
    return abut.Mesh(np.asarray(vertices, float) * scale + offset, np.asarray(faces), "cpu")


def is_covered(corners, spheres, depth=9):
    """Whether a triangle is in the union of balls: in one of them, or in pieces that are."""
    for sphere in spheres:
        square = sphere[3] * sphere[3]
        if all(
            sum((x - c) ** 2 for x, c in zip(p, sphere, strict=False)) <= square for p in corners
        ):
            return True
    if depth == 0:
        return False
    lengths = [
        sum((a - b) ** 2 for a, b in zip(corners[k], corners[k - 1], strict=True)) for k in range(3)
    ]
    k = lengths.index(max(lengths))
    p, q, r = corners[k - 1], corners[k], corners[k - 2]
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return is_covered([p, middle, r], spheres, depth - 1) and is_covered(
        [middle, q, r], spheres, depth - 1
    )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e-9)])
def test_covers_hold_all_faces(name, offset, scale):
    mesh = mesh_of(name, offset, scale)
    spheres = outer_spheres(mesh)
    assert 0 < len(spheres) <= 6
    exact = [[Fraction(float(x)) for x in row] for row in spheres]
    corners = mesh.points.numpy()[mesh.faces.numpy()]
    for face in corners[:: max(1, len(corners) // 12)]:
        assert is_covered([[Fraction(float(x)) for x in p] for p in face], exact)


def test_a_smaller_cover_is_noticed():
    mesh = mesh_of("ball")
    exact = [[Fraction(float(x)) for x in row] for row in outer_spheres(mesh)]
    smaller = [[*row[:3], row[3] * Fraction(7, 10)] for row in exact]
    faces = mesh.points.numpy()[mesh.faces.numpy()]
    every = [[[Fraction(float(x)) for x in p] for p in face] for face in faces]
    assert not all(is_covered(face, smaller, 4) for face in every)


@pytest.mark.parametrize("name", ["box", "ball", "torus"])
@pytest.mark.parametrize("inverted", [False, True])
def test_inner_spheres_are_inside(name, inverted):
    mesh = mesh_of(name)
    if inverted:
        mesh = abut.Mesh(mesh.points.numpy(), mesh.faces.numpy()[:, ::-1].copy(), "cpu")
    spheres = inner_spheres(mesh)
    assert 0 < len(spheres) <= 6
    gaps = abut.closest_point(mesh, spheres[:, :3]).distance.numpy()
    assert (spheres[:, 3] < gaps).all() and (spheres[:, 3] > 0).all()
    rng = np.random.default_rng(0)
    for sphere in spheres:
        way = rng.normal(size=(50, 3))
        points = sphere[:3] + sphere[3] * way / np.linalg.norm(way, axis=1)[:, None]
        if not inverted:
            assert abut.contains(mesh, points).numpy().all()


def test_open_meshes_have_no_inside():
    mesh = abut.Mesh(box().vertices, box().faces[1:], "cpu")
    assert len(inner_spheres(mesh)) == 0


@wp.kernel
def near_tree_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    balls: wp.array[wp.vec4d],
    # out
    near_out: wp.array[wp.bool],
):
    """Ask about each ball, in the frame of the mesh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        ball = balls[i]
        p = wp.vec3d(ball[0], ball[1], ball[2]) - tree.origin
        near_out[i] = is_near_tree(tree, p, ball[3])


def test_near_is_conservative(device):
    """A ball that reaches a face is near its tree; most of those that do not are not."""
    mesh = abut.Mesh(*torus(24, 12), device)
    tree = bvh_of(mesh).view()
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.6, 1.6, (2000, 3))
    gaps = abut.closest_point(mesh, points).distance.numpy()
    for share, expected in ((1.0 + 1e-12, 1.0), (0.5, 0.0)):
        balls = np.column_stack([points, gaps * share])
        near = wp.zeros(len(balls), dtype=wp.bool, device=device)
        rows = wp.array(balls, dtype=wp.vec4d, device=device)
        launch(near_tree_kernel, len(balls), [tree, rows, near], mesh.device)
        found = near.numpy().mean()
        assert found == 1.0 if expected else found < 0.5
