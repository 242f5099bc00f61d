"""Tiles: every pair of near objects is in exactly one, and memory stays within the budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abut.errors import CapacityError
from abut.scale.catalogue import Catalogue, CatalogueWriter
from abut.scale.cells import BITS, cells_of_codes, morton_codes
from abut.scale.tile_plan import TilePlan, plan_tiles

FACE, OBJECT = 10, 1


def catalogue_of(folder, boxes, faces=None, meshes=None):
    faces = np.full(len(boxes), 10) if faces is None else faces
    with CatalogueWriter(folder) as writer:
        keys = [f"object {k}" for k in range(len(boxes))]
        writer.add("here", keys, boxes, faces, meshes=meshes)
    return Catalogue(folder)


def plan_of(catalogue, halo, budget):
    return plan_tiles(catalogue, halo=halo, budget=budget, bytes_per_face=FACE, object_bytes=OBJECT)


def near_pairs(boxes, halo):
    """All pairs whose boxes are at most the halo apart along each axis, by brute force."""
    gap = np.maximum(boxes[:, None, 0] - boxes[None, :, 1], boxes[None, :, 0] - boxes[:, None, 1])
    i, j = np.nonzero((gap <= halo).all(axis=2))
    return {(a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True) if a < b}


def owners(plan):
    """The tiles that own each pair of their objects."""
    found = {}
    for tile in plan:
        i, j = np.triu_indices(len(tile.rows), 1)
        pairs = np.stack([i, j], axis=1)
        for a, b in tile.rows[pairs[tile.owns(pairs)]].tolist():
            found.setdefault((a, b), []).append(tile.number)
    return found


def memory_of(tile, faces, meshes):
    first = np.unique(meshes[tile.rows], return_index=True)[1]
    return int(faces[tile.rows[first]].sum()) * FACE + OBJECT * len(tile.rows)


@st.composite
def placed_boxes(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 60))
    scale = 10.0 ** draw(st.integers(-6, 6))
    low = rng.uniform(0, 1, (count, 3))
    if draw(st.booleans()):  # coordinates that are equal, boxes that touch
        low = np.floor(low * 8) / 8
    side = rng.choice([0.0, 0.01, 0.125, 0.5, 2.0], (count, 1 if draw(st.booleans()) else 3))
    if draw(st.booleans()):
        low[: count // 2] = low[0]  # a pile
    if draw(st.booleans()):
        low[:, 2], side = 0.0, side * [1, 1, 0]
    offset = draw(st.sampled_from([0.0, 1e3, -1e6]))
    boxes = np.stack([low, low + side], axis=1) * scale + offset * scale
    halo = draw(st.sampled_from([0.0, 0.01, 0.125, 0.3])) * scale
    faces = rng.integers(1, 30, count)
    meshes = rng.integers(0, count, count) if draw(st.booleans()) else np.arange(count)
    faces = faces[meshes]
    most = 2 * (int(faces.max()) * FACE + OBJECT)
    return boxes, halo, faces, meshes, draw(st.integers(most, 10 * most))


@given(placed_boxes())
def test_each_near_pair_is_in_exactly_one_tile(tmp_path_factory, case):
    boxes, halo, faces, meshes, budget = case
    catalogue = catalogue_of(tmp_path_factory.mktemp("tiles"), boxes, faces, meshes)
    plan = plan_of(catalogue, halo, budget)
    found = owners(plan)
    assert max((len(tiles) for tiles in found.values()), default=1) == 1
    assert near_pairs(boxes, halo) <= set(found)
    for tile in plan:
        assert memory_of(tile, faces, meshes) <= tile.bytes <= budget


def test_one_tile_where_all_fits(tmp_path):
    boxes = np.random.default_rng(0).uniform(0, 1, (100, 2, 3)).cumsum(axis=1)
    plan = plan_of(catalogue_of(tmp_path, boxes), 0.1, 1 << 40)
    assert len(plan) == 1
    assert plan[0].rows.tolist() == list(range(100))


def test_tiles_of_a_plane_repeat_few_objects(tmp_path):
    x, y = np.meshgrid(np.arange(100.0), np.arange(100.0))
    low = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    catalogue = catalogue_of(tmp_path, np.stack([low, low + 0.9], axis=1))
    plan = plan_of(catalogue, 0.2, 500 * (10 * FACE + OBJECT))
    assert 20 <= len(plan) <= 60
    assert len(plan.members) < 1.5 * 10_000
    assert near_pairs(catalogue.boxes[:400], 0.2) <= set(owners(plan))


def test_a_huge_object_lies_in_many_tiles(tmp_path):
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 100, (2000, 3)) * [1, 1, 0.01]
    boxes = np.stack([low, low + 1.0], axis=1)
    boxes[0] = [[-1, -1, -1], [101, 101, 1]]
    faces = np.full(2000, 10)
    faces[0] = 3000
    budget = 4 * 3000 * FACE // 3
    plan = plan_of(catalogue_of(tmp_path, boxes, faces), 0.1, budget)
    assert len(plan) > 10
    assert all(tile.rows[0] == 0 for tile in plan if tile.groups == (0, 0))
    assert near_pairs(boxes, 0.1) <= set(owners(plan))
    assert plan.bytes.max() <= budget


def test_a_pile_is_divided_into_blocks_of_pairs(tmp_path):
    boxes = np.tile([[[0.0, 0, 0], [1, 1, 1]]], (60, 1, 1))
    budget = 20 * (10 * FACE + OBJECT)
    plan = plan_of(catalogue_of(tmp_path, boxes), 0.0, budget)
    assert len(plan) == 6 * 7 // 2
    found = owners(plan)
    assert set(found) == near_pairs(boxes, 0.0)
    assert all(len(tiles) == 1 for tiles in found.values())


def test_two_objects_that_exceed_the_budget_are_named(tmp_path):
    boxes = np.array([[[0.0, 0, 0], [1, 1, 1]], [[0, 0, 0], [2, 2, 2]], [[9, 9, 9], [10, 10, 10]]])
    catalogue = catalogue_of(tmp_path, boxes, np.array([50, 60, 500]))
    with pytest.raises(CapacityError, match=r"'object 1' and 'object 0'.*1,100 bytes"):
        plan_of(catalogue, 0.0, 1000)
    assert len(plan_of(catalogue, 0.0, 1200)) == 1  # the third object is near none


def test_no_objects_and_one_object(tmp_path):
    assert len(plan_of(catalogue_of(tmp_path / "none", np.empty((0, 2, 3))), 0.0, 10)) == 0
    assert len(plan_of(catalogue_of(tmp_path / "one", np.zeros((1, 2, 3))), 0.0, 10)) == 0


def test_a_plan_on_disk(tmp_path):
    boxes = np.random.default_rng(0).uniform(0, 9, (50, 1, 3)) + np.array([[[0.0] * 3, [1.0] * 3]])
    plan = plan_of(catalogue_of(tmp_path, boxes), 0.5, 1500)
    plan.save(tmp_path / "plan.npz")
    again = TilePlan.load(tmp_path / "plan.npz")
    assert len(plan) == len(again) > 3
    assert owners(again) == owners(plan)
    assert (again.halo, again.budget) == (0.5, 1500)


def test_codes_of_cells():
    cells = np.random.default_rng(0).integers(0, 1 << BITS, (1000, 3))
    codes = morton_codes(cells)
    assert (cells_of_codes(codes) == cells).all()
    for (x, y, z), code in zip(cells[:20].tolist(), codes[:20].tolist(), strict=True):
        bits = (f"{v:0{BITS}b}" for v in (x, y, z))
        assert int("".join("".join(three) for three in zip(*bits, strict=True)), 2) == code
