"""Cloth moves like cloth, and never cuts anything."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases, sim
from abut.sim import cloth as cloth_module
from abut.sim import safe_paths
from abut.sim.springs import bend_springs, brace_springs, edge_springs

THIN = sim.Fabric(thickness=0.02, substeps=4)  # too thin for steps as long as those below


def draped(device, make=cases.drape_table, faces=450, **options):
    sheet, obstacle = make(faces).placed()
    return sim.Cloth(sheet, obstacle, device=device, **options)


def meets(cloth):
    return bool(abut.self_collide(cloth.mesh)) or bool(abut.collide(cloth.mesh, cloth.obstacle))


@pytest.mark.parametrize("make", [cases.drape_table, cases.drape_ball])
@pytest.mark.parametrize("fabric", [sim.Fabric(), THIN], ids=["thick", "thin"])
def test_no_frame_has_intersections(device, make, fabric):
    cloth = draped(device, make, fabric=fabric)
    impacts = 0
    for _ in range(40):
        impacts += cloth.step(0.02).impacts
        assert not meets(cloth)
    assert cloth.mesh.points.numpy()[:, 2].min() < -0.3
    assert fabric is not THIN or impacts > 100


def test_without_safe_paths_faces_intersect(device, monkeypatch):
    """The test above can fail."""

    def careless(mesh, wanted, obstacle):
        share = wp.full(mesh.vertex_count, 1.0, dtype=wp.float64, device=mesh.device)
        return safe_paths.SafePaths(wanted, share, 0, 0)

    monkeypatch.setattr(cloth_module, "safe_paths", careless)
    cloth = draped(device, fabric=THIN)
    assert any(cloth.step(0.02) and meets(cloth) for _ in range(40))


def test_same_bytes_every_time(device):
    runs = []
    for _ in range(2):
        cloth = draped(device, cases.drape_ball)
        for _ in range(12):
            cloth.step(0.02)
        runs.append(cloth.mesh.points.numpy())
    assert np.array_equal(*runs)


def test_free_fall(device):
    """Without air, as Newton says: substeps of h fall g h² (1 + … + n)."""
    cloth = sim.Cloth(cases.sheet(50), fabric=sim.Fabric(drag=(0.0, 0.0)), device=device)
    for _ in range(10):
        cloth.step(0.01)
    h, n = 0.01 / 8, 80
    fallen = 9.81 * h * h * n * (n + 1) / 2
    assert cloth.mesh.points.numpy()[:, 2] == pytest.approx(np.full(36, -fallen), rel=1e-9)
    assert cloth.velocity.numpy()[:, 2] == pytest.approx(np.full(36, -9.81 * 0.1), rel=1e-9)
    assert cloth.seconds == pytest.approx(0.1)


def test_air_slows_a_sheet_across_more_than_along(device):
    flat, upright = cases.sheet(50), cases.sheet(50).turned("x", 90)
    fabric = sim.Fabric(drag=(20.0, 1.0))
    speeds = []
    for sheet in (flat, upright):
        cloth = sim.Cloth(sheet, fabric=fabric, device=device)
        for _ in range(100):
            cloth.step(0.01)
        speeds.append(-cloth.velocity.numpy()[:, 2].mean())
    assert speeds[0] == pytest.approx(9.81 / 20, rel=0.05)  # where drag and gravity balance
    assert speeds[1] > 5 * speeds[0]


def test_pinned_vertices_stay_and_edges_keep_their_length(device):
    sheet = cases.sheet(200, 1.0)
    pinned = [0, 10]
    cloth = sim.Cloth(sheet, pinned=pinned, device=device)
    for _ in range(60):
        cloth.step(0.01)
    points = cloth.mesh.points.numpy()
    assert np.array_equal(points[pinned], sheet.vertices[pinned])
    assert points[:, 2].min() < -0.8
    ends = cloth.mesh.edges.numpy()
    lengths, before = (np.linalg.norm(np.diff(p[ends], axis=1), axis=2) for p in (points, sheet[0]))
    assert (lengths / before).max() < 1.1


def test_braces_keep_the_form_of_a_leaf(device):
    def change(**options):
        leaf = cases.leaf(0.6, 0.5)
        fabric = sim.Fabric(drag=(20.0, 20.0), **options)
        cloth = sim.Cloth(leaf, fabric=fabric, pinned=np.arange(14), device=device)
        for _ in range(30):
            cloth.step(0.01)
        return np.linalg.norm(cloth.mesh.points.numpy() - leaf.vertices, axis=1).max()

    limp, soft, stiff = change(), change(braces=3, form=1e-6), change(braces=3, form=1e-7)
    assert limp > 1.5 * soft > 2 * stiff
    assert stiff < 0.022  # a tenth of its length


def test_intersecting_sheets_are_refused(device):
    crossed = cases.joined(cases.sheet(8), cases.sheet(8).turned("x", 90).moved((0.1, 0.1, 0)))
    with pytest.raises(abut.MeshError, match="of the sheet meet"):
        sim.Cloth(crossed, device=device)
    with pytest.raises(abut.MeshError, match="meets the obstacle"):
        sim.Cloth(cases.sheet(8), cases.icosphere(80), device=device)
    with pytest.raises(abut.OptionError, match="thickness"):
        sim.Cloth(cases.sheet(8), fabric=sim.Fabric(thickness=1.0), device=device)


@pytest.mark.parametrize("springs", [edge_springs, bend_springs, lambda s: brace_springs(s, 2)])
def test_springs_of_a_group_share_no_vertex(springs):
    sheet = cases.sheet(200)
    found = springs(sheet)
    assert found.starts[-1] == len(found.ends)
    for start, stop in zip(found.starts[:-1], found.starts[1:], strict=True):
        used = found.ends[start:stop].ravel()
        assert len(used) == len(set(used.tolist()))
    a, b = sheet.vertices[found.ends].transpose(1, 0, 2)
    assert found.rest == pytest.approx(np.linalg.norm(a - b, axis=1))


def test_springs_are_complete():
    sheet = cases.sheet(200)
    mesh = abut.Mesh(*sheet, device="cpu")
    edges = edge_springs(sheet).ends
    assert {tuple(e) for e in edges.tolist()} == {tuple(e) for e in mesh.edges.numpy().tolist()}
    boundary = 4 * 10
    assert len(bend_springs(sheet).ends) <= len(edges) - boundary
    assert len(bend_springs(cases.Shape(sheet.vertices, sheet.faces[:1])).ends) == 0


def test_braces_stay_within_a_sheet():
    two = cases.joined(cases.sheet(50), cases.sheet(50).moved((0, 0, 1)))
    ends = brace_springs(two, 3).ends
    assert ((ends < 36).all(axis=1) | (ends >= 36).all(axis=1)).all()
    assert set(ends.ravel().tolist()) == set(range(72))
    assert len(brace_springs(two, 0).ends) == 0


def stacked(device, height=1.0):
    """Two triangles, one above the other."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], float)
    above, aside = np.array([0.1, 0.1, height]), np.array([9.0, 9.0, 0.0])
    vertices = np.concatenate([corners, corners * 0.5 + above, corners + aside])
    return abut.Mesh(vertices, np.arange(9, dtype=np.int32).reshape(3, 3), device)


