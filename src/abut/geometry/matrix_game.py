"""Small matrix games: the largest value on a polytope of the least of several convex functions.

Row i holds the values of one function at the corners j of a polytope. For weights w >= 0 that sum
to 1, the function sum_i w_i f_i is convex, is nowhere less than min_i f_i, and is greatest at a
corner. So max_j sum_i w_i D_ij bounds min_i f_i on the whole polytope, and the best weights are a
strategy of the matrix game D (von Neumann 1928). A simplex method finds them, but the bound holds
for any weights: rounding and an early end make it larger, never wrong.
"""

import warp as wp

ROWS = wp.constant(8)
COLUMNS = wp.constant(8)
STRIDE = wp.constant(9)  # of a tableau: one column more
TABLEAU = wp.constant(81 + 16)  # with the labels of rows and columns
LABELS = wp.constant(81)
PIVOTS = wp.constant(32)  # a limit; ten are rare
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))
TINY = wp.constant(wp.float64(2.0**-40))
LARGE = wp.constant(wp.float64(1e300))


@wp.func
def set_tableau(
    payoff: wp.array[wp.float64], rows: wp.int32, columns: wp.int32, tableau: wp.array[wp.float64]
):
    """Write the tableau of: maximise sum u, D'ᵀ u <= 1, u >= 0, with payoffs scaled to [1, 2]."""
    least = payoff[0]
    most = payoff[0]
    for i in range(rows):
        for j in range(columns):
            least = wp.min(least, payoff[COLUMNS * i + j])
            most = wp.max(most, payoff[COLUMNS * i + j])
    scale = ZERO
    if most > least:
        scale = ONE / (most - least)
    for j in range(columns):
        for i in range(rows):
            tableau[STRIDE * j + i] = ONE + (payoff[COLUMNS * i + j] - least) * scale
        tableau[STRIDE * j + rows] = ONE
        tableau[LABELS + j] = wp.float64(rows + j)
    for i in range(rows):
        tableau[STRIDE * columns + i] = ONE
        tableau[LABELS + COLUMNS + i] = wp.float64(i)
    tableau[STRIDE * columns + rows] = ZERO


@wp.func
def pivot_of(rows: wp.int32, columns: wp.int32, tableau: wp.array[wp.float64]):
    """Return (row, column) of the next pivot, by the steepest column; (-1, -1) at the optimum."""
    enter = wp.int32(-1)
    steepest = wp.float64(1e-12)
    for i in range(rows):
        if tableau[STRIDE * columns + i] > steepest:
            steepest = tableau[STRIDE * columns + i]
            enter = i
    leave = wp.int32(-1)
    if enter >= 0:
        least = LARGE
        for j in range(columns):
            slope = tableau[STRIDE * j + enter]
            if slope > TINY:
                ratio = tableau[STRIDE * j + rows] / slope
                if ratio < least:
                    least = ratio
                    leave = j
    return wp.vec2i(leave, enter)


@wp.func
def exchange(
    rows: wp.int32,
    columns: wp.int32,
    leave: wp.int32,
    enter: wp.int32,
    tableau: wp.array[wp.float64],
):
    """Exchange a basic and a nonbasic variable."""
    factor = ONE / tableau[STRIDE * leave + enter]
    for i in range(rows + 1):
        if i != enter:
            tableau[STRIDE * leave + i] = tableau[STRIDE * leave + i] * factor
    for j in range(columns + 1):
        if j != leave:
            slope = tableau[STRIDE * j + enter]
            for i in range(rows + 1):
                if i != enter:
                    at = STRIDE * j + i
                    tableau[at] = tableau[at] - slope * tableau[STRIDE * leave + i]
            tableau[STRIDE * j + enter] = -slope * factor
    tableau[STRIDE * leave + enter] = factor
    label = tableau[LABELS + leave]
    tableau[LABELS + leave] = tableau[LABELS + COLUMNS + enter]
    tableau[LABELS + COLUMNS + enter] = label


@wp.func
def scale_to_sum_one(values: wp.array[wp.float64], count: wp.int32):
    """Divide by the sum, after dropping negative values; (1, 0, 0, …) if nothing is left."""
    total = wp.float64(0.0)
    for i in range(count):
        values[i] = wp.max(values[i], ZERO)
        total += values[i]
    for i in range(count):
        if total > ZERO:
            values[i] = values[i] / total
        else:
            values[i] = wp.where(i == 0, ONE, ZERO)


@wp.func
def solve_game(
    payoff: wp.array[wp.float64],
    rows: wp.int32,
    columns: wp.int32,
    tableau: wp.array[wp.float64],
    weights: wp.array[wp.float64],
    shares: wp.array[wp.float64],
):
    """Find ``weights`` of rows and ``shares`` of columns; return the largest weighted payoff.

    ``payoff`` has rows of COLUMNS numbers, ``tableau`` is room for TABLEAU.

    Guarantee:
        Conservative. What is returned is at least the value of the game, up to rounding.
    """
    set_tableau(payoff, rows, columns, tableau)
    for _ in range(PIVOTS):
        pivot = pivot_of(rows, columns, tableau)
        if pivot[0] < 0:
            break
        exchange(rows, columns, pivot[0], pivot[1], tableau)
    for i in range(rows):
        weights[i] = ZERO
    for j in range(columns):
        shares[j] = ZERO
    for j in range(columns):
        basic = wp.int32(tableau[LABELS + j])
        if basic < rows:
            weights[basic] = tableau[STRIDE * j + rows]
    for i in range(rows):
        nonbasic = wp.int32(tableau[LABELS + COLUMNS + i])
        if nonbasic >= rows:
            shares[nonbasic - rows] = -tableau[STRIDE * columns + i]
    scale_to_sum_one(weights, rows)
    scale_to_sum_one(shares, columns)
    most = -LARGE
    for j in range(columns):
        sum_j = wp.float64(0.0)
        for i in range(rows):
            sum_j += weights[i] * payoff[COLUMNS * i + j]
        most = wp.max(most, sum_j)
    return most
