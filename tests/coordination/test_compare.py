"""Statuses of clashes relative to an earlier report."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abut.coordination.report.compare import (
    Acceptance,
    Status,
    accepted_text,
    compare,
    length_text,
    read_accepted,
)
from abut.coordination.report.report_columns import taken
from abut.errors import FileError
from clash_rows import make_columns


def status_by_id(columns):
    return dict(zip(columns["id"], columns["status"], strict=True))


def test_without_an_earlier_report():
    rows = compare(make_columns(6))
    assert set(rows["status"]) == {"new"}


def test_each_status():
    old = make_columns(6)
    new = taken(make_columns(7), np.array([0, 1, 2, 4, 5, 6]))  # 3 is gone, 6 is new
    new["verdict"][0] = "pierce"
    new["depth"][1] += 0.002
    new["depth"][4] += 0.0005
    rows = compare(new, old, {"clash0005": Acceptance("clash0005", "Ada", "as built")})
    assert list(rows["id"]) == [f"clash000{k}" for k in (0, 1, 2, 4, 5, 6, 3)]
    expected = ["changed", "changed", "same", "same", "accepted", "new", "gone"]
    assert list(rows["status"]) == expected
    assert rows["change"][0] == "duplicate → pierce"
    assert rows["change"][1].startswith("depth ")
    assert (rows["accepted_by"][4], rows["accepted_reason"][4]) == ("Ada", "as built")
    assert rows["group"][-1] == old["group"][3], "its group is known by name"
    assert set(old["status"]) == {"new"}, "operands are left as they are"


def test_gone_is_said_once():
    first, second = make_columns(4), make_columns(3)
    later = compare(second, first)
    assert list(later["status"]) == ["same"] * 3 + ["gone"]
    assert list(compare(second, later)["status"]) == ["same"] * 3
    assert status_by_id(compare(first, later))["clash0003"] == "new", "it has come back"


def test_unknown_depth():
    """A mesh that was closed and is open has changed; two open ones have not."""
    old, new = make_columns(6), make_columns(6)
    assert np.isnan(old["depth"][3])
    old["depth"][0] = np.nan
    rows = compare(new, old)
    assert rows["change"][0].startswith("depth unknown → ")
    assert rows["status"][3] == "same"


def test_accepted_until_it_changes():
    old, new = make_columns(6), make_columns(6)
    new["depth"][0] += 0.05
    depth = float(new["depth"][1])
    accepted = {f"clash000{k}": Acceptance(f"clash000{k}", "Ada", "", 0.5 * depth) for k in (0, 1)}
    rows = compare(new, old, accepted)
    assert list(rows["status"][:2]) == ["changed", "changed"]
    assert "deeper than the accepted" in rows["change"][1]
    accepted["clash0001"] = Acceptance("clash0001", "Ada", "", depth)
    assert compare(new, old, accepted)["status"][1] == "accepted"
    assert compare(new, None, accepted)["status"][1] == "accepted"


@given(st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
@settings(max_examples=50, deadline=None)
def test_statuses_partition_the_ids(old, new, accepted):
    rows = make_columns(12)
    before, after = (taken(rows, np.array(sorted(part), np.int64)) for part in (old, new))
    names = {k: f"clash{k:04d}" for k in range(12)}
    accept = {names[k]: Acceptance(names[k], "", "") for k in accepted}
    found = status_by_id(compare(after, before, accept))
    for k in range(12):
        expected = None
        if k in new:
            expected = Status.NEW if k not in old else Status.SAME
            expected = Status.ACCEPTED if k in accepted else expected
        elif k in old:
            expected = Status.GONE
        assert found.get(names[k]) == expected


def test_list_of_accepted_clashes(tmp_path):
    path = tmp_path / "accepted.csv"
    assert read_accepted(path) == {}
    path.write_text(accepted_text())
    assert read_accepted(path) == {}
    path.write_text('id,by,reason\nx1, Ada ,"as built, see plan"\n,,\nx2\n', "utf-8-sig")
    found = read_accepted(path)
    assert found["x1"] == Acceptance("x1", "Ada", "as built, see plan", np.inf)
    assert set(found) == {"x1", "x2"}
    path.write_text("id,by,reason,depth\nx1,Ada,,0.02\n")
    assert read_accepted(path)["x1"].depth == 0.02


@pytest.mark.parametrize(
    ("text", "why"),
    [("x1,Ada\n", "needs a header"), ("id,depth\nx1,2 mm\n", "line 2: depth must be a number")],
)
def test_bad_lists_are_refused(tmp_path, text, why):
    path = tmp_path / "accepted.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=why):
        read_accepted(path)


@pytest.mark.parametrize(
    ("length", "text"),
    [(0.0125, "12.5 mm"), (0.0, "0 mm"), (1.25, "1.25 m"), (250.4, "250 m"), (np.nan, "unknown")],
)
def test_lengths(length, text):
    assert length_text(length) == text
