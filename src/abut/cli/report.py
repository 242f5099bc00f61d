"""The answer of a contact query, for people and for programs."""

from typing import Any

from abut.cli.console import show_facts, show_json, show_rows
from abut.mesh import Mesh
from abut.results import Contacts

ROWS_SHOWN = 10


def show_contacts(
    hits: Contacts,
    meshes: dict[str, tuple[str, Mesh]],
    stages: dict[str, float],
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print an answer.

    Args:
        hits: The answer.
        meshes: For each operand its file and mesh.
        stages: Milliseconds by stage.
        limit: Pairs to list; None is a few in a table and all in JSON.
        as_json: One JSON object instead of a table.
    """
    if as_json:
        show_json(_plain(hits, meshes, limit) | {"milliseconds": stages})
        return
    operands = [
        (name, f"{path}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces")
        for name, (path, mesh) in meshes.items()
    ]
    found = [("contact", _verdict(hits)), ("pairs", f"{len(hits):,}")]
    times = [("device", str(hits.pairs.device)), ("time", times_line(stages))]
    show_facts([*operands, *found, *times])
    _show_pairs(hits, ROWS_SHOWN if limit is None else limit)


def _plain(
    hits: Contacts, meshes: dict[str, tuple[str, Mesh]], limit: int | None
) -> dict[str, Any]:
    operands = {
        name: {"file": path, "vertices": mesh.vertex_count, "faces": mesh.face_count}
        for name, (path, mesh) in meshes.items()
    }
    rows = {name: array.tolist() for name, array in hits.numpy().items()}
    rows |= {name: rows[name][:limit] for name in ("pairs", "pose") if name in rows}
    return {**operands, "device": str(hits.pairs.device), "pair_count": len(hits), **rows}


def _verdict(hits: Contacts) -> str:
    if isinstance(hits.colliding, bool):
        return "one inside the other" if hits.contained else "yes" if hits.colliding else "no"
    colliding = hits.colliding.numpy()
    return f"in {colliding.sum():,} of {len(colliding):,} poses"


def times_line(stages: dict[str, float]) -> str:
    """Stage times on one line."""
    query = {name: spent for name, spent in stages.items() if name != "kernels"}
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in query.items())
    return f"{sum(query.values()):.2f} ms ({parts}); kernels loaded in {stages['kernels']:.0f} ms"


def _show_pairs(hits: Contacts, limit: int) -> None:
    """The first pairs, and how many more there are."""
    count = min(limit, len(hits))
    if count == 0:
        return
    pairs = hits.pairs.numpy()[:count]
    columns = {"face a": pairs[:, 0], "face b": pairs[:, 1]}
    if hits.pose is not None:
        columns = {"pose": hits.pose.numpy()[:count], **columns}
    print()
    show_rows(list(columns), zip(*columns.values(), strict=True))
    if len(hits) > count:
        print(f"… and {len(hits) - count:,} more (--pairs N)")
