"""``abut bench all``: parts, limits and what is left for the next call."""

import argparse
import json
import sys
import time
from pathlib import Path

import pytest

from abut.cli import main

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bench_all(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import bench_all

    return bench_all


def parts_of(bench_all, *words):
    args = bench_all._arguments(list(words))
    return bench_all.chosen(bench_all.all_parts(args), args.parts)


def test_every_benchmark_and_every_folder_of_tests_is_a_part(bench_all):
    names = {part.name for part in parts_of(bench_all)}
    folders = {p.parent.name for p in (ROOT / "tests").glob("*/test_*.py")}
    assert {f"tests/{folder}" for folder in folders} <= names and "tests/top" in names
    benchmarks = {p.stem[6:] for p in (ROOT / "benchmarks").glob("bench_*.py")} - {"all", "scale"}
    assert {name.split("/")[0] for name in names} == benchmarks | {"tests"}
    assert {"collide/memory", "everyday/first_distances", "growth/poses"} <= names


def test_options_reach_each_benchmark(bench_all):
    words = ("--device", "cuda:0", "--quick", "--no-peers", "--log", "logs")
    commands = {part.name: part.command[2:] for part in parts_of(bench_all, *words)}
    assert not any(name.startswith("hardware") for name in commands)  # it runs on the CPU alone
    device = ("--device", "cuda:0")
    job = ("--jobs", "first_distances")
    assert commands["everyday/first_distances"] == (
        *("benchmarks.bench_everyday", *device, "--quick", "--out", "logs/everyday.csv"),
        *("--peers", *job),
    )
    assert commands["overlap"] == (
        *("benchmarks.bench_overlap", *device, "--out", "logs/overlap.csv"),
        *("--rounds", "3", "--no-peers"),
    )


def test_a_device_sees_tests_then_the_sanitizer_then_tables(bench_all, monkeypatch):
    monkeypatch.setattr(bench_all, "which", lambda name: f"/usr/bin/{name}")
    parts = parts_of(bench_all, "--device", "cuda:0")
    kinds = [part.name.split("/")[0] for part in parts]
    assert list(dict.fromkeys(kinds))[:4] == ["tests", "sanitizer", "everyday", "overlap"]
    tools = [part for part in parts if part.name.startswith("sanitizer/")]
    assert [part.command[2] for part in tools] == ["memcheck", "synccheck", "racecheck"]
    tests = [part for part in parts if part.name.startswith("tests/")]
    assert all(part.command[-1].startswith("tests/") for part in tests)
    assert all("--device" in part.command for part in (*tools, *tests))
    assert not any(part.name.startswith("sanitizer") for part in parts_of(bench_all))  # on the CPU


def test_the_sanitizer_watches_tests_that_there_are(bench_all):
    for name in bench_all.SANITIZED:
        file, _, test = name.partition("::")
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(), name


def test_a_benchmark_that_cannot_be_imported_is_left_out(bench_all, monkeypatch, capsys):
    plain = bench_all.options_of

    def options_of(name):
        if name == "overlap":
            raise ImportError("no module named fcl")
        return plain(name)

    monkeypatch.setattr(bench_all, "options_of", options_of)
    assert not [part for part in parts_of(bench_all) if part.name == "overlap"]
    assert "overlap is left out: no module named fcl" in capsys.readouterr().out


def test_failures_are_told_in_few_lines(bench_all, tmp_path):
    log = tmp_path / "log"
    log.write_text("....F\n\nE   assert 1\nFAILED tests/a.py::test_b - assert 1\n1 failed\n")
    assert bench_all.told(bench_all.FAILED, log) == ["FAILED tests/a.py::test_b - assert 1"]
    assert bench_all.told(bench_all.DONE, log) == ["1 failed"]
    log.write_text("\n".join(map(str, range(100))))
    assert bench_all.told(bench_all.STOPPED, log) == [str(i) for i in range(88, 100)]


def test_options_of_all_parts_are_known_to_their_benchmarks(bench_all, monkeypatch):
    """The parser of each benchmark takes the command of each of its parts."""
    parse = argparse.ArgumentParser.parse_args
    commands = [part.command for part in parts_of(bench_all, "--quick", "--no-peers")]
    for command in commands:
        if "pytest" in command:
            continue

        def parsed(parser, words=None, *_, command=command):
            raise bench_all._ParserSeen(parse(parser, list(command[3:])))

        with monkeypatch.context() as patch:
            patch.setattr(argparse.ArgumentParser, "parse_args", parsed)
            with pytest.raises(bench_all._ParserSeen):
                __import__("importlib").import_module(command[2]).main(list(command[3:]))


def test_parts_end_at_their_limit_and_are_resumed(bench_all, tmp_path, monkeypatch, capsys):
    slow = "import time; print('begun', flush=True); time.sleep(60)"
    codes = {"a/1": "print('one')", "a/2": "raise SystemExit(1)", "b": slow}
    made = [bench_all.Part(name, (sys.executable, "-c", code)) for name, code in codes.items()]
    monkeypatch.setattr(bench_all, "all_parts", lambda args: made)
    start = time.monotonic()
    words = ["--log", str(tmp_path), "--limit", "2"]
    assert bench_all.main(words) == 1 and time.monotonic() - start < 20
    status = json.loads((tmp_path / "status.json").read_text())
    assert {k: v["status"] for k, v in status.items()} == {
        "a/1": "done", "a/2": "failed", "b": "stopped at its limit"
    }  # fmt: skip
    assert (tmp_path / "a_1.log").read_text() == "one\n"
    assert (tmp_path / "b.log").read_text() == "begun\n"
    made[1:] = [bench_all.Part(n, (sys.executable, "-c", "pass")) for n in ("a/2", "b")]
    capsys.readouterr()
    assert bench_all.main([*words, "--parts", "a"]) == 0
    assert "a/1 " not in capsys.readouterr().out  # done before
    assert bench_all.main([*words, "--for", "0.0"]) == bench_all.REMAIN
    assert bench_all.main(words) == 0
    with pytest.raises(SystemExit, match="no part c"):
        bench_all.main([*words, "--parts", "c"])


def test_the_command_lists_parts(bench_all, capsys, tmp_path):
    words = ["bench", "all", "--list", "--parts", "collide", "--log", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "collide/bunny_bunny_all" in said and "peers that are not installed" in said
