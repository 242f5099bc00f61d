"""What commands have in common: meshes and poses from files, options, times, reports."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from abut.cases import box
from abut.cli.console import milliseconds, working
from abut.errors import FileError
from abut.mesh import Mesh
from abut.options import Method
from abut.results import Contacts
from abut.runtime import recording

ROWS_SHOWN = 10


def add_query_options(parser: argparse.ArgumentParser) -> None:
    """Options of every query."""
    parser.add_argument("--method", choices=[str(m) for m in Method], default="bvh")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--pairs",
        type=natural,
        metavar="N",
        help=f"pairs to list (default: {ROWS_SHOWN}; all with --json)",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """The --device option."""
    parser.add_argument("--device", help="cpu, cuda:0, … (default: the first GPU, else cpu)")


def natural(text: str) -> int:
    """A whole number from 0 up."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def load(path: str, device: str | None) -> Mesh:
    """The mesh of a file."""
    with working(f"reading {path}"):
        return Mesh.load(path, device)


def load_poses(path: str | None) -> np.ndarray | None:
    """Poses of a file: a .npy array, or text with 4 numbers a line, or 16 for one pose a line."""
    if path is None:
        return None
    try:
        poses = np.load(path) if Path(path).suffix == ".npy" else np.loadtxt(path, ndmin=2)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as poses: {error}") from None
    if poses.ndim == 2 and poses.shape != (4, 4) and poses.size % 16 == 0:
        return poses.reshape(-1, 4, 4)
    return poses


def measured(
    query: Callable[..., Contacts], meshes: tuple[Mesh, ...], **options: Any
) -> tuple[Contacts, dict[str, float]]:
    """The answer of a query, and the time of its stages; kernels are loaded before, apart."""
    start = time.perf_counter()
    with working("loading kernels"):
        tiny = [Mesh(*box(), device=meshes[0].device) for _ in meshes]
        query(*tiny, **{name: _few(value) for name, value in options.items()})
    loading = {"kernels": (time.perf_counter() - start) * 1e3}
    with working("colliding"), recording() as timer:
        hits = query(*meshes, **options)
    return hits, loading | timer.milliseconds


def _few(option: Any) -> Any:
    """At most two of a batch of poses."""
    return option[:2] if isinstance(option, np.ndarray) and option.ndim == 3 else option


def report(hits: Contacts, limit: int | None, stages: dict[str, float]) -> dict[str, Any]:
    """An answer for programs."""
    arrays = {name: array.tolist() for name, array in hits.numpy().items()}
    for name in ("pairs", "pose"):
        if name in arrays:
            arrays[name] = arrays[name][:limit]
    device = str(hits.pairs.device)
    return {"pair_count": len(hits), **arrays, "device": device, "milliseconds": stages}


def facts(hits: Contacts, stages: dict[str, float]) -> list[tuple[str, str]]:
    """An answer for people."""
    found = [("contact", _verdict(hits)), ("pairs", f"{len(hits):,}")]
    return [*found, ("device", str(hits.pairs.device)), ("time", milliseconds(stages))]


def _verdict(hits: Contacts) -> str:
    if isinstance(hits.colliding, bool):
        inside = " (one inside the other)" if hits.contained else ""
        return ("yes" if hits.colliding else "no") + inside
    colliding = hits.colliding.numpy()
    return f"in {colliding.sum():,} of {len(colliding):,} poses"


def describe(path: str, mesh: Mesh) -> str:
    """A mesh in a few words."""
    return f"{path}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces"
