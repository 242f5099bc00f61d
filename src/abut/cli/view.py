"""``abut view FILES…``: meshes, contacts and distances on a page in the browser."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from abut.cli.console import one_line, tell, working
from abut.cli.operands import add_choice, natural
from abut.core.device import resolve_device
from abut.errors import AbutError
from abut.options import Method
from abut.scene import Scene
from abut.view.show import show


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "view",
        description="Show files on a page in the browser: meshes, faces in contact, the shortest "
        "distance. Drag an object and every answer follows. Closing the page or Ctrl-C ends.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="mesh, scene or robot file")
    add_choice(parser, "--method", Method, "bvh")
    parser.add_argument("--self", action="store_true", help="also objects that cut themselves")
    add_choice(parser, "--vertical", "zy", "z", "the axis that points upwards")
    about = "address to bind (default: 127.0.0.1, for this machine alone)"
    parser.add_argument("--host", default="127.0.0.1", help=about)
    about = "port to bind, or the next that is free (default: 8080)"
    parser.add_argument("--port", type=natural, default=8080, help=about)
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    parser.add_argument("--device", help="cpu, cuda:0, … (default: the first GPU, else cpu)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the page until it is closed."""
    scene, messages = load_scene_of_files(args.files, args.device)
    for message in messages:
        tell(f"abut: {message}")
    about = {name: getattr(args, name) for name in ("method", "host", "port", "vertical")}
    own = True if args.self else None
    try:
        show(scene, self_collisions=own, open_page=not args.no_open, messages=messages, **about)
    except KeyboardInterrupt:
        pass
    return 0


def load_scene_of_files(files: Sequence[str], device: str | None) -> tuple[Scene, list[str]]:
    """One scene of all files, and an error for each file that cannot be read."""
    scenes, messages = [], []
    for file in files:
        try:
            with working(f"reading {file}"):
                scenes.append((file, Scene.load(file, device)))
        except AbutError as error:
            messages.append(one_line(error))
    if len(scenes) == 1:
        return scenes[0][1], messages
    together = Scene(resolve_device(device))
    for file, scene in scenes:
        names, poses = scene.names, scene.poses.numpy()
        for name, row in names.items():
            alone = len(names) == 1
            wanted = Path(file).stem if alone else f"{Path(file).stem}/{name}"
            together.add(scene.mesh(row), poses[row], _free_name(wanted, together))
    return together, messages


def _free_name(name: str, scene: Scene) -> str:
    """The name, or the name with the first number that is free."""
    taken, number, free = scene.names, 2, name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
