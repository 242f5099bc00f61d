"""``abut overlap A B``: how two solids lie to each other, how deep, and how to part them."""

import argparse
from collections import Counter
from typing import Any

import numpy as np

from abut.cli.operands import add_meshes, add_poses, add_report, load_operands, load_poses
from abut.cli.pictures import add_picture, check_picture, draw_picture
from abut.cli.report import run_timed, show_answer, show_first, show_json_answer, timed
from abut.cli.where import Facts, point_text
from abut.query.overlap import Overlap, overlap
from abut.query.solids.closed_surface import require_solid
from abut.query.solids.relation import RELATIONS


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "overlap",
        description="Take two closed meshes as solids: whether they are apart, touch, cross or "
        "contain each other, exactly; how deep the common part lies in each; a translation of B "
        "that parts them. Exit status: 0 no common interior, 1 common interior, 2 error.",
    )
    add_meshes(parser)
    add_poses(parser)
    about = "of depths and the separation, relative to the smaller solid"
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="T", help=about)
    about = "part the solids along this direction"
    parser.add_argument("--along", type=float, nargs=3, metavar=("X", "Y", "Z"), help=about)
    about = "also measure the volume and the areas of the common part"
    parser.add_argument("--volume", action="store_true", help=about)
    add_picture(parser, "the solids, the curves in which they meet, their depths and separation")
    add_report(parser, "poses")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the query and print the answer; 1 when the solids have common interior."""
    check_picture(args)
    operands, poses = load_operands(args), load_poses(args)
    for name, (path, mesh) in operands.items():
        require_solid(mesh, f"{name} ({path})")  # before kernels are loaded
    options = {name: getattr(args, name) for name in ("tolerance", "along", "volume")}
    found, stages = run_timed(overlap, operands, then=_measured, **options, **poses)
    timed(stages, "measures", lambda: _measured(found))
    row = None if isinstance(found.relation, str) else int(np.argmax(found.inside_a.numpy()))
    file = operands["a"][0]
    draw_picture(args, file, stages, lambda made: made.of_overlap(found, operands, poses, row))
    if args.json:
        show_json_answer(operands, _plain(found, args.pairs), stages, args.picture)
    elif row is None:
        show_answer(operands, _facts(found), stages, args.picture)
    else:
        show_answer(operands, [("poses", _counts(found))], stages, args.picture)
        show_first(_columns(found), len(found.inside_a), args.pairs)
    return int(bool(found))


def _measured(found: Overlap) -> Any:
    """Compute the measures that are printed."""
    return found.inside_a, found.separation, found.volume, found.regions


def _facts(found: Overlap) -> Facts:
    """Lines about one pose."""
    facts = [("relation", found.relation.replace("_", " "))]
    if found.overlapping:
        deepest, way = found.deepest.numpy(), found.direction.numpy()
        for k, (side, depth) in enumerate((("a", found.inside_a), ("b", found.inside_b))):
            where = f"at {point_text(deepest[k])}, surface towards {point_text(way[k])}"
            facts.append((f"depth in {side}", f"{depth:.9g} {where}"))
        length = float(np.linalg.norm(found.separation.numpy()))
        text = f"move b by {point_text(found.separation.numpy())}, {length:.9g} long"
        facts.append(("separation", f"{text}; none is shorter than {found.separation_bound:.9g}"))
    if found.volume is not None:
        areas = found.areas.numpy()
        facts.append(("volume", f"{found.volume:.9g} around {point_text(found.centroid.numpy())}"))
        facts.append(("areas", f"{areas[0]:.9g} of a, {areas[1]:.9g} of b"))
    return [*facts, ("regions of contact", f"{len(found.regions):,}")]


def _counts(found: Overlap) -> str:
    names = Counter(RELATIONS[k].replace("_", " ") for k in found.relation.numpy())
    return ", ".join(f"{count:,} {name}" for name, count in names.most_common())


def _columns(found: Overlap) -> dict[str, Any]:
    """Columns of a batch."""
    columns: dict[str, Any] = {
        "pose": range(found.relation.shape[0]),
        "relation": [RELATIONS[k] for k in found.relation.numpy()],
        "depth in a": found.inside_a.numpy(),
        "depth in b": found.inside_b.numpy(),
        "separation": np.linalg.norm(found.separation.numpy(), axis=1),
    }
    if found.volume is not None:
        columns["volume"] = found.volume.numpy()
    return {
        name: [f"{x:.9g}" if isinstance(x, float) else x for x in column]
        for name, column in columns.items()
    }


def _plain(found: Overlap, limit: int | None) -> dict[str, Any]:
    """Rows for JSON, where NaN becomes null."""
    rows = found.numpy()
    codes = np.atleast_1d(rows.pop("relation"))
    if not isinstance(found.relation, str):
        rows = {name: values[:limit] for name, values in rows.items()}
        relation: Any = [RELATIONS[k] for k in codes[:limit]]
    else:
        relation = found.relation
    regions = found.regions if isinstance(found.regions, list) else [found.regions]
    count = [len(r) for r in regions][:limit]
    out = {name: _nullable(values) for name, values in rows.items()}
    return {"relation": relation, **out, "regions": count if len(codes) > 1 else count[0]}


def _nullable(values: Any) -> Any:
    values = np.asarray(values)
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values.tolist()
    out = values.astype(object)
    out[~np.isfinite(values)] = None
    return out.tolist()
