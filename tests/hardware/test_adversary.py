"""No overlap test loses a touching pair, and the cases would find it if one did."""

import pytest

import adversary


@pytest.mark.parametrize("name", adversary.RIGHT)
def test_rules_are_conservative(name):
    assert adversary.false_negatives(adversary.RIGHT[name], 50_000) == 0


@pytest.mark.parametrize("name", adversary.WRONG)
def test_detects_wrong_rules(name):
    assert adversary.false_negatives(adversary.WRONG[name], 50_000) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", adversary.RIGHT)
def test_rules_are_conservative_in_a_million_cases(name):
    assert adversary.false_negatives(adversary.RIGHT[name], 1_000_000, seed=1) == 0
