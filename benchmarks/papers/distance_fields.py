"""Tables and figures of Morvan, Reimers, Samset 2008 beside those of abut."""

import csv
from collections import defaultdict
from functools import cache

import numpy as np

from benchmarks.readme import CPU, GPU, RESULTS, ROOT

IMAGES = ROOT / "docs" / "images"
SIZES = (512, 1024, 2048)
MODELS = {"cow": "Cow", "bunny": "Bunny", "horse": "Horse", "dragon": "Dragon", "blade": "Blade"}
# Table 2: for each size, without optimizations, with early Z, with the geometry shader.
COLLISION = {
    "cow": ((0.68, 0.57, 0.58), (1.58, 1.26, 1.32), (5.78, 4.62, 4.88)),
    "bunny": ((1.17, 1.14, 1.15), (1.79, 1.68, 1.60), (5.26, 4.30, 4.52)),
    "horse": ((1.21, 1.19, 1.11), (1.90, 1.76, 1.59), (5.50, 4.69, 4.67)),
    "dragon": ((4.86, 4.84, 4.63), (5.54, 5.52, 5.33), (9.32, 8.83, 8.23)),
    "blade": ((5.63, 5.61, 5.01), (5.96, 5.93, 5.27), (7.89, 7.58, 6.62)),
}
PROXIMITY = {  # without optimizations, with the geometry shader
    "cow": ((0.60, 0.57), (1.15, 1.09), (4.03, 3.82)),
    "bunny": ((1.13, 1.22), (1.74, 1.73), (4.47, 4.34)),
    "horse": ((1.18, 1.34), (1.68, 1.80), (4.12, 4.18)),
    "dragon": ((4.42, 5.52), (4.96, 6.04), (8.07, 8.67)),
    "blade": ((12.0, 14.6), (12.5, 15.1), (15.6, 17.6)),
}
READBACK = {64: 3, 128: 33, 256: 345, 512: 2701, 1024: 5423, 2048: 10849}  # table 1, in ms
DEEP = [("abut", "vertices"), ("coal", "obbrss"), ("abut_bvh", "rigid")]
COLOURS = ("#c8553d", "#2a7f7f", "#8a6d3b", "#5b5ea6", "#3c8d5a", "#b0508f", "#555555", "#d09a2c")
NAMES = {  # of curves, by library and variant
    ("abut", "bound"): "response, bound",
    ("abut", "dominant"): "closest",
    ("abut", "vertices"): "abut, vertices",
    ("vertices", "vertices"): "sample() of vertices",
    ("coal", "obbrss"): "Coal",
    ("abut_bvh", "rigid"): "abut hierarchies, rigid",
    ("abut_refit", "deformed"): "abut hierarchies, deformed",
    ("warp", "samples"): "Warp mesh queries",
    ("meshlib", "vertices"): "MeshLib",
}


def collision() -> str:
    """Table 2, left: times of penalty forces."""
    head = ["basic", "early Z", "geometry shader"]
    ways = ("nothing", "depth", "bound", "faces", "vertices")
    return _table("collision", COLLISION, head, ways)


def proximity() -> str:
    """Table 2, right: times of the closest point."""
    return _table(
        "proximity", PROXIMITY, ["basic", "geometry shader"], ("views", "dominant", "vertices")
    )


def readback() -> str:
    """Table 1: copies of whole grids to the host."""
    found = {
        row["variant"]: row["ms_min"] for row in _rows(GPU, "field.csv") if row["job"] == "readback"
    }
    lines = ["| samples | paper, ms | H200, ms |", "| --- | ---: | ---: |"]
    for n, ms in READBACK.items():
        lines.append(f"| {n}³ | {ms:,} | {_number(found.get(str(n)))} |")
    return "\n".join(lines)


def figure8() -> str:
    """Times of collisions of the bunny by distance."""
    return _figure("collision", 8)


def figure9() -> str:
    """Times of proximities of the bunny by distance."""
    return _figure("proximity", 9)


