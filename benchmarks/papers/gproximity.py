"""Figures 6 to 10 of gProximity beside ours, from ``gproximity.csv`` of each machine."""

import csv
from functools import cache
from typing import Any

from benchmarks.readme import CPU, GPU, RESULTS

SCENES = {"dancer": "25K", "cloth_ball": "92K", "balls": "146K"}
TITLES = {"dancer": "dancer", "cloth_ball": "cloth over ball", "balls": "balls"}
BOUNDS = ("aabb", "obb", "rss")
MACHINES = {CPU: "CPU", GPU: "H200"}
APPROACHES = {
    "catheter": ("tube in a tube", "12K"),
    "letters": ("two tori", "5.5K"),
    "dragon_armadillo": ("dragon, armadillo", "289K"),
}
PRINTED_TREES = {  # faces, build and refit with AABBs and OBBs
    "Flamenco": ("49K", 22, 27, 1.73, 4.6),
    "Princess": ("40K", 20, 24, 1.4, 3.9),
    "Sphere/Cloth": ("92K", 31, 39, 2.5, 7.9),
    "Balls": ("146K", 56, 68, 3.2, 11.5),
}
PRINTED_COLLISIONS = {  # discrete and continuous with AABBs and OBBs
    "Flamenco": (27, 22, 37, 34),
    "Princess": (17, 22, 26, 29),
    "Sphere/Cloth": (28, 36, 42, 38),
    "Balls": (78, 70, 91, 74),
}
PRINTED_DISTANCES = {
    "Catheter": ("12K", 40, 3, 30),
    "Letters": ("5.5K", 25, 2, 25),
    "Car/Seat": ("245K", 55, 7, 164),
}
PRINTED_BALANCING = {  # work balancing and work stealing with AABBs and OBBs
    "Flamenco": (40, 38, 124, 81),
    "Princess": (27, 34, 105, 116),
    "Sphere/Cloth": (47, 43, 208, 124),
    "Balls": (99, 81, 337, 178),
}
ELSEWHERE = {  # job, variant and CSV
    ("dancer", "discrete", "bvh"): ("rumba_self", "bvh", "front"),
    ("dancer", "discrete", "front"): ("rumba_self", "front", "front"),
    ("dancer", "continuous", "bvh"): ("rumba_self_ccd", "bvh", "front"),
    ("dancer", "continuous", "front"): ("rumba_self_ccd", "front", "front"),
    ("cloth_ball", "discrete", "bvh"): ("self_refit", "cloth_ball", "everyday"),
    ("cloth_ball", "continuous", "bvh"): ("cloth_ball", "impacts", "ccd"),
}
SHARES = {  # stages of abut in the paper's terms
    "refitting": ("hierarchy",),
    "traversal": ("search", "candidates", "frames", "balance", "plane-filter"),
    "faces and features": ("filter", "exact", "impacts", "sort"),
}


def trees() -> str:
    """Figure 6: build and refit."""
    head = ["scene", "faces", *(f"build, {b}" for b in BOUNDS), *(f"refit, {b}" for b in BOUNDS)]
    lines = [
        [f"{name}, print", faces, build, obb, "", refit, refit_obb, ""]
        for name, (faces, build, obb, refit, refit_obb) in PRINTED_TREES.items()
    ]
    for machine, label in MACHINES.items():
        for scene, faces in SCENES.items():
            names = [f"{what}_{bound}" for what in ("build", "refit") for bound in BOUNDS]
            cells = [_ms(machine, f"trees_{scene}", name) for name in names]
            lines += [[f"{TITLES[scene]}, {label}", faces, *cells]] if any(cells) else []
    return _table(head, lines)


def collisions() -> str:
    """Figure 7: self-collision of frames and of steps, and Figures 7's front beside the root."""
    head = ["scene", "from"]
    head += [f"{what}, {bound}" for what in ("discrete", "continuous") for bound in BOUNDS[:2]]
    lines = [[f"{n}, print", "front", *numbers] for n, numbers in PRINTED_COLLISIONS.items()]
    for machine, label in MACHINES.items():
        for scene in SCENES:
            for method, start in (("bvh", "root"), ("front", "front")):
                cells = [
                    _ms(machine, f"{what}_{scene}", f"{method}_{bound}")
                    or _elsewhere(machine, scene, what, method, bound)
                    for what in ("discrete", "continuous")
                    for bound in BOUNDS[:2]
                ]
                lines += [[f"{TITLES[scene]}, {label}", start, *cells]] if any(cells) else []
    obb = [_ratios(f"{what}_", "obb", "aabb") for what in ("discrete", "continuous")]
    front = [_ratios(f"{what}_", "front", "bvh") for what in ("discrete", "continuous")]
    fits = _ratios("trees_", "refit_obb", "refit_aabb")
    return f"{_table(head, lines)}\n\n" + (
        f"On the CPU oriented boxes take {obb[0]} times as long as boxes along the axes at frames "
        f"and {obb[1]} times between them; fitting them takes {fits} times a refit. The front "
        f"takes {front[0]} times as long as the root at frames and {front[1]} times between them."
    )


