"""``abut view FILES…``: meshes, contacts and distances on a page in the browser."""

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from abut.cases.shape import joined
from abut.cli.ccd import frames_of
from abut.cli.console import one_line, progress, tell, working
from abut.cli.demo import ANIMATED, DEMOS
from abut.cli.operands import add_choice, files_in, natural
from abut.cli.pictures import add_picture, check_picture, vertical_of
from abut.core.device import resolve_device
from abut.errors import AbutError, FileError, MeshError, OptionError
from abut.io.models.read_model import read_model
from abut.io.read import MODELS, STEP
from abut.io.write import require_writable
from abut.mesh import Mesh
from abut.options import Method
from abut.scene import Scene
from abut.view.page.answers import Question
from abut.view.page.live_scene import LiveScene
from abut.view.page.saved_page import save_page
from abut.view.page.show_page import make_page, show
from abut.view.picture import save_picture
from abut.view.scene_picture import draw_scene

Frames = list[np.ndarray]
BREAKING = ("fracture",)  # demos whose faces change from frame to frame


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "view",
        description="Show files on a page in the browser: meshes, faces in contact, the shortest "
        "distance. Drag an object and every answer follows. Frames of a sequence (a folder, a "
        ".npz, or files whose names differ in a number and whose faces are the same) are played. "
        "Closing the page or Ctrl-C ends.",
    )
    about = "mesh, scene, robot, IFC, STEP or USD file"
    parser.add_argument("files", metavar="FILE", nargs="*", help=about)
    names = [name for name in (*DEMOS, *ANIMATED) if name not in BREAKING]
    about = f"a demo instead of files: {', '.join(names)}"
    parser.add_argument("--demo", choices=names, metavar="NAME", help=about)
    about = "files are frames of a sequence (default: by their names), or objects"
    parser.add_argument("--frames", action=argparse.BooleanOptionalAction, help=about)
    add_choice(parser, "--method", Method, "bvh")
    parser.add_argument("--self", action="store_true", help="also objects that cut themselves")
    about = "address to bind (default: 127.0.0.1, for this machine alone)"
    parser.add_argument("--host", default="127.0.0.1", help=about)
    about = "port to bind, or the next that is free (default: 8080)"
    parser.add_argument("--port", type=natural, default=8080, help=about)
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    about = "write the page as one file that opens offline, and end"
    parser.add_argument("--save", metavar="PAGE.html", help=about)
    add_picture(parser, "the scene, without a browser,")
    parser.add_argument("--device", help="cpu, cuda:0, … (default: the first GPU, else cpu)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the page until it is closed, or write files."""
    if args.save:
        require_writable(args.save, folders=True)
    check_picture(args)
    if bool(args.files) == bool(args.demo):
        raise OptionError("abut view takes files, or --demo NAME.")
    scene, frames, messages = load_files(args)
    for message in messages:
        tell(f"abut: {message}")
    about: dict[str, Any] = {name: getattr(args, name) for name in ("method", "host", "port")}
    about["vertical"] = vertical_of(args, *args.files[:1])
    about["self_collisions"] = True if args.self else None
    about |= {"messages": messages, "frames": frames}
    if not (args.save or args.picture):
        try:
            show(scene, open_page=not args.no_open, **about)
        except KeyboardInterrupt:
            pass
        return 0
    if not len(scene):
        raise FileError("there is nothing to draw.")
    if args.picture:
        with working("drawing"):
            _draw(scene, args)
    if args.save:
        with working("writing"):
            page = make_page(scene, **{**about, "port": 0})
            save_page(page, args.save)
            page.close()
    return 0


def _draw(scene: Scene, args: argparse.Namespace) -> None:
    live = LiveScene(scene, Question(args.method, args.self or len(scene) == 1, len(scene) > 1))
    live.answer()
    if live.message:
        raise OptionError(live.message)
    look = {"size": args.size, "vertical": vertical_of(args, *args.files[:1])}
    picture = draw_scene(live, **look, device=scene.device)
    save_picture(args.picture, picture)


def load_files(args: argparse.Namespace) -> tuple[Scene, Frames, list[str]]:
    """A scene, the frames of its only object if the files are a sequence, and errors of files."""
    if args.demo:
        scene, frames = load_demo(args.demo, args.device)
        return scene, frames, []
    files = [Path(file) for file in args.files]
    alone = len(files) == 1 and (files[0].is_dir() or files[0].suffix.lower() == ".npz")
    named = len({re.sub(r"\d+", "0", file.name) for file in files}) == 1 < len(files)
    if args.frames or (args.frames is None and (alone or named)):
        found = _sequence(files, args)
        if found is not None:
            return found[0], found[1], []
    scene, messages = load_objects(files_in(args.files), args.device)
    return scene, [], messages


def _sequence(files: list[Path], args: argparse.Namespace) -> tuple[Scene, Frames] | None:
    """The scene of the first frame and all frames; None for files with other faces."""
    with working("reading frames"):
        if len(files) == 1:
            try:
                found = list(frames_of(files[0]))
            except MeshError:  # meshes with other faces
                if args.frames or not files[0].is_dir():
                    raise
                return None
            if not found:
                return None
            faces, frames = found[0][2], [vertices for _, vertices, _ in found]
        else:
            meshes = [Mesh.load(file, "cpu") for file in files]
            faces, frames = meshes[0].faces.numpy(), [mesh.vertices.numpy() for mesh in meshes]
            if not all(np.array_equal(mesh.faces.numpy(), faces) for mesh in meshes):
                if args.frames:
                    raise FileError("the frames do not all have the same faces.")
                return None
        scene = Scene(resolve_device(args.device))
        scene.add(Mesh(frames[0], faces, scene.device), name=files[0].stem)
    return scene, frames


def load_objects(files: Sequence[str], device: str | None) -> tuple[Scene, list[str]]:
    """One scene of all files, and an error for each file that cannot be read."""
    scenes, messages = [], []
    for file in files:
        try:
            with working(f"reading {file}"):
                scenes.append((Path(file).stem, _scene_of(file, device)))
        except AbutError as error:
            messages.append(one_line(error))
    robots = [scene for _, scene in scenes if scene.robot is not None]
    together = robots[0] if robots else Scene(resolve_device(device))
    for stem, scene in scenes:
        if scene is together:
            continue
        poses, names = scene.poses.numpy(), {row: name for name, row in scene.names.items()}
        for row in scene.indices.tolist():
            name = stem if len(scene) == 1 else f"{stem}/{names.get(row, row)}"
            together.add(scene.mesh(row), poses[row], _free_name(name, together))
    return together, messages


def _scene_of(file: str, device: str | None) -> Scene:
    """The scene of a file; the parts of the model of a building or a machine are its objects."""
    if Path(file).suffix.lower() not in (*MODELS, *STEP):
        return Scene.load(file, device)
    model, scene = read_model(file), Scene(resolve_device(device))
    meshes = [Mesh(mesh.vertices, mesh.faces, scene.device) for mesh in model.meshes]
    names = Counter(part.name for part in model.parts)
    for part in model.parts:
        name = part.name if names[part.name] == 1 and part.name else f"{part.name} {part.id}"
        scene.add(meshes[part.mesh], part.pose, name.strip())
    return scene


def load_demo(name: str, device: str | None) -> tuple[Scene, Frames]:
    """A demo of ``abut demo``; the frames of a moving one, whose shapes become one object."""
    scene = Scene(resolve_device(device))
    if name in DEMOS:
        for k, shape in enumerate(DEMOS[name].shapes(None)):
            scene.add(Mesh(*shape, scene.device), name=f"{name} {k + 1}")
        return scene, []
    demo = ANIMATED[name]
    with working("setting up"):
        play = demo.make(demo.faces, scene.device)
    whole = joined(*(seen.shape for seen in play.seen()))
    frames = [whole.vertices]
    for _ in progress(range(demo.frames), name):
        play.advance()
        vertices, _ = joined(*(seen.shape for seen in play.seen()))
        frames.append(vertices)
    scene.add(Mesh(*whole, scene.device), name=name)
    return scene, frames


def _free_name(name: str, scene: Scene) -> str:
    """The name, or the name with the first number that is free."""
    taken, number, free = scene.names, 2, name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
