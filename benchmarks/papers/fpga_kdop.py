"""Blocks of docs/papers/fpga_kdop.md, from ``hardware_*.csv`` (``benchmarks.bench_hardware``)."""

import csv
from pathlib import Path

from benchmarks.plots import line_plot
from benchmarks.readme import CPU, RESULTS, ROOT

IMAGES = ROOT / "docs" / "images"
CLOCK = 102.8  # MHz, routed: see docs/hardware.md
Rows = list[dict[str, str]]


def widths() -> str:
    """Return figure 3: cycles against bit width."""
    rows = _rows("widths")
    points = [(float(r["width"]), float(r["cycles"]) / CLOCK) for r in rows]
    path = IMAGES / "fpga_widths.svg"
    line_plot(path, "Time of a query against bit width", "bits", "µs", {"1 pipeline": points})
    least = min(rows, key=lambda r: float(r["cycles"]))
    lines = [
        [r["width"], _n(r["cycles"]), _n(r["dop_tests"]), _n(r["leaf_pairs"]), _n(r["bursts"])]
        for r in rows
    ]
    table = _table(["bits", "cycles", "DOP tests", "leaf pairs", "bursts"], lines)
    picture = "![Time of a query against bit width.](../images/fpga_widths.svg)"
    head = f"{_bus_of(rows)} The least is at {least['width']} bits."
    return f"{head}\n\n{picture}\n\n{table}"


def axes() -> str:
    """Return figure 5: cycles against the number of axes, at 24 sides and for other DOPs."""
    rows = _rows("axes")
    curve = [(float(r["axes"]), float(r["cycles"]) / CLOCK) for r in rows if r["sides"] == "24"]
    path = IMAGES / "fpga_axes.svg"
    line_plot(path, "Time of a query against axes, k = 24", "axes n", "µs", {"1 pipeline": curve})
    lines = [
        [r["sides"], r["axes"], _n(r["cycles"]), _n(r["dop_tests"]), _n(r["leaf_pairs"])]
        for r in rows
    ]
    table = _table(["k", "n", "cycles", "DOP tests", "leaf pairs"], lines)
    picture = "![Time of a query against the number of axes.](../images/fpga_axes.svg)"
    return f"{_bus_of(rows)}\n\n{picture}\n\n{table}"


def bus() -> str:
    """Return the shared bus beside the one that widens with the word."""
    rows = _rows("bus")
    lines = []
    for wide, shared in zip(rows[::2], rows[1::2], strict=True):
        assert wide["bus"] == "0" and shared["bus"] != "0"
        more = float(shared["cycles"]) / float(wide["cycles"]) - 1
        both = [_n(wide["cycles"]), _n(shared["cycles"]), f"{100 * more:+.0f} %"]
        lines.append([wide["width"], wide["pipelines"], *both, _n(shared["pairs"])])
    heads = ["bits", "pipelines", "cycles, wide bus", "cycles, 72 bits shared", "more", "pairs"]
    return _table(heads, lines)


def chip() -> str:
    """Return machines with a cache, compressed records and more pipelines."""
    lines = [
        [r["pipelines"], _n(r["cache"]), r["row_values"], r["triangle_units"],
         r["delta_bits"] if r["delta_bits"] != "0" else "",
         _n(r["bursts"]), _n(r["dop_tests"]), _n(r["leaf_pairs"]), _n(r["cycles"]),
         _n(float(r["cycles"]) / CLOCK)]
        for r in _rows("chip")
    ]  # fmt: skip
    heads = ["pipelines", "cached records", "values a cycle", "triangle units", "delta bits"]
    heads += ["bursts", "DOP tests", "leaf pairs", "cycles", "µs"]
    return _table(heads, lines)


def units() -> str:
    """Return several units that share the pairs of a query at distance 0."""
    software = next(r for r in _rows("software") if r["distance"] == "0.0")
    lines = []
    for r in _rows("units"):
        if r["distance"] != "0.0":
            continue
        time = float(r["cycles"]) / CLOCK
        needed = float(r["cycles"]) / float(software["abut_us"])
        shape = [r["units"], r["pipelines"], _n(r["cache"]), r["row_values"]]
        lines.append([*shape, _n(r["cycles"]), _n(time), f"{needed:.0f} MHz"])
    heads = ["units", "pipelines each", "cached records", "values a cycle", "cycles", "µs"]
    beside = f"abut on two cores takes {float(software['abut_us']):.0f} µs.\n\n"
    return beside + _table([*heads, "clock to draw level"], lines)


def distances() -> str:
    """Return figure 6: the unit beside software of today."""
    software = {r["distance"]: r for r in _rows("software")}
    two = [r for r in _rows("units") if r["units"] == "2" and r["cache"] != "0"]
    many = {r["distance"]: float(r["cycles"]) for r in two}
    lines, curves = [], {}
    rows = _rows("distances")
    for r in rows:
        beside = software[r["distance"]]
        coal = min(float(beside["coal_obbrss_us"]), float(beside["coal_obb_us"]))
        times = {
            "1 pipeline": float(r["cycles"]) / CLOCK,
            "4 pipelines": float(r["cycles_4"]) / CLOCK,
            "two units (model)": many[r["distance"]] / CLOCK,
            "abut, CPU": float(beside["abut_us"]),
            "Coal, CPU": coal,
        }
        for name, value in times.items():
            curves.setdefault(name, []).append((float(r["distance"]), value))
        least = min(times.values())
        cells = [_n(v) if v >= 10 else f"{v:.1f}" for v in times.values()]
        best = [f"**{c}**" if v == least else c for c, v in zip(cells, times.values(), strict=True)]
        lines.append([r["distance"], _n(r["pairs"]), _n(r["intersecting"]), *best])
    path = IMAGES / "fpga_distances.svg"
    shown = {name: curve for name, curve in curves.items() if name != "Coal, CPU"}
    line_plot(path, "All pairs of two cows", "distance, in lengths of a cow", "µs", shown)
    heads = ["distance, cow lengths", "pairs", "intersecting", *(f"{name}, µs" for name in curves)]
    picture = "![Time of a query against the distance of two cows.](../images/fpga_distances.svg)"
    note = "" if rows[0]["bus"] != "0" else "Rows of one unit have the bus that widens.\n\n"
    return f"{note}{picture}\n\n{_table(heads, lines)}"


def _bus_of(rows: Rows) -> str:
    """Say with which bus rows were measured."""
    if rows[0]["bus"] == "0":
        return "Measured with the bus that widens with the word (see below)."
    return f"With the bus of {rows[0]['bus']} bits."


def _rows(name: str) -> Rows:
    path: Path = RESULTS / CPU / f"hardware_{name}.csv"
    return list(csv.DictReader(path.read_text().splitlines()))


def _n(value: str | float) -> str:
    return f"{float(value):,.0f}"


def _table(heads: list[str], lines: list[list[str]]) -> str:
    rule = ["---:"] * len(heads)
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, rule, *lines)) + "\n"