def _ratios(jobs: str, one: str, other: str) -> str:
    """Return the range of a variant's time over another's, in all scenes of the CPU."""
    rows = {key: float(row["ms_min"]) for key, row in _rows(CPU).items() if key[0].startswith(jobs)}
    found = [
        rows[job, variant] / rows[job, variant.replace(one, other)]
        for job, variant in rows
        if one in variant and (job, variant.replace(one, other)) in rows
    ]
    return f"{min(found):.1f} to {max(found):.1f}"


def distances() -> str:
    """Figure 8: distances, hierarchies of swept spheres."""
    head = ["models", "faces", "distance", "of 100 poses, each", "refitting", "construction"]
    lines = [
        [f"{name}, print", faces, one, "", refit, build]
        for name, (faces, one, refit, build) in PRINTED_DISTANCES.items()
    ]
    for machine, label in MACHINES.items():
        for scene, (title, faces) in APPROACHES.items():
            job = f"distance_{scene}"
            batch = _number(machine, job, "batch100_rss")
            cells = [
                _ms(machine, job, "one_rss"),
                "" if batch is None else f"{batch / 100:.2g}",
                _ms(machine, job, "refit_rss"),
                _ms(machine, job, "build_rss"),
            ]
            lines += [[f"{title}, {label}", faces, *cells]] if any(cells) else []
        cells = [_ms(machine, "rss_245k", name, "distance") for name in ("refit_rss", "build_rss")]
        lines.append([f"one mesh, {label}", "246K", "", "", *cells])
    return _table(head, lines)


def bounds_of_distances() -> str:
    """The distances of Figure 8 by each volume."""
    head = ["models", *(f"one, {b}" for b in BOUNDS), *(f"100 poses, {b}" for b in BOUNDS)]
    lines = []
    for machine, label in MACHINES.items():
        for scene, (title, _) in APPROACHES.items():
            names = [f"{what}_{bound}" for what in ("one", "batch100") for bound in BOUNDS]
            cells = [_ms(machine, f"distance_{scene}", name) for name in names]
            lines += [[f"{title}, {label}", *cells]] if any(cells) else []
    return _table(head, lines)


def shares() -> str:
    """Figure 9: shares of the stages of a frame of the dancer, from the root."""
    columns = [(what, bound) for what in ("discrete", "continuous") for bound in ("obb", "aabb")]
    head = ["share of the time", *(f"{what}, {bound}" for what, bound in columns)]
    lines = []
    for machine, label in MACHINES.items():
        rows = {
            v: float(r["ms_min"]) for (j, v), r in _rows(machine).items() if j == "shares_dancer"
        }
        if not rows:
            continue
        for share, stages in SHARES.items():
            cells = []
            for what, bound in columns:
                mine = {k.removeprefix(f"{what}_{bound}_"): ms for k, ms in rows.items()
                        if k.startswith(f"{what}_{bound}_")}  # fmt: skip
                mine["search"] = mine.get("search", 0.0) - mine.get("balance", 0.0)
                part = sum(mine.get(stage, 0.0) for stage in stages)
                cells.append(f"{100 * part / sum(mine.values()):.0f} %")
            lines.append([f"{share}, {label}", *cells])
    return _table(head, lines)


def balancing() -> str:
    """Figure 10: work balancing beside other strategies."""
    ways = [("balanced", b) for b in BOUNDS[:2]] + [("leaf_walk", b) for b in BOUNDS[:2]]
    head = ["scene", "balancing, aabb", "balancing, obb", "other, aabb", "other, obb", "in use"]
    lines = [
        [f"{name}, print: work stealing", *numbers, ""]
        for name, numbers in PRINTED_BALANCING.items()
    ]
    for machine, label in MACHINES.items():
        best = "packets_aabb" if machine == CPU else "clusters_aabb"
        for scene in SCENES:
            job = f"strategies_{scene}"
            cells = [_ms(machine, job, f"{way}_{bound}") for way, bound in ways]
            title = f"{TITLES[scene]}, {label}: leaf walks"
            lines += [[title, *cells, _ms(machine, job, best)]] if any(cells) else []
    return _table(head, lines)


def _elsewhere(machine: str, scene: str, what: str, method: str, bound: str) -> str:
    """The same question by another benchmark, where only that was measured; of boxes alone."""
    source = ELSEWHERE.get((scene, what, method)) if bound == "aabb" else None
    return _ms(machine, *source) if source else ""


@cache
def _rows(machine: str, name: str = "gproximity") -> dict[tuple[str, str], dict[str, Any]]:
    path = RESULTS / machine / f"{name}.csv"
    if not path.is_file():
        return {}
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["library"] == "abut"]
    return {(row["job"], row["variant"]): row for row in rows}


def _number(machine: str, job: str, variant: str, name: str = "gproximity") -> float | None:
    row = _rows(machine, name).get((job, variant))
    return None if row is None else float(row["ms_min"])


def _ms(machine: str, job: str, variant: str, name: str = "gproximity") -> str:
    """Milliseconds, empty where not measured."""
    ms = _number(machine, job, variant, name)
    if ms is None:
        return ""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _table(head: list[str], lines: list[list[Any]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, rule, *lines))
