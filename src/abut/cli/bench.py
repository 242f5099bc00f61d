"""``abut bench NAME``: run a benchmark of a checkout."""

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from abut.errors import FileError, OptionError


def add_command(commands: Any) -> None:
    """Declare the command."""
    root = checkout()
    names = "only in a checkout" if root is None else ", ".join(_names(root))
    parser = commands.add_parser(
        "bench",
        description="Run a benchmark of a checkout of abut, benchmarks/bench_NAME.py; all runs the "
        "tests and all benchmarks, part by part. abut bench NAME --help lists its options.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help=names)
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the benchmark")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Import the benchmark by its path and run its ``main``."""
    if args.name is None:
        raise OptionError("name a benchmark, or all of them: abut bench all --quick.")
    script = _script(args.name)
    sys.path.insert(0, str(script.parents[1]))  # benchmarks import one another
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return int(module.main(args.options) or 0)


def _script(name: str) -> Path:
    root = checkout()
    if root is None:
        raise FileError("benchmarks are not installed; run this inside a checkout of abut.")
    script = root / "benchmarks" / f"bench_{name}.py"
    if not script.is_file():
        raise FileError(f"there is no {script}; there are: {', '.join(_names(root)) or 'none'}.")
    return script


def _names(root: Path) -> list[str]:
    return sorted(p.stem.removeprefix("bench_") for p in (root / "benchmarks").glob("bench_*.py"))


def checkout() -> Path | None:
    """The checkout that contains the working directory, or else this package; None without one."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if (folder / "src" / "abut").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    return None
