"""IfcClash: clash detection of IFC files by IfcOpenShell's trees (PyPI: ifcclash)."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Pairs = set[tuple[str, str]]


def clashing_pairs(files: Sequence[Path], mode: str, tolerance: float, clearance: float) -> Pairs:
    """Pairs of GlobalIds that IfcClash reports among the elements of files.

    Args:
        files: IFC files; elements of all of them are compared with each other.
        mode: ``intersection`` (deeper than the tolerance), ``collision`` or ``clearance``.
        tolerance: Depth that is still a touch [m].
        clearance: Gap to keep [m].
    """
    from ifcclash.ifcclash import Clasher, ClashSettings

    settings = ClashSettings()
    settings.logger = logging.getLogger("ifcclash")
    clasher = Clasher(settings)
    sources: list[dict[str, Any]] = [{"file": str(file)} for file in files]
    clash_set: dict[str, Any] = {"name": mode, "a": sources, "mode": mode, "check_all": False}
    clash_set |= {"tolerance": tolerance, "clearance": clearance, "allow_touching": False}
    clasher.clash_sets = [clash_set]
    clasher.clash()
    found = clash_set["clashes"].values()
    return {tuple(sorted((row["a_global_id"], row["b_global_id"]))) for row in found}
