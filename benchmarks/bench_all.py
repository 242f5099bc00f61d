"""The tests and every benchmark on one device, part by part: resumable, with a limit for each part.

    abut bench all --device cuda:0                 # every test, then every benchmark
    abut bench all --device cuda:0 --for 540       # what fits into nine minutes; repeat to go on
    abut bench all --parts collide everyday --quick
    abut bench all --list

A part is a folder of tests, a tool of compute-sanitizer over a few tests, or one job of a
benchmark; tests come first. Its output goes to a log, its status to ``status.json``; parts that are
done are not run again. CSV files are those of each benchmark; with ``--quick`` they lie beside the
logs, so that no measurement is replaced by a hasty one.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, NoReturn
from unittest import mock

from benchmarks import peers

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
LONG = ("scale",)  # hours: only where they are named
# Rooms of tests and benchmarks that come first: with many kernels, with targets for a device.
ROOMS = ("core", "traversal", "narrow", "query", "scene", "point", "sdf", "visibility")
TABLES = (
    *("everyday", "overlap", "robot", "robot_motions", "scene_parts", "scene_distance", "scene"),
    *("dragons", "response", "field", "cull_frames", "growth"),
)
MORE = {"field": ("--rebuild",)}  # options that are parts of their own
SANITIZER = "compute-sanitizer"
TOOLS = ("memcheck", "synccheck", "racecheck")
SANITIZED = (  # tests of teams, queues and tables, small enough for a tool that takes long
    "tests/core/test_call.py",
    "tests/scene/test_robot_motions.py::test_known_times",
    "tests/scene/test_robot.py::test_valid_finds_solids_inside",
    "tests/scene/test_scene_near.py::test_small_scenes",
    "tests/query/test_distance_strategies.py::test_nearest",
    "tests/query/test_overlap.py::test_cavity",
    "tests/sdf/test_tangential_springs.py",
    "tests/visibility/test_pair_views.py::test_no_pair_is_lost",
)
SHOWN = 12  # lines about a part that failed
LEAST_S = 20.0  # a part is not begun with less time
SPLIT = ("--jobs", "--sweeps")  # options whose choices are parts of their own
DONE, FAILED, STOPPED = "done", "failed", "stopped at its limit"
REMAIN = 3  # exit status: parts remain


@dataclass(frozen=True)
class Part:
    """A command that runs in the root of the checkout."""

    name: str
    command: tuple[str, ...]


class _ParserSeen(Exception):
    """Carries the parser of a benchmark, before it parses anything."""


def main(argv: list[str] | None = None) -> int:
    """Run parts; returns 0 when all are done, 1 after a failure, 3 when parts remain."""
    args = _arguments(argv)
    folder = _folder(args)
    status = _read(folder / "status.json")
    parts = chosen(all_parts(args), args.parts)
    missing = ", ".join(peers.installed()[1])
    print(f"peers that are not installed, left out: {missing or 'none'}")
    if args.list:
        for part in parts:
            print(f"{part.name:<44} {status.get(part.name, {}).get('status', '')}")
        return 0
    stop = time.monotonic() + args.seconds
    for part in parts:
        if not args.again and status.get(part.name, {}).get("status") == DONE:
            continue
        left = stop - time.monotonic()
        if left < min(LEAST_S, args.seconds):
            break
        print(f"{part.name:<44} ", end="", flush=True)
        status[part.name] = run_part(part, min(args.limit, left), folder)
        print(f"{status[part.name]['status']}, {status[part.name]['seconds']} s", flush=True)
        for line in told(status[part.name]["status"], _log(part, folder)):
            print(f"    {line}", flush=True)
        (folder / "status.json").write_text(json.dumps(status, indent=1) + "\n")
    ends = [status.get(part.name, {}).get("status", "") for part in parts]
    print(f"{ends.count(DONE)} of {len(parts)} parts are done; logs are in {folder}")
    return 1 if FAILED in ends else 0 if all(end == DONE for end in ends) else REMAIN


def run_part(part: Part, limit: float, folder: Path) -> dict[str, Any]:
    """Run a part, with all processes it starts, for at most ``limit`` seconds; write its log."""
    log = _log(part, folder)
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with log.open("w") as out:
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        to_log = {"stdout": out, "stderr": subprocess.STDOUT}
        with subprocess.Popen(
            part.command, cwd=ROOT, env=env, start_new_session=True, **to_log
        ) as process:
            try:
                status = FAILED if process.wait(limit) else DONE
            except subprocess.TimeoutExpired:
                status = STOPPED
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
    return {"status": status, "seconds": round(time.monotonic() - start, 1)}


def told(status: str, log: Path) -> list[str]:
    """What the log of a part says of failures; its last line if it was done."""
    lines = [x for x in log.read_text(errors="replace").splitlines() if x and x[:5] != "Warp "]
    if status == DONE:
        return lines[-1:]
    bad = [line for line in lines if line.startswith(("FAILED", "ERROR", "=========     at"))]
    return (bad or lines[-SHOWN:])[:SHOWN]


def _log(part: Part, folder: Path) -> Path:
    return folder / f"{part.name.replace('/', '_')}.log"


def all_parts(args: argparse.Namespace) -> list[Part]:
    """The folders of tests and the jobs of benchmarks, in the order in which they run."""
    asked = {part.split("/")[0] for part in args.parts}
    names = [name for name in benchmark_names() if not asked or name in asked]
    jobs = (part for name in names for part in _jobs(name, args))
    return [*_test_parts(args.device), *_sanitizer_parts(args.device), *jobs]


def benchmark_names() -> list[str]:
    """The names of all benchmarks but this one, TABLES first."""
    names = {path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py")} - {"all"}
    return _first(names, TABLES)


def chosen(parts: list[Part], names: list[str]) -> list[Part]:
    """The parts named, or within a part named; without names all but those that take hours."""

    def has(part: Part, name: str) -> bool:
        return part.name == name or part.name.startswith(f"{name}/")

    for name in names:
        if not any(has(part, name) for part in parts):
            raise SystemExit(f"there is no part {name}; --list names all.")
    if not names:
        return [part for part in parts if part.name.split("/")[0] not in LONG]
    return [part for part in parts if any(has(part, name) for name in names)]


def _first(names: set[str], first: tuple[str, ...]) -> list[str]:
    return [*(name for name in first if name in names), *sorted(names - {*first})]


def _test_parts(device: str) -> Iterator[Part]:
    """The folders of tests, each in as many processes as there are cores if pytest can."""
    spread = ("-n", "auto") if find_spec("xdist") else ()
    command = (*_pytest(device), *spread, "--maxfail", "20")
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("test_*.py"))
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    for room in _first(folders | {"top"}, ROOMS):
        yield Part(f"tests/{room}", (*command, *(files if room == "top" else [f"tests/{room}"])))


def _sanitizer_parts(device: str) -> Iterator[Part]:
    """A few tests under each tool of compute-sanitizer, where it is installed."""
    if device != "cpu" and which(SANITIZER):
        for tool in TOOLS:
            watch = (SANITIZER, "--tool", tool, "--error-exitcode", "1")
            yield Part(f"sanitizer/{tool}", (*watch, *_pytest(device), "-x", *SANITIZED))


def _pytest(device: str) -> tuple[str, ...]:
    options = ("-q", "--tb", "short", "-p", "no:cacheprovider")
    return (sys.executable, "-m", "pytest", *options, "--device", device)


def _jobs(name: str, args: argparse.Namespace) -> Iterator[Part]:
    """The parts of a benchmark; none where it has no --device and another than the CPU is asked."""
    try:
        options = options_of(name)
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return
    command = [sys.executable, "-m", f"benchmarks.bench_{name}"]
    if "--device" in options:
        command += ["--device", args.device]
    elif args.device != "cpu":
        return
    if args.quick:
        command += ["--quick"] if "--quick" in options else []
        command += ["--out", str(_folder(args) / f"{name}.csv")] if "--out" in options else []
        command += ["--rounds", "3"] if {"--rounds", "--quick"} & {*options} == {"--rounds"} else []
    if not args.peers:
        known = next((way for way in ("--no-peers", "--peers") if way in options), None)
        command += [known] if known else []
    split = next((option for option in SPLIT if options.get(option)), None)
    if split is None:
        yield Part(name, tuple(command))
        for option in MORE.get(name, ()):
            yield Part(f"{name}/{option.strip('-')}", (*command, option))
        return
    for job in options[split]:
        yield Part(f"{name}/{job}", (*command, split, job))


@cache
def options_of(name: str) -> dict[str, tuple[str, ...]]:
    """The options of a benchmark, each with its choices."""

    def seen(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        raise _ParserSeen(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", seen):
        try:
            import_module(f"benchmarks.bench_{name}").main([])
        except _ParserSeen as found:
            actions = found.args[0]._actions
    return {
        option: tuple(map(str, action.choices or ()))
        for action in actions
        for option in action.option_strings
    }


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="abut bench all", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    about = "tests, tests/ROOM, NAME or NAME/JOB (default: all but " + ", ".join(LONG) + ")"
    parser.add_argument("--parts", nargs="+", default=[], metavar="PART", help=about)
    parser.add_argument("--limit", type=float, default=540.0, help="seconds a part (default: 540)")
    about = "seconds for all parts, for a machine lent so long; repeat the command to go on"
    parser.add_argument("--for", dest="seconds", type=float, default=float("inf"), help=about)
    parser.add_argument(
        "--quick", action="store_true", help="few rounds; CSV files beside the logs"
    )
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="abut alone")
    parser.add_argument("--again", action="store_true", help="also parts that are done")
    parser.add_argument("--list", action="store_true", help="name the parts and their status")
    parser.add_argument("--log", type=Path, help="folder of logs (default: out/bench_all/DEVICE)")
    return parser.parse_args(argv)


def _folder(args: argparse.Namespace) -> Path:
    return args.log or ROOT / "out" / "bench_all" / args.device.replace(":", "")


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


if __name__ == "__main__":
    sys.exit(main())
