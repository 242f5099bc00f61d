"""Memory of hierarchies, in bytes a face."""

from types import ModuleType

from benchmarks.cases import bunny_bunny_all
from benchmarks.peers import version_of
from benchmarks.rows import Row

JOB = "memory"


def memory_rows(modules: list[ModuleType], device: str) -> list[Row]:
    """A row for each kind of hierarchy that a library can tell the size of; abut comes first."""
    case = bunny_bunny_all(device)[0]
    rows = []
    for module in modules:
        sizes = module.tree_bytes(case) if hasattr(module, "tree_bytes") else {}
        for name, size in sizes.items():
            where = device if module is modules[0] else "cpu"
            row = Row(JOB, f"{name}_bytes_per_face", module.NAME, where)
            row.answer_size, row.version = size / len(case.faces), version_of(module)
            rows.append(row)
    return rows
