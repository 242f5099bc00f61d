"""One answer in a process of its own: ``python -m benchmarks.first_answer MODULE FILE DEVICE``."""

import json
import sys
import time
from importlib import import_module


def main(module_name: str, path: str, device: str) -> None:
    """Import a library, build its trees, answer, and print the result as JSON."""
    start = time.perf_counter()
    library = import_module(module_name)
    import_ms = (time.perf_counter() - start) * 1e3
    import numpy as np

    from benchmarks.cases import Case, Question

    arrays = np.load(path)
    question = Question.PAIRS
    case = Case("start_up", "", question, device, arrays["vertices"], arrays["faces"], arrays["b"])
    prepared = library.prepare(case, library.SUPPORTS[question][0])
    size = len(library.answer(library.run(prepared)))
    print(json.dumps({"import_ms": import_ms, "size": size}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
