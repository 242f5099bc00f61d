"""Line plots as SVG, without a plotting library."""

from math import floor, log10
from pathlib import Path

COLOURS = ("#c8553d", "#2a7f7f", "#8a6d3b", "#5b5ea6", "#3c8d5a", "#b0508f", "#555555", "#d09a2c")
PLOT, HEIGHT, LEFT, BOTTOM, TOP = 426, 360, 64, 48, 40
LETTER, LINE = 7, 13  # pixels of a name


def line_plot(
    path: Path,
    title: str,
    x_name: str,
    y_name: str,
    lines: dict[str, list[tuple[float, float]]],
    *,
    decades: bool = False,
) -> None:
    """Write a plot of named lines; the y axis begins at zero, or goes by ``decades``."""
    xs = [x for line in lines.values() for x, _ in line]
    ys = [y for line in lines.values() for _, y in line]
    low, high = min(xs), max(xs)
    marks = _decades(min(ys), max(ys)) if decades else [max(ys) * 0.21 * n for n in range(6)]

    def up(y: float) -> float:
        if not decades:
            return y / marks[-1]
        return log10(y / marks[0]) / log10(marks[-1] / marks[0])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low) / (high - low) * PLOT
        return LEFT + across, HEIGHT - BOTTOM - up(y) * (HEIGHT - BOTTOM - TOP)

    width = LEFT + PLOT + max(150, 6 + LETTER * max(map(len, lines)))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{title}</text>',
    ]
    for mark in marks:
        _, y = place(low, mark)
        out += [
            f'<line x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:.3g}</text>',
        ]
    for n in range(6):
        x, _ = place(low + (high - low) * n / 5, marks[0])
        out += [
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{low + (high - low) * n / 5:.3g}</text>",
        ]
    names = _apart({name: place(*line[-1])[1] for name, line in lines.items()})
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        points = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in line)
        x, y = place(*line[-1])[0], names[name]
        out += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>',
        ]
    middle = LEFT + PLOT / 2
    out += [
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{x_name}</text>',
        f'<text x="14" y="{HEIGHT / 2}" transform="rotate(-90 14 {HEIGHT / 2})" '
        f'text-anchor="middle">{y_name}</text>',
        "</svg>",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n")


def _apart(heights: dict[str, float]) -> dict[str, float]:
    """Heights of names, moved down or up so that no two overlap."""
    moved: dict[str, float] = {}
    free = -float("inf")
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        moved[name] = free = max(height, free)
        free += LINE
    floor_y = HEIGHT - BOTTOM
    for name in reversed(moved):
        moved[name] = min(moved[name], floor_y)
        floor_y = moved[name] - LINE
    return moved


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten around both."""
    first, last = floor(log10(low)), -floor(-log10(high))
    return [10.0**n for n in range(first, max(last, first + 1) + 1)]
