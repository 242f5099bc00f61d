"""The ``abut`` command; each of its commands is a file of this folder."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from abut.cli import (
    bench,
    ccd,
    collide,
    cull,
    demo,
    distance,
    field,
    hardware,
    info,
    scene,
    self_collide,
    within,
)
from abut.cli.console import quiet_warp, tell, version_of
from abut.errors import AbutError

COMMANDS = (
    collide,
    self_collide,
    ccd,
    distance,
    within,
    scene,
    cull,
    field,
    hardware,
    demo,
    info,
    bench,
)
ERROR, INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    try:
        quiet_warp()
        return args.run(args)
    except KeyboardInterrupt:
        tell("abut: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has enough
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
    """Errors on one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(ERROR, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:

    parser = _Parser(prog="abut", description="Exact proximity queries between triangle meshes.")
    parser.add_argument("--version", action="version", version=f"abut {version_of('abut')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
