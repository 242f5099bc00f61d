"""Pictures of answers: options of all commands that draw; abut.view is imported when it is used."""

import argparse
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from abut.cli.console import working
from abut.cli.operands import picture_size
from abut.cli.report import Stages, timed

Y_UP = (".glb", ".gltf", ".obj", ".dae", ".fbx", ".wrl", ".x3d")  # y is up by their convention


def add_picture(parser: argparse.ArgumentParser, about: str) -> None:
    """Add --picture, --size and --up."""
    parser.add_argument("--picture", metavar="FILE", help=f"draw {about} as FILE.png")
    size = {"type": picture_size, "default": (1200, 800), "metavar": "WxH"}
    parser.add_argument("--size", **size, help="of the picture (default: 1200x800)")
    about = "the axis that points up in the picture (default: y for glTF, OBJ and DAE, else z)"
    parser.add_argument("--up", choices=["y", "z"], help=about)


def check_picture(args: argparse.Namespace) -> None:
    """Refuse a picture that cannot be written, before any work is done for it."""
    if args.picture:
        from abut.view.picture import require_picture

        require_picture(args.picture, args.size)


def draw_picture(
    args: argparse.Namespace, file: str, stages: Stages, drawing: Callable[[ModuleType], Any]
) -> None:
    """Draw --picture, if it is asked for.

    Args:
        args: Options of the command.
        file: A mesh file, whose format says what points up.
        stages: Receives the time.
        drawing: Makes a Drawing, given the module ``abut.cli.drawings``.
    """
    if args.picture:
        from abut.cli import drawings

        vertical = vertical_of(args, file)
        with working("drawing"):
            timed(stages, "picture", lambda: drawings.draw(args, vertical, drawing(drawings)))


def vertical_of(args: argparse.Namespace, file: str = "") -> str:
    """The axis that points up: --up, or the convention of the format of the file."""
    return args.up or ("y" if Path(file).suffix.lower() in Y_UP else "z")


def drawn(args: argparse.Namespace) -> dict[str, str]:
    """The file of the picture for a report, if there is one."""
    return {"picture": args.picture} if args.picture else {}
