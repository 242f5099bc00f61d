"""``abut robot FILE [OBSTACLES…]``: whether a robot touches anything, at rest and on its way."""

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import show_facts, show_json, working
from abut.cli.operands import add_choice, add_output, natural
from abut.cli.pictures import add_picture, check_picture, draw_picture, drawn
from abut.cli.report import timed, times_line
from abut.errors import FileError, OptionError
from abut.scene import Robot, Scene
from abut.scene.files.srdf_file import srdf_beside
from abut.scene.robots.sampled_pairs import sampled_values

PLANNING_SCENES = (".yaml", ".yml", ".json")


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "robot",
        description="Tell whether a robot (URDF, MJCF) is free of contact with itself and with "
        "obstacles: at joint values, on the straight motion in joint space to others, or how often "
        "at random ones. Exit status: 0 free, 1 contact, 2 error.",
    )
    parser.add_argument("file", metavar="FILE", help="URDF or MJCF file")
    about = "mesh or scene files, or planning scenes of MoveIt (.yaml)"
    parser.add_argument("obstacles", metavar="OBSTACLES", nargs="*", help=about)
    about = (
        "all values in order, JOINT=VALUE of some (of a free joint JOINT=X,Y,Z,QW,QX,QY,QZ), or "
    )
    about += "the name of a state (default: at rest)"
    parser.add_argument("--joints", nargs="+", metavar="VALUE", help=about)
    about = "values at the end of a motion, in the same forms"
    parser.add_argument("--to", nargs="+", metavar="VALUE", help=about)
    parser.add_argument("--sample", type=natural, metavar="N", help="N random configurations too")
    parser.add_argument("--seed", type=int, default=0, metavar="K", help="of --sample (default: 0)")
    about = "SRDF of a URDF; without FILE the one beside it"
    parser.add_argument("--srdf", nargs="?", const=True, metavar="FILE", help=about)
    about = "folder that holds packages of package:// (may be repeated)"
    parser.add_argument("--packages", action="append", metavar="FOLDER", help=about)
    add_choice(parser, "--geometry", ("collision", "visual"), "collision", "of the robot")
    add_picture(parser, "the robot at --joints among the obstacles")
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask about the robot and print the answers; 1 where it touches something."""
    check_picture(args)
    scene, robot = _load(args)
    stages: dict[str, float] = {}
    values = robot.values(_given(args.joints, robot))
    robot.move(values)
    with working("loading kernels"):
        timed(stages, "kernels", lambda: robot.valid(values))
    free = timed(stages, "valid", lambda: robot.valid(values))
    report: dict[str, Any] = {
        "file": args.file,
        "obstacles": args.obstacles,
        "objects": len(scene),
        "joints": dict(zip(robot.joints, values.tolist(), strict=True)),
        "outside_limits": _outside(robot, values),
        "free": free,
        "contacts": [] if free else _contacts(scene, robot),
    }
    if args.to is not None:
        goal = robot.values(_given(args.to, robot))
        with working("certifying the motion"):
            found = timed(stages, "motion", lambda: robot.valid_motions(values, goal))
        names = [] if found.free else _names(scene, found.objects)
        time = None if found.free else found.time
        report["motion"] = {"free": found.free, "time": time, "objects": names}
        free = free and found.free
    if args.sample:
        samples = sampled_values(robot, args.sample, args.seed)
        verdicts = timed(stages, "sample", lambda: robot.valid(samples).numpy())
        report["sample"] = {"configurations": args.sample, "free": int(verdicts.sum())}
    draw_picture(args, args.file, stages, lambda made: made.of_scene(scene, []))
    report["milliseconds"] = stages
    if args.json:
        show_json(report | drawn(args))
    else:
        _show(report, args)
    return int(not free)


def _load(args: argparse.Namespace) -> tuple[Scene, Robot]:
    """The scene of a robot and its obstacles."""
    options = {"srdf": args.srdf, "packages": args.packages, "geometry": args.geometry}
    with working(f"reading {args.file}"):
        scene = Scene.load(args.file, args.device, **options)
        if scene.robot is None:
            raise OptionError(f"{args.file} is no robot; abut scene reads other files.")
        for file in args.obstacles:
            if Path(file).suffix.lower() in PLANNING_SCENES:
                scene.add_planning_scene(file, packages=args.packages)
                continue
            for part in Scene.load(file, args.device):
                name = part.name or Path(file).name
                taken = name in scene.names
                name = f"{name} #{len(scene)}" if taken else name
                scene.add(part.mesh, part.pose, name, group=2, mask=~2)
    return scene, scene.robot


def _given(words: list[str] | None, robot: Robot) -> Any:
    """Values as ``Robot.values`` takes them, of the words of an option."""
    if not words:
        return {}
    if len(words) == 1 and words[0] in robot.states:
        return words[0]
    pairs = [word.partition("=") for word in words]
    named = all(equals for _, equals, _ in pairs)
    try:
        if named:
            return {name: _numbers(value) for name, _, value in pairs}
        return [float(word) for word in words]
    except ValueError:
        states = ", ".join(robot.states) or "none; --srdf reads those of an SRDF"
        raise OptionError(
            f"{' '.join(words)} is neither numbers, JOINT=VALUE, nor a state (there are: {states})."
        ) from None


def _numbers(text: str) -> float | list[float]:
    """A number, or those of a joint of several values."""
    numbers = [float(word) for word in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _outside(robot: Robot, values: np.ndarray) -> list[str]:
    """Joints whose values are outside their limits."""
    return [robot.joints[k] for k in np.flatnonzero(robot.kinematics.outside(values))]


def _contacts(scene: Scene, robot: Robot) -> list[list[str]]:
    """Names of each two objects that meet, of which the robot carries one."""
    hits = scene.collide(which=robot.objects, first=True, solid=True)
    rows = [*hits.object_pairs.numpy().tolist(), *hits.contained.numpy().tolist()]
    return [_names(scene, row) for row in sorted(map(tuple, rows))]


def _names(scene: Scene, row: Any) -> list[str]:
    return [str(k if scene.name_of(int(k)) is None else scene.name_of(int(k))) for k in row]


def _show(report: dict[str, Any], args: argparse.Namespace) -> None:
    """Print the report as a table."""
    values = ", ".join(f"{name} {value:.4g}" for name, value in report["joints"].items())
    pairs = "; ".join(" and ".join(pair) for pair in report["contacts"])
    facts = [("robot", f"{args.file}: {len(report['joints'])} joints"), ("joints", values)]
    facts += [("objects", f"{report['objects']:,}")]
    if report["outside_limits"]:
        facts.append(("outside limits", ", ".join(report["outside_limits"])))
    facts.append(("contact", pairs or "no"))
    if "motion" in report:
        found = report["motion"]
        when = f"until {found['time']:.6f}" if not found["free"] else "all the way"
        facts.append(("motion", f"free {when} {' and '.join(found['objects'])}".strip()))
    if "sample" in report:
        found = report["sample"]
        facts.append(("sample", f"{found['free']:,} of {found['configurations']:,} are free"))
    if report["contacts"] and (near := _unread_srdf(args)):
        facts.append(("hint", f"--srdf reads {near}, which names pairs that may touch"))
    time = times_line(report["milliseconds"])
    show_facts([*facts, ("time", time), *drawn(args).items()])


def _unread_srdf(args: argparse.Namespace) -> Path | None:
    """An SRDF beside the URDF that was not asked for."""
    if args.srdf or Path(args.file).suffix.lower() != ".urdf":
        return None
    with suppress(FileError):
        return srdf_beside(Path(args.file))
    return None
