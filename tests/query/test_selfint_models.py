"""Self-intersecting models: brute force, and libigl's exact detection with CGAL."""

import numpy as np
import pytest

import abut
import oracle

# Each file and its number of self-intersections. All counts are libigl's too, but for two files.
COUNTS = {
    "cgal_cpln_01": 30,
    "cgal_cpln_02": 52,
    "cgal_cpln_03": 37,
    "cgal_cube_quad2": 0,
    "cgal_degenerated-sd": 9,
    "cgal_elk": 7,
    "cgal_folded_star": 0,
    "cgal_hollow_sphere": 0,
    "cgal_large_cube_coplanar": 0,
    "cgal_open_01": 120,
    "cgal_open_02": 60,
    "cgal_overlapping_triangles": 1,
    "cgal_pig": 70,
    "cgal_slow_compute_normal": 0,
    "cgal_spheres_intersecting": 88,
    "cgal_test_04": 4,
    "cgal_test_07": 3,
    "cgal_test_09": 1,
    "cgal_test_10": 2,
    "cgal_test_11": 4,
    "cgal_test_13": 0,
    "cgal_test_15": 2,
    "cgal_test_17": 0,
    "cgal_tetra2": 0,
    "cgal_tetrahedron": 0,
    "cgal_tetrahedron-remeshed": 0,
    "cgal_tri1": 0,
    "manifold_self_intersectA": 338,
    "thingi10k_472042": 0,
    "thingi10k_72214": 0,
    "thingi10k_908460": 0,
}
LARGE = {"thingi10k_908460"}  # 36,000 faces: brute force takes some 15 s on one core


def test_all_files_are_known(data):
    assert {path.stem for path in (data / "selfint").glob("*.ply")} == set(COUNTS)


@pytest.fixture
def mesh(name, data, device):
    return abut.Mesh.load(data / "selfint" / f"{name}.ply", device)


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, mesh):
    assert len(abut.self_collide(mesh)) == COUNTS[name]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in COUNTS]
)
def test_against_brute_force(name, mesh):
    found = abut.self_collide(mesh).pairs.numpy()
    np.testing.assert_array_equal(found, abut.self_collide(mesh, method="brute").pairs.numpy())


@pytest.mark.parametrize("name", COUNTS)
def test_against_cgal(name, mesh):
    """The same pairs but for duplicate faces, which libigl leaves out and abut reports.

    libigl takes faces with three common corners for one: cgal_test_15 has two such pairs, turned
    over, and cgal_degenerated-sd two faces that are one and the same point.
    """
    cgal = pytest.importorskip("igl.copyleft.cgal", reason="needs libigl")
    vertices, faces = mesh.points.numpy(), mesh.faces.numpy().astype(np.int64)
    theirs = cgal.remesh_self_intersections(vertices, faces, detect_only=True)[2]
    theirs = {tuple(sorted(pair)) for pair in theirs.tolist()}
    ours = set(map(tuple, abut.self_collide(mesh).pairs.numpy().tolist()))
    assert theirs <= ours
    for i, j in ours - theirs:
        a, b = vertices[faces[i]], vertices[faces[j]]
        assert set(map(tuple, a)) == set(map(tuple, b))
        assert oracle.intersect_neighbours(a, b)


@pytest.mark.parametrize("name", [name for name, count in COUNTS.items() if 0 < count < 100])
def test_against_fractions(name, mesh):
    """Every reported pair does meet."""
    vertices, faces = mesh.points.numpy(), mesh.faces.numpy()
    for i, j in abut.self_collide(mesh).pairs.numpy():
        assert oracle.intersect_neighbours(vertices[faces[i]], vertices[faces[j]])