def through(mesh):
    """The upper triangle wants to go through the lower one; the third one moves freely."""
    wanted = mesh.points.numpy().copy()
    wanted[3:, 2] -= 2.0
    return wp.array(wanted, dtype=wp.vec3d, device=mesh.device)


def test_only_crossing_paths_are_shortened(device):
    mesh = stacked(device)
    way = safe_paths.safe_paths(mesh, through(mesh))
    share = way.share.numpy()
    assert way.impacts > 0 and way.rounds > 0
    assert (share[6:] == 1).all()
    assert (share[3:6] < 0.5).all() and (share[3:6] > 0.1).all()
    mesh.deform(way.points)
    assert not abut.self_collide(mesh)


def test_fixed_vertices_do_not_stop_others(device):
    """Two triangles too near for ccd to decide do not move; a third one does."""
    mesh = stacked(device, height=1e-15)
    wanted = mesh.points.numpy().copy()
    wanted[6:, 2] -= 2.0
    way = safe_paths.safe_paths(mesh, wp.array(wanted, dtype=wp.vec3d, device=mesh.device))
    assert np.array_equal(way.points.numpy(), wanted)


def test_the_last_resort_stops_everything(device, monkeypatch):
    monkeypatch.setattr(safe_paths, "ROUNDS", 0)
    mesh = stacked(device)
    way = safe_paths.safe_paths(mesh, through(mesh))
    assert way.share.numpy() == pytest.approx(np.full(9, 0.25), abs=1e-5)
    assert way.points.numpy()[6:, 2] == pytest.approx(-0.5, abs=1e-5)
    monkeypatch.setattr(safe_paths, "self_collide", lambda mesh: True)
    way = safe_paths.safe_paths(mesh, through(mesh))
    assert np.array_equal(way.points.numpy(), mesh.points.numpy())


@pytest.mark.slow
def test_twenty_thousand_faces(device):
    cloth = draped(device, faces=20_000)
    for _ in range(100):
        cloth.step(0.01)
        assert not meets(cloth)
