"""FAR at any resolution loses nothing; and the tests would notice if it did."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import abut
from abut import cases
from abut.options import CULL_METHODS
from abut.visibility import settings as views_module
from abut.visibility.gl.driver import unavailable
from abut.visibility.tile_target import TileTarget

FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])

# Coordinates on a small grid touch, coincide and degenerate all the time; fine ones hardly ever.
coarse = st.integers(-4, 4).map(float)
fine = st.floats(-4, 4, allow_nan=False, width=32)
scales = st.sampled_from([1.0, 1e-3, 1e6])
offsets = st.sampled_from([0.0, 1.0, 1e4])


@st.composite
def soups(draw, least=2, most=14):
    """Triangles (n, 3, 3), some degenerate, at some scale, some way off."""
    count = draw(st.integers(least, most))
    corners = draw(
        arrays(np.float64, (count, 3, 3), elements=draw(st.sampled_from([coarse, fine])))
    )
    if draw(st.booleans()):  # small triangles that are still near each other
        corners = corners[:, :1] * 0.2 + 0.1 * corners
    return (corners + draw(offsets)) * draw(scales)


def mesh_of(corners, device):
    faces = np.arange(3 * len(corners)).reshape(-1, 3)
    return abut.Mesh(corners.reshape(-1, 3), faces, device)


def kept(culled):
    return {tuple(row) for row in culled.faces.numpy().tolist()}


def meeting(a, b):
    pairs = abut.collide(a, b, method="brute").pairs.numpy()
    return {(side, face) for side in (0, 1) for face in pairs[:, side].tolist()}


pixel_counts = st.sampled_from([1, 2, 3, 7, 16, 64, 255])
view_names = st.sampled_from(["x", "y", "z", "xyz", "zX", "yxy", "zz"])
orders = st.sampled_from(["free", "drawn"])


@given(soups(), soups(), pixel_counts, view_names, orders)
@FEW
def test_far_is_conservative(device, first, second, pixels, views, order):
    a, b = mesh_of(first, device), mesh_of(second, device)
    culled = abut.cull([a, b], pixels=pixels, views=views, order=order)
    assert meeting(a, b) <= kept(culled)


@given(soups(), soups(), pixel_counts)
@FEW
def test_contacts_match_brute_force(device, first, second, pixels):
    a, b = mesh_of(first, device), mesh_of(second, device)
    want = abut.collide(a, b, method="brute").pairs.numpy()
    assert np.array_equal(abut.collide(a, b, method="far", pixels=pixels).pairs.numpy(), want)


@given(soups(), pixel_counts, st.booleans())
@FEW
def test_self_contacts_match_brute_force(device, corners, pixels, weld):
    mesh = mesh_of(corners, device)
    want = abut.self_collide(mesh, method="brute", weld=weld).pairs.numpy()
    found = abut.self_collide(mesh, method="far", pixels=pixels, weld=weld).pairs.numpy()
    assert np.array_equal(found, want)
    culled = abut.cull([mesh], pixels=pixels, self_collisions=True)
    welded = abut.self_collide(mesh, method="brute").pairs.numpy()
    assert {(0, int(face)) for face in welded.ravel()} <= kept(culled)


@given(soups(most=8), soups(most=8), pixel_counts, st.floats(0, 2), orders)
@FEW
def test_distance_is_conservative(device, first, second, pixels, share, order):
    a, b = mesh_of(first, device), mesh_of(second, device)
    distance = share * float(np.ptp(first, axis=(0, 1)).max())
    culled = abut.cull([a, b], pixels=pixels, distance=distance, order=order)
    pairs = abut.within(a, b, distance, method="brute").pairs.numpy()
    assert {(side, f) for side in (0, 1) for f in pairs[:, side].tolist()} <= kept(culled)
    found = {tuple(row) for row in culled.pairs.numpy().tolist()}
    assert {tuple(row) for row in pairs.tolist()} <= found


def crossing_pairs(seed, count=40):
    """Small triangles in pairs, each pair crossing somewhere within the triangles."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(-1, 1, size=(count, 1, 3))
    out = []
    for _ in range(2):
        corners = rng.normal(size=(count, 3, 3)) * 0.03
        out.append(
            at + corners - (corners * rng.dirichlet([1] * 3, count)[..., None]).sum(1)[:, None]
        )
    return out


