"""The ``abut`` command line; every command is a file of this folder."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status. An interrupt, also of imports, is one line."""
    try:
        from abut.cli.command import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        print("abut: interrupted", file=sys.stderr or sys.stdout)
        return INTERRUPTED
