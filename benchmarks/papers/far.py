"""Blocks of docs/papers/far.md."""

from benchmarks.cull_scenes import FRAMES_A_FRAME
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
from benchmarks.papers.frames import (
    END_TO_END,
    column,
    curve,
    frames_of,
    mean,
    plotted,
)

SCENES = {
    "bunnies": "two bunnies, 1400²",
    "breaking": "breaking dragon, 1400²",
    "leaves": "leaves, 1400²",
    "leaves_512": "leaves, 512²",
    "cloth": "cloth, within, 4096²",
}
FRAME_SCENES = {
    "breaking": "breaking dragon, 147K faces",
    "breaking_237k": "breaking dragon, 237K faces",
    "fracture": "simulated fracture, 53K faces",
    "leaves": "leaves, 40K faces",
    "cloth": "cloth, within, 20K faces",
    "cloth_table": "cloth and table, within and between",
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


def figure6() -> str:
    """Figure 6: pairs of objects by frame."""
    curves = {
        "boxes": curve("breaking", "far", "object_boxes"),
        "FAR, drawn": curve("breaking", "far_drawn", "object_pairs"),
        "FAR": curve("breaking", "far", "object_pairs"),
        "intersecting": curve("breaking", "far", "object_pairs_that_meet"),
    }
    made = plotted("far_figure6", "Pairs of objects of the breaking dragon", "pairs", curves)
    boxes, left = (
        sum(column("breaking", "far", name)) for name in ("object_boxes", "object_pairs")
    )
    return made + (
        f"\nOver {len(frames_of('breaking'))} frames boxes overlap in {shown(boxes)} pairs and FAR "
        f"leaves {shown(left)}: {boxes / left:.1f} times fewer.\n"
    )


def fracture() -> str:
    """The simulated fracture, frame by frame."""
    ways = ("cullide", "quick_cullide", "far")
    head = ["frame", "boxes", *(NAMES[way] for way in ways), "intersecting", "FAR : intersecting"]
    lines = []
    for number, at in enumerate(frames_of("fracture")):
        one = at["far"]
        cells = [f"{shown(at[w]['object_pairs'])} ({shown(at[w]['lost_pairs'])})" for w in ways]
        left, meet = int(one["object_pairs"]), int(one["object_pairs_that_meet"])
        simulated = str(FRAMES_A_FRAME * (number + 1))
        counts = [shown(one["object_boxes"]), *cells, shown(meet), f"{left / meet:.2f}"]
        lines.append([simulated, *counts])
    return table(head, lines)


def repeated() -> str:
    """The breaking dragon with every view once and twice."""
    once = ("cullide", "quick_cullide", "far_drawn")
    pairs = shown(sum(column("breaking", "far", "pairs_that_meet")))
    head = ["", "faces left", f"lost pairs, of {pairs}", "processor ms"]
    lines = []
    for way in (name for each in once for name in (each, f"{each}_twice")):
        lost = shown(sum(column("breaking", way, "lost_pairs")))
        left, spent = (shown(mean("breaking", way, name)) for name in ("faces_left", "cpu_ms"))
        lines.append([NAMES[way], left, lost, spent])
    return table(head, lines)


def pairs() -> str:
    """Pairs of objects of the simulated fracture that boxes and views leave."""
    head = ["frame", "pixels", "boxes", "survivors' boxes", "in all views", "intersecting"]
    lines = []
    for row in rows_of("cull_pairs"):
        left, meet = int(row["in_all_views"]), int(row["intersecting"])
        counts = [row["boxes"], row["boxes_of_survivors"], left, meet]
        lost = shown(row["lost_pairs"])
        lines.append([row["frame"], row["pixels"], *map(shown, counts), f"{left / meet:.2f}", lost])
    return table([*head, "ratio", "lost pairs of faces"], lines)


def end_to_end() -> str:
    """Contacts of a frame, culled or by hierarchies."""
    head = ["scene", "frames", "pairs of faces", *END_TO_END.values()]
    lines = []
    for scene, words in FRAME_SCENES.items():
        frames = frames_of(scene)
        met = mean(scene, "bvh_built", "pairs_that_meet")
        ways = [column(scene, way, "cpu_ms") for way in END_TO_END]
        cells = [shown(sum(ms) / len(ms)) if ms else "" for ms in ways]
        lines.append([words, str(len(frames)), shown(met), *cells])
    slower = [_slower("collide_far_built", "bvh_built"), _slower("collide_far", "bvh_refitted")]
    return table(head, lines) + (
        f"\nFAR takes {slower[0]} times as long as hierarchies where meshes are new, and "
        f"{slower[1]} times where they are kept.\n"
    )


def _slower(way: str, than: str) -> str:
    """Return the least and the greatest ratio of mean times over the scenes that have both."""
    ratios = [
        mean(scene, way, "cpu_ms") / mean(scene, than, "cpu_ms")
        for scene in FRAME_SCENES
        if column(scene, way, "cpu_ms") and column(scene, than, "cpu_ms")
    ]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def times() -> str:
    """Milliseconds of every scene and method on both machines."""
    ways = [way for way in NAMES if way != "quick_far" and not way.endswith("_twice")]
    lines = []
    for machine, name in MACHINES.items():
        for scene, words in SCENES.items():
            found = times_of(scene, machine)
            cells = [shown(found[way], 2) if way in found else "" for way in ways]
            lines.append([f"{name}, {words}", *cells])
    return table(["", *(NAMES[way] for way in ways)], lines)
