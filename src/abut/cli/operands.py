"""Operands and common options of commands."""

import argparse
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import numpy as np

from abut.cli.console import working
from abut.cli.report import ROWS_SHOWN
from abut.errors import FileError
from abut.mesh import Mesh
from abut.options import TREE_METHODS


def add_query_options(
    parser: argparse.ArgumentParser, methods: Iterable[StrEnum] = TREE_METHODS
) -> None:
    """Add the options of every query."""
    parser.add_argument(
        "--method", choices=[str(m) for m in methods], default="bvh", help="default: bvh"
    )
    add_report(parser, "pairs")


def add_report(parser: argparse.ArgumentParser, rows: str) -> None:
    """Add --device, --json and --pairs."""
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--pairs",
        type=natural,
        metavar="N",
        help=f"{rows} to list (default: {ROWS_SHOWN}; all with --json)",
    )


def add_poses(parser: argparse.ArgumentParser) -> None:
    """Add --pose-a and --pose-b."""
    for side in "ab":
        parser.add_argument(
            f"--pose-{side}",
            metavar="FILE",
            help=f"rigid motion of {side.upper()}: 4x4, or a batch Bx4x4 (.npy or text)",
        )


def length(text: str) -> float:
    """Parse a length from 0 up."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length from 0 up")
    return value


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument("--device", help="cpu, cuda:0, … (default: the first GPU, else cpu)")


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


def load_poses(path: str | None) -> np.ndarray | None:
    """Load poses: a .npy array, or text with 4 numbers per line, or 16 for one pose per line."""
    if path is None:
        return None
    try:
        poses = np.load(path) if Path(path).suffix == ".npy" else np.loadtxt(path, ndmin=2)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as poses: {error}") from None
    if poses.ndim == 2 and poses.shape != (4, 4) and poses.shape[1] in (4, 16):
        if poses.size % 16:
            raise FileError(f"{path} has {len(poses)} lines of 4 numbers; a pose takes four.")
        return poses.reshape(-1, 4, 4)
    return poses
