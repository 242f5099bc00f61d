"""Tables of the README and of docs/benchmarks.md, made from the results.

``python -m benchmarks.readme`` rewrites both. The fastest on each machine is bold.
"""

import csv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
CPU, GPU = "amd-epyc-2c", "nvidia-h200"
HEAD = """\
| job | abut, CPU | others, CPU | abut, H200 | others, H200 |
| --- | ---: | --- | ---: | --- |
"""
EVERYDAY_HEAD = """\
| question | abut, CPU | others, CPU | abut, H200 | others, H200 |
| --- | ---: | --- | ---: | --- |
"""
EVERYDAY = """
one_first one_pairs one_within one_distance one_point first_distances poses_first poses_pairs
poses_distance self_refit million_points
""".split()  # jobs, in the order of the table
PEERS = {  # by how the names of their configurations begin
    "meshlib": "MeshLib",
    "fcl": "FCL",
    "coal": "Coal",
    "pin+fcl": "FCL",
    "pin+coal": "Coal",
    "igl_cgal": "CGAL",
    "ipctk": "IPC Toolkit",
    "libigl": "libigl",
    "warp_mesh": "wp.Mesh",
    "warp_bvh": "Warp baseline",
    "warp": "Warp",
    "trimesh": "trimesh",
    "newton": "Newton",
    "manifold3d": "manifold3d",
    "ifcclash": "IfcClash",
    "anchor": "anchor",
}
BASELINE = "warp_bvh"  # a yardstick on the CPU, where it uses one core
ON_DEVICE = ("device_poses", "kernel")  # how configurations end whose poses are on the GPU
KERNEL_ONLY = "anchor_nearest_kernel"
MOST_PEERS = 4


JOBS = """
everyday one_first cows_apart: two cows, 5,804 faces each: do they meet? boxes apart
everyday one_first cows_contact: the same, in contact
everyday one_pairs cows_apart: the same: all pairs, boxes apart
everyday one_pairs cows_contact: the same, in contact: all {size} pairs
everyday one_distance cows_near: how far apart the cows are
everyday one_point cow: how far a cow is from one point
everyday first_distances dragon_armadillo: a new dragon and armadillo: the first 20 distances, each
everyday poses_first cows_10000: 10,000 poses of two cows: which collide
everyday poses_first cows_10000 device_poses: the same, poses on the GPU already
everyday poses_first cows_100000: 100,000 poses of two cows: which collide
everyday poses_first links_10000: 10,000 poses of two robot links, 3,000 faces each: which collide
everyday poses_first dragon_armadillo_10000: 10,000 poses of dragon and armadillo: which collide
everyday poses_pairs cows_10000: 10,000 poses of two cows: all {size} pairs
everyday poses_distance dragon_armadillo_10000: 10,000 poses of the same: how far apart
everyday self_refit cloth_ball: a cloth of 92,230 faces moves: refit and all self-contacts
everyday self_refit dancer: a dancer of 25,472 faces moves: the same
everyday million_points unsigned: how far an open robot link, 5,374 faces, is from a million points
everyday million_points signed: the same, with signs
collide bunny_bunny_all x30: two bunnies, 69,451 faces each: all {size} pairs
overlap cows relation: 10,000 poses of two solid cows: how they relate (FCL: yes or no)
overlap bunnies inside_1e-6: two bunnies, closed, that overlap: how deep, certified to 1e-6
overlap bunnies separation: the same: a translation that parts them, verified
overlap bunnies volume: the same: volume, centroid and areas of the common part
clash pcert hard: a building of 38 parts in four IFC files: which clash by more than 1 mm, how deep
clash pcert meet: the same, all {size} pairs of parts that share a point
ccd cloth_ball step: the cloth's next step: when the first contact is
ccd cloth_ball impacts: the same: all {size} impacts
closest_point closest_point_armadillo_86k box: nearest points of 86,482 faces for a million points
scene boxes_10k all_contacts: 10,000 boxes move: all {size} contacts
scene panda_4096 58_parts: 4,096 copies of a robot of 58 parts: which touch a bunny
robot robot_one mbm: is a Panda free among MotionBenchMaker's obstacles, one configuration at a time
robot robot_batch mbm: the same, each of 10,000 at once
robot robot_batch shelf: the same in a shelf of 72,000 faces
robot_motions robot_motions shelf: a motion of 0.3 rad there, certified (others: at steps of 1°)
robot_plan robot_plan mbm: RRT-Connect solves {size} problems, certified (Coal: at steps); CPU time
field field_bunny_69k full256: signed distance field of a bunny, {size} samples
collide lbvh_build_1m build: hierarchy of a million faces
"""  # file, job, variant, where the poses are: words, in which {size} is the size of the answer


