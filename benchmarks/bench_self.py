"""Self-collision of flat and touching meshes: ``python -m benchmarks.bench_self``.

Meshes with many coplanar or touching neighbours (``selfint`` of the data folder) and ordinary ones,
against MeshLib, which leaves out contacts of faces that touch or lie in one plane. Trees are built
before. Rows are compared with brute force where a mesh is small.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import warp as wp

import abut
from benchmarks import cases
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv
from benchmarks.timing import Timed, measure

ORDINARY = ("models/armadillo_86k.ply", "ccd_frames/cloth-ball/cloth_ball92.ply")
MOST_BRUTE = 4000  # faces


def main(argv: list[str] | None = None) -> int:
    """Compare, time, print, write the CSV. 1 if rows differ from brute force."""
    parser = argparse.ArgumentParser(prog="bench_self", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--least", type=int, default=100, help="faces of the smallest mesh")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a library and mesh")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/self.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder = cases.data_folder()
    if folder is None:
        print("no data folder (ABUT_DATA): there is nothing to measure")
        return 0
    paths = [*sorted((folder / "selfint").glob("*.ply")), *(folder / name for name in ORDINARY)]
    meshes = {path.stem: abut.Mesh.load(path, args.device) for path in paths if path.is_file()}
    meshes = {name: mesh for name, mesh in meshes.items() if mesh.face_count >= args.least}
    wrong = [name for name, mesh in meshes.items() if not _agrees(mesh)]
    rows = [row for name, mesh in meshes.items() for row in _rows(name, mesh, args)]
    print_rows("self_collide", rows)
    write_csv(args.out or RESULTS / machine_name(args.device) / "self.csv", rows)
    if wrong:
        print(f"other rows than brute force: {', '.join(wrong)}")
    return int(bool(wrong))


def _agrees(mesh: abut.Mesh) -> bool:
    """Whether the rows are those of brute force, where that is quick."""
    if mesh.face_count > MOST_BRUTE:
        return True
    rows, truth = (abut.self_collide(mesh, method=m).pairs.numpy() for m in ("bvh", "brute"))
    return np.array_equal(rows, truth)


def _rows(name: str, mesh: abut.Mesh, args: argparse.Namespace) -> list[Row]:
    """Rows of one mesh: abut, and MeshLib where it is installed."""
    calls = {"abut": Timed(lambda: abut.self_collide(mesh).pairs, args.device)}
    if args.peers:
        theirs = _meshlib_call(mesh)
        calls |= {"meshlib": Timed(theirs)} if theirs else {}
    sizes = {library: len(timed.first()) for library, timed in calls.items()}
    measure(list(calls.values()), args.rounds, args.budget)
    rows = [
        Row(
            "self_flat", f"{name}_{mesh.face_count}", library, one.device, one.ms_min, one.ms_median
        )
        for library, one in calls.items()
    ]
    for row in rows:
        row.rounds, row.answer_size = len(calls[row.library].samples), sizes[row.library]
    set_ratios(rows, {"abut"})
    return rows


def _meshlib_call(mesh: abut.Mesh):
    """The same question to MeshLib, its tree built; None where it is not installed."""
    try:
        import meshlib.mrmeshnumpy as mn
        import meshlib.mrmeshpy as mm
    except ImportError:
        return None
    other = mn.meshFromFacesVerts(mesh.faces.numpy(), mesh.vertices.numpy().astype(np.float32))
    other.getAABBTree()
    part = mm.MeshPart(other)
    return lambda: mm.findSelfCollidingTriangles(part)


if __name__ == "__main__":
    sys.exit(main())
