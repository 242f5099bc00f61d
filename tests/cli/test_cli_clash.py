"""abut clash FILES…: tables, JSON, reports and exit statuses."""

import json

import numpy as np
import pytest

import abut
from abut.cli import main
from abut.coordination.report.report import clash_columns, part_id, read_earlier
from abut.coordination.report.report_json import read_json, read_schema
from abut.coordination.report.tables import read_csv
from blocks import block

SHAPES = {
    "wall": block((6, 0.25, 2.5)),
    "next": block((6, 0.25, 2.5), (5.95, 0, 0)),
    "duct": block((0.3, 1.5, 0.3), (2, -0.5, 1.8)),
    "slab": block((6, 4, 0.2), (0, 0, -0.2)),
}


def write(path, *names):
    arrays = {"names": np.array([f"Ifc:{name}" for name in names])}
    for k, name in enumerate(names):
        arrays |= {f"p{k:04d}__V": SHAPES[name][0], f"p{k:04d}__F": SHAPES[name][1]}
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1772357400")
    return write(tmp_path / "house.npz", *SHAPES)


def run(*words):
    return main(["clash", *map(str, words), "--device", "cpu"])


def test_table(house, capsys):
    assert run(house) == 1
    out = capsys.readouterr().out
    assert "1 pierce, 1 protrude" in out and "4 in 1 file" in out and "50 mm deep" in out
    assert run(house, "--tolerance", 0.2) == 0
    assert "none" in capsys.readouterr().out


def test_overlaps_by_rounding_suggest_a_tolerance(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(SHAPES, "on", block((6, 0.25, 0.1), (0, 0, 2.5 - 1e-13)))
    path = write(tmp_path / "house.npz", "wall", "on", "duct")
    assert run(path) == 1
    assert "1 less than 0.001 mm deep: rounding in the files?" in capsys.readouterr().out
    assert run(path, "--tolerance", 0.001) == 1
    assert "less than" not in capsys.readouterr().out


def test_json_and_options(house, capsys):
    assert run(house, "--json", "--touch", "--title", "House") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["title"] == "House" and len(found["clashes"]) == 4
    assert found["clashes"][0]["a"]["id"] == "duct"
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    assert [error.message for error in validator(read_schema()).iter_errors(found)] == []
    assert run(house, "--units", "mm", "--json") == 1
    assert json.loads(capsys.readouterr().out)["settings"]["unit"] == "mm"


def test_report_is_the_same_in_each_run(house, tmp_path, capsys):
    for name in "ab":
        assert run(house, "--out", tmp_path / name, "--no-pictures") == 1
    files = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()} == files
    assert {"clashes.csv", "clashes.json", "clashes.bcf", "clashes-2.1.bcf", "index.html"} <= set(
        files
    )
    rows = read_csv(tmp_path / "a" / "clashes.csv")
    assert rows["a_id"].tolist() == ["duct", "next"] and set(rows["a_file"]) == {house}
    assert read_json(tmp_path / "a" / "clashes.json").settings["tolerance"] == 0.0


