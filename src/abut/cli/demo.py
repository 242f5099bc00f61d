"""``abut demo NAME``: collide, move and draw meshes that abut makes itself."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abut import cases, view
from abut.cases.shape import Shape
from abut.cli.console import progress, show_facts, show_json, show_rows, working
from abut.cli.operands import add_output, natural, picture_size
from abut.cli.report import run_timed, timed
from abut.core.device import resolve_device
from abut.core.timing import recording
from abut.errors import OptionError
from abut.io.write import require_writable
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import Contacts
from abut.sim.cloth_scenes import cloth_over_ball, cloth_over_table, falling_leaves
from abut.sim.disassembly import crank_in_a_ring
from abut.sim.rigid_scenes import breaking_object, falling_dragons, swarm_of_balls
from abut.sim.simulation import Seen, Simulation

SIZE = (1200, 800)


@dataclass(frozen=True)
class Demo:
    """A pair or a single mesh of ``abut.cases``, and its view."""

    scene: str
    azimuth: float
    elevation: float
    colors: tuple[view.Color, ...]  # one for a mesh against itself, two for a pair
    opacities: tuple[float, ...] = (1.0, 0.35)
    faces: int = 20_000

    def shapes(self, faces: int | None) -> tuple[cases.Shape, ...]:
        """Make one or two shapes."""
        faces = self.faces if faces is None else faces
        alone = len(self.colors) == 1
        return (cases.single(self.scene, faces),) if alone else cases.pair(self.scene, faces)


DEMOS = {
    "knot": Demo("knot", -65, 45, (view.CORAL, view.TEAL)),
    "tori": Demo("tori", -60, 35, (view.CORAL, view.TEAL)),
    "terrain": Demo("terrain", -60, 25, (view.SAND, view.TEAL)),
    "cloth": Demo("folded_cloth", -60, 28, (view.INDIGO,), faces=40_000),
}
FILM_SIZE = (640, 400)
COLORS = {
    "cloth": view.INDIGO,
    "leaf": (0.45, 0.66, 0.30),
    "wood": view.SAND,
    "stone": view.TEAL,
    "piece": view.CORAL,
    "floor": (0.80, 0.82, 0.85),
}
COLUMNS = ("mean", "most", "first")
SHADES = 7  # of parts of one object


@dataclass(frozen=True)
class AnimatedDemo:
    """A simulation, and its view."""

    about: str
    make: Callable[..., Simulation]  # of faces, device and, if given, meshes
    faces: int
    frames: int = 40
    azimuth: float = -60.0
    elevation: float = 25.0
    meshes: int = 0  # that may be given instead of those made here


ANIMATED = {
    "cloth-table": AnimatedDemo("a cloth falls over a round table", cloth_over_table, 20_000),
    "cloth-ball": AnimatedDemo("a cloth falls over a ball", cloth_over_ball, 20_000),
    "leaves": AnimatedDemo("leaves fall from a tree", falling_leaves, 40_000, 70, elevation=12.0),
    "balls": AnimatedDemo("balls draw each other together", swarm_of_balls, 145_920),
    "dragons": AnimatedDemo(
        "dragons fall onto a floor that waves", falling_dragons, 60_000, 60, meshes=1
    ),
    "crank": AnimatedDemo(
        "a planner takes a crank out of two rings", crank_in_a_ring, 6000, meshes=2
    ),
    "fracture": AnimatedDemo(
        "a falling object breaks another", breaking_object, 20_000, 50, meshes=2
    ),
}


def add_command(commands: Any) -> None:
    """Declare the command."""
    about = "collide meshes made here, and draw where they meet, or film how they move"
    described = "; ".join(f"{name}: {demo.about}" for name, demo in ANIMATED.items())
    parser = commands.add_parser("demo", description=f"Demo: {about}. {described}.")
    names = [*DEMOS, *ANIMATED]
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    about = "picture file, or a folder (default: out); films as MP4 where it ends in .mp4"
    parser.add_argument("--out", default="out", metavar="PATH", help=about)
    parser.add_argument("--faces", type=natural, metavar="N", help="faces, roughly")
    about = "default: 1200x800; 640x400 for films"
    parser.add_argument("--size", type=picture_size, metavar="WxH", help=about)
    parser.add_argument("--frames", type=natural, metavar="N", help="frames of a moving demo")
    about = "compare the contacts of each frame with those of another method; "
    about += "exit status 1 when they differ"
    parser.add_argument("--check", nargs="?", const="other", metavar="METHOD", help=about)
    about = "z up; with fracture, given twice: what breaks and what falls; with crank twice: the "
    about += "part and what it leaves along x; with dragons once"
    parser.add_argument("--mesh", action="append", metavar="FILE", help=about)
    parser.add_argument("--no-film", action="store_true", help="only run and time a moving demo")
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collide, print and draw meshes; or run an animated demo."""
    if args.name in ANIMATED:
        return _run_animation(args)
    if args.frames or args.check or args.no_film or args.mesh:
        raise OptionError(f"{args.name} does not move; frames are for: {', '.join(ANIMATED)}.")
    args.size = args.size or SIZE
    (path,) = _targets(args)
    demo = DEMOS[args.name]
    shapes = demo.shapes(args.faces)
    query = collide if len(shapes) == 2 else self_collide
    meshes = [Mesh(*shape, device=args.device) for shape in shapes]
    operands = {str(k): (args.name, mesh) for k, mesh in enumerate(meshes)}
    hits, stages = run_timed(query, operands, then=Contacts.curves)
    with working("joining curves"):
        curves = timed(stages, "curves", hits.curves)
    with working("drawing"):
        timed(stages, "picture", lambda: _draw(demo, args, shapes, curves, path))
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


