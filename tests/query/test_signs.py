"""abut.closest_point(signed=...): inside and outside of meshes of all kinds."""

import numpy as np
import pytest
from test_closest_point import GRID, around

import abut
from abut import cases
from abut.operands.posed_mesh import make_posed_mesh
from abut.point.pseudonormals import pseudonormals_of
from shapes import flipped, octahedron, soup

BALL = cases.icosphere(320)


def together(*shapes):
    """Several shapes as one mesh."""
    starts = np.cumsum([0] + [len(s.vertices) for s in shapes[:-1]])
    faces = [s.faces + k for s, k in zip(shapes, starts, strict=True)]
    return cases.Shape(np.concatenate([s.vertices for s in shapes]), np.concatenate(faces))


def inside(shape, points, device, signed=True):
    """((n,) bool, name of the sign)."""
    got = abut.closest_point(abut.Mesh(*shape, device), points, signed=signed)
    return got.distance.numpy() < 0, got.sign


def exact_winding(shape, points):
    """Generalised winding numbers in float64 by definition, one face at a time."""
    total = np.zeros(len(points))
    for corners in shape.vertices[shape.faces]:
        a, b, c = (corner - points for corner in corners)
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        volume = np.einsum("ni,ni->n", a, np.cross(b, c))
        spread = la * lb * lc + sum(
            np.einsum("ni,ni->n", u, v) * w for u, v, w in ((a, b, lc), (b, c, la), (c, a, lb))
        )
        total += np.arctan2(volume, spread)
    return total / (2 * np.pi)


def away_from(shape, points, least=1e-6):
    distance = abut.closest_point(abut.Mesh(*shape, "cpu"), points).distance.numpy()
    return points[distance > least]


@pytest.mark.parametrize("signed", [True, "pseudonormal", "winding"])
def test_box_everywhere(signed, device):
    """Closest points on faces, edges and corners, from inside and outside, on planes of faces."""
    got = abut.closest_point(abut.Mesh(*cases.box((2, 2, 2)), device), GRID, signed=signed)
    far = np.abs(GRID) - 1
    want = np.linalg.norm(np.maximum(far, 0), axis=1) + np.minimum(far.max(axis=1), 0)
    np.testing.assert_allclose(got.distance.numpy(), want, atol=1e-15)
    assert got.sign == ("winding" if signed == "winding" else "pseudonormal")


SPIKES = {
    "thin spike": octahedron(1.0).turned("x", 7),
    "needle": cases.Shape(octahedron(1.0).vertices * [1, 1e-3, 1e-3], octahedron(1.0).faces),
    "blade": cases.Shape(octahedron(1.0).vertices * [1, 1, 1e-6], octahedron(1.0).faces),
    "star": cases.gem(1280, 1.0, 0.5, 9),
    "knot": cases.pair("knot", 3000)[0],
    "soup": soup(cases.gem(800)),
    "far": cases.gem(800).moved((1e6, 1e6, -1e6)),
}


@pytest.mark.parametrize("name", SPIKES)
def test_pseudonormals_agree_with_crossings(name, device):
    shape = SPIKES[name]
    points = around(shape, 1500)
    by_normals, _ = inside(shape, points, device, "pseudonormal")
    by_rays, sign = inside(shape, points, device, "winding")
    np.testing.assert_array_equal(by_normals, by_rays)
    assert sign == "winding"
    assert inside(shape, points[:10], device)[1] == "pseudonormal"
    assert 0 < by_rays.sum() < len(points)


def test_within_a_rounding_of_the_surface(device):
    """Which face is nearest is noise there and its normal says nothing; signs are exact still."""
    turn = [[-4.55, -2.04, -3.52], [-1.05, 0.354, 0.939], [-2.98, 2.12, 3.33]]
    rng = np.random.default_rng(2)
    for ball in (BALL, cases.torus(12, 8)):
        shape = cases.Shape(ball.vertices @ np.transpose(turn), ball.faces)
        corners = shape.vertices[shape.faces[rng.integers(len(shape.faces), size=5000)]]
        on = np.einsum("nk,nkx->nx", rng.dirichlet([0.2, 0.2, 0.2], size=5000), corners)
        points = on + 10.0 ** rng.uniform(-18, -14, size=(5000, 1)) * rng.normal(size=(5000, 3))
        by_normals, by_rays = (
            inside(shape, points, device, sign)[0] for sign in ("pseudonormal", "winding")
        )
        assert abs(np.linalg.det(turn)) > 0 and abut.Mesh(*shape, device).oriented
        np.testing.assert_array_equal(by_normals, by_rays ^ (np.linalg.det(turn) < 0))


def test_pseudonormals_decide_nearly_all(device):
    """The way back to rays is for the few."""
    mesh = abut.Mesh(*cases.gem(800), device)
    normals = pseudonormals_of(mesh, make_posed_mesh(mesh.points, mesh.faces))
    for array in (normals.edges, normals.vertices):
        doubt, size = array.numpy()[:, 3], np.linalg.norm(array.numpy()[:, :3], axis=1)
        assert (doubt < 1e-12 * size).all()


def test_weights_are_angles(device):
    """However a box is cut into triangles, the normals of its corners are its diagonals."""
    mesh = abut.Mesh(*cases.box((2, 2, 2)), device)
    normals = pseudonormals_of(mesh, make_posed_mesh(mesh.points, mesh.faces)).vertices.numpy()
    np.testing.assert_allclose(normals[:, :3], np.pi / 2 * mesh.points.numpy(), rtol=1e-14)