def test_cameras_of_a_report_are_chosen_once(house, tmp_path, monkeypatch):
    """The files have the bytes of those that choose their own."""
    from abut.coordination.bcf.bcf import write_bcf
    from abut.coordination.pictures import clash_cameras
    from abut.coordination.report.report import write_report
    from abut.coordination.report.report_page import write_page

    found = abut.clash(house, device="cpu")
    columns, views, calls = clash_columns(found), clash_cameras.clash_views, []
    monkeypatch.setattr(
        clash_cameras, "clash_views", lambda *about: calls.append(1) or views(*about)
    )
    write_report(found, columns, tmp_path / "out", pictures=False, device="cpu")
    assert len(calls) == 1
    options = {"title": "Clash report", "device": "cpu"}
    write_bcf(found, columns, tmp_path / "clashes.bcf", **options)
    write_bcf(found, columns, tmp_path / "clashes-2.1.bcf", version="2.1", **options)
    write_page(found, columns, tmp_path / "index.html", **options)
    for name in ("clashes.bcf", "clashes-2.1.bcf", "index.html"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_compare_and_accept(house, tmp_path, capsys):
    old, accepted = tmp_path / "old", tmp_path / "accepted.csv"
    assert run(house, "--out", old, "--no-pictures", "--accepted", accepted) == 1
    names = read_csv(old / "clashes.csv")["id"].tolist()
    assert accepted.read_text().startswith("id,by,reason,depth")
    accepted.write_text("id,by\n" + "".join(f"{name},Ada\n" for name in names))
    capsys.readouterr()
    assert run(house, "--compare", old, "--accepted", accepted) == 0
    assert "2 accepted" in capsys.readouterr().out
    write(tmp_path / "house.npz", "wall", "duct")
    for earlier in (old, old / "clashes.csv", old / "clashes.json"):
        assert run(house, "--compare", earlier, "--json") == 1
        rows = json.loads(capsys.readouterr().out)["clashes"]
        assert [row["status"] for row in rows] == ["same", "gone"]
    assert run(house, "--compare", old) == 1
    assert "1, 1 gone" in capsys.readouterr().out, "of the groups"
    assert read_earlier(old).created is not None
    assert read_earlier(old / "clashes.csv").created is None


def test_problems_are_lines_and_the_rest_is_checked(house, tmp_path, capsys):
    broken = tmp_path / "broken.glb"
    broken.write_bytes(b"glTF")
    rules = tmp_path / "rules.toml"
    rules.write_text("[sets.pipes]\ntype = 'IfcPipe*'\n[[checks]]\nname='all'\n")
    assert run(house, broken, "--rules", rules) == 2
    shown = capsys.readouterr()
    assert "1 pierce" in shown.out
    lines = shown.err.splitlines()
    assert len([line for line in lines if "broken.glb" in line]) == 1
    assert f"abut: {rules}: set 'pipes' names no part." in lines


@pytest.mark.parametrize(
    "words",
    [["--rules", "gone.toml"], ["--compare", "gone"], ["--units", "feet"], ["--tolerance", "-1"]],
)
def test_errors_are_one_line(house, capsys, words):
    assert run(house, *words) == 2
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 1 and shown.out == ""


def test_ids_of_parts():
    assert part_id("house/x/y", "/a/house.ifc") == "x/y"
    assert part_id("a/house.ifc/x", "/a/house.ifc") == "x"
    assert part_id("house/house.ifc/x", "/house/house.ifc") == "x"
    assert part_id("scene/x/y", "") == "x/y"


def test_columns_of_no_clashes():
    import abut

    found = abut.clash(abut.Scene(device="cpu"), device="cpu")
    assert len(clash_columns(found)["id"]) == 0


def test_tiles(house, tmp_path, capsys):
    """Rows tile by tile are those of one run; a run is resumed in its report."""
    out = [tmp_path / name for name in "ab"]
    assert run(house, "--out", out[0], "--no-pictures") == 1
    assert run(house, "--out", out[1], "--no-pictures", "--memory", "2e9") == 1
    tables = [(folder / "clashes.csv").read_bytes() for folder in out]
    assert tables[0] == tables[1]
    assert run(house, "--out", out[1], "--no-pictures", "--resume") == 1
    assert (out[1] / "clashes.csv").read_bytes() == tables[0]
    assert run(house, "--out", out[1], "--resume", "--tolerance", 0.2) == 2
    assert "other settings (rules)" in capsys.readouterr().err
    assert run(house, "--resume") == 2
    assert run(house, "--memory", 1000) == 2
    assert "memory must be at least" in capsys.readouterr().err


@pytest.mark.slow  # a worker loads the kernels
def test_workers(house, tmp_path):
    pytest.importorskip("distributed")
    out = [tmp_path / name for name in "ab"]
    for folder, more in zip(out, ([], ["--workers", 1]), strict=True):
        assert run(house, "--out", folder, "--no-pictures", *more) == 1
    assert (out[0] / "clashes.csv").read_bytes() == (out[1] / "clashes.csv").read_bytes()