def lost(device, pixels, seeds=range(12)):
    """Number of intersecting faces that are culled, over some scenes."""
    total = 0
    for seed in seeds:
        a, b = (mesh_of(corners, device) for corners in crossing_pairs(seed))
        total += len(meeting(a, b) - kept(abut.cull([a, b], pixels=pixels)))
    return total


def lost_pairs(device, pixels, seeds=range(12)):
    """Number of intersecting pairs that are no candidates, over some scenes."""
    total = 0
    for seed in seeds:
        a, b = (mesh_of(corners, device) for corners in crossing_pairs(seed))
        met = set(map(tuple, abut.collide(a, b, method="brute").pairs.numpy().tolist()))
        total += len(met - set(map(tuple, abut.cull([a, b], pixels=pixels).pairs.numpy().tolist())))
    return total


def by_lists(monkeypatch, yes=True):
    """Let all raster targets use fragment lists, or none."""
    monkeypatch.setattr(TileTarget, "suits", staticmethod(lambda *_: not yes))


SIZES = ("level", "view", "pixels", "passes", "queries", "bfv", "ffv", "sfv", "nfv")
MUTATIONS = {
    "coverage rounded inwards": {"reach": -0.25},
    "no more than the centre of a pixel": {"reach": -0.49},
    "depth not widened but narrowed": {"slack": -0.01},
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("pixels", [16, 100, 200])
def test_detects_unconservative_raster(mutation, pixels, device, monkeypatch):
    assert lost(device, pixels) == 0
    honest = views_module.map_of
    change = MUTATIONS[mutation]

    def wrong(*args, **options):
        out = honest(*args, **options)
        reach = tuple(x + change.get("reach", 0.0) for x in out.reach)
        return out._replace(reach=reach, slack=out.slack + change.get("slack", 0.0))

    monkeypatch.setattr("abut.visibility.raster_target.map_of", wrong)
    assert lost(device, pixels) > 0


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 1000])
def test_scale_invariance(exponent, device):
    for seed in range(3):
        plain = [mesh_of(c, device) for c in crossing_pairs(seed)]
        scaled = [mesh_of(np.ldexp(c, exponent), device) for c in crossing_pairs(seed)]
        assert kept(abut.cull(scaled, pixels=100)) == kept(abut.cull(plain, pixels=100))


def test_far_from_the_origin(device):
    for seed in range(3):
        a, b = (mesh_of(c + 1e6, device) for c in crossing_pairs(seed))
        assert meeting(a, b) <= kept(abut.cull([a, b], pixels=300))
    apart = [shape.moved((1e6, 1e6, 1e6)) for shape in cases.pair("apart", 1000)]
    assert len(abut.cull([abut.Mesh(*shape, device) for shape in apart], pixels=300)) == 0


@pytest.mark.parametrize("pixels", [3, 40])
def test_bands_match_whole_viewport(pixels, device, monkeypatch):
    """A viewport that exceeds the limit of fragment lists is drawn in bands."""
    by_lists(monkeypatch)
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 300)]
    whole = {m: abut.cull(meshes, method=m, pixels=pixels) for m in CULL_METHODS}
    monkeypatch.setattr("abut.visibility.raster_target.MOST_PIXELS_AT_ONCE", 2 * pixels)
    again = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 300)]
    for method, want in whole.items():
        found = abut.cull(again, method=method, pixels=pixels)
        assert kept(found) == kept(want)
        for row, other in zip(found.statistics, want.statistics, strict=True):
            assert [getattr(row, name) for name in SIZES] == [
                getattr(other, name) for name in SIZES
            ]


def test_fragment_lists_grow(device, monkeypatch):
    by_lists(monkeypatch)
    monkeypatch.setattr("abut.visibility.raster_target.MOST_FRAGMENTS", {True: 500, False: 500})
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 300)]
    small = kept(abut.cull(meshes, pixels=64))
    monkeypatch.undo()
    by_lists(monkeypatch)
    again = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 300)]
    assert small == kept(abut.cull(again, pixels=64))


