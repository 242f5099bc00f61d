"""Candidate pairs: complete, and only those that a check reaches."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abut.coordination.parts.part_candidates import part_candidates
from abut.coordination.rules import CheckMatrix, excluded_by
from abut.coordination.rules_file import read_rules
from blocks import block, table

RULES = {
    "tolerance": 0.01,
    "sets": {"a": {"name": "a*"}, "b": {"name": "b*"}, "c": {"name": "c*"}},
    "checks": [
        {"a": "a", "b": "b", "clearance": 0.5},
        {"a": "c", "kind": "duplicate"},
        {"a": ["a", "c"]},
    ],
    "exclude": {"pairs": [["a", "c"]]},
}


def parts_of(seed, count=40, deviation=0.0, offset=0.0):
    rng = np.random.default_rng(seed)
    shapes = {}
    for k in range(count):
        at = rng.uniform(0, 4, 3).round(1) + offset
        shapes[f"{'abcd'[k % 4]}{k}"] = block(rng.uniform(0.1, 0.6, 3), at)
    links = [("a0", "b1", "connects"), ("a4", "a8", "fills")]
    return table(shapes, deviation=deviation, links=links)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.2]), st.sampled_from([0.0, 1e6]))
@settings(max_examples=20, deadline=None)
def test_all_pairs_of_boxes_within_reach(seed, deviation, offset):
    parts, rules = parts_of(seed, 40, deviation, offset), read_rules(RULES)
    found = part_candidates(parts, rules, "cpu")
    pairs = np.array(list(itertools.combinations(range(len(parts)), 2)))
    which = CheckMatrix(rules, parts).of(pairs)
    low, high = parts.boxes[:, 0], parts.boxes[:, 1]
    i, j = pairs.T
    gap = np.linalg.norm(np.maximum(low[i] - high[j], low[j] - high[i]).clip(min=0), axis=1)
    reach = np.array([0.5, 0.01, 0.01])[which] + 2 * deviation
    wanted = (which >= 0) & (excluded_by(rules.exclusions, parts, pairs) == "")
    near, nearly = wanted & (gap <= reach), wanted & (gap <= reach + 1e-6)
    rows = {tuple(row) for row in found.pairs.tolist()}
    assert {tuple(row) for row in pairs[near].tolist()} <= rows
    assert rows <= {tuple(row) for row in pairs[nearly].tolist()}
    assert rows == set(map(tuple, np.sort(found.pairs, axis=1).tolist()))
    assert (CheckMatrix(rules, parts).of(found.pairs) == found.which).all()


def test_counts_of_excluded_pairs():
    cubes = [block((1, 1, 1), (0.5 * k, 0, 0)) for k in range(4)]
    shapes = dict(zip(["a", "b", "c", "d"], cubes, strict=True))
    links = [("a", "b", "fills"), ("a", "d", "fills"), ("c", "d", "connects")]
    parts = table(shapes, links=links, assembly={"b": "S", "c": "S"})
    rules = read_rules({"exclude": {"same_assembly": True, "pairs": [["*", "*"]]}})
    assert len(part_candidates(parts, rules, "cpu")) == 0
    assert part_candidates(parts, rules, "cpu").excluded == {"sets": 5}
    rules = read_rules({"exclude": {"same_assembly": True}})
    found = part_candidates(parts, rules, "cpu")
    assert found.excluded == {"connects": 1, "fills": 1, "same assembly": 1}
    assert found.pairs.tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_parts(count):
    parts = table({str(k): block((1, 1, 1)) for k in range(count)})
    assert part_candidates(parts, read_rules(None), "cpu").pairs.tolist() == [[0, 1]] * (count == 2)
