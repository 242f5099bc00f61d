"""Matrix games: both strategies give the same value, and any weights bound it."""

import numpy as np
import pytest
import warp as wp

from abut.geometry.matrix_game import COLUMNS, TABLEAU, solve_game

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def game_kernel(
    # in
    rows: wp.int32,
    columns: wp.int32,
    payoffs: wp.array2d[wp.float64],
    # out
    upper_out: wp.array[wp.float64],
    lower_out: wp.array[wp.float64],
):
    """The values that the strategies of both sides secure."""
    game = wp.tid()
    payoff = wp.zeros(shape=(64,), dtype=wp.float64)
    tableau = wp.zeros(shape=(TABLEAU,), dtype=wp.float64)
    weights = wp.zeros(shape=(8,), dtype=wp.float64)
    shares = wp.zeros(shape=(8,), dtype=wp.float64)
    for i in range(64):
        payoff[i] = payoffs[game, i]
    upper_out[game] = solve_game(payoff, rows, columns, tableau, weights, shares)
    least = wp.float64(1e300)
    for i in range(rows):
        total = wp.float64(0.0)
        for j in range(columns):
            total += shares[j] * payoff[COLUMNS * i + j]
        least = wp.min(least, total)
    lower_out[game] = least


def values(payoffs, rows, columns, device):
    given = wp.array(payoffs, dtype=wp.float64, device=device)
    bounds = [wp.zeros(len(payoffs), dtype=wp.float64, device=device) for _ in range(2)]
    wp.launch(game_kernel, len(payoffs), [rows, columns, given, *bounds], device=device)
    return [bound.numpy() for bound in bounds]


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (2, 3), (5, 3), (6, 8), (8, 8)])
@pytest.mark.parametrize("kind", ["random", "ties", "nearly equal", "equal"])
def test_both_strategies_secure_the_value(device, rows, columns, kind):
    payoffs = np.random.default_rng(rows * columns).random((500, 64))
    payoffs = {
        "random": payoffs,
        "ties": np.round(3.0 * payoffs),
        "nearly equal": 1.0 + 1e-9 * payoffs,
        "equal": np.ones_like(payoffs),
    }[kind]
    upper, lower = values(payoffs, rows, columns, device)
    np.testing.assert_allclose(upper, lower, atol=2e-14 * np.abs(payoffs).max())


def test_the_value_of_a_known_game(device):
    payoff = np.zeros((1, 64))
    payoff[0, [0, 1, 2, 8, 9, 10, 16, 17, 18]] = [0, -1, 1, 1, 0, -1, -1, 1, 0]
    upper, lower = values(payoff, 3, 3, device)  # rock, paper, scissors
    assert upper[0] == pytest.approx(0.0, abs=1e-15)
    assert lower[0] == pytest.approx(0.0, abs=1e-15)
