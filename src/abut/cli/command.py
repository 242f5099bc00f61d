"""Choose, run and report a command: its answers, its errors and its exit status."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from abut.cli.console import drop_output, one_line, open_streams, quiet_warp, tell, version_of
from abut.core.unknown_options import OTHER_NAMES
from abut.errors import AbutError, OptionError

COMMANDS = {  # name and help
    "collide": "find the intersecting face pairs of two meshes",
    "self": "find the self-intersections of a mesh",
    "ccd": "find the first self-contact of a moving mesh",
    "distance": "compute the distance between two meshes",
    "within": "find the face pairs within a distance",
    "overlap": "measure how deep two solids overlap, and how to part them",
    "clash": "find the clashing parts of building and machine models, and report them",
    "scene": "find the colliding objects of a scene or robot file",
    "robot": "tell whether a robot touches anything, at joint values or on a motion",
    "cull": "find the potentially colliding set of a scene",
    "field": "build or query a distance field",
    "view": "show meshes, contacts and distances on a page in the browser",
    "hardware": "simulate or synthesise the k-DOP machine",
    "demo": "collide, move and draw meshes that abut makes",
    "info": "print versions, devices and folders",
    "bench": "run a benchmark (in a checkout of abut)",
}
FILES = {"self": "self_collide"}
ERROR = 2
UNKNOWN = "unrecognized arguments: "
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    try:
        open_streams()
        status = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader has closed our output
        drop_output()
    except AbutError as error:
        tell(f"abut: {one_line(error)}")
    except OSError as error:
        drop_output()
        output = error.filename is None and error.errno in WRITE_ERRORS
        what = "standard output" if output else error.filename or type(error).__name__
        tell(f"abut: {what}: {error.strerror or one_line(error)}")
    except Exception as error:
        if os.environ.get("ABUT_TRACEBACK"):
            raise
        tell(f"abut: {type(error).__name__}: {one_line(error)} (ABUT_TRACEBACK=1 shows where)")
    return ERROR


def _run(words: list[str]) -> int:
    asked = next((word for word in words if not word.startswith("-")), "")
    if asked and asked not in COMMANDS:
        close = get_close_matches(asked, COMMANDS, 1)
        hint = f"did you mean {close[0]}? See abut --help" if close else "see abut --help"
        raise OptionError(f"there is no command {asked!r}; {hint}")
    parser = make_parser(asked)
    try:
        args = parser.parse_args(words)
    except SystemExit as stop:  # after help or an error
        return stop.code if isinstance(stop.code, int) else ERROR
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    quiet_warp()
    return args.run(args)


class _Parser(argparse.ArgumentParser):
    """Prints errors on one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        see = f"see {self.prog} --help"
        wrong = message.removeprefix(UNKNOWN).split()[0] if message.startswith(UNKNOWN) else ""
        close = self._other_names(wrong) or get_close_matches(wrong, self._option_string_actions, 1)
        hint = f"; did you mean {close[0]}? S{see[1:]}" if close else f"; {see}"
        self.exit(ERROR, f"{self.prog}: {message}{hint}\n")

    def _other_names(self, wrong: str) -> list[str]:
        """Options of this command for the name that other libraries have for one."""
        name = wrong.partition("=")[0].removeprefix("--").replace("-", "_")
        options = [f"--{other.replace('_', '-')}" for other in OTHER_NAMES.get(name, ())]
        return [option for option in options if option in self._option_string_actions]

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Parse words; a subcommand refuses those it does not know, and names itself."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{UNKNOWN}{' '.join(unknown)}")
        return found, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message; argparse would ignore that it cannot."""
        print(message, end="", file=file or sys.stderr)


def make_parser(asked: str) -> argparse.ArgumentParser:
    """Make the parser. Only the chosen command is imported and declares its arguments."""
    parser = _Parser(
        prog="abut",
        description="Exact proximity queries between triangle meshes.",
        epilog="abut demo knot draws a first picture; abut COMMAND --help lists the options of a "
        "command.",
    )
    parser.add_argument("--version", action="version", version=f"abut {version_of('abut')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, about in COMMANDS.items():
        if name == asked:
            import_module(f"abut.cli.{FILES.get(name, name)}").add_command(commands)
        else:
            commands.add_parser(name, help=about)
    return parser
