"""FAR at 16 by 16 pixels against adversarial faces: no intersecting face is lost.

A family makes two lists of faces, the k-th of one in the awkward relation to the k-th of the other.
"""

from pathlib import Path

import numpy as np
import pytest

import abut
from abut.visibility import settings as views_module
from abut.visibility.gl.driver import unavailable
from abut.visibility.tile_target import TileTarget
from shapes import random_poses

COUNT, PIXELS = 40, 16
WHY_NO_GL = unavailable()


def spread(rng):
    """Places (n, 1, 3) in the unit cube, multiples of 2**-20."""
    return np.floor(rng.random((COUNT, 1, 3)) * 2**20) * 2.0**-20


def small(rng, bits=24, size=2**18):
    """Faces (n, 3, 3) around the origin, multiples of 2**-bits: sums with places are exact."""
    return rng.integers(-size, size + 1, size=(COUNT, 3, 3)) * 2.0**-bits


def corners(rng):
    """A corner of one is a corner of the other."""
    a, b = spread(rng) + small(rng), spread(rng) + small(rng)
    b[:, 0] = a[:, 1]
    return a, b


def edges(rng):
    """A corner of one is in the middle of an edge of the other."""
    a, b = spread(rng) + 2 * small(rng), spread(rng) + small(rng)
    b[:, 0] = (a[:, 0] + a[:, 1]) / 2
    return a, b


def coplanar(rng):
    """Faces in one plane across an axis: edge-on in two views."""
    at, a, b = spread(rng), small(rng), small(rng)
    flat = rng.integers(0, 3, size=COUNT)
    for side in (a, b):
        side[np.arange(COUNT), :, flat] = 0.0
    return at + a, at + b


def tiny(rng):
    """A billionth of the scene: all of a face in one pixel, and of one float32 depth."""
    at = spread(rng)
    return at + small(rng, 52, 2**8), at + small(rng, 52, 2**8)


def huge(rng):
    """Faces a million times as large as others."""
    a = rng.integers(-(2**10), 2**10, size=(COUNT, 3, 3)) * 2.0**10
    share = rng.dirichlet([1] * 3, COUNT)[..., None]
    return a, (a * share).sum(axis=1)[:, None] + small(rng)


def thin(rng):
    """Slivers, a hundred million times as long as wide, that cross."""
    at, out = spread(rng), []
    for _ in range(2):
        along, off = small(rng)[:, :1], small(rng, 50)[:, :1]
        out.append(at + np.concatenate([along, -along, off - along], axis=1))
    return out


def pointed(rng):
    """Segments and points."""
    a, b = edges(rng)
    a[::2, 2], b[:, 1:] = a[::2, 0], b[:, :1]
    return a, b


def borders(rng, pixels=PIXELS):
    """They touch on a border between pixels, or a hair beside it, and lie on either side of it."""
    spans = views_module._span(0.0, 1.0)
    grid = (np.arange(1, pixels) * spans[2] / pixels + spans[1]) / spans[0]
    at = rng.choice(grid, size=(COUNT, 1, 3))
    at = (at.view(np.int64) + rng.integers(-3, 4, at.shape)).view(np.float64)
    sign = rng.choice([-1, 1], size=(COUNT, 1, 3))
    a, b = at + sign * np.abs(small(rng)), at - sign * np.abs(small(rng))
    a[:, 0] = b[:, 0] = at[:, 0]
    a[0], b[0] = [[0, 0, 0]] * 3, [[1, 1, 1]] * 3  # the scene ends there
    return a, b


FAMILIES = (corners, edges, coplanar, tiny, huge, thin, pointed, borders)
PLACES = {"here": 0.0, "far": 2.0**20}  # from there on, numbers are rounded to 2**-32


def mesh_of(faces, device, at=0.0):
    return abut.Mesh(faces.reshape(-1, 3) + at, np.arange(3 * len(faces)).reshape(-1, 3), device)


def sides(pairs):
    return {(side, face) for side in (0, 1) for face in pairs[:, side].tolist()}


def lost(meshes, met, **options):
    """Numbers of culled intersecting faces, and of intersecting pairs that are no candidates."""
    culled = abut.cull(meshes, **options)
    kept = {tuple(row) for row in culled.faces.numpy().tolist()}
    found = {tuple(row) for row in culled.pairs.numpy().tolist()}
    return len(sides(met) - kept) + len({tuple(row) for row in met.tolist()} - found)


