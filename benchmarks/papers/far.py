"""Blocks of docs/papers/far.md."""

from benchmarks.papers.culling import (
    MACHINES,
    NAMES,
    counts_of,
    rows_of,
    scene_table,
    shown,
    table,
    times_of,
)

SCENES = {
    "bunnies": "two bunnies, 1400²",
    "breaking": "breaking dragon, 1400²",
    "leaves": "leaves, 1400²",
    "leaves_512": "leaves, 512²",
    "cloth": "cloth, within, 4096²",
}


def bunnies() -> str:
    """Two deeply penetrating bunnies, §5.1 and figure 7."""
    return scene_table("bunnies", "faces_left", "pairs_left", meet=("faces_that_meet", ""))


def breaking() -> str:
    """The choreographed dragon, figures 5 and 6."""
    meet = "faces_that_meet", "object_pairs_that_meet"
    made = scene_table("breaking", "faces_left", "object_pairs", meet=meet)
    row = counts_of("breaking")["far"]
    boxes = float(row["object_pairs_of_boxes"])
    fewer, truth = (boxes / float(row[x]) for x in ("object_pairs", "object_pairs_that_meet"))
    return made + (
        f"\nBoxes of objects overlap in {boxes:.1f} pairs: FAR leaves {fewer:.1f} times fewer, "
        f"{truth:.1f} times fewer intersect. The paper reports 6.9 for its scene.\n"
    )


def leaves() -> str:
    """Leaves that fall from a tree, figure 1."""
    meet = "faces_that_meet", "object_pairs_that_meet"
    return scene_table("leaves", "faces_left", "object_pairs", meet=meet)


def fracture() -> str:
    """The simulated fracture, frame by frame."""
    rows = [row for row in rows_of("cull_frames") if row["scene"] == "fracture"]
    if not rows:
        return "*No rows of this scene yet: run `python -m benchmarks.bench_cull_frames`.*\n"
    ways = [way for way in NAMES if any(row["way"] == way for row in rows)]
    head = ["frame", "boxes", *(NAMES[way] for way in ways), "intersecting"]
    lines = []
    for number in dict.fromkeys(row["frame"] for row in rows):
        at = {row["way"]: row for row in rows if row["frame"] == number}
        one = next(iter(at.values()))
        cells = [
            f"{shown(at[w]['object_pairs'])} ({shown(at[w]['lost_pairs'])})" if w in at else ""
            for w in ways
        ]
        lines.append(
            [number, shown(one["object_boxes"]), *cells, shown(one["object_pairs_that_meet"])]
        )
    return table(head, lines)


def times() -> str:
    """Milliseconds of every scene and method on both machines."""
    ways = [way for way in NAMES if way != "quick_far"]
    lines = []
    for machine, name in MACHINES.items():
        for scene, words in SCENES.items():
            found = times_of(scene, machine)
            cells = [shown(found[way], 2) if way in found else "" for way in ways]
            lines.append([f"{name}, {words}", *cells])
    return table(["", *(NAMES[way] for way in ways)], lines)