def test_faces_without_area_do_not_mislead(device):
    """A box whose edge is split by a face of zero area; its edges' normals are in doubt."""
    box = cases.box((2, 2, 2))
    corners = box.vertices[box.faces]
    face = int(np.argmax((corners[:, :, 2] == 1).all(axis=1)))
    a, b, c = box.faces[face]
    middle = len(box.vertices)
    vertices = np.concatenate([box.vertices, [(box.vertices[a] + box.vertices[b]) / 2]])
    rest = np.delete(box.faces, face, axis=0)
    faces = np.concatenate([rest, [[a, middle, c], [middle, b, c], [a, b, middle]]])
    shape = cases.Shape(vertices, faces.astype(np.int32))
    assert abut.Mesh(*shape, device).oriented
    want, _ = inside(box, GRID, device)
    for signed in (True, "pseudonormal", "winding"):
        np.testing.assert_array_equal(inside(shape, GRID, device, signed)[0], want)


def test_flipped(device):
    want, _ = inside(BALL, GRID, device)
    got, sign = inside(flipped(BALL), GRID, device)
    assert sign == "winding"
    np.testing.assert_array_equal(got, want)
    behind, _ = inside(flipped(BALL), GRID, device, "pseudonormal")  # taken at its word
    on = abut.closest_point(abut.Mesh(*BALL, device), GRID).distance.numpy() == 0
    np.testing.assert_array_equal(behind[~on], ~want[~on])


def test_nested_shells(device):
    small = cases.Shape(BALL.vertices * 0.5, BALL.faces)
    radius = np.linalg.norm(GRID, axis=1)
    clear = (np.abs(radius - 0.5) > 0.05) & (np.abs(radius - 1) > 0.1)
    points, radius = GRID[clear], radius[clear]
    hollow, sign = inside(together(BALL, flipped(small)), points, device)
    np.testing.assert_array_equal(hollow, (radius < 1) & (radius > 0.5))
    assert sign == "winding"
    for other in (together(BALL, small), flipped(together(BALL, small))):
        np.testing.assert_array_equal(inside(other, points, device)[0], radius < 1)


def test_crossing_itself(device):
    pair = together(*cases.pair("spheres", 320))
    points = away_from(pair, GRID)
    got, sign = inside(pair, points, device)
    each = [inside(shape, points, device)[0] for shape in cases.pair("spheres", 320)]
    assert sign == "winding"
    np.testing.assert_array_equal(got, each[0] | each[1])


OPEN = {
    "bowl": cases.Shape(BALL.vertices, BALL.faces[BALL.vertices[BALL.faces][:, :, 2].min(1) < 0.4]),
    "two holes": cases.Shape(BALL.vertices, BALL.faces[2:-3]),
    "open box": cases.Shape(cases.box((2, 2, 2)).vertices, cases.box((2, 2, 2)).faces[:-2]),
    "cloth": cases.folded_cloth(20, 10),
    "one face": cases.Shape(np.eye(3), np.array([[0, 1, 2]], np.int32)),
    "half a soup": soup(cases.Shape(BALL.vertices, BALL.faces[::2])),
    "mixed up": cases.Shape(
        BALL.vertices, np.where(np.arange(320)[:, None] % 7 == 0, BALL.faces[:, ::-1], BALL.faces)
    ),
    "a sliver missing": cases.Shape(SPIKES["blade"].vertices, SPIKES["blade"].faces[1:]),
}


def test_one_surface_that_crosses_itself(device):
    """Closed, oriented and in one piece, and yet normals would call some of its inside outside."""
    shape = cases.single("thick_knot", 1500)
    points = around(shape, 3000)
    by_rays, _ = inside(shape, points, device, "winding")
    by_normals, _ = inside(shape, points, device, "pseudonormal")
    found, sign = inside(shape, points, device)
    assert sign == "winding" and (by_normals != by_rays).any()
    np.testing.assert_array_equal(found, by_rays)


@pytest.mark.parametrize("name", OPEN)
def test_open_by_winding_number(name, device):
    shape = OPEN[name]
    points = away_from(shape, np.concatenate([GRID, around(shape, 1500)]), 1e-9)
    got, sign = inside(shape, points, device)
    number = np.abs(exact_winding(shape, points))
    clear = np.abs(number - 0.5) > 1e-12
    assert sign == "winding"
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(got[clear], number[clear] > 0.5)


@pytest.mark.parametrize(
    ("shape", "what"), [(OPEN["bowl"], "is open"), (OPEN["mixed up"], "not consistently oriented")]
)
def test_pseudonormals_are_refused(shape, what, device):
    with pytest.raises(abut.MeshError, match=what):
        abut.closest_point(abut.Mesh(*shape, device), GRID, signed="pseudonormal")


def test_sign_is_said(device):
    mesh = abut.Mesh(*BALL, device)
    assert abut.closest_point(mesh, GRID).sign is None
    assert abut.closest_point(mesh, GRID, signed=abut.Sign.WINDING).sign is abut.Sign.WINDING
    assert abut.closest_point(mesh, GRID, signed=True).sign == "pseudonormal"


@pytest.mark.parametrize("name", ["armadillo_86k", "bunny_69k", "dragon_202k", "hand_cgal"])
def test_models_against_libigl(name, data, device):
    igl = pytest.importorskip("igl")
    mesh = abut.Mesh.load(data / "models" / f"{name}.ply", device)
    shape = cases.Shape(mesh.points.numpy(), mesh.faces.numpy())
    points = around(shape, 500)[:1500]
    distance = abut.closest_point(mesh, points, signed=True).distance.numpy()
    clear = np.abs(distance) > 1e-9 * np.ptp(shape.vertices, axis=0).max()
    number = igl.winding_number(*shape, points[clear][:400])
    np.testing.assert_array_equal(distance[clear][:400] < 0, np.abs(number) > 0.5)
