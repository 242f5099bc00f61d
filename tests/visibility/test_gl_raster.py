"""Passes of the graphics pipeline: drawing order, occlusion, conservative boxes."""

from functools import partial

import numpy as np
import pytest

import abut
from abut.errors import ToolError
from abut.visibility.gl import driver as drivers
from abut.visibility.gl import shaders
from abut.visibility.gl.draw_rounds import MARGIN, draw_rounds, object_boxes
from abut.visibility.gl.driver import Driver, driver, unavailable
from abut.visibility.gl.raster import DrawBatches, Raster
from abut.visibility.settings import View

WHY_NOT = unavailable()
needs_gl = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(autouse=True)
def current():
    if WHY_NOT is not None:
        yield
    else:
        with driver().current():
            yield


VIEWS = [View(name) for name in "xXyYzZ"]
RESOLUTIONS = (4, 16, 33, 200)


def awkward_pair(rng):
    """Two faces: thin, tiny, flat, without area, touching, or just any."""
    a, b = rng.uniform(size=(2, 3, 3))
    kind = rng.integers(8)
    along = a[0] + (a[1] - a[0]) * rng.uniform()
    if kind == 1:
        a[:, rng.integers(3)] = 0.5
    elif kind == 2:
        b = a + rng.normal(scale=1e-3, size=(3, 3))
    elif kind == 3:
        a[2] = along
    elif kind == 4:
        a = a[:1] * 0.9 + rng.normal(scale=1e-3, size=(3, 3))
        b = a.mean(axis=0) + rng.normal(scale=1e-3, size=(3, 3))
    elif kind == 5:
        b[0] = [0.3, 0.3, 0.4] @ a
    elif kind == 6:
        a[:] = a[0]
    elif kind == 7:
        a[2] = along + rng.normal(scale=1e-5, size=3)
        b[0] = along
    return a, b


def meeting_pairs(count, seed):
    """Corners (2, 3, 3) of intersecting faces in the unit cube."""
    rng = np.random.default_rng(seed)
    pairs = np.array([awkward_pair(rng) for _ in range(4 * count)])
    meet = abut.primitives.intersect_tri_tri(pairs[:, 0], pairs[:, 1]).numpy().astype(bool)
    for both in pairs[meet][:count]:
        low, high = both.min(axis=(0, 1)), both.max(axis=(0, 1))
        yield ((both - low) / np.where(high > low, high - low, 1.0)).astype(np.float32)


def sheets(*heights):
    """Triangles across z, at these heights."""
    return np.array([[[0.1, 0.1, z], [0.9, 0.1, z], [0.1, 0.9, z]] for z in heights], np.float32)


def both_ways(raster, **options):
    """Whether the second of two faces is occluded, in either order and by either kind of pass."""
    every = np.ones(2, dtype=bool)
    for batch in ([0, 1], [1, 0]):
        order = DrawBatches.of(np.array(batch)).order(every, every)
        yield raster.occluded_primitives(order, np.arange(2), **options)[batch[1]]
        yield raster.occluded_faces(order, **options)[batch[1]]


def count_lost(fat, count=60, seed=0, of=None):
    """Number of intersecting faces that are fully visible, over all views and resolutions."""
    rng = np.random.default_rng(seed)
    lost = 0
    for corners in meeting_pairs(count, seed):
        raster = Raster(of or driver(), corners, int(rng.choice(RESOLUTIONS)), fat)
        for view in VIEWS:
            raster.set_view(view)
            lost += sum(not occluded for occluded in both_ways(raster))
    return lost


@needs_gl
@pytest.mark.parametrize("seed", range(3))
def test_boxes_are_conservative(seed):
    assert count_lost(True, seed=seed) == 0


@needs_gl
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_boxes_are_conservative_in_many_cases(seed):
    assert count_lost(True, 500, seed) == 0


@needs_gl
def test_triangles_lose_some():
    assert count_lost(False) > 100


