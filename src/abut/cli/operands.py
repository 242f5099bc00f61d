"""Operands and common options of commands."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.animations import in_order
from abut.cli.console import working
from abut.cli.report import ROWS_SHOWN, Meshes
from abut.errors import FileError
from abut.io import reading
from abut.io.numpy_files import read_numbers
from abut.io.read import USUAL
from abut.mesh import Mesh
from abut.options import TREE_METHODS


def add_meshes(parser: argparse.ArgumentParser, names: str = "ab") -> None:
    """Add a mesh file for each letter."""
    for name in names:
        parser.add_argument(name, metavar=name.upper(), help="mesh file")


def add_poses(parser: argparse.ArgumentParser, batch: str = ", or a batch Bx4x4") -> None:
    """Add --pose-a and --pose-b."""
    for side in "ab":
        about = f"rigid motion of {side.upper()}: 4x4{batch} (.npy or text)"
        parser.add_argument(f"--pose-{side}", metavar="FILE", help=about)


def add_choice(
    parser: argparse.ArgumentParser,
    option: str,
    choices: Iterable[Any],
    default: str | None,
    about: str = "",
) -> None:
    """Add an option with the names of an enum, or of some of its members."""
    names = [str(choice) for choice in choices]
    about = f"default: {default or 'by the query'}" + (f"; {about}" if about else "")
    parser.add_argument(option, choices=names, default=default, help=about)


def add_query_options(
    parser: argparse.ArgumentParser, methods: Iterable[Any] = TREE_METHODS
) -> None:
    """Add the options of every query: --method, --pairs, --device, --json."""
    add_choice(parser, "--method", methods, "bvh")
    add_report(parser, "pairs")


def add_report(parser: argparse.ArgumentParser, rows: str) -> None:
    """Add --pairs, --device and --json."""
    about = f"{rows} to list (default: {ROWS_SHOWN}; all with --json)"
    parser.add_argument("--pairs", type=natural, metavar="N", help=about)
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add --device and --json."""
    parser.add_argument("--device", help="cpu, cuda:0, … (default: the first GPU, else cpu)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_length(
    parser: Any, option: str, about: str, default: float | None = None, metavar: str = "D"
) -> None:
    """Add an option that takes a length."""
    parser.add_argument(option, type=length, default=default, metavar=metavar, help=about)


def length(text: str) -> float:
    """Parse a length from 0 up."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length from 0 up")
    return value


def natural(text: str) -> int:
    """Parse a whole number from 0 up."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def picture_size(text: str) -> tuple[int, int]:
    """Parse the width and height of a picture."""
    width, cross, height = text.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 1200x800")
    return int(width), int(height)


def load(path: str, device: str | None) -> Mesh:
    """Load a mesh file."""
    with working(f"reading {path}"):
        return Mesh.load(path, device)


def files_in(paths: Iterable[str]) -> list[str]:
    """The files, and the mesh files of folders in the order of the numbers in their names."""
    found: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        with reading(path, "a folder"):
            files = [file for file in Path(path).iterdir() if file.suffix.lower() in USUAL]
        if not files:
            raise FileError(f"{path} holds no mesh file ({', '.join(USUAL)}).")
        found += map(str, in_order(files))
    return found


def load_operands(args: argparse.Namespace, names: Iterable[str] = "ab") -> Meshes:
    """Load the mesh files that were given as these arguments."""
    paths = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return {name: (path, load(path, args.device)) for name, path in paths.items()}


def load_poses(args: argparse.Namespace) -> dict[str, Any]:
    """Load --pose-a and --pose-b, as options of a query."""
    return {name: read_poses(getattr(args, name)) for name in ("pose_a", "pose_b")}


def read_poses(path: str | None) -> np.ndarray | None:
    """Read poses: a .npy array, or text with 4 numbers per line, or 16 for one pose per line."""
    if path is None:
        return None
    poses = read_numbers(path, "poses")
    if poses.ndim == 2 and poses.shape != (4, 4) and poses.shape[1] in (4, 16):
        if poses.size % 16:
            raise FileError(f"{path} has {len(poses)} lines of 4 numbers; a pose takes four.")
        return poses.reshape(-1, 4, 4)
    if poses.ndim not in (2, 3) or poses.shape[-2:] != (4, 4):
        raise FileError(f"{path} has an array of shape {poses.shape}; a pose is 4x4.")
    return poses


def pose_of(poses: np.ndarray | None, row: int | None) -> np.ndarray | None:
    """One of a batch of poses; or the pose, if there is no batch."""
    if poses is None or poses.ndim == 2:
        return poses
    return poses[min(row or 0, len(poses) - 1)] if len(poses) else None
