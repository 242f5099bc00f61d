"""Blocks of docs/papers that are made from results.

A page has blocks ``<!-- made by far.bunnies -->`` … ``<!-- end -->``. The function ``bunnies`` of
``benchmarks/papers/far.py`` returns the Markdown of that block; it may write pictures to
``docs/images``.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.readme import ROOT

PAGES = ROOT / "docs" / "papers"
BLOCK = re.compile(r"(<!-- made by (\w+)\.(\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """Return a page with all of its blocks made again."""
    return BLOCK.sub(_made, page)


def pages() -> Iterator[Path]:
    """Yield the pages of the papers."""
    yield from sorted(PAGES.glob("*.md"))


def _made(block: re.Match[str]) -> str:
    head, module, function, _, end = block.groups()
    made = getattr(import_module(f"benchmarks.papers.{module}"), function)()
    return f"{head}{made.rstrip()}\n{end}"
