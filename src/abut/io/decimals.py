"""Parse decimal numbers as float64, correctly rounded, many at once.

A number is read as an integer without its point and divided by a power of ten. Where both are
float64 numbers, the quotient is rounded only once (Clinger, "How to read floating point numbers
accurately", 1990). Longer numbers are divided in extended precision. Numbers with an exponent, and
those whose extended quotient is a tie, are parsed by ``float``.
"""

import numpy as np

DOT, MINUS, PLUS, SPACE, ZERO, NINE = b".-+ 09"
EXACT = 2**53  # integers up to here are float64 numbers
POWERS = 10.0 ** np.arange(23)  # the powers of ten that are float64 numbers
LONG_EXACT = 2**63 - 1  # longer integers are read as this
LONG_POWERS = np.cumprod(np.array([1] + 27 * [10], dtype=np.longdouble))
HAS_LONG = np.finfo(np.longdouble).nmant in (63, 112)  # x87 or IEEE quadruple


def word_edges(blank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first byte of each word and the byte after it; the text begins and ends blank."""
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    return edges[0::2], edges[1::2]


def parse_integers(text: bytes, count: int) -> np.ndarray:
    """Read ``count`` integers of a text that ends blank.

    Raises:
        ValueError: The text has more or fewer words, or a word is not an integer.
    """
    data = np.frombuffer(text, np.uint8)
    if (data[_signs(data, text) + 1] <= SPACE).any():
        raise ValueError("a sign without digits")  # NumPy reads it as 0
    numbers = np.fromstring(text, dtype=np.int64, sep=" ")
    if len(numbers) != count:
        raise ValueError("not all words are integers")
    return numbers


def parse_decimals(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Read the numbers of a text.

    Args:
        text: (n,) uint8, words between spaces and newlines, which begin and end it.

    Returns:
        The numbers, and the first byte of each.

    Raises:
        ValueError: A word is not a number.

    Guarantee:
        Exact. Every number is what ``float`` makes of its word.
    """
    starts, ends = word_edges(text <= SPACE)
    raw = text.tobytes()
    digits, special = raw, np.empty(0, np.int64)
    letters = np.flatnonzero(text > NINE)
    if len(letters):
        special = np.unique(np.searchsorted(starts, letters, "right") - 1)
        if 4 * len(special) > len(starts):
            return np.array([parse_float(word) for word in raw.split()]), starts
        text = text.copy()
        for start, end in zip(starts[special].tolist(), ends[special].tolist(), strict=True):
            text[start:end] = ZERO
        digits = text.tobytes()
    if (text[_signs(text, digits) - 1] > SPACE).any():
        raise ValueError("a sign inside a word")
    decimals = _decimals(np.flatnonzero(text == DOT), starts, ends)
    whole = parse_integers(digits.translate(None, b"."), len(starts))
    values = whole / POWERS[np.minimum(decimals, len(POWERS) - 1)]
    long = np.flatnonzero((np.abs(whole) > EXACT) | (decimals >= len(POWERS)))
    values[long], tied = _divide_long(whole[long], decimals[long])
    zeros = np.flatnonzero(whole == 0)
    values[zeros] = np.where(text[starts[zeros]] == MINUS, -0.0, 0.0)
    for k in [*special.tolist(), *long[tied].tolist()]:
        values[k] = parse_float(raw[starts[k] : ends[k]])
    return values, starts


def parse_float(word: bytes) -> float:
    """Parse a float; refuse underscores."""
    if b"_" in word:
        raise ValueError(f"{word!r} is not a number")
    return float(word)


def _signs(data: np.ndarray, text: bytes) -> np.ndarray:
    """Return the positions of signs; ``data`` and ``text`` are the same bytes."""
    signs = [np.flatnonzero(data == sign) for sign in (MINUS, PLUS) if sign in text]
    return np.concatenate([np.empty(0, np.int64), *signs])


def _decimals(dots: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the number of digits after the point of each word."""
    if len(dots) == len(starts) and ((dots >= starts) & (dots < ends)).all():
        return ends - dots - 1
    word = np.searchsorted(starts, dots, "right") - 1
    if (word[1:] == word[:-1]).any():
        raise ValueError("two points in a word")
    decimals = np.zeros(len(starts), np.int64)
    decimals[word] = ends[word] - dots - 1
    return decimals


def _divide_long(whole: np.ndarray, decimals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quotients by powers of ten, and whether each may be a wrongly rounded tie.

    The first rounding, to extended precision, does not change the second unless its result lies
    midway between two float64 numbers.
    """
    if not HAS_LONG:
        return np.zeros(len(whole)), np.ones(len(whole), bool)
    quotient = whole.astype(np.longdouble) / LONG_POWERS[np.minimum(decimals, len(LONG_POWERS) - 1)]
    values = quotient.astype(np.float64)
    gap, spacing = np.abs(quotient - values), np.spacing(np.abs(values))
    tied = (gap * 2 == spacing) | (gap * 4 == spacing)  # 4: just below a power of two
    return values, tied | (np.abs(whole) >= LONG_EXACT) | (decimals >= len(LONG_POWERS))