@needs_gl
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("BOXES", "sides += coverage", "sides += 0.6 * coverage"),  # silhouettes that end too early
        ("BOXES", "e[i] += 0.5 *", "e[i] += 0.1 *"),  # depth of the pixel's middle alone
        ("BOXES", "d += 0.5 *", "d += 0.1 *"),  # pixels whose middle a face does not reach
        ("BOX_DEPTH", "vec2(-1, 1) * ULP", "vec2(1, -1) * 1.0e4 * ULP"),  # rounded inwards
    ],
)
def test_detects_boxes_too_small(monkeypatch, name, right, wrong):
    source = getattr(shaders, name)
    assert right in source
    monkeypatch.setattr(shaders, name, source.replace(right, wrong))
    own = Driver(driver().context, use_conservative=False)  # with programs of its own
    assert count_lost(True, of=own) > 0


@needs_gl
@pytest.mark.parametrize("fat", [False, True])
def test_sheets_behind_one_another(fat):
    corners = sheets(0.2, 0.5, 0.8)
    raster = Raster(driver(), corners, 64, fat)
    every = np.ones(3, dtype=bool)
    forwards = DrawBatches.of(np.arange(3)).order(every, every)
    raster.set_view(View("z"))
    assert raster.occluded_faces(forwards).tolist() == [False, True, True]
    raster.set_view(View("Z"))
    assert raster.occluded_faces(forwards).tolist() == [False, False, False]
    first_not_drawn = DrawBatches.of(np.arange(3)).order(every, np.array([False, True, True]))
    raster.set_view(View("z"))
    assert raster.occluded_faces(first_not_drawn).tolist() == [False, False, True]
    hidden = raster.occluded_primitives(first_not_drawn, np.arange(3))
    assert hidden.tolist() == [False, False, True]


@needs_gl
def test_strict_depth_test():
    raster = Raster(driver(), sheets(0.5, 0.5), 64, fat=False)
    assert all(both_ways(raster))
    assert not any(both_ways(raster, strict=True))


@needs_gl
@pytest.mark.parametrize("fat", [False, True])
def test_tiles_match_one_framebuffer(fat):
    rng = np.random.default_rng(5)
    corners = rng.uniform(size=(40, 1, 3)) * 0.8 + rng.uniform(size=(40, 3, 3)) * 0.2
    batch = np.arange(40) // 4
    every = np.ones(40, dtype=bool)
    order = DrawBatches.of(batch).order(every, every)
    whole, tiled = (Driver(driver().context) for _ in range(2))
    tiled.__dict__["most_side"] = 64
    rasters = [Raster(d, corners.astype(np.float32), 200, fat) for d in (whole, tiled)]
    assert len(rasters[1]._tiles()) == 16
    for view in VIEWS:
        seen = []
        for raster in rasters:
            raster.set_view(view)
            seen.append((raster.occluded_faces(order), raster.occluded_primitives(order, batch)))
        assert np.array_equal(seen[0][0], seen[1][0])
        assert np.array_equal(seen[0][1], seen[1][1])
        by_face = np.zeros(10, dtype=bool)
        np.logical_or.at(by_face, batch, seen[0][0])
        assert np.array_equal(by_face, seen[0][1])  # two ways to ask the same


@needs_gl
@pytest.mark.parametrize("fat", [False, True])
def test_order_kept_by_the_driver_and_by_batches(fat, monkeypatch):
    monkeypatch.setattr("abut.visibility.gl.raster.MOST_BATCHES", 1)
    if driver().interlock is None:
        pytest.skip("this driver does not keep fragments in order")
    rng = np.random.default_rng(6)
    corners = rng.uniform(size=(500, 1, 3)) * 0.9 + rng.uniform(size=(500, 3, 3)) * 0.1
    tested, drawn = rng.uniform(size=(2, 500)) < 0.7
    order = DrawBatches.of(np.arange(500)[::-1]).order(tested, drawn)
    by_batches = Driver(driver().context, use_interlock=False)
    rasters = [Raster(d, corners.astype(np.float32), 256, fat) for d in (driver(), by_batches)]
    for view in VIEWS:
        for raster in rasters:
            raster.set_view(view)
        assert np.array_equal(*(raster.occluded_faces(order) for raster in rasters))


@needs_gl
def test_distance_around_faces():
    corners = sheets(0.6, 0.4)
    for reach, met in ((0.0, False), (0.09, False), (0.11, True), (50.0, True)):
        raster = Raster(driver(), corners, 64, True, reach=(reach,) * 3)
        raster.set_view(View("z"))
        assert next(both_ways(raster)) == met