def _targets(args: argparse.Namespace) -> list[Path]:
    """Return the files that the demo writes: a picture, or a sheet and a film."""
    path = Path(args.out)
    if args.name in DEMOS:
        files = [path if path.suffix else path / f"{args.name}.png"]
    else:
        stem = path.with_suffix("") if path.suffix else path / args.name
        kind = ".mp4" if path.suffix.lower() == ".mp4" else ".gif"
        files = [Path(f"{stem}.png"), Path(f"{stem}{kind}")]
    for file in files:
        require_writable(file, folders=True)
    return files


def _draw(
    demo: Demo, args: argparse.Namespace, shapes: Any, curves: list[np.ndarray], path: Path
) -> None:
    painted = zip(shapes, demo.colors, demo.opacities, strict=False)
    camera = view.Camera.around(
        np.concatenate([shape.vertices for shape in shapes]),
        azimuth=demo.azimuth,
        elevation=demo.elevation,
        aspect=args.size[0] / args.size[1],
    )
    bodies = [view.Body(*body) for body in painted]
    look = {"camera": camera, "size": args.size, "device": args.device}
    pixels = view.render(bodies, curves, curve_width=4.0, **look)
    view.save_picture(path, pixels)


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


def _run_animation(args: argparse.Namespace) -> int:
    """Simulate, print and film; 1 when a check fails."""
    demo = ANIMATED[args.name]
    if args.mesh and len(args.mesh) != demo.meshes:
        raise OptionError(f"{args.name} takes {demo.meshes or 'no'} meshes, not {len(args.mesh)}.")
    files = [] if args.no_film else _targets(args)
    device = resolve_device(args.device)
    with working("setting up"):
        options = {"meshes": [_shape(file) for file in args.mesh]} if args.mesh else {}
        play = demo.make(args.faces or demo.faces, device, **options)
    film = None
    if not args.no_film:
        look = {"azimuth": demo.azimuth, "elevation": demo.elevation, "device": device}
        film = view.Film(play.around, size=args.size or FILM_SIZE, **look)
        film.take(bodies(play.seen()))
    method = play.other_method if args.check == "other" else args.check
    log = FrameLog(play.stages)
    for _ in progress(range(args.frames or demo.frames), args.name):
        log.frame(play)
        if method:
            log.check(play, method)
        if film is not None:
            film.take(bodies(play.seen()))
    if film is not None:
        with working("writing"):
            film.save_sheet(files[0])
            film.save(files[1])
    _show_frames(args, play, log, list(map(str, files)), str(device), method)
    return int(log.wrong > 0)