def table() -> str:
    """Return the README's table as Markdown."""
    return HEAD + "".join(_line(*job.split(": ", 1)) for job in JOBS.strip().splitlines())


def everyday_table() -> str:
    """Return all questions of ``bench_everyday`` as Markdown."""
    rows = _rows(RESULTS / CPU / "everyday.csv") + _rows(RESULTS / GPU / "everyday.csv")
    lines = {}
    for row in rows:
        if row["ms_min"] and not row["variant"].endswith("/first_call"):
            name = f"everyday {row['job']} {row['variant']}"
            words = f"{row['job']} {row['variant']}"
            lines[name] = words
            if row["library"].endswith("device_poses"):
                lines[f"{name} device_poses"] = f"{words}, poses on the GPU"
    names = sorted(lines, key=lambda name: (EVERYDAY.index(name.split()[1]), _plain(name)))
    return EVERYDAY_HEAD + "".join(_line(name, lines[name]) for name in names)


def _plain(name: str) -> list[str | int]:
    """A sorting key in which 100 comes before 10000."""
    return [part.zfill(8) if part.isdigit() else part for part in name.replace("_", " ").split()]


def _line(job: str, words: str) -> str:
    *where, on_device = (*job.split(), "") if len(job.split()) == 3 else job.split()
    here, there = (_measured(machine, where) for machine in (CPU, GPU))
    size = (here or there).get("abut", {}).get("answer_size") or 0
    cells = [words.format(size=f"{int(float(size)):,}")]
    cells += ["", ""] if on_device else _cells(here, "abut", on_gpu=False)
    cells += _cells(there, "abut_device_poses" if on_device else "abut", on_gpu=True)
    return "| " + " | ".join(cells) + " |\n" if any(cells[1:]) else ""


def _cells(rows: dict[str, dict[str, str]], ours: str, *, on_gpu: bool) -> list[str]:
    """Return abut's time and the best of the others', the fastest in bold."""
    mine = [float(row["ms_min"]) for row in [rows.get(ours)] if row and row["ms_min"]]
    peers: dict[str, float] = {}
    for library, row in rows.items():
        name = next((PEERS[p] for p in PEERS if library.startswith(p)), None)
        if name is None or not row["ms_min"] or (library == BASELINE and not on_gpu):
            continue
        if library.endswith(ON_DEVICE) != ours.endswith(ON_DEVICE) and library != KERNEL_ONLY:
            continue
        peers[name] = min(float(row["ms_min"]), peers.get(name, float("inf")))
    best = sorted(peers, key=peers.__getitem__)[:MOST_PEERS]
    least = min([*mine, *peers.values()]) if peers else None  # alone, nobody is the fastest
    shown = [f"{name} {_shown(peers[name], peers[name] == least)}" for name in best]
    return [_shown(mine[0], mine[0] == least) if mine else _refused(rows), ", ".join(shown)]


def _refused(rows: dict[str, dict[str, str]]) -> str:
    return "refused" if rows.get("abut", {}).get("agrees") == "refused" else ""


def _measured(machine: str, where: list[str]) -> dict[str, dict[str, str]]:
    """Return the rows of a job by library."""
    file, *which = where
    rows = _rows(RESULTS / machine / f"{file}.csv")
    return {row["library"]: row for row in rows if [row["job"], row["variant"]] == which}


@cache
def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _shown(value: float, bold: bool = False) -> str:
    """Format with two significant digits, or as a whole number from 10 on."""
    text = f"{value:,.0f}" if value >= 10 else f"{value:#.2g}"
    return f"**{text}**" if bold else text


def rewritten(page: str, made: str) -> str:
    """Return a page with a table replaced by one with the same head."""
    head = "".join(made.splitlines(keepends=True)[:2])
    before, rest = page.split(head)
    lines = rest.splitlines(keepends=True)
    length = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return before + made + "".join(lines[length:])


if __name__ == "__main__":
    for path, made in (("README.md", table()), ("docs/benchmarks.md", everyday_table())):
        page = ROOT / path
        page.write_text(rewritten(page.read_text(), made))
