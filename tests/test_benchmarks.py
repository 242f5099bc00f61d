"""The parts of the benchmarks that tables rest on: answers compared, anchors run, rows written."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

ANCHOR = """\
#!{python}
import sys
import numpy as np

with open(sys.argv[1], "rb") as file:
    sizes = np.fromfile(file, np.int32, 5)
    for vertices, faces in sizes[:4].reshape(2, 2):
        points = np.fromfile(file, np.float32, 3 * vertices)
        assert len(points) == 3 * vertices and np.abs(points).max() < 10
        assert np.fromfile(file, np.int32, 3 * faces).max() == vertices - 1
    poses = np.fromfile(file, np.float32, 12 * sizes[4]).reshape(-1, 12)
    truth = np.fromfile(file, np.{kind}, sizes[4])
    assert len(truth) == sizes[4] and not file.read()
assert all(np.allclose(np.abs(np.linalg.det(p[:9].reshape(3, 3))), 1, atol=1e-4) for p in poses)
about = (sys.argv[1], sizes[1], sizes[3])
for n in (1, 10, 100, 1000):
    if n <= sizes[4]:
        {line}
"""
FIRST = (
    'print("%s: %d and %d faces, %d poses: %.3f ms with copies, kernel %.3f ms, '
    '%d answers differ" % (*about, n, 0.25, 0.125, truth[:n].sum()))'
)
NEAREST = (
    'print("%s: %d and %d faces, %d poses: kernel %.3f ms; %.0f bounds and %.1f triangle pairs a '
    "pose; largest difference %.2g, contact differs in %d (%d blocks an SM)"
    '" % (*about, n, 4.7, 8000, 180.0, 1.2e-7, int((truth[:n] == 0).sum()), 5))'
)


@pytest.fixture
def benchmarks(monkeypatch):
    """Make the folder of benchmarks importable."""
    monkeypatch.syspath_prepend(ROOT)


def program(path, line, kind):
    path.write_text(ANCHOR.format(python=sys.executable, line=line, kind=kind))
    path.chmod(0o755)
    return path


def batch(question, count):
    from benchmarks.cases import Case, random_poses

    from abut.cases import box, torus

    vertices, faces = torus(8, 5)
    other, other_faces = box()
    case = Case("job", "variant", question, "cpu", vertices.astype(np.float32), faces)
    poses = random_poses(vertices, count, 1.0)
    values = {"other": other.astype(np.float32), "other_faces": other_faces, "pose": poses}
    return Case(**(vars(case) | values))


def test_an_anchor_gets_the_case_and_its_line_is_read(benchmarks, tmp_path):
    from benchmarks.anchors import anchor_rows
    from benchmarks.cases import Question

    anchors = {
        "first": program(tmp_path / "first", FIRST, "int32"),
        "nearest": program(tmp_path / "nearest", NEAREST, "float32"),
    }
    rows = anchor_rows(batch(Question.POSES, 100), np.arange(100) < 3, anchors)
    assert [(row.library, row.ms_min, row.agrees) for row in rows] == [
        ("anchor_first", 0.25, "3 of 100 differ"),
        ("anchor_first_kernel", 0.125, "3 of 100 differ"),
    ]
    rows = anchor_rows(batch(Question.DISTANCES, 10), np.linspace(1.0, 2.0, 10), anchors)
    found = [(row.library, row.ms_min, row.agrees) for row in rows]
    assert found == [("anchor_nearest_kernel", 4.7, "yes within 1.2e-07")]
    assert anchor_rows(batch(Question.POSE_PAIRS, 10), np.zeros((0, 2)), anchors) == []


def test_an_anchor_that_fails_is_an_error(benchmarks, tmp_path):
    from benchmarks.anchors import anchor_rows
    from benchmarks.cases import Question

    broken = program(tmp_path / "first", 'sys.exit("no device")', "int32")
    with pytest.raises(RuntimeError, match="no device"):
        anchor_rows(batch(Question.POSES, 10), np.zeros(10, bool), {"first": broken})


def test_differences_of_answers(benchmarks):
    from benchmarks.answers import difference, posed_pairs

    def sizes(*args):
        return tuple(map(len, difference(*args)))

    assert sizes(np.array([True, False, True]), np.array([True, True])) == (1, 0)
    assert sizes(np.array([1.0, 2.0]), np.array([1.0, 2.1])) == (1, 0)
    assert sizes(np.array([1.0, 2.0]), np.array([1.0, 1.9]), 0.2) == (0, 0)
    assert sizes(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), 0.2) == (1, 0)
    ours = posed_pairs(np.array([[0, 1], [2, 3], [2, 3]]), np.array([0, 0, 1]))
    theirs = posed_pairs(np.array([[2, 3], [0, 2]]), np.array([0, 0]))
    assert sizes(ours, theirs) == (1, 2)
    assert sizes(ours, theirs, None, 1) == (1, 1)
    assert sizes(ours, ours[::-1]) == (0, 0)


def test_device_poses_give_the_answers_of_host_poses(benchmarks):
    """On the CPU this choice is not timed, so that CUDA is not needed to try it."""
    from benchmarks import ours
    from benchmarks.cases import Question
    from benchmarks.peers import warp_bvh

    for question in (Question.POSES, Question.POSE_PAIRS, Question.DISTANCES):
        case = batch(question, 20)
        found = [ours.answer(ours._call(case, choice)()) for choice in ("", ours.ON_DEVICE)]
        np.testing.assert_array_equal(*found)
    case = batch(Question.POSE_PAIRS, 20)
    a = warp_bvh.Mesh(case.vertices, case.faces, "cpu", 1024.0)
    b = warp_bvh.Mesh(case.other, case.other_faces, "cpu", 1024.0)
    poses = case.pose.copy()
    poses[:, :3, 3] *= 1024.0
    answers = [
        warp_bvh.answer(warp_bvh._batch(case, choice, a, b, poses).call())
        for choice in warp_bvh.SUPPORTS[Question.POSE_PAIRS]
    ]
    np.testing.assert_array_equal(*answers)
    assert len(answers[0]) > 20


def test_pages_show_what_was_measured(benchmarks):
    from benchmarks.readme import everyday_table, rewritten, table

    for path, made in (("README.md", table()), ("docs/benchmarks.md", everyday_table())):
        page = (ROOT / path).read_text()
        assert rewritten(page, made) == page, "run python -m benchmarks.readme"


def test_pages_of_papers_show_what_was_measured(benchmarks):
    from benchmarks.papers.pages import pages, renewed

    for path in pages():
        page = path.read_text()
        assert renewed(page) == page, "run python -m benchmarks.papers"


def test_growth_finds_exponents_and_cliffs(benchmarks):
    """A step that costs ten times as much as the sizes say, and none in a smooth curve."""
    from benchmarks.bench_growth import Curve

    sizes = np.geomspace(1e2, 1e6, 9)
    smooth = Curve("faces", "collide", list(sizes), [[s**0.5, 2 * s] for s in sizes])
    assert abs(smooth.exponent - 0.5) < 1e-9 and list(smooth.cliffs()) == []
    samples = [[s**0.5 * (10.0 if s > 1e4 else 1.0)] for s in sizes]
    steep = Curve("faces", "collide", list(sizes), samples)
    assert len(list(steep.cliffs())) == 1 and "from 10000" in next(steep.cliffs())


def test_culling_frame_by_frame(benchmarks, tmp_path, monkeypatch):
    """Every method and way to find contacts, on two small frames; far loses nothing."""
    from benchmarks import bench_cull_frames as bench

    from abut import cases

    def frames(count):
        first, second = cases.pair("tori", 300)
        return [[first, second.moved((0.01 * k, 0.0, 0.0))] for k in range(count)]

    monkeypatch.setitem(bench.SCENES, "tori", bench.Scene(frames, 100))
    assert bench.main(["--scenes", "tori", "--frames", "2", "--out", str(tmp_path)]) == 0
    lines = (tmp_path / "cull_frames.csv").read_text().splitlines()
    ways = [line.split(",")[2] for line in lines[1:]]
    kept = ["bvh_refitted", "collide_far"]
    assert set(ways) == {*bench.WAYS, "bvh_built", "collide_far_built", *kept}
    assert all(ways.count(way) == 1 for way in kept)


def test_pairs_of_objects_that_culling_leaves(benchmarks, tmp_path, monkeypatch):
    """Of four tori: what the boxes, those of survivors and the views leave, and what meets."""
    from benchmarks import bench_cull_pairs as bench

    from abut import cases

    first, second = cases.pair("tori", 300)
    away = [shape.moved((0.0, 0.0, 9.0)) for shape in (first, second.moved((0.0, 0.0, 0.3)))]
    monkeypatch.setattr(bench, "fracture", lambda count, steps: [[first, second, *away]] * count)
    bench.main(["--frames", "1", "--pixels", "64", "256", "--out", str(tmp_path)])
    lines = (tmp_path / "cull_pairs.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["pixels", "64", "256"]
    assert all(line.split(",")[-1] == "0" for line in lines[1:])
    counts = [int(cell) for cell in lines[2].split(",")[2:6]]
    assert counts == sorted(counts, reverse=True) and counts[-1] >= 1
