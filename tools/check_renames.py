"""Check ``design/renames.csv``, the mapping from names of 0.1.0 to present ones.

Rows are ``kind,old,new``. A ``module`` row names modules below ``abut``: the new one exists, the
old one does not. A ``name`` row names identifiers: the new one occurs in the source.
An empty ``new`` marks a module or name that was deleted.
"""

import csv
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "abut"
TABLE = ROOT / "design" / "renames.csv"
KINDS = {"module", "name"}


def findings(table: Path = TABLE, source: Path = SOURCE) -> list[str]:
    """Return one line for each row that does not hold."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = words(source)
    targets = {row["new"] for row in rows if row["kind"] == "module"}
    found = []
    for number, row in enumerate(rows, 2):
        kind, old, new = row["kind"], row["old"], row["new"]
        where = f"{table.name}:{number}"
        if kind not in KINDS:
            found.append(f"{where}: unknown kind {kind}")
        elif kind == "module" and new and not is_module(source, new):
            found.append(f"{where}: abut.{new} does not exist")
        elif (
            kind == "module"
            and is_module(source, old)
            and not any(target == old or target.startswith(f"{old}.") for target in targets)
        ):
            found.append(f"{where}: abut.{old} still exists")
        elif kind == "name" and new and new not in known:
            found.append(f"{where}: {new} occurs nowhere")
    return found


def is_module(source: Path, name: str) -> bool:
    """Return whether ``abut.<name>`` is a module or a package."""
    path = source.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def words(source: Path) -> set[str]:
    """Return all identifiers of the source files."""
    texts = (path.read_text() for path in source.rglob("*.py"))
    return {word for text in texts for word in re.findall(r"\b[A-Za-z_]\w*", text)}


if __name__ == "__main__":
    wrong = findings()
    print("\n".join(wrong) or "renames hold")
    sys.exit(bool(wrong))