def test_order_of_a_pass():
    tested = np.array([False, True, True, True])
    drawn = np.array([True, True, False, False])
    order = DrawBatches.of(np.array([0, 1, 1, 3])).order(tested, drawn)
    assert order.codes.tolist() == [0 << 1 | 1, 1 << 1, 2 << 1, 1 << 1 | 1, 3 << 1]
    assert order.stops.tolist() == [[0, 0, 1], [1, 3, 4], [4, 5, 5]]
    back = DrawBatches.of(np.array([3, 2, 2, 0])).order(tested, drawn)
    assert back.codes.tolist() == [3 << 1, 1 << 1, 2 << 1, 1 << 1 | 1, 0 << 1 | 1]
    assert back.stops.tolist() == [[0, 1, 1], [1, 3, 4], [4, 4, 5]]
    nothing = DrawBatches.of(np.array([0, 1])).order(*np.zeros((2, 2), dtype=bool))
    assert (len(nothing.codes), len(nothing.stops)) == (0, 0)


def test_tests_of_a_pass():
    """Primitives 0 and 2 share a batch, of which 2 is tested alone."""
    primitive_of, batch = np.array([0, 1, 1, 2, 2]), np.array([1, 0, 0, 1, 1])
    tested = np.array([False, True, True, True, True])
    order = DrawBatches.of(batch).order(tested, np.ones(5, dtype=bool))
    primitives, starts = order.tests(primitive_of)
    assert primitives.tolist() == [1, 2] and starts.tolist() == [0, 2, 4]
    assert order.codes[: order.stops[0, 1]].tolist() == [1 << 1, 2 << 1]


@pytest.mark.parametrize("seed", range(3))
def test_rounds_keep_the_order_of_what_overlaps(seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-0.1, 1.0, size=(80, 2))
    high = low + rng.uniform(0.0, 0.2, size=(80, 2))
    rounds = draw_rounds(low, high)
    for b in range(80):
        met = ((low[:b] <= high[b]) & (low[b] <= high[:b])).all(axis=1)
        assert (rounds[:b][met] < rounds[b]).all()
    assert rounds.max() < 40 and draw_rounds(low[:0], high[:0]).shape == (0,)


@needs_gl
@pytest.mark.parametrize("fat", [False, True])
def test_rounds_give_what_objects_one_by_one_give(fat):
    """Nothing of triangles changes; boxes, larger than their rectangles, are hidden no more."""
    rng = np.random.default_rng(7)
    object_of = np.arange(240) // 4
    middles = rng.uniform(size=(60, 1, 1, 3)) * 0.9
    corners = (middles + rng.uniform(size=(60, 4, 3, 3)) * 0.1).reshape(240, 9)
    raster = Raster(driver(), corners.astype(np.float32), 100, fat)
    boxes = object_boxes(corners, object_of, np.full(3, MARGIN / 100))
    every = np.ones(240, dtype=bool)
    for view in VIEWS:
        raster.set_view(view)
        rounds = draw_rounds(*(corner[:, view.axes[:2]] for corner in boxes))[object_of]
        assert rounds.max() < 30
        for one, many in ((object_of, rounds), (59 - object_of, rounds.max() - rounds)):
            singly, together = (DrawBatches.of(b).order(every, every) for b in (one, many))
            for ask in (raster.occluded_faces, partial(_of_objects, raster, object_of)):
                before, after = ask(singly), ask(together)
                assert (after <= before).all() and before.any() and not before.all()
                assert fat or np.array_equal(before, after)


def _of_objects(raster, object_of, order):
    return raster.occluded_primitives(order, object_of)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "moderngl", None)
    with pytest.raises(ToolError, match=r"pip install 'abut\[gl\]'.*apt install libegl1"):
        drivers._create()


def test_without_a_driver(monkeypatch):
    moderngl = pytest.importorskip("moderngl")

    def fail(**options):
        raise ValueError("(eglInitialize) cannot initialize")

    monkeypatch.setattr(moderngl, "create_context", fail)
    with pytest.raises(ToolError, match=r"OpenGL 4\.3 .*eglInitialize.*apt install libegl1"):
        drivers._create()