def averages() -> str:
    """The means of figures 8 and 9 on the CPU."""
    lines = ["| bunny, 1024 pixels, processor ms | collision | proximity | orientations |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for (library, variant), name in NAMES.items():
        curves = [
            _curves(CPU).get((kind, "bunny", library, variant, 1024), [])
            for kind in ("collision", "proximity")
        ]
        if any(curves):
            calls = [c for curve in curves for _, _, c in curve]
            cells = [_mean(curve) for curve in curves]
            spread = f"{min(calls)} to {max(calls)}" if min(calls) < max(calls) else f"{calls[0]}"
            lines.append(f"| {name} | {cells[0]} | {cells[1]} | {spread} |")
    return "\n".join(lines)


def losses() -> str:
    """Where abut loses on the CPU, and by how much."""
    means = {
        (kind, *way): np.mean([ms for _, ms, _ in curve])
        for kind in ("collision", "proximity")
        for way in NAMES
        if (curve := _curves(CPU).get((kind, "bunny", *way, 1024)))
    }
    deep = {way: _curves(CPU)["collision", "bunny", *way, 1024][0][1] for way in DEEP}
    own = "abut", "vertices"
    response, closest, force, point = (
        means[kind, *way] / means[kind, "vertices", "vertices"]
        for kind, way in (
            ("collision", ("abut", "bound")),
            ("proximity", ("abut", "dominant")),
            ("collision", own),
            ("proximity", own),
        )
    )
    return (
        f"Where abut loses on the CPU: `response` with its default samples takes {response:.1f} "
        f"times as long as one sample per vertex by `sample()`, and `closest` {closest:.1f} times; "
        f'with `sampling="vertices"` they take {force:.2f} and {point:.2f} times as long. Where '
        f"the bunnies coincide Coal takes {deep['coal', 'obbrss'] / deep[own]:.0f} and abut's "
        f"hierarchies {deep['abut_bvh', 'rigid'] / deep[own]:.0f} times as long as `vertices`."
    )


def dragons() -> str:
    """The complex scene of section 5.4, per substep."""
    head = "model, bodies, faces, field, pixels, pairs, substeps, ms least, ms median".split(", ")
    lines = ["| machine | " + " | ".join(head) + " |", "| --- |" + " ---: |" * len(head)]
    for machine, name in ((CPU, "CPU"), (GPU, "H200")):
        for row in _rows(machine, "dragons.csv"):
            cells = [row["model"], row["bodies"], f"{int(row['faces']):,}", f"{row['resolution']}³"]
            cells += [row["pixels"], row["pairs"], row["substeps"], row["ms_min"], row["ms_median"]]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else "No row yet."


def rebuilds() -> str:
    """Fields that are rebuilt every frame."""
    lines = ["| knot of 50,000 faces, band of 4 cells, ms | CPU | H200 |", "| --- | ---: | ---: |"]
    names = {"frame256": "deform and rebuild, 256³", "rebuild256": "the hierarchy refitted before"}
    for variant, words in names.items():
        cells = []
        for machine in (CPU, GPU):
            rows = _rows(machine, "field.csv")
            found = [r for r in rows if (r["job"], r["variant"]) == ("field_knot_50k", variant)]
            cells.append(_number(found[0]["ms_median"]) if found else "")
        lines.append(f"| {words} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _table(kind: str, paper: dict, head: list[str], ways: tuple[str, ...]) -> str:
    columns = [f"paper {name}" for name in head] + [f"H200 {way}" for way in ways]
    columns += [f"CPU {way}" for way in ways]
    measured = {column for column in columns if column.startswith("paper")}
    lines = []
    for model, name in MODELS.items():
        for size, times in zip(SIZES, paper[model], strict=True):
            cells = dict(zip(columns, map(_number, times), strict=False))
            for machine, words in ((GPU, "H200"), (CPU, "CPU")):
                for way in ways:
                    curve = _curves(machine).get((kind, model, "abut", way, size), [])
                    cells[f"{words} {way}"] = (
                        _number(np.mean([ms for _, ms, _ in curve])) if curve else ""
                    )
                    measured |= {f"{words} {way}"} if curve else set()
            lines.append((f"{name}, {size}", cells))
    shown = [column for column in columns if column in measured]
    out = ["| ms | " + " | ".join(shown) + " |", "| --- |" + " ---: |" * len(shown)]
    out += ["| " + " | ".join([name, *(cells[c] for c in shown)]) + " |" for name, cells in lines]
    return "\n".join(out)


def _figure(kind: str, number: int) -> str:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "abut", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, 2, figsize=(12.8, 4.2))
    places = ((CPU, "CPU, processor time"), (GPU, "H200"))
    for axis, (machine, title) in zip(axes, places, strict=True):
        for colour, ((library, variant), name) in zip(COLOURS * 2, NAMES.items(), strict=False):
            curve = _curves(machine).get((kind, "bunny", library, variant, 1024), [])
            if curve:
                style = {"color": colour, "linestyle": "-" if library == "abut" else "--"}
                axis.semilogy(
                    *zip(*[(at, ms) for at, ms, _ in curve], strict=True), label=name, **style
                )
        axis.set(xlabel="distance", ylabel="ms a query", title=title)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    path = IMAGES / f"distance_fields_figure_{number}.svg"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return f"![Times of {kind} by distance, bunny, 1024 pixels](../images/{path.name})"


@cache
def _curves(machine: str) -> dict[tuple, list[tuple[float, float, int]]]:
    """Return (distance, ms, calls) of each curve."""
    curves = defaultdict(list)
    for row in _rows(machine, "response_curves.csv"):
        key = row["kind"], row["model"], row["library"], row["variant"], int(row["pixels"])
        curves[key].append((float(row["distance"]), float(row["ms"]), int(row["calls"])))
    return {key: sorted(curve) for key, curve in curves.items()}


def _rows(machine: str, name: str) -> list[dict[str, str]]:
    path = RESULTS / machine / name
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _mean(curve: list[tuple[float, float, int]]) -> str:
    return _number(np.mean([ms for _, ms, _ in curve])) if curve else ""


def _number(value: float | str | None) -> str:
    if value is None or value == "":
        return ""
    value = float(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
