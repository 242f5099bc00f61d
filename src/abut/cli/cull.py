"""``abut cull FILES…``: the potentially colliding set of a scene."""

import argparse
from typing import Any

import numpy as np

from abut.cli.console import show_facts, show_json, show_rows, working
from abut.cli.operands import (
    add_choice,
    add_length,
    add_output,
    files_in,
    load,
    natural,
)
from abut.cli.pictures import add_picture, check_picture, draw_picture
from abut.cli.report import Stages, run_timed, timed, times_line
from abut.mesh import Mesh
from abut.options import CULL_METHODS, CullBackend, Level, Order
from abut.query.cull import Culled, cull

OPTIONS = "method pixels views level distance order backend self_collisions conservative".split()
PASS_COLUMNS = (
    "level view pixels passes queries faces fragments bfv ffv sfv nfv milliseconds".split()
)
VISIBLE = ("visible in both", "in 1st only", "in 2nd only", "in neither")  # BFV, FFV, SFV, NFV
HEADERS = (*PASS_COLUMNS[:7], *VISIBLE, "ms")


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "cull",
        description="Cull the objects and faces of a scene that are fully visible along axes: the "
        "others may collide. Every file is an object, or several if it contains several.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="mesh file, or a folder of them")
    choices = {"method": CULL_METHODS, "level": Level, "order": Order, "backend": CullBackend}
    defaults = {"method": "far", "level": "face", "order": None, "backend": "warp"}
    for name, kinds in choices.items():
        add_choice(parser, f"--{name}", kinds, defaults[name])
    parser.add_argument("--pixels", type=natural, default=1024, metavar="N", help="default: 1024")
    about = "axes; X, Y, Z look against them (default: xyz)"
    parser.add_argument("--views", default="xyz", help=about)
    add_length(parser, "--distance", "keep faces at most D apart", 0.0)
    about = "test faces of one object too"
    parser.add_argument("--self", dest="self_collisions", action="store_true", help=about)
    about = "let cullide and quick_cullide draw conservative fragments, as far does"
    parser.add_argument("--conservative", action="store_const", const=True, help=about)
    add_picture(parser, "the scene, survivors in red,")
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer."""
    check_picture(args)
    named = [pair for path in files_in(args.files) for pair in _objects(path, args.device)]
    operands = {str(k): pair for k, pair in enumerate(named)}
    meshes = [mesh for _, mesh in named]
    options = {name: getattr(args, name) for name in OPTIONS}
    culled, stages = run_timed(_cull, operands, then=lambda answer: answer.pairs, **options)
    with working("pairing"):
        timed(stages, "pairs", lambda: culled.pairs)
    levels: Stages = {}
    for row in culled.statistics:
        levels[row.level] = levels.get(row.level, 0.0) + row.milliseconds
    draw_picture(args, named[0][0], stages, lambda made: made.of_survivors(meshes, culled))
    if args.json:
        show_json(_plain(named, culled, options) | {"milliseconds": stages | levels})
    else:
        _show(meshes, culled, stages, args.picture)
    return 0


def _cull(*meshes: Mesh, **options: Any) -> Culled:
    return cull(meshes, **options)


def _objects(path: str, device: str | None) -> list[tuple[str, Mesh]]:
    """Load (name, mesh) of the objects of a file."""
    mesh = load(path, device)
    if mesh.parts is None:
        return [(path, mesh)]
    points, faces = mesh.vertices.numpy(), mesh.faces.numpy()
    out = []
    for k, (first, stop) in enumerate(zip(mesh.parts, mesh.parts[1:], strict=False)):
        used, local = np.unique(faces[first:stop], return_inverse=True)
        part = Mesh(points[used], local.reshape(-1, 3).astype(np.int32), device=mesh.device)
        out.append((f"{path}#{k}", part))
    return out


def _show(meshes: list[Mesh], culled: Culled, stages: Stages, picture: str | None) -> None:
    face_count = sum(mesh.face_count for mesh in meshes)
    facts = [
        ("objects", f"{culled.objects.shape[0]:,} of {len(meshes):,} may collide"),
        ("faces", f"{len(culled):,} of {face_count:,} may collide"),
        ("pairs", f"{culled.object_pairs.shape[0]:,} of objects, {len(culled.pairs):,} of faces"),
        ("device", str(culled.objects.device)),
        ("time", times_line(stages)),
    ]
    show_facts([*facts, *([("picture", picture)] if picture else [])])
    print()
    rows = ([getattr(row, name) for name in PASS_COLUMNS] for row in culled.statistics)
    show_rows(HEADERS, ([*row[:-1], f"{row[-1]:.2f}"] for row in rows))


def _plain(named: Any, culled: Culled, options: dict[str, Any]) -> dict[str, Any]:
    files = [{"file": path, "faces": mesh.face_count} for path, mesh in named]
    rows = {name: array.tolist() for name, array in culled.numpy().items()}
    passes = [{name: getattr(row, name) for name in PASS_COLUMNS} for row in culled.statistics]
    device = str(culled.objects.device)
    return {"inputs": files, "options": options, "device": device, **rows, "passes": passes}
