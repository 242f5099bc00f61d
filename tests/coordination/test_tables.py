"""Tables of reports: what is written is read back, to the bit, and equal rows are equal bytes."""

import csv
import json
import sys
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abut.coordination.report.report_columns import COLUMNS, columns_of
from abut.coordination.report.report_json import (
    ClashReport,
    date_text,
    document_of,
    read_json,
    read_schema,
    report_date,
    write_json,
)
from abut.coordination.report.tables import read_csv, read_parquet, write_csv, write_parquet
from abut.errors import FileError, OptionError, ToolError
from clash_rows import facts_of, make_clashes, make_columns

DATE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


def assert_equal(a, b):
    assert list(a) == list(b) == list(COLUMNS)
    for name in COLUMNS:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        assert a[name].dtype == b[name].dtype, name


def report_of(columns):
    skipped = [{"file": "a.ifc", "id": "1", "name": "x", "type": "IfcSpace", "reason": "no mesh"}]
    return ClashReport(columns, DATE, "House", {"tolerance": 0.001}, skipped, ["b.ifc is damaged."])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_csv(tmp_path, count):
    columns = make_columns(count)
    path = write_csv(columns, tmp_path / "rows.csv")
    assert_equal(read_csv(path), columns)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == list(COLUMNS)
    assert len(lines) == count + 1
    again = write_csv(make_columns(count), tmp_path / "again.csv")
    assert again.read_bytes() == path.read_bytes()


@given(note=TEXT, depth=st.floats(allow_infinity=False), name=TEXT)
@settings(max_examples=30, deadline=None)
def test_any_text_and_number_survives(tmp_path_factory, note, depth, name):
    clashes = make_clashes(1)
    clashes.note[0], clashes.depth[0] = note, depth
    columns = columns_of(clashes, lambda key: facts_of(key)._replace(name=name))
    folder = tmp_path_factory.mktemp("rows")
    assert_equal(read_csv(write_csv(columns, folder / "rows.csv")), columns)
    read = read_json(write_json(report_of(columns), folder / "rows.json"))
    assert_equal(read.rows, columns)


def test_csv_of_others_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("id,name\n1,2\n")
    with pytest.raises(FileError, match=r"other\.csv .* no column 'status'"):
        read_csv(path)
    with pytest.raises(FileError, match=r"missing\.csv"):
        read_csv(tmp_path / "missing.csv")
    good = write_csv(make_columns(2), tmp_path / "rows.csv")
    good.write_text(good.read_text("utf-8").replace("true", "perhaps"), "utf-8")
    with pytest.raises(FileError, match="perhaps"):
        read_csv(good)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow, of abut's extra report")
    columns = make_columns(7)
    path = write_parquet(columns, tmp_path / "rows.parquet")
    assert_equal(read_parquet(path), columns)
    again = write_parquet(make_columns(7), tmp_path / "again.parquet")
    assert again.read_bytes() == path.read_bytes()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError, match=r"rows\.parquet"):
        read_parquet(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ToolError, match=r"abut\[report\]"):
        write_parquet(make_columns(1), tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []


def test_json_follows_its_schema(tmp_path):
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    validator.check_schema(read_schema())
    report = report_of(make_columns(9))
    path = write_json(report, tmp_path / "report.json")
    document = json.loads(path.read_text("utf-8"))
    assert document == document_of(report)
    assert [e.message for e in validator(read_schema()).iter_errors(document)] == []
    document["clashes"][0]["verdict"] = "bang"
    assert not validator(read_schema()).is_valid(document)
    described = read_schema()["$defs"]["clash"]
    assert set(described["required"]) == set(described["properties"])


def test_json(tmp_path):
    report = report_of(make_columns(9))
    path = write_json(report, tmp_path / "report.json")
    read = read_json(path)
    assert_equal(read.rows, report.rows)
    for name in ("created", "title", "settings", "skipped", "problems", "earlier"):
        assert getattr(read, name) == getattr(report, name)
    again = write_json(read, tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()
    assert path.read_text("utf-8").count("2026") == 1, "the date is in one place"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "cannot be read as a clash report"),
        ("[]", "no clash report"),
        ('{"format": "abut clash report", "version": 2}', "update abut"),
        ('{"format": "abut clash report", "version": 1}', "compared_with"),
    ],
)
def test_json_of_others_is_refused(tmp_path, text, why):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(FileError, match=why):
        read_json(path)


def test_date(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert abs(report_date() - datetime.now(UTC)).total_seconds() < 60
    assert date_text(report_date(DATE)) == "2026-03-01T09:30:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert date_text(report_date()) == "1970-01-01T00:00:00Z"
    assert report_date(DATE) == DATE
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(OptionError, match="'today'"):
        report_date()
