"""Other libraries, applied to the same cases.

A peer is a module with:

- ``NAME``, ``PACKAGE`` (as pip knows it), and ``SUPPORTS``: for each question it can answer, its
  choices of how (names of configurations; the empty one is the default).
- ``prepare(case, choice="")``: everything that is not to be timed, hierarchies included; None
  where the choice does not apply to the case.
- ``run(prepared)``: what is timed; returns the library's own result.
- ``answer(result)``: sorted (n, 2) face pairs; or a bool, (B,) bools, distances, or a count of
  leaves.
- ``NOTE``: why its answers may differ from abut's. ``TOLERANCE``: of distances in float32, in
  shares of the largest one. ``EXACT``: its answers must not differ, except for faces without area.
  ``COMPILES``: its first call gets a row. ``BASELINE``: a yardstick, not a library, which no ratio
  refers to.
- ``tree_bytes(case)``, optional: bytes of its hierarchies by name.

Importing a peer imports its package; a missing one is reported and skipped.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

NAMES = ("meshlib", "coal", "fcl", "igl_cgal", "ipctk", "warp_bvh")


class Prepared(NamedTuple):
    """A call ready to be timed. ``steps``: units of work in one call."""

    call: Callable[[], Any]
    steps: float = 1.0
    device: str = "cpu"
    held: Any = None  # objects that must live as long as the call
    part: int | None = None  # poses answered with pairs, where not all of them


def installed(names: tuple[str, ...] = NAMES) -> tuple[list[ModuleType], list[str]]:
    """The peers that can be imported, and the names of those that cannot."""
    found, missing = [], []
    for name in names:
        try:
            found.append(import_module(f"benchmarks.peers.{name}"))
        except ImportError:
            missing.append(name)
    return found, missing


def version_of(module: ModuleType) -> str:
    """Version of the package, and of the source where it is a checkout."""
    from importlib import metadata  # late: the time of an import is measured too

    commit = module.commit() if hasattr(module, "commit") else ""
    try:
        version = metadata.version(module.PACKAGE)
    except metadata.PackageNotFoundError:  # on the path, not installed
        version = ""
    return "+".join(part for part in (version, commit) if part)
