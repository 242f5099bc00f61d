"""Joining segments into polylines."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abut.geometry.polylines import join_segments

A, B, C, D, E = [[float(k), float(k * k), -float(k)] for k in range(5)]


def joined(*segments):
    return [line.tolist() for line in join_segments(np.array(segments, float).reshape(-1, 2, 3))]


def steps(lines):
    """The unordered segments that lines run through."""
    return sorted(tuple(sorted((tuple(p), tuple(q)))) for line in lines for p, q in pairwise(line))


def test_an_open_line():
    (line,) = joined((B, C), (A, B), (D, C))
    assert line in ([A, B, C, D], [D, C, B, A])


def test_a_closed_line_ends_where_it_begins():
    (line,) = joined((A, B), (C, B), (A, C))
    assert line[0] == line[-1] and len(line) == 4
    assert steps([line]) == steps([[A, B, C, A]])


def test_lines_part_at_a_junction():
    lines = joined((A, B), (A, C), (A, D), (D, E))
    assert sorted(map(len, lines)) == [2, 2, 3]
    assert steps(lines) == steps([[A, B], [A, C], [A, D, E]])


def test_two_loops_through_one_point():
    lines = joined((A, B), (B, C), (C, A), (A, D), (D, E), (E, A))
    assert all(line[0] == line[-1] == A for line in lines) and len(lines) == 2


def test_points_and_repetitions_are_left_out():
    assert joined((A, A)) == []
    assert joined() == []
    (line,) = joined((A, B), (B, A), (A, B), (B, B))
    assert line in ([A, B], [B, A])


def test_separate_lines_stay_separate():
    assert len(joined((A, B), (C, D))) == 2


@pytest.mark.parametrize("turn", [1, -1])
def test_a_long_circle_comes_out_in_one_piece(turn):
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    points = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    segments = np.stack([points, np.roll(points, 1, axis=0)], axis=1)[:, ::turn]
    (line,) = join_segments(np.random.default_rng(0).permutation(segments))
    assert len(line) == 1001 and (line[0] == line[-1]).all()


ends = st.integers(0, 6)


@given(st.lists(st.tuples(ends, ends), max_size=20))
def test_every_segment_is_run_through_once(pairs):
    lines = joined(*([[p, 0, 0], [q, 0, 0]] for p, q in pairs))
    wanted = {tuple(sorted(pair)) for pair in pairs if pair[0] != pair[1]}
    found = [tuple(int(end[0]) for end in step) for step in steps(lines)]
    assert found == sorted(wanted)
