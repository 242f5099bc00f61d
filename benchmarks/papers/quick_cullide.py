"""Blocks of docs/papers/quick_cullide.md."""

from benchmarks.papers.culling import MACHINES, counts_of, scene_table, shown, table, times_of

SCENES = {  # pixels; sizes and times of the paper: Quick-CULLIDE, CULLIDE
    "cloth": ("cloth", "4096²", (210, 1340), (21, 30)),
    "breaking": ("breaking objects", "1400²", (1400, 3600), (25, 35)),
    "leaves": ("non-rigid motion", "1400²", (450, 1200), (25, 31)),
}
PAIRED = ("quick_cullide", "cullide")


def table1() -> str:
    """Sizes of the potentially colliding sets, and the pairs lost."""
    head = ["", "pixels", "Quick-CULLIDE", "CULLIDE", "ratio", "intersecting faces"]
    head += ["lost by Quick-CULLIDE", "lost by CULLIDE", "of pairs", "the paper"]
    lines = []
    for scene, (words, pixels, (quick, plain), _) in SCENES.items():
        counts = counts_of(scene)
        sizes = [float(counts[way]["faces_left"]) for way in PAIRED]
        lines.append(
            [
                words,
                pixels,
                *map(shown, sizes),
                f"{sizes[1] / sizes[0]:.1f}",
                shown(counts["cullide"]["faces_that_meet"]),
                *(shown(counts[way]["lost_pairs"]) for way in PAIRED),
                shown(counts["cullide"]["exact_pairs"]),
                f"{quick:,} : {plain:,} = {plain / quick:.1f}",
            ]
        )
    return table(head, lines)


def table2() -> str:
    """Times of both methods, with the column in which Quick-CULLIDE loses."""
    head = ["", "Quick-CULLIDE ms", "CULLIDE ms", "speed-up", "the paper"]
    lines = []
    for scene, (words, pixels, _, (quick, plain)) in SCENES.items():
        paper = f"{quick} : {plain} = {plain / quick:.2f}"
        for machine, name in MACHINES.items():
            times = times_of(scene, machine)
            for suffix, where in (("", name), ("_gl", f"{name}, gl")):
                both = [times.get(way + suffix) for way in PAIRED]
                if both[0] is not None and both[1] is not None:
                    cells = [shown(both[0], 2), shown(both[1], 2), f"{both[1] / both[0]:.2f}"]
                    lines.append([f"{words}, {pixels}, {where}", *cells, paper])
    return table(head, lines)


def cloth() -> str:
    """Self-collision of the draped cloth, figure 4."""
    return scene_table("cloth", "faces_left", "pairs_left", meet=("faces_that_meet", ""))
