"""Verdicts in the plant, where all clashes and all touching pairs are known by construction."""

import numpy as np

from abut.broad.overlaps import overlapping_boxes
from abut.cases.plant import CLEARANCE, Plant
from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.parts.part_table import PartTable
from abut.core.device import resolve_device


def test_the_plant_has_the_planted_clashes(device):
    plant = Plant((6, 2), seed=3, share=1.0, detail=0.1)
    parts = PartTable.of_models(plant.model(bay) for bay in range(len(plant)))
    lower, upper = parts.boxes[:, 0] - CLEARANCE, parts.boxes[:, 1] + CLEARANCE
    pairs = overlapping_boxes(lower, upper, resolve_device(device))
    check = Check("all", CheckKind.CLEARANCE, CLEARANCE, 1e-3, touch=True)
    rows = check_pairs(parts, pairs, [check], device=device)
    found = dict(zip(zip(rows.a, rows.b, strict=True), rows.verdict, strict=True))
    planted = [row for bay in range(len(plant)) if (row := plant.planted(bay))]
    clashes = {pair: verdict for pair, verdict in found.items() if verdict != "touch"}
    assert clashes == {(row.a, row.b): row.verdict for row in planted}
    assert len({row.verdict for row in planted}) == 5
    touching = {pair for pair in found if not any("planted" in key for key in pair)}
    assert touching - set(clashes) == {
        pair for bay in range(len(plant)) for pair in plant.touching(bay)
    }
    assert np.isfinite(rows.depth).all()
