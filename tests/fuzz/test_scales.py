"""Every verb at every scale: the rows and numbers of brute force at scale 1.

A failure names the seed of its case and the exponent of its scale.
"""

import numpy as np
import pytest

from fuzz.scaled import QUESTIONS, Case, exponents

ROUNDING = 1e-12  # of lengths and times; coordinates are below 8

# Cases that once failed: question, seed, exponent of the scale.
KEPT = [
    ("collide", 1045, -75),  # axes of oriented boxes were not of unit length
    ("distance", 1023, 66),  # squared distances of all samples were beyond float32
    ("distance_batch", 1023, 67),
]
KEPT_MIXED = [
    ("distance", 1070, 346),  # boxes without bounds, far apart
    ("distance_batch", 1183, 651),
]
OPTIONS = {
    "collide": [{}, {"bound": "obb"}, {"bound": "rss"}, {"bound": "kdop"}, {"method": "brute"}],
    "distance": [{}, {"bound": "rss"}, {"method": "brute"}],
    "cull": [{}],
}


def scales_of(seed, count, *ends):
    """Exponents at which a case is asked about."""
    return exponents(np.random.default_rng([seed, 1]), count, *ends).tolist()


def check(question, seed, scales, device):
    """Compare the answers of a case at some scales with that of brute force at scale 1."""
    case = Case(seed)
    rows, numbers = getattr(case.at(0, device), question)(method="brute")
    for exponent in scales:
        for options in OPTIONS.get(question, [{}, {"method": "brute"}]):
            found, lengths = getattr(case.at(exponent, device), question)(**options)
            about = f"{question}, seed {seed}, scale 2**{exponent}, {options}"
            assert np.array_equal(found, rows), about
            assert np.allclose(lengths, numbers, rtol=0.0, atol=ROUNDING), about


def test_cases_that_once_failed(device):
    for question, seed, exponent in KEPT:
        check(question, seed, [exponent], device)
    for question, seed, exponent in KEPT_MIXED:
        check_mixed(question, seed, exponent, device)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_do_not_depend_on_the_scale(device, question):
    for seed in range(3):
        check(question, seed, scales_of(seed, 4), device)


def check_mixed(question, seed, exponent, device):
    """Compare the answers about shapes of very different sizes with brute force at that scale."""
    case = Case(seed, mixed=True)
    rows, numbers = getattr(case.at(exponent, device), question)(method="brute")
    for options in OPTIONS.get(question, [{}]):
        found, lengths = getattr(case.at(exponent, device), question)(**options)
        about = f"{question}, mixed, seed {seed}, scale 2**{exponent}, {options}"
        assert np.array_equal(found, rows), about
        assert np.array_equal(lengths, numbers), about


@pytest.mark.parametrize("question", QUESTIONS)
def test_shapes_of_very_different_sizes(device, question):
    for seed in range(4):
        check_mixed(question, seed, scales_of(seed, 1, -800, 900)[0], device)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_many_shapes_of_very_different_sizes(device, question):
    for seed in range(1000, 1200):
        check_mixed(question, seed, scales_of(seed, 1, -800, 900)[0], device)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_of_many_cases(device, question):
    for seed in range(1000, 1060):
        check(question, seed, scales_of(seed, 12), device)
