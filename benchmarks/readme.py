"""The README's table, generated from the results: ``python -m benchmarks.readme`` rewrites it."""

import csv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
CPU, GPU = "amd-epyc-2c", "nvidia-h200"
HEAD = """\
| job | abut, CPU | peers, CPU | abut, H200 |
| --- | ---: | --- | ---: |
"""
PEERS = {  # by how the names of their configurations begin
    "meshlib": "MeshLib",
    "fcl": "FCL",
    "coal": "Coal",
    "igl_cgal": "CGAL",
    "ipctk": "IPC Toolkit",
    "libigl": "libigl",
    "warp": "Warp",
    "trimesh": "trimesh",
}
BASELINE = "warp_bvh"  # a yardstick, not a peer
MOST_PEERS = 4


JOBS = """
collide bunny_bunny_all x30: two bunnies, 69,451 faces each: all {size} pairs
collide bunny_bunny_first x30: the same bunnies, only whether they meet
collide cloth_ball_self refit: a cloth of 92,230 faces moves: refit and all self-contacts
front rumba_self bvh: a dancer of 25,472 faces moves: the same, frame by frame
collide cow_cow_10k_poses random: 10,000 poses of two cows, 5,804 faces each: which collide
ccd cloth_ball step: the cloth's next step: when the first contact is
ccd cloth_ball impacts: the same: all {size} impacts
distance bunny_bunny_distance far: how far apart two bunnies are
distance dragon_armadillo_10k_poses random: 10,000 poses of a dragon and an armadillo: how far apart
closest_point closest_point_armadillo_86k box: nearest points of 86,482 faces for a million points
scene boxes_10k all_contacts: 10,000 boxes move: all {size} contacts
scene panda_4096 58_parts: 4,096 copies of a robot of 58 parts: which touch a bunny
field field_bunny_69k full256: signed distance field of a bunny, {size} samples
collide lbvh_build_1m build: hierarchy of a million faces
"""  # file, job, variant: words, in which {size} is the size of the answer


def table() -> str:
    """Return the table as Markdown."""
    return HEAD + "".join(_line(*job.split(": ", 1)) for job in JOBS.strip().splitlines())


def _line(job: str, words: str) -> str:
    here = _measured(CPU, job)
    peers = {}
    for library, row in here.items():
        name = next((PEERS[p] for p in PEERS if library.startswith(p)), None)
        if name is not None and library != BASELINE:
            peers[name] = min(float(row["ms_min"]), peers.get(name, float("inf")))
    best = sorted(peers, key=peers.__getitem__)[:MOST_PEERS]
    words = words.format(size=f"{int(float(here['abut']['answer_size'] or 0)):,}")
    times = [_shown(where.get("abut", {}).get("ms_min")) for where in (here, _measured(GPU, job))]
    beside = ", ".join(f"{name} {_shown(peers[name])}" for name in best)
    return f"| {words} | {times[0]} | {beside} | {times[1]} |\n"


def _measured(machine: str, job: str) -> dict[str, dict[str, str]]:
    """Return the rows of a job by library."""
    file, *which = job.split()
    rows = _rows(RESULTS / machine / f"{file}.csv")
    return {row["library"]: row for row in rows if [row["job"], row["variant"]] == which}


@cache
def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _shown(milliseconds: str | float | None) -> str:
    """Format with two significant digits, or as a whole number from 10 on."""
    if milliseconds is None:
        return ""
    value = float(milliseconds)
    return f"{value:,.0f}" if value >= 10 else f"{value:#.2g}"


def rewritten(page: str) -> str:
    """Return a page with its table replaced."""
    before, rest = page.split(HEAD)
    lines = rest.splitlines(keepends=True)
    length = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return before + table() + "".join(lines[length:])


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(rewritten(readme.read_text()))
