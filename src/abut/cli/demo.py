"""``abut demo NAME``: the main job on meshes that abut makes itself, with a picture."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abut import cases
from abut.cli.console import show_facts, show_json, working
from abut.cli.operands import add_device, natural
from abut.cli.timing import Stages, measured, timed
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import Contacts


@dataclass(frozen=True)
class Demo:
    """A scene and how it is seen."""

    scene: str
    alone: bool  # one mesh against itself
    faces: int
    azimuth: float
    elevation: float
    colors: tuple[str, ...]
    opacities: tuple[float, ...] = (1.0, 0.35)

    def shapes(self, faces: int | None) -> tuple[cases.Shape, ...]:
        """One or two shapes."""
        faces = self.faces if faces is None else faces
        if self.alone:
            return (cases.single(self.scene, faces),)
        return cases.pair(self.scene, faces)


DEMOS = {
    "knot": Demo("knot", False, 20_000, -65, 45, ("CORAL", "TEAL")),
    "tori": Demo("tori", False, 20_000, -60, 35, ("CORAL", "TEAL")),
    "terrain": Demo("terrain", False, 20_000, -60, 25, ("SAND", "TEAL")),
    "cloth": Demo("folded_cloth", True, 40_000, -60, 28, ("INDIGO",)),
}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo", help="collide meshes made here, and draw where they meet: " + ", ".join(DEMOS)
    )
    parser.add_argument("name", choices=DEMOS, metavar="NAME", help=", ".join(DEMOS))
    parser.add_argument(
        "--out", default="out", metavar="PATH", help="picture file, or a folder (default: out)"
    )
    parser.add_argument("--faces", type=natural, metavar="N", help="faces of each mesh, roughly")
    parser.add_argument("--size", type=_size, default=(1200, 800), metavar="WxH")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collide, report, draw."""
    demo = DEMOS[args.name]
    shapes = demo.shapes(args.faces)
    meshes = tuple(Mesh(*shape, device=args.device) for shape in shapes)
    query = self_collide if demo.alone else collide
    hits, stages = measured(query, meshes, then=Contacts.curves)
    with working("joining curves"):
        curves = timed(stages, "curves", hits.curves)
    with working("drawing"):
        path = timed(stages, "picture", lambda: _draw(demo, args, shapes, curves))
    faces = [mesh.face_count for mesh in meshes]
    if args.json:
        show_json(_report(hits, curves, faces, stages) | {"picture": str(path)})
    else:
        show_facts(_facts(args.name, hits, curves, faces, stages, path))
    return 0


def _draw(demo: Demo, args: argparse.Namespace, shapes: Any, curves: list[np.ndarray]) -> Path:
    from abut import view

    painted = zip(shapes, demo.colors, demo.opacities, strict=False)
    bodies = [view.Body(shape, getattr(view, c), opacity) for shape, c, opacity in painted]
    camera = view.Camera.around(
        np.concatenate([shape.vertices for shape in shapes]),
        azimuth=demo.azimuth,
        elevation=demo.elevation,
        aspect=args.size[0] / args.size[1],
    )
    pixels = view.render(bodies, curves, camera=camera, size=args.size, device=args.device)
    path = Path(args.out)
    return view.save_picture(path if path.suffix else path / f"{args.name}.png", pixels)


def _report(hits: Contacts, curves: list, faces: list[int], stages: Stages) -> dict[str, Any]:
    return {
        "faces": faces,
        "pair_count": len(hits),
        "curve_count": len(curves),
        "curve_length": _length(curves),
        "device": str(hits.pairs.device),
        "milliseconds": stages,
    }


def _facts(
    name: str, hits: Contacts, curves: list, faces: list[int], stages: Stages, path: Path
) -> list[tuple[str, str]]:
    return [
        ("demo", name),
        ("faces", " + ".join(f"{count:,}" for count in faces)),
        ("pairs", f"{len(hits):,}"),
        ("curves", f"{len(curves)}, {_length(curves):.3f} long"),
        ("device", str(hits.pairs.device)),
        *((stage, f"{spent:9.2f} ms") for stage, spent in stages.items()),
        ("file", str(path)),
    ]


def _length(curves: list[np.ndarray]) -> float:
    return float(sum(np.linalg.norm(np.diff(c, axis=0), axis=1).sum() for c in curves))


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 1200x800")
    return int(width), int(height)
