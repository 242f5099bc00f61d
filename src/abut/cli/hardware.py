"""``abut hardware``: simulate the k-DOP machine, print its Verilog, synthesise it."""

import argparse
import sys
from dataclasses import asdict
from typing import Any

from abut.cli.console import show_facts, show_json, working
from abut.cli.operands import add_choice, add_meshes, add_poses, load, load_poses, natural
from abut.hardware import Engine, simulate, synthesize, verilog
from abut.io.write import replacing


def add_command(commands: Any) -> None:
    """Declare the command and its subcommands."""
    parser = commands.add_parser(
        "hardware",
        description="The k-DOP collision machine: a query in simulation, its Verilog, its size.",
    )
    parser.set_defaults(run=lambda args: parser.print_help() or 0)
    inner = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_simulate(inner)
    _add_verilog(inner)
    _add_synth(inner)


def _add_simulate(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate",
        help="pairs, cycles and counters of a query",
        description="Run a query on the machine. Its pairs include every intersecting pair. "
        "Exit status: 0 no pair, 1 pairs, 2 error.",
    )
    add_meshes(parser)
    add_poses(parser, batch="")
    add_choice(parser, "--engine", Engine, "model")
    parser.add_argument("--clock", type=float, metavar="MHZ", help="also print the time at a clock")
    _add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_simulate)


def _add_verilog(commands: Any) -> None:
    parser = commands.add_parser("verilog", help="the machine as Verilog")
    _add_machine(parser)
    add_choice(parser, "--part", ("machine", "pipeline"), "machine")
    parser.add_argument("--target", choices=["xc2v", "ecp5"], help="place its multipliers")
    parser.add_argument("--out", metavar="FILE", help="default: standard output")
    parser.set_defaults(run=_verilog)


def _add_synth(commands: Any) -> None:
    parser = commands.add_parser(
        "synth",
        help="cells, and on ECP5 the routed clock",
        description="Synthesise with Yosys; on ECP5 place and route with nextpnr, which takes "
        "minutes and for wide numbers more than ten.",
    )
    _add_machine(parser)
    add_choice(parser, "--part", ("machine", "pipeline"), "machine")
    add_choice(parser, "--target", ("xc2v", "xc7", "ecp5"), "ecp5")
    parser.add_argument("--no-route", action="store_true", help="cells alone")
    parser.add_argument("--goal", type=float, default=160, metavar="MHZ", help="default: 160")
    parser.add_argument("--seed", type=natural, default=1, metavar="N", help="of the placer (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_synth)


def _add_machine(parser: argparse.ArgumentParser) -> None:
    options = {
        "width": (18, "bits of reaches and weights, 10 to 35"),
        "sides": (24, "faces of a DOP: 6, 14, 18, 24 or 26"),
        "axis-count": (24, "axes tested for a pair"),
        "pipelines": (1, "axes tested at once"),
        "bus": (72, "bits of a beat of the memory; 0: as wide as four values"),
    }
    for name, (default, text) in options.items():
        number = {"type": natural, "default": default, "metavar": "N"}
        parser.add_argument(f"--{name}", **number, help=f"{text} ({default})")


def _parameters(args: argparse.Namespace) -> dict[str, int]:
    return {
        name: getattr(args, name) for name in ("width", "sides", "axis_count", "pipelines", "bus")
    }


def _simulate(args: argparse.Namespace) -> int:
    a, b = load(args.a, "cpu"), load(args.b, "cpu")
    options = {"engine": args.engine, **_parameters(args)}
    with working("simulating"):
        run = simulate(a, b, **load_poses(args), **options)
    counters = run.counters()
    if args.clock:
        counters["microseconds"] = round(counters["cycles"] / args.clock, 1)
    if args.json:
        pairs = {"pair_count": len(run.pairs), "pairs": run.pairs.tolist()}
        show_json({**options, **counters, **pairs})
    else:
        facts = [(name.replace("_", " "), f"{value:,}") for name, value in counters.items()]
        show_facts([("engine", args.engine), ("pairs", f"{len(run.pairs):,}"), *facts])
    return int(len(run.pairs) > 0)


def _verilog(args: argparse.Namespace) -> int:
    text = verilog(part=args.part, target=args.target, **_parameters(args))
    if args.out is None:
        sys.stdout.write(text)
        return 0
    with replacing(args.out) as new:
        new.write_text(text)
    return 0


def _synth(args: argparse.Namespace) -> int:
    with working(f"synthesising for {args.target}"):
        made = synthesize(
            target=args.target,
            part=args.part,
            route=not args.no_route,
            goal_mhz=args.goal,
            seed=args.seed,
            **_parameters(args),
        )
    if args.json:
        show_json(asdict(made))
        return 0
    names = ("target", "part", "width", "pipelines", "luts", "registers", "multipliers")
    facts = [(name, getattr(made, name)) for name in names]
    if made.slices is not None:
        facts.append(("slices", f"at least {made.slices:,}"))
    if made.clock_mhz is not None:
        facts.append(("clock", f"{made.clock_mhz:.1f} MHz, routed"))
    shown = [(n, f"{v:,}" if isinstance(v, int) else str(v)) for n, v in facts]
    show_facts([*shown, *(("command", command) for command in made.commands)])
    return 0
