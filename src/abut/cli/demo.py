"""``abut demo NAME``: the main job on meshes that abut makes itself, with a picture."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abut import cases, view
from abut.cli import moving
from abut.cli.console import show_facts, show_json, working
from abut.cli.moving import MOVING
from abut.cli.operands import add_device, natural, picture_size
from abut.cli.timing import measured, timed
from abut.errors import OptionError
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import Contacts

SIZE = (1200, 800)


@dataclass(frozen=True)
class Demo:
    """A scene of ``abut.cases`` and how it is seen."""

    scene: str
    azimuth: float
    elevation: float
    colors: tuple[view.Color, ...]  # one for a mesh against itself, two for a pair
    opacities: tuple[float, ...] = (1.0, 0.35)
    faces: int = 20_000

    def shapes(self, faces: int | None) -> tuple[cases.Shape, ...]:
        """One or two shapes."""
        faces = self.faces if faces is None else faces
        alone = len(self.colors) == 1
        return (cases.single(self.scene, faces),) if alone else cases.pair(self.scene, faces)


DEMOS = {
    "knot": Demo("knot", -65, 45, (view.CORAL, view.TEAL)),
    "tori": Demo("tori", -60, 35, (view.CORAL, view.TEAL)),
    "terrain": Demo("terrain", -60, 25, (view.SAND, view.TEAL)),
    "cloth": Demo("folded_cloth", -60, 28, (view.INDIGO,), faces=40_000),
}


def atomic_add_int64(commands: Any) -> None:
    """Declare the command."""
    names = ", ".join([*DEMOS, *MOVING])
    about = "collide meshes made here, and draw where they meet, or film how they move"
    described = "; ".join(f"{name}: {demo.about}" for name, demo in MOVING.items())
    parser = commands.add_parser("demo", description=f"Demo: {about}. {described}.")
    parser.add_argument("name", choices=[*DEMOS, *MOVING], metavar="NAME", help=names)
    parser.add_argument(
        "--out",
        default="out",
        metavar="PATH",
        help="picture file, or a folder (default: out); films as MP4 where it ends in .mp4",
    )
    parser.add_argument("--faces", type=natural, metavar="N", help="faces, roughly")
    parser.add_argument(
        "--size", type=picture_size, metavar="WxH", help="default: 1200x800; 640x400 for films"
    )
    parser.add_argument("--frames", type=natural, metavar="N", help="frames of a moving demo")
    parser.add_argument(
        "--check",
        nargs="?",
        const="other",
        metavar="METHOD",
        help="compare the contacts of each frame with those of another method; "
        "exit status 1 when they differ",
    )
    parser.add_argument(
        "--mesh",
        action="append",
        metavar="FILE",
        help="z up; with fracture, given twice: what breaks and what falls; with dragons once",
    )
    parser.add_argument("--no-film", action="store_true", help="only run and time a moving demo")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collide, report, draw; or run a moving demo."""
    if args.name in MOVING:
        return moving.run(args)
    if args.frames or args.check or args.no_film or args.mesh:
        raise OptionError(f"{args.name} does not move; frames are for: {', '.join(MOVING)}.")
    args.size = args.size or SIZE
    demo = DEMOS[args.name]
    shapes = demo.shapes(args.faces)
    meshes = tuple(Mesh(*shape, device=args.device) for shape in shapes)
    query = collide if len(meshes) == 2 else self_collide
    hits, stages = measured(query, meshes, then=Contacts.curves)
    with working("joining curves"):
        curves = timed(stages, "curves", hits.curves)
    with working("drawing"):
        path = timed(stages, "picture", lambda: _draw(demo, args, shapes, curves))
    report = {
        "demo": args.name,
        "faces": [mesh.face_count for mesh in meshes],
        "pair_count": len(hits),
        "curve_count": len(curves),
        "curve_length": float(sum(_length(curve) for curve in curves)),
        "device": str(hits.pairs.device),
        "milliseconds": stages,
        "picture": str(path),
    }
    show_json(report) if args.json else show_facts(_facts(report))
    return 0


def _draw(demo: Demo, args: argparse.Namespace, shapes: Any, curves: list[np.ndarray]) -> Path:
    painted = zip(shapes, demo.colors, demo.opacities, strict=False)
    camera = view.Camera.around(
        np.concatenate([shape.vertices for shape in shapes]),
        azimuth=demo.azimuth,
        elevation=demo.elevation,
        aspect=args.size[0] / args.size[1],
    )
    bodies = [view.Body(*body) for body in painted]
    pixels = view.render(bodies, curves, camera=camera, size=args.size, device=args.device)
    path = Path(args.out)
    return view.save_picture(path if path.suffix else path / f"{args.name}.png", pixels)


def _facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("demo", report["demo"]),
        ("faces", " + ".join(f"{count:,}" for count in report["faces"])),
        ("pairs", f"{report['pair_count']:,}"),
        ("curves", f"{report['curve_count']:,}, {report['curve_length']:.3f} long"),
        ("device", report["device"]),
        *((stage, f"{spent:9.2f} ms") for stage, spent in report["milliseconds"].items()),
        ("file", report["picture"]),
    ]


def _length(curve: np.ndarray) -> float:
    return np.linalg.norm(np.diff(curve, axis=0), axis=1).sum()
