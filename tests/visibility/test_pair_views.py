"""Candidate pairs overlap in depth in every view; none that meets is ever lost."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_far import lost_pairs, mesh_of, pixel_counts, soups

import abut
from abut import cases
from abut.cases.breaking import breaking
from abut.visibility import candidate_pairs
from abut.visibility.settings import map_of

FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
ways = st.sampled_from([("far", "free"), ("far", "drawn"), ("quick_cullide", "drawn")])


def options_of(way):
    method, order = way
    return {"method": method, "order": order, "conservative": True}


@given(soups(), soups(), pixel_counts, ways, st.sampled_from([0.0, 0.1, 3.0]))
@FEW
def test_no_pair_is_lost(device, first, second, pixels, way, share):
    meshes = [mesh_of(corners, device) for corners in (first, second)]
    distance = share * float(np.ptp(first, axis=(0, 1)).max())
    near = abut.within(*meshes, distance, method="brute").pairs.numpy()
    left = abut.cull(meshes, pixels=pixels, distance=distance, **options_of(way))
    assert set(map(tuple, near.tolist())) <= set(map(tuple, left.pairs.numpy().tolist()))


@given(soups(), pixel_counts, ways)
@FEW
def test_no_pair_within_a_mesh_is_lost(device, corners, pixels, way):
    mesh = mesh_of(corners, device)
    met = abut.self_collide(mesh, method="brute").pairs.numpy()
    left = abut.cull([mesh], pixels=pixels, self_collisions=True, **options_of(way))
    assert set(map(tuple, met.tolist())) <= set(map(tuple, left.pairs.numpy().tolist()))


@given(soups(), soups(), pixel_counts)
@FEW
def test_four_sets_prune_no_less_than_drawn_far(device, first, second, pixels):
    """Quick-CULLIDE on conservative fragments; each view tests fewer against fewer."""
    meshes = [mesh_of(corners, device) for corners in (first, second)]
    quick, drawn = (
        abut.cull(meshes, pixels=pixels, **options_of(way))
        for way in (("quick_cullide", "drawn"), ("far", "drawn"))
    )
    assert set(map(tuple, quick.faces.numpy())) <= set(map(tuple, drawn.faces.numpy()))
    assert set(map(tuple, quick.pairs.numpy())) <= set(map(tuple, drawn.pairs.numpy()))


def test_detects_pairs_that_are_separated_wrongly(device, monkeypatch):
    def wrong(*args, **options):
        out = map_of(*args, **options)
        return out._replace(reach=tuple(x - 0.49 for x in out.reach))

    assert lost_pairs(device, 16) == 0
    monkeypatch.setattr(candidate_pairs, "map_of", wrong)
    assert lost_pairs(device, 16) > 0


@pytest.mark.parametrize("limits", [("MOST_PER_TILE", 1), ("MOST_PER_SURVIVOR", 0)])
def test_too_many_survivors_are_swept(limits, device, monkeypatch):
    meshes = [abut.Mesh(*shape, device) for shape in cases.pair("tori", 2000)]
    binned = abut.cull(meshes, pixels=512).pairs.numpy()
    monkeypatch.setattr(candidate_pairs, *limits)
    swept = abut.cull(meshes, pixels=512).pairs.numpy()
    assert set(map(tuple, binned)) <= set(map(tuple, swept))
    met = abut.collide(*meshes).pairs.numpy()
    assert set(map(tuple, met)) <= set(map(tuple, binned))
    assert len(swept) < 1.1 * len(binned)


def test_pairs_of_objects_are_close_to_those_that_meet(device):
    """Pieces that move apart by little: their boxes overlap, their surfaces do not."""
    pieces = breaking(2000, 40).shapes[:-1]
    middles = np.array([piece.vertices.mean(axis=0) for piece in pieces])
    off = 0.08 * (middles - middles.mean(axis=0))
    moved = [piece.moved(tuple(shift)) for piece, shift in zip(pieces, off, strict=True)]
    scene = abut.Scene(device=device)
    for shape in moved:
        scene.add(abut.Mesh(*shape, device))
    met = set(map(tuple, scene.collide().object_pairs.numpy()))
    left = set(map(tuple, abut.cull(scene, pixels=1024).object_pairs.numpy()))
    low, high = (np.array([getattr(s.vertices, x)(axis=0) for s in moved]) for x in ("min", "max"))
    boxes = np.triu(((low[:, None] <= high) & (low <= high[:, None])).all(axis=2), 1).sum()
    assert met <= left
    assert len(left) - len(met) < (boxes - len(met)) / 2


def test_sampled_methods_have_no_conservative_far(device):
    with pytest.raises(abut.OptionError, match="is conservative"):
        abut.cull([mesh_of(np.zeros((1, 3, 3)), device)], conservative=False)
    with pytest.raises(abut.OptionError, match="conservative=True"):
        mesh = mesh_of(np.zeros((1, 3, 3)), device)
        abut.cull([mesh], method="cullide", distance=1.0)


def test_objects_of_one_set_are_no_candidates(device):
    """Lemma 2 at the level of objects: many in one set, some in contact; none of these is lost."""
    rng = np.random.default_rng(4)
    balls = [cases.icosphere(80).moved(tuple(rng.uniform(0, 6, size=3))) for _ in range(40)]
    meshes = [abut.Mesh(*ball, device) for ball in balls]
    scene = abut.Scene(device=device)
    for mesh in meshes:
        scene.add(mesh)
    met = set(map(tuple, scene.collide().object_pairs.numpy()))
    found = {}
    for level in ("object", "face"):
        left = abut.cull(meshes, method="quick_cullide", conservative=True, pixels=200, level=level)
        found[level] = set(map(tuple, left.object_pairs.numpy()))
        last = [row for row in left.statistics if row.level == "object"][-1]
        assert met <= found[level]
        assert last.ffv + last.sfv > 0
    assert len(met) > 5
