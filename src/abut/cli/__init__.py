"""The ``abut`` command line; every command is a file of this folder."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from abut.cli.console import quiet_warp, tell, version_of
from abut.errors import AbutError

COMMANDS = {  # name and help
    "collide": "find the intersecting face pairs of two meshes",
    "self": "find the self-intersections of a mesh",
    "ccd": "find the first self-contact of a moving mesh",
    "distance": "compute the distance between two meshes",
    "within": "find the face pairs within a distance",
    "scene": "find the colliding objects of a scene or robot file",
    "cull": "find the potentially colliding set of a scene",
    "field": "build or query a distance field",
    "hardware": "simulate or synthesise the k-DOP machine",
    "demo": "collide, move and draw meshes that abut makes",
    "info": "print versions, devices and folders",
    "bench": "run a benchmark (in a checkout of abut)",
}
FILES = {"self": "self_collide"}
ERROR, INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = _parser(next((word for word in words if not word.startswith("-")), ""))
    args = parser.parse_args(words)
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    try:
        quiet_warp()
        return args.run(args)
    except KeyboardInterrupt:
        tell("abut: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed our output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except AbutError as error:
        tell(f"abut: {error}")
        return ERROR
    except Exception as error:
        if os.environ.get("ABUT_TRACEBACK"):
            raise
        why = " ".join(str(error).split())
        tell(f"abut: {type(error).__name__}: {why} (ABUT_TRACEBACK=1 shows where)")
        return ERROR


class _Parser(argparse.ArgumentParser):
    """Prints errors on one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(ERROR, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser(asked: str) -> argparse.ArgumentParser:
    """Make the parser. Only the chosen command is imported and declares its arguments."""
    parser = _Parser(prog="abut", description="Exact proximity queries between triangle meshes.")
    parser.add_argument("--version", action="version", version=f"abut {version_of('abut')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, about in COMMANDS.items():
        if name == asked:
            import_module(f"abut.cli.{FILES.get(name, name)}").add_command(commands)
        else:
            commands.add_parser(name, help=about)
    return parser
