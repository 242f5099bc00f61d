"""Blocks of docs/papers/quick_cullide.md."""

from benchmarks.papers.culling import MACHINES, NAMES, scene_table, shown, table, times_of
from benchmarks.papers.frames import column, curve, mean, plotted, ways_of

SCENES = {  # pixels; times of the paper: Quick-CULLIDE, CULLIDE
    "cloth": ("cloth", "4096²", (21, 30)),
    "breaking": ("breaking objects", "1400²", (25, 35)),
    "leaves": ("non-rigid motion", "1400²", (25, 31)),
}
FRAME_SCENES = {"cloth": "cloth", "breaking_237k": "breaking", "leaves": "leaves"}
TABLE_1 = {  # of the paper: Quick-CULLIDE, CULLIDE
    "cloth": ("cloth", "210 : 1,340 = 6.4"),
    "cloth_table": ("cloth and its table", ""),
    "breaking_237k": ("breaking objects, 237K faces", "1,400 : 3,600 = 2.6"),
    "leaves": ("non-rigid motion", "450 : 1,200 = 2.7"),
}
PAIRED = ("quick_cullide", "cullide")


def table1() -> str:
    """Sizes of the potentially colliding sets at 4096², and the pairs lost."""
    head = ["", "frames", "Quick-CULLIDE", "CULLIDE", "ratio", "intersecting faces"]
    head += ["lost by Quick-CULLIDE", "lost by CULLIDE", "of pairs", "Quick-CULLIDE, conservative"]
    lines = []
    for scene, (words, paper) in TABLE_1.items():
        quick, plain, safe = (
            mean(scene, way, "faces_left") for way in ("quick_cullide", "cullide", "quick_far")
        )
        met, pairs = (column(scene, "cullide", f"{what}_that_meet") for what in ("faces", "pairs"))
        lost = [shown(sum(column(scene, way, "lost_pairs"))) for way in PAIRED]
        sizes = [shown(quick), shown(plain), f"{plain / quick:.1f}", shown(sum(met) / len(met))]
        lines.append([words, str(len(met)), *sizes, *lost, shown(sum(pairs)), shown(safe), paper])
    return table([*head, "the paper"], lines)


def figure7() -> str:
    """Figure 7: faces left of the cloth, by frame."""
    curves = {NAMES[way]: curve("cloth", way, "faces_left", 1.0) for way in ways_of("cloth")}
    curves["intersecting"] = curve("cloth", "far", "faces_that_meet", 1.0)
    title = "Faces left of the cloth, 4096²; none is drawn as 1"
    return plotted("quick_cullide_figure7", title, "faces", curves, decades=True)


def figure8() -> str:
    """Figure 8: time of the cloth, by frame."""
    curves = {NAMES[way]: curve("cloth", way, "cpu_ms") for way in ways_of("cloth")}
    title = "Processor time of culling the cloth, 4096²"
    return plotted("quick_cullide_figure8", title, "ms", curves)


def cloth_table() -> str:
    """The cloth and its table: a contact in most frames."""
    met = column("cloth_table", "far", "pairs_that_meet")
    some = sum(count > 0 for count in met)
    return f"Faces intersect in {some} of {len(met)} frames.\n\n{_means('cloth_table')}"


def _means(scene: str) -> str:
    """Return means over the frames of a scene, by method."""
    pairs = shown(sum(column(scene, "far", "pairs_that_meet")))
    head = ["", "faces left", "pairs left", f"lost pairs, of {pairs}", "tested", "processor ms"]
    lines = []
    for way in ways_of(scene):
        left = [shown(mean(scene, way, name)) for name in ("faces_left", "pairs_left")]
        lost = shown(sum(column(scene, way, "lost_pairs")))
        spent = [shown(mean(scene, way, name)) for name in ("queries", "cpu_ms")]
        lines.append([NAMES[way], *left, lost, *spent])
    met = [shown(mean(scene, "far", name)) for name in ("faces_that_meet", "pairs_that_meet")]
    return table(head, [*lines, ["*intersecting*", *met, "", "", ""]])


def table2() -> str:
    """Times of both methods, with the column in which Quick-CULLIDE loses."""
    head = ["", "Quick-CULLIDE ms", "CULLIDE ms", "speed-up", "the paper"]
    lines = []
    for scene, (words, pixels, (quick, plain)) in SCENES.items():
        paper = f"{quick} : {plain} = {plain / quick:.2f}"
        for machine, name in MACHINES.items():
            times = times_of(scene, machine)
            for suffix, where in (("", name), ("_gl", f"{name}, gl")):
                both = [times.get(way + suffix) for way in PAIRED]
                if both[0] is not None and both[1] is not None:
                    cells = [shown(both[0], 2), shown(both[1], 2), f"{both[1] / both[0]:.2f}"]
                    lines.append([f"{words}, {pixels}, {where}", *cells, paper])
    for scene, same in FRAME_SCENES.items():
        words, _, (quick, plain) = SCENES[same]
        times = [mean(scene, way, "cpu_ms") for way in PAIRED]
        cells = [shown(times[0], 2), shown(times[1], 2), f"{times[1] / times[0]:.2f}"]
        where = f"{TABLE_1[scene][0]}, 4096², CPU, mean of {len(column(scene, 'far', 'frame'))}"
        lines.append([where, *cells, f"{quick} : {plain} = {plain / quick:.2f}"])
    return table(head, lines)


def cloth() -> str:
    """Self-collision of the draped cloth, figure 4."""
    return scene_table("cloth", "faces_left", "pairs_left", meet=("faces_that_meet", ""))
