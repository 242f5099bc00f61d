"""Pairs whose boxes at most touch: they have the rows that the full check has."""

import numpy as np
import pytest

from abut.coordination.checks import check_pairs as module
from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.checks.pair_relations import CODES, pair_relations
from abut.coordination.checks.part_contacts import part_contacts
from abut.coordination.checks.parted_boxes import boxes_parted, without_findings
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.query.solids.relation import Relation
from blocks import all_pairs, block, table, tube


def parts_of(seed):
    """Blocks on a grid, open and flat ones among them, a pipe with its caps, and thin plates."""
    rng = np.random.default_rng(seed)
    shapes = {"pipe": tube(1.0, 0.5, 2.0), "inner": block((0.5, 0.5, 2), (-0.25, -0.25, -1))}
    for k in range(14):
        size, at = rng.integers(0, 3, 3) + (k % 4 > 0), rng.integers(-2, 3, 3)
        points, faces = block(np.maximum(size, 0.0005) * 1.0, at * 1.0)
        shapes[f"block {k}"] = points, faces[k % 3 == 0 :]
    shapes["plate"] = block((1, 1, 0.0004))
    shapes["copy"] = block((1, 1, 0.0004), (0, 0, 0.0004))
    return table(shapes)


CHECKS = [
    Check("hard", CheckKind.HARD, tolerance=0.001),
    Check("exact", CheckKind.HARD),
    Check("near", CheckKind.CLEARANCE, clearance=0.3, tolerance=0.001),
    Check("same", CheckKind.DUPLICATE, tolerance=0.001),
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_rows_are_those_of_the_full_check(device, seed, check, monkeypatch):
    parts = parts_of(seed)
    pairs = all_pairs(parts)
    short = check_pairs(parts, pairs, [check], device=device)
    monkeypatch.setattr(
        module, "without_findings", lambda _s, pairs, _c: np.zeros(len(pairs), bool)
    )
    full = check_pairs(parts, pairs, [check], device=device)
    assert [str(row) for row in short] == [str(row) for row in full]
    assert len(full)


def test_parted_pairs_at_most_touch(device):
    parts = parts_of(1)
    surfaces, pairs = PartSurfaces(parts, device), all_pairs(parts)
    parted = boxes_parted(parts.boxes[pairs])
    codes = pair_relations(surfaces, pairs, part_contacts(surfaces, pairs))
    assert np.isin(codes[parted], [CODES[Relation.APART], CODES[Relation.TOUCHING]]).all()
    touching = (codes == CODES[Relation.TOUCHING]) & parted
    assert touching.sum() > 10 and (~parted).sum() > 10
    assert without_findings(surfaces, pairs, [CHECKS[0]] * len(pairs))[touching].mean() > 0.9


def test_no_pair_of_a_check_of_touches_is_left_out(device):
    parts = table({"a": block((1, 1, 1)), "b": block((1, 1, 1), (1, 0, 0))})
    pairs = all_pairs(parts)
    for check in (Check("all", tolerance=0.001), Check("all", tolerance=0.001, touch=True)):
        found = check_pairs(parts, pairs, [check], device=device)
        assert list(found.verdict) == ["touch"] * check.touch


def test_boxes_that_reach_into_each_other_by_one_step_are_not_parted():
    for high, parted in ((np.nextafter(1.0, 2), False), (1.0, True), (np.nextafter(1.0, 0), True)):
        parts = table({"a": block((high, 1, 1)), "b": block((1, 1, 1), (1, 0, 0))})
        assert boxes_parted(parts.boxes[all_pairs(parts)]).tolist() == [parted]