def both_targets(monkeypatch):
    """Tiles, then lists."""
    for tiles in (True, False):
        monkeypatch.setattr(TileTarget, "suits", staticmethod(lambda *_, tiles=tiles: tiles))
        yield


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("family", FAMILIES)
def test_intersecting_faces_survive(family, place, device, monkeypatch):
    for seed in range(3):
        shapes = family(np.random.default_rng(seed))
        for _ in both_targets(monkeypatch):
            a, b = (mesh_of(shape, device, PLACES[place]) for shape in shapes)
            met = abut.collide(a, b, method="brute").pairs.numpy()
            assert len(met) >= (COUNT // 4 if place == "here" else 1)
            for order in abut.Order:
                for views in ("xyz", "Z"):
                    assert lost([a, b], met, pixels=PIXELS, views=views, order=order) == 0
            found = abut.collide(a, b, method="far", pixels=PIXELS).pairs.numpy()
            assert np.array_equal(found, met)


@pytest.mark.parametrize("family", FAMILIES)
def test_rotated_and_mirrored(family, device):
    """Rotations by 180 degrees or at random; and mirrored shapes."""
    half_turns = [np.diag([*signs, 1.0]) for signs in ((-1, -1, 1), (1, -1, -1), (-1, 1, -1))]
    shapes = family(np.random.default_rng(7))
    for pose in [*half_turns, *random_poses(3, 0.0)]:
        for mirror in (1.0, [-1.0, 1.0, 1.0]):
            a, b = (mesh_of(shape * mirror, device) for shape in shapes)
            met = abut.collide(a, b, pose_a=pose, pose_b=pose, method="brute").pairs.numpy()
            assert lost([a, b], met, poses=[pose, pose], pixels=PIXELS) == 0


@pytest.mark.parametrize("order", abut.Order)
@pytest.mark.parametrize("family", FAMILIES)
def test_faces_just_within_distance_survive(family, order, device, monkeypatch):
    """Touching faces, one of them moved along an axis by the distance."""
    for seed, distance in enumerate((2.0**-30, 2.0**-9, 0.25, 4.0)):
        a, b = family(np.random.default_rng(seed))
        b = b + distance * np.eye(3)[seed % 3]
        for _ in both_targets(monkeypatch):
            meshes = [mesh_of(a, device), mesh_of(b, device)]
            near = abut.within(*meshes, distance, method="brute").pairs.numpy()
            assert len(near) >= COUNT // 4
            options = {"pixels": PIXELS, "distance": distance, "order": order}
            assert lost(meshes, near, **options) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_within_one_mesh(family, device, monkeypatch):
    a, b = family(np.random.default_rng(3))
    for _ in both_targets(monkeypatch):
        mesh = mesh_of(np.concatenate([a, b]), device)
        want = abut.self_collide(mesh, method="brute").pairs.numpy()
        for pixels in (1, PIXELS, 129):
            found = abut.self_collide(mesh, method="far", pixels=pixels).pairs.numpy()
            assert np.array_equal(found, want)


@pytest.mark.skipif(WHY_NO_GL is not None, reason=str(WHY_NO_GL))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("family", FAMILIES)
def test_graphics_pipeline(family, place, device):
    for seed, distance in enumerate((0.0, 2.0**-30, 2.0**-9, 0.25)):
        a, b = family(np.random.default_rng(seed))
        meshes = [mesh_of(a, device, PLACES[place])]
        meshes += [mesh_of(b + distance * np.eye(3)[seed % 3], device, PLACES[place])]
        near = abut.within(*meshes, distance, method="brute").pairs.numpy()
        assert len(near) >= (COUNT // 4 if place == "here" else 1)
        assert lost(meshes, near, pixels=PIXELS, distance=distance, backend="gl") == 0


@pytest.mark.parametrize("short", [1e-6, 1e-3])
def test_detects_footprint_short_by_a_millionth(short, device, monkeypatch):
    """Pixels that reach no further than to their border, and not quite."""
    honest = views_module.map_of

    def wrong(*args, **options):
        out = honest(*args, **options)
        return out._replace(reach=(0.5 - short,) * 2)

    for _ in both_targets(monkeypatch):
        meshes = [mesh_of(shape, device) for shape in borders(np.random.default_rng(1))]
        met = abut.collide(*meshes, method="brute").pairs.numpy()
        assert lost(meshes, met, pixels=PIXELS, order="drawn") == 0
        with monkeypatch.context() as patch:
            patch.setattr("abut.visibility.raster_target.map_of", wrong)
            others = [mesh_of(shape, device) for shape in borders(np.random.default_rng(1))]
            assert lost(others, met, pixels=PIXELS, order="drawn") > 0


PAGE = Path(__file__).parents[2] / "docs" / "papers" / "far.md"
COLUMNS = {
    "FAR": {},
    "FAR, drawn": {"order": "drawn"},
    "FAR, gl": {"order": "drawn", "backend": "gl"},
    "CULLIDE": {"method": "cullide"},
    "Quick-CULLIDE": {"method": "quick_cullide"},
}
ROWS = {
    "corner on corner": corners,
    "corner on the middle of an edge": edges,
    "in one plane, across an axis": coplanar,
    "a billionth of the scene's size": tiny,
    "a million times as large as the other": huge,
    "slivers, 10⁸ times as long as wide": thin,
    "segments and points": pointed,
    "touching on the border between pixels": borders,
}


@pytest.mark.skipif(WHY_NO_GL is not None, reason=str(WHY_NO_GL))
def test_the_table_of_the_page():
    """Intersecting pairs of ten lists of each family, and those that each method loses."""
    lines = [[name, *map(str, _losses(family))] for name, family in ROWS.items()]
    head = ["", "intersecting", *COLUMNS]
    made = [head, ["---"] + ["---:"] * (len(head) - 1), *lines]
    table = "".join("| " + " | ".join(line).strip() + " |\n" for line in made)
    assert table in PAGE.read_text(), table


def _losses(family):
    """The number of intersecting pairs, and how many of them are lost by each column."""
    counts = np.zeros(1 + len(COLUMNS), int)
    for seed in range(10):
        meshes = [mesh_of(shape, "cpu") for shape in family(np.random.default_rng(seed))]
        met = {tuple(row) for row in abut.collide(*meshes, method="brute").pairs.numpy().tolist()}
        found = [abut.cull(meshes, pixels=PIXELS, **way).pairs.numpy() for way in COLUMNS.values()]
        counts += [len(met), *(len(met - set(map(tuple, some.tolist()))) for some in found)]
    return counts
