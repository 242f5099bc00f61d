"""Damaged files: no crash, no hang, no raw error, no mesh that is silently smaller.

Every mutant has a seed; ``reread(format, seed)`` makes it again. Files are read in processes of
their own, so that a crash or a hang is an answer, too.
"""

import multiprocessing
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from mutants import FACES, formats, mutate, write_beside

import abut

pytest.importorskip("collada", reason="DAE files need pycollada")

NAMES = list(formats())
LONGEST = 60.0  # seconds for one file
LONGEST_START = 300.0  # of a process
MEMORY = 6 << 30
# Their faces, frames or poses are counted nowhere: fewer lines are another good file.
UNCOUNTED = ("obj", "mjcf", "poses_text")


def reread(name, seed, folder):
    """Read a mutant; returns what is wrong, or None."""
    form = formats_here()[name]
    content = mutate(form.content, form.is_text, np.random.default_rng([seed, *name.encode()]))
    path = Path(folder, f"mutant.{form.suffix}")
    path.write_bytes(content)
    write_beside(Path(folder))
    try:
        count = form.read(path)
    except abut.AbutError as error:
        text = str(error)
        if path.name not in text or "\n" in text:
            return f"a message that does not name the file on one line: {text!r}"
        return None
    except Exception as error:
        return f"a raw {type(error).__name__}: {error}"
    declared = declared_count(name, content)
    if name not in UNCOUNTED and count < declared:
        return f"{count} of {declared} were read, silently"
    return None


def declared_count(name, content):
    """Return the number of faces that the mutant declares, else that of the good file."""
    header = {
        "ply": rb"element face (\d+)\s",
        "ply_ascii": rb"element face (\d+)\s",
        "off": rb"OFF\s+\d+ (\d+)",
    }
    if name in header:
        found = re.search(header[name], content)
        return int(found[1]) if found else 0
    if name == "stl":
        return int.from_bytes(content[80:84], "little")
    if name == "stl_ascii":
        return len(re.findall(rb"(?m)^facet normal", content))
    return GOOD[name] if name in ("glb", "3mf", "zip", "tar", "frames", "field") else 0


GOOD = {"glb": FACES + 12, "3mf": FACES + 12, "zip": 2 * FACES, "tar": 2 * FACES, "frames": 2}
GOOD["field"] = 1
_formats = {}


def formats_here():
    if not _formats:
        _formats.update(formats())
    return _formats


def _work(names_and_seeds, found):
    """Read mutants in a process of its own; report each before and after."""
    import resource
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, seed in names_and_seeds:
            found.send(("begin", name, seed))
            found.send(("end", name, seed, reread(name, seed, folder)))
    found.send(("all",))


def faults_of(cases):
    """Read mutants; returns what is wrong with each that is not read rightly."""
    context = multiprocessing.get_context("spawn")
    faults, cases = [], list(cases)
    while cases:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(cases, theirs))
        worker.start()
        theirs.close()
        at = None
        while True:
            try:
                heard = ours.recv() if ours.poll(LONGEST if at else LONGEST_START) else ("hang",)
            except EOFError:
                heard = ("crash",)
            if heard[0] == "begin":
                at = heard[1:]
            elif heard[0] == "end":
                cases.remove(heard[1:3])
                if heard[3]:
                    faults.append(heard[1:])
            else:
                break
        if heard[0] != "all":
            assert at is not None, "the worker did not start"
            faults.append((*at, f"a {heard[0]}"))
            cases.remove(at)
            worker.kill()
        worker.join()
        ours.close()
    return faults


@pytest.mark.parametrize("name", NAMES)
def test_good_files_are_read(name, tmp_path):
    form = formats_here()[name]
    write_beside(tmp_path)
    path = tmp_path / f"good.{form.suffix}"
    path.write_bytes(form.content)
    assert form.read(path) >= max(GOOD.get(name, 1), declared_count(name, form.content))


def test_some_damaged_files(tmp_path):
    """A few mutants of every format, in this process."""
    faults = [(n, s, reread(n, s, tmp_path)) for n in NAMES for s in range(1_000_000, 1_000_004)]
    assert [fault for fault in faults if fault[2]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files(name):
    """400 mutants of each of 19 formats: 7,600 files."""
    assert faults_of((name, seed) for seed in range(400)) == []
