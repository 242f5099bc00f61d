"""Overlap tests of DOPs in fixed point, right ones and wrong ones, and cases that tell them apart.

A case is one axis: six real weights and reaches and a real shift, all of them exact multiples of
2**-8 of a unit, chosen so that the true gap between two shadows is zero or a last bit below:
touching, so that no test may find them apart. Random geometry never comes near such cases.
"""

import numpy as np

WIDTH = 18
FINE = 8  # bits below a unit of a reach, and below a unit of a weight
ONE = 1 << (WIDTH - 1)


def cases(rng, count):
    """Reaches (count, 6), weights (count, 6) and shifts (count,) in fine units; gaps in [-3, 0].

    Weights are positive: the paper's P is minus a weight. The gap is shift - sum(weights reaches),
    in units of 2**-(2 FINE).
    """
    limit = (ONE - 1) << FINE
    reaches = rng.integers(-limit, limit, size=(count, 6))
    weights = rng.integers(0, (ONE << FINE) // 3, size=(count, 6))
    for values in (reaches, weights):  # rounding errors as large, as small and as equal as can be
        style = rng.integers(0, 4, size=values.shape)
        whole = values & ~((1 << FINE) - 1)
        half = 1 << (FINE - 1)
        values[style == 0] = whole[style == 0]
        values[style == 1] = whole[style == 1] + 1
        values[style == 2] = whole[style == 2] - 1
        values[style == 3] = whole[style == 3] + half + rng.integers(-1, 2, (style == 3).sum())
    np.clip(weights, 0, None, out=weights)
    some = rng.random(count) < 0.2  # nothing is rounded: only the comparison can be wrong
    reaches[some] &= ~((1 << FINE) - 1)
    weights[some] = (weights[some] & 1) * (ONE << FINE)
    near_extreme = ~some & (
        rng.random(count) < 0.3
    )  # errors of weights count most for large reaches
    sign = np.where(rng.random((count, 6)) < 0.5, -1, 1)
    reaches[near_extreme] = (sign * limit)[near_extreme]
    gaps = -rng.integers(0, 4, size=count)
    return reaches, weights, (weights * reaches).sum(axis=1) + gaps


def ceil_to_unit(x):
    return -((-x) >> FINE)


def nearest_unit(x):
    return (x + (1 << (FINE - 1))) >> FINE


def _constant(shift, extra, rounding):
    """Shift less ``extra`` fine weight units times the largest reach, in units of a constant."""
    fine = shift - extra * (ONE << FINE)
    return rounding(fine, ONE << (2 * FINE))


def _total(reaches, weights, constant):
    """What a sum of integers comes to: gap in units of one reach by one weight."""
    return constant * ONE - (weights * reaches).sum(axis=1)


def ours(reaches, weights, shift, *, up=ceil_to_unit, correct=True, strict=True, nearest=False):
    """Apart by the rules of abut, without the guard for rounding on the host."""
    whole = nearest_unit(weights)
    slack = np.abs((whole << FINE) - weights).sum(axis=1) if correct else 0
    rounding = (lambda x, y: (x + y // 2) // y) if nearest else np.floor_divide
    total = _total(up(reaches), whole, _constant(shift, slack, rounding))
    return total > 0 if strict else total >= 0


def paper(reaches, weights, shift, *, correction=1, strict=True, second=False, invert_late=False,
          up=ceil_to_unit):  # fmt: skip
    """Apart by equation 12. ``second`` tests diff_2, whose shift is the opposite of diff_1's.

    ``correction``: the factor of sn(a), 1 in the paper. ``strict``: the paper's text tests the
    sign alone. ``invert_late``: -(p' + 1) is taken after p' was shifted.
    """
    whole = ceil_to_unit(weights)  # P' = floor(P), P = -weight
    whole_reaches = up(reaches)
    if second:
        low = np.floor_divide(-shift, ONE << (2 * FINE))  # p' of p = -shift
        constant = ~(low * ONE) if invert_late else ~low * ONE
    else:
        constant = np.floor_divide(shift, ONE << (2 * FINE)) * ONE
    total = constant - (whole * whole_reaches).sum(axis=1)
    total = total + correction * np.minimum(whole_reaches, 0).sum(axis=1)
    return total > 0 if strict else total >= 0


def floor_to_unit(x):
    return x >> FINE


RIGHT = {
    "ours": ours,
    "paper, diff 1": paper,
    "paper, diff 2": lambda *case: paper(*case, second=True),
}
WRONG = {
    "ours, no correction": lambda *case: ours(*case, correct=False),
    "ours, reaches to nearest": lambda *case: ours(*case, up=nearest_unit),
    "ours, reaches down": lambda *case: ours(*case, up=floor_to_unit),
    "ours, constant to nearest": lambda *case: ours(*case, nearest=True),
    "ours, zero is apart": lambda *case: ours(*case, strict=False),
    "paper, no correction": lambda *case: paper(*case, correction=0),
    "paper, sign of correction": lambda *case: paper(*case, correction=-1),
    "paper, reaches to nearest": lambda *case: paper(*case, up=nearest_unit),
    "paper, zero is apart": lambda *case: paper(*case, strict=False),
    "paper, inverted after the shift": lambda *case: paper(*case, second=True, invert_late=True),
}


def false_negatives(test, count, seed=0, at_once=100_000):
    """How many touching cases a test finds apart."""
    rng = np.random.default_rng(seed)
    return sum(
        int(test(*cases(rng, min(at_once, count - done))).sum())
        for done in range(0, count, at_once)
    )
