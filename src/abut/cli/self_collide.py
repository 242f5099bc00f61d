"""``abut self FILES…``: self-intersections of meshes, or of the frames of an animation."""

import argparse
from pathlib import Path
from typing import Any

from abut.cli.animations import FOLLOW, frame_count, frames_of
from abut.cli.console import progress, show_json
from abut.cli.contacts import load_segments, segments_of, show_contacts
from abut.cli.operands import add_choice, add_query_options, files_in, load
from abut.cli.pictures import add_picture, check_picture, draw_picture, drawn
from abut.cli.report import run_timed
from abut.cli.where import count_text, point_text, where_plain
from abut.errors import OptionError
from abut.io import reading
from abut.mesh import Mesh
from abut.options import SELF_METHODS, Bound
from abut.query.self_collide import self_collide
from abut.results import Contacts

NO_WELD = {
    "dest": "weld",
    "action": "store_false",
    "help": "neighbours share vertices by index alone, not by position",
}


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "self",
        description="Find every pair of faces of one mesh that meet beyond the vertices and edges "
        "they share, exactly. Of several files or a folder, one line each. "
        "Exit status: 0 no contact, 1 contact, 2 error.",
    )
    about = "mesh file, or a folder of them; with --follow a folder of frames or a .npz"
    parser.add_argument("files", metavar="FILE", nargs="+", help=about)
    parser.add_argument("--follow", action="store_true", help=FOLLOW)
    parser.add_argument("--no-weld", **NO_WELD)
    add_picture(parser, "the mesh, or the first that meets itself, and, in red, where")
    add_choice(parser, "--bound", Bound, "aabb")
    add_query_options(parser, SELF_METHODS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when there is contact."""
    check_picture(args)
    if args.follow:
        return _follow(args)
    files = files_in(args.files)
    if len(files) > 1 or Path(args.files[0]).is_dir():
        return _each(args, files)
    operands = {"a": (files[0], load(files[0], args.device))}
    hits, stages = run_timed(self_collide, operands, then=load_segments, **_options(args))
    return show_contacts(hits, operands, stages, args)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in ("weld", "method", "bound")}


def _each(args: argparse.Namespace, files: list[str]) -> int:
    """Query every file and print one line each."""
    report = _Report(args, "files", files[0])
    for file in progress(files, "files"):
        report.add(file, load(file, args.device))
    return report.finish()


def _follow(args: argparse.Namespace) -> int:
    """Query every frame of an animation and print one line each."""
    if len(args.files) != 1:
        raise OptionError(f"--follow takes one folder or .npz, not {len(args.files)}.")
    path = Path(args.files[0])
    count, mesh = frame_count(path, 1), None
    report = _Report(args, "frames", args.files[0])
    for name, vertices, faces in progress(frames_of(path), "frames", count):
        with reading(path, "frames"):
            mesh = mesh or Mesh(vertices, faces, args.device)
            mesh.deform(vertices)
        report.add(name, mesh)
    return report.finish()


class _Report:
    """One line or row for each mesh, and a picture of the first in contact, else of the last."""

    def __init__(self, args: argparse.Namespace, kind: str, file: str) -> None:
        self.args, self.kind, self.file = args, kind, file
        self.rows: list[dict[str, Any]] = []
        self.shown: tuple[Any, ...] = ()
        self.touched = False

    def add(self, name: str, mesh: Mesh) -> None:
        """Query a mesh and print its line."""
        hits = self_collide(mesh, **_options(self.args))
        where = where_plain(segments_of(hits)[0].reshape(-1, 3))
        size = {"faces": mesh.face_count, "pair_count": len(hits), "where": where}
        self.rows.append({self.kind[:-1]: name, **size})
        if self.args.picture and not self.touched:
            self.shown = hits, Mesh(mesh.vertices, mesh.faces, mesh.device)
        self.touched = self.touched or bool(hits)
        if not self.args.json:
            print(f"{name}: {_verdict(hits, where)}", flush=True)

    def finish(self) -> int:
        """Draw the picture; returns the exit status."""
        draw_picture(self.args, self.file, {}, lambda made: made.of_self_contacts(*self.shown))
        if self.args.json:
            show_json({self.kind: self.rows, **drawn(self.args)})
        return int(self.touched)


def _verdict(hits: Contacts, where: Any) -> str:
    if not hits:
        return "no"
    return f"{count_text(len(hits), 'pair')}, centre {point_text(where['centre'])}"
