"""The process of ``reader_process``: reads one file and sends a model or an error."""

import json
import os
import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from abut.errors import AbutError
from abut.io.file_errors import reading


def main() -> None:
    """Read the file that the arguments name, and send the answer to standard output."""
    call = json.loads(sys.argv[1])
    with os.fdopen(os.dup(1), "wb") as out:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # what libraries print
        path = Path(call["path"])
        module, function = call["reader"].split(":")
        try:
            with reading(path, "a model"):
                read = getattr(import_module(module), function)
                model = read(path, lambda found: _send(out, "damaged", found), **call["options"])
            _send(out, "model", model)
        except AbutError as error:
            _send(out, "error", type(error).__name__, str(error))
    os._exit(0)  # native libraries may crash when they are taken down


def _send(out: BinaryIO, *frame: Any) -> None:
    content = pickle.dumps(frame, protocol=pickle.HIGHEST_PROTOCOL)
    out.write(len(content).to_bytes(8, "little") + content)
    out.flush()


if __name__ == "__main__":
    main()