class FrameLog:
    """Times, counts and checks of all frames."""

    def __init__(self, stages: tuple[str, ...]) -> None:
        self.stages = stages
        self.spent: list[dict[str, float]] = []
        self.counts: list[dict[str, int]] = []
        self.checked = self.wrong = 0

    def frame(self, play: Simulation) -> None:
        """Advance by a frame and record its times and counts."""
        start = time.perf_counter()
        with recording() as timer:
            self.counts.append(play.advance())
        whole = (time.perf_counter() - start) * 1e3
        spent = {stage: timer.milliseconds.get(stage, 0.0) for stage in self.stages}
        self.spent.append({**spent, "frame": whole})

    def check(self, play: Simulation, method: str) -> None:
        """Compare the contacts of the frame with those of another method."""
        self.checked += 1
        self.wrong += not np.array_equal(play.rows("bvh"), play.rows(method))

    def times(self) -> dict[str, dict[str, float]]:
        """Times of each stage; mean and most without the first frame, which loads kernels."""
        return _summary(self.spent, self.spent[1:])

    def count_summary(self) -> dict[str, dict[str, float]]:
        """Counts of each kind."""
        return _summary(self.counts, self.counts)


def _summary(frames: list[Any], steady: list[Any]) -> dict[str, dict[str, float]]:
    """Mean and largest of each number in steady frames, and the number in the first frame."""
    out = {}
    for name in frames[0]:
        values = [frame[name] for frame in steady or frames]
        numbers = {"mean": np.mean(values), "most": np.max(values), "first": frames[0][name]}
        out[name] = {kind: float(number) for kind, number in numbers.items()}
    return out


def bodies(seen: list[Seen]) -> list[view.Body]:
    """Surfaces of a simulation, in colour."""
    return [view.Body(thing.shape, _color(thing)) for thing in seen]


def _shape(file: str) -> Shape:
    mesh = Mesh.load(file, "cpu")
    return Shape(mesh.points.numpy(), mesh.faces.numpy())


def _color(thing: Seen) -> Any:
    color = np.array(COLORS[thing.role])
    if thing.part is None:
        return color
    shade = (thing.part * 5 % SHADES) / (SHADES - 1) - 0.5
    return np.clip(color + shade[:, None] * [0.25, 0.35, 0.35], 0, 1)


def _show_frames(
    args: argparse.Namespace,
    play: Simulation,
    log: FrameLog,
    files: list[str],
    device: str,
    method: str | None,
) -> None:
    report = {
        "demo": args.name,
        "frames": len(log.counts),
        "faces": play.face_count,
        "counts": log.count_summary(),
        "device": device,
        "milliseconds": log.times(),
        "checked": log.checked,
        "method": method,
        "wrong": log.wrong,
        "files": files,
    }
    if args.json:
        show_json(report)
        return
    facts = [("demo", f"{args.name}: {ANIMATED[args.name].about}")]
    facts += [("frames", f"{report['frames']:,}"), ("faces", f"{play.face_count:,}")]
    facts += [("device", device)]
    if log.checked:
        same = f"{log.checked - log.wrong:,} of {log.checked:,} frames as by {method}"
        facts += [("check", same)]
    show_facts([*facts, *(("file", file) for file in files)])
    tables = {"ms a frame": (report["milliseconds"], 2), "in a frame": (report["counts"], 0)}
    for name, (rows, digits) in tables.items():
        print()
        cells = [(kind, *(f"{row[k]:,.{digits}f}" for k in COLUMNS)) for kind, row in rows.items()]
        show_rows([name, *COLUMNS], cells)