@pytest.mark.parametrize("method", CULL_METHODS)
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("pixels", [5, 64, 301])
def test_tiles_match_fragment_lists(pixels, within, method, device, monkeypatch):
    """Both kinds of raster targets, for sparse and for dense scenes."""
    a, b = cases.pair("needles", 100)
    shapes = [a, b, *cases.pair("tori", 400), cases.single("folded_cloth", 300)]
    found = []
    for lists in (False, True):
        by_lists(monkeypatch, lists)
        meshes = [abut.Mesh(*shape, device) for shape in shapes]
        options = {"method": method, "pixels": pixels, "self_collisions": within}
        for order in abut.Order:
            found.append(abut.cull(meshes, order=order, **options))
    for order in range(2):
        tiled, listed = found[order], found[2 + order]
        assert np.array_equal(tiled.faces.numpy(), listed.faces.numpy())
        for row, other in zip(tiled.statistics, listed.statistics, strict=True):
            assert [getattr(row, name) for name in SIZES] == [
                getattr(other, name) for name in SIZES
            ]


def test_overfull_tile_falls_back_to_fragment_lists(device, monkeypatch):
    """Here all faces but one lie in one tile."""
    by_lists(monkeypatch, False)
    shapes = [*cases.pair("tori", 4000), cases.box((1e-3,) * 3).moved((900, 900, 900))]
    meshes = [abut.Mesh(*shape, device) for shape in shapes]
    culled = abut.cull(meshes, pixels=64)
    assert meeting(*meshes[:2]) <= kept(culled)


def test_bins_grow(device, monkeypatch):
    """Bins grow; beyond the limit a target of fragment lists replaces them."""
    by_lists(monkeypatch, False)
    shapes = cases.pair("tori", 300)
    want = abut.cull([abut.Mesh(*shape, device) for shape in shapes], pixels=400)
    honest = TileTarget.__init__

    def narrow(target, *args):
        honest(target, *args)
        target.capacity = 10
        target._allocate()

    monkeypatch.setattr(TileTarget, "__init__", narrow)
    for most in (1 << 26, 1000):
        monkeypatch.setattr("abut.visibility.tile_target.MOST_FRAGMENTS_BINNED", most)
        found = abut.cull([abut.Mesh(*shape, device) for shape in shapes], pixels=400)
        assert np.array_equal(found.faces.numpy(), want.faces.numpy())
        as_tiles = [row.fragments for row in want.statistics]
        assert ([row.fragments for row in found.statistics] == as_tiles) == (most > 1000)


@pytest.mark.parametrize("at", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("flat", [1, 2, 3])
def test_scenes_without_depth(flat, at, device):
    """All in a plane, on a line, or in one point."""
    rng = np.random.default_rng(flat)
    for pixels in (1, 7, 130):
        corners = rng.integers(-3, 4, size=(2, 8, 3, 3)).astype(float)
        corners[..., 3 - flat :] = at
        a, b = (mesh_of(c, device) for c in corners)
        want = abut.collide(a, b, method="brute").pairs.numpy()
        assert np.array_equal(abut.collide(a, b, method="far", pixels=pixels).pairs.numpy(), want)
        assert meeting(a, b) <= kept(abut.cull([a, b], pixels=pixels, order="drawn"))


@pytest.mark.parametrize("backend", ["warp", "gl"])
@pytest.mark.parametrize("method", ["far", "quick_cullide"])
def test_repeated_views_prune_more(device, method, backend):
    """Faces that only pruned faces hid become visible; what intersects stays."""
    if backend == "gl" and unavailable() is not None:
        pytest.skip(str(unavailable()))
    crowd = cases.leaves(30, 300)
    meshes = [abut.Mesh(*shape, device) for shape in crowd.shapes]
    options = {"method": method, "order": "drawn", "conservative": True, "backend": backend}
    sets = []
    for views in ("xyz", "xyzxyz", "xxyyzz"):
        culled = abut.cull(meshes, poses=crowd.poses, pixels=256, views=views, **options)
        assert len(culled.statistics) == len(views) * 2 * (2 if method == "quick_cullide" else 1)
        sets.append((kept(culled), set(map(tuple, culled.object_pairs.numpy().tolist()))))
    scene = abut.Scene(device=device)
    for mesh, pose in zip(meshes, crowd.poses, strict=True):
        scene.add(mesh, pose)
    hits = scene.collide()
    met = set(map(tuple, hits.objects.numpy().tolist()))
    for faces, pairs in sets:
        assert met <= pairs and faces <= sets[0][0]
    assert len(sets[1][0]) < len(sets[0][0])
