"""Tables and plots of docs/growth.md, made from ``growth.csv`` of every machine.

``python -m benchmarks.growth_page`` rewrites them. Plots need matplotlib.
"""

import csv
from collections import defaultdict
from pathlib import Path

from benchmarks.readme import CPU, GPU, PEERS, RESULTS, ROOT, rewritten

PAGE, IMAGES = ROOT / "docs" / "growth.md", ROOT / "docs" / "images"
MACHINES = {CPU: "CPU", GPU: "H200"}
AXES = {
    "faces": "faces of each mesh",
    "objects": "objects",
    "poses": "poses",
    "contacts": "pairs of faces that meet",
    "pixels": "pixels along a side",
    "threads": "threads",
}
HEAD = """\
| growing | verb | from | to | first ms | last ms | exponent |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
"""
COLOURS = ("#c8553d", "#2a7f7f", "#8a6d3b", "#5b5ea6", "#3c8d5a", "#b0508f", "#555555", "#d09a2c")
DASHES = {"abut": "-", "meshlib": "--", "coal": ":", "fcl": "-."}
Curves = dict[tuple[str, str], list[tuple[float, float]]]  # by library and verb


def curves_of(machine: str, sweep: str) -> tuple[Curves, dict[tuple[str, str], float]]:
    """Return (size, ms) of each library and verb, and their exponents."""
    curves: Curves = defaultdict(list)
    exponents = {}
    path = RESULTS / machine / "growth.csv"
    lines = list(csv.DictReader(path.open(newline=""))) if path.is_file() else []
    for row in lines:
        verb, _, size = row["variant"].rpartition("_")
        if row["job"] != f"growth_{sweep}":
            continue
        if size == "exponent":
            exponents[row["library"], verb] = float(row["answer_size"])
        else:
            curves[row["library"], verb].append((float(size), float(row["ms_min"])))
    return curves, exponents


def table() -> str:
    """Return the exponents of abut's verbs and of its peers as Markdown."""
    lines = [HEAD]
    for machine, where in MACHINES.items():
        for sweep, axis in AXES.items():
            curves, exponents = curves_of(machine, sweep)
            for (library, verb), points in sorted(curves.items()):
                (least, first), (most, last) = min(points), max(points)
                name = verb.replace("_", " ") if library == "abut" else PEERS[library]
                name += "" if library == "abut" else f": {verb.replace('_', ' ')}"
                cells = [f"{axis}, {where}", name, f"{least:,.0f}", f"{most:,.0f}"]
                cells += [f"{first:.3g}", f"{last:,.3g}", f"{exponents[library, verb]:.2f}"]
                lines.append("| " + " | ".join(cells) + " |\n")
    return "".join(lines)


def draw(sweep: str) -> Path | None:
    """Draw the curves of a sweep on both machines, side by side; None without results."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "abut", "svg.fonttype": "none", "font.size": 9})
    found = {where: curves_of(machine, sweep)[0] for machine, where in MACHINES.items()}
    found = {where: curves for where, curves in found.items() if curves}
    if not found:
        return None
    figure, axes = plt.subplots(1, len(found), figsize=(6.4 * len(found), 4.2), squeeze=False)
    for axis, (where, curves) in zip(axes[0], found.items(), strict=True):
        verbs = sorted({verb for _, verb in curves})
        for (library, verb), points in sorted(curves.items()):
            label = verb.replace("_", " ") if library == "abut" else f"{PEERS[library]} {verb}"
            colour = COLOURS[verbs.index(verb) % len(COLOURS)]
            width = 1.8 if library == "abut" else 1.0
            style = {"color": colour, "linestyle": DASHES[library], "linewidth": width}
            axis.loglog(*zip(*sorted(points), strict=True), label=label, **style)
        axis.set(xlabel=AXES[sweep], ylabel="ms", title=where)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    path = IMAGES / f"growth_{sweep}.svg"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return path


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(), table()))
    for name in AXES:
        print(draw(name) or f"no results of {name}")
