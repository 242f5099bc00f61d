"""Mutation testing: change one operator of a file at a time, and run tests that should notice.

    python tools/mutate.py src/abut/bounds/obb.py -- tests/bounds tests/bvh/test_node_obbs.py

Comparisons become looser or stricter, sums differences, least most, and error bounds 16 times
smaller. The tests run on a copy of the working tree, with a kernel cache of its own. A mutant that
no test notices is printed as a survivor.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!="}
SUMS = {ast.Add: "-", ast.Sub: "+"}
EXTREMA = {"min": "max", "max": "min"}
WEAKER_BITS = 4
LIMIT_S = 600


def mutations(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, description, text of the file) of every mutant."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def changed(begin: int, end: int, old: str, new: str) -> str:
        part = data[begin:end].decode().replace(old, new, 1)
        return (data[:begin] + part.encode() + data[end:]).decode()

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            right, new = node.comparators[0], COMPARISONS[type(node.ops[0])]
            old = {"<=": "<", "<": "<=", ">=": ">", ">": ">=", "!=": "=="}[new]
        elif isinstance(node, ast.BinOp) and type(node.op) in SUMS:
            right, new = node.right, SUMS[type(node.op)]
            old = {"-": "+", "+": "-"}[new]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            text = ast.unparse(node.right)
            if text.startswith("-") and text[1:].isdigit():
                begin = at(node.right.lineno, node.right.col_offset)
                end = at(node.right.end_lineno, node.right.end_col_offset)
                weaker = f"-{int(text[1:]) + WEAKER_BITS}"
                yield node.lineno, f"**{text} -> **{weaker}", changed(begin, end, text, weaker)
            continue
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("wp.min", "wp.max"):
            old = ast.unparse(node.func)
            new = f"wp.{EXTREMA[old[3:]]}"
            begin, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            yield node.lineno, f"{old} -> {new}", changed(begin, end, old, new)
            continue
        else:
            continue
        left = node.left
        begin = at(left.end_lineno, left.end_col_offset)
        end = at(right.lineno, right.col_offset)
        yield node.lineno, f"{old} -> {new}", changed(begin, end, old, new)


def passes(tree: Path, tests: list[str]) -> bool:
    """Whether the tests pass in a copy of the repository."""
    paths = {"PYTHONPATH": str(tree / "src"), "WARP_CACHE_PATH": str(tree / "kernels")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *tests],
            cwd=tree,
            env={**os.environ, **paths},
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main() -> None:
    """Mutate a file and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th mutant only")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy("pyproject.toml", tree)
        assert passes(tree, options.tests), "the tests fail without a mutation"
        source, survivors = options.file.read_text(), 0
        mutants = list(mutations(source))[:: options.every]
        for line, about, text in mutants:
            (tree / options.file).write_text(text)
            if passes(tree, options.tests):
                survivors += 1
                print(f"survived: {options.file}:{line}: {about}", flush=True)
        print(f"{options.file}: {len(mutants) - survivors} of {len(mutants)} mutants noticed")


if __name__ == "__main__":
    main()
