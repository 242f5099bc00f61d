"""The page of a report: equal bytes, shapes, its own script alone."""

import base64
import hashlib
import html
import json
import re
import zlib
from datetime import UTC, datetime

import numpy as np
import pytest

from abut.coordination.checks.check import Check
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.report.report_columns import columns_of
from abut.coordination.report.report_page import write_page
from abut.coordination.report.report_page_shapes import WHOLE_FACES, shape_bytes
from abut.errors import FileError
from blocks import all_pairs, block, table
from clash_house import HOSTILE, facts_in, house_clashes
from clash_rows import facts_of, make_clashes

DATE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
BLOCK = re.compile(r'<script type="text/plain" id="block-(\w+)">(.*?)</script>')


@pytest.fixture(scope="module")
def house():
    return house_clashes()


def written(path, clashes, columns, **options):
    write_page(clashes, columns, path, created=DATE, device="cpu", **options)
    return path.read_text("utf-8")


def inflated(text):
    return zlib.decompress(base64.b64decode(text), -15)


def facts_in_page(text):
    return json.loads(inflated(dict(BLOCK.findall(text))["facts"]))


def unpacked(data):
    """Vertices and faces of ``shape_bytes``."""
    vertex_count, face_count = np.frombuffer(data, "<u4", 2)
    box = np.frombuffer(data, "<f8", 6, 8)
    moves = np.frombuffer(data, "<u2", 3 * vertex_count, 56).reshape(3, -1)
    turns = np.frombuffer(data, "<u4", 3 * face_count, 56 + 6 * vertex_count)
    places = np.cumsum(moves, axis=1, dtype=np.uint16).T
    faces = np.cumsum(turns, dtype=np.uint32).reshape(-1, 3)
    return box[:3] + box[3:] * places, faces


def test_equal_arguments_are_equal_bytes(house, tmp_path):
    pictures = {str(house[0].id[0]): b"\x89PNG"}
    first = written(tmp_path / "a.html", *house, pictures=pictures)
    again = written(tmp_path / "b.html", *house_clashes(), pictures=pictures)
    assert first == again
    assert dict(BLOCK.findall(first))["p0"] == base64.b64encode(b"\x89PNG").decode()


def test_the_page_runs_its_own_script_alone(house, tmp_path):
    """The policy names the one script by its hash; markup in names is not in the page."""
    text = written(tmp_path / "a.html", *house, title=f"{HOSTILE} {{style}}")
    policy = html.unescape(re.search(r'Policy" content="([^"]*)"', text)[1])
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "window.hurt" not in text.replace(html.escape(HOSTILE), "")
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert "innerHTML" not in text


def test_rows_are_those_of_the_report(house, tmp_path):
    clashes, columns = house
    facts = facts_in_page(written(tmp_path / "a.html", clashes, columns))
    assert facts["count"] == len(clashes)
    names = facts["columns"]["b_name"]
    found = [names["texts"][k] for k in names["rows"]]
    assert found == columns["b_name"].tolist()
    assert HOSTILE in found
    np.testing.assert_allclose(facts["columns"]["depth"]["rows"], columns["depth"], rtol=1e-6)
    assert facts["problems"] == clashes.problems


def test_shapes_are_those_of_the_parts(house, tmp_path):
    clashes, columns = house
    text = written(tmp_path / "a.html", clashes, columns)
    blocks, facts = dict(BLOCK.findall(text)), facts_in_page(text)
    view = json.loads(inflated(blocks["v0"]))
    for side, number in zip("ab", view["parts"][:2], strict=True):
        name, *pose = facts["parts"][number]
        points, faces = unpacked(inflated(blocks[name]))
        matrix = np.array(pose).reshape(3, 4)
        (row,) = clashes.parts.rows_of([columns[side][0]])
        mesh = clashes.parts.part_meshes[clashes.parts.mesh[row]]
        given = clashes.parts.world_points(row)[mesh.faces]
        moved = (points @ matrix[:, :3].T + matrix[:, 3])[faces]
        np.testing.assert_allclose(moved, given, atol=np.ptp(given, axis=(0, 1)).max() / 65535)
    eye = np.array(view["eye"])
    assert np.linalg.norm(eye) > 0.5 * view["size"]
    lines = np.array(view["lines"]) + view["middle"]
    box = clashes.box[0] + [[-1e-5], [1e-5]]
    assert len(lines) >= 8
    assert ((lines >= box[0]) & (lines <= box[1])).all()


def test_shapes_are_rounded_within_a_step():
    rng = np.random.default_rng(1)
    vertices = rng.normal(size=(300, 3)) * [1, 50, 0] + [1e6, 0, 3]
    faces = rng.permutation(900).reshape(-1, 3) % 300
    points, found = unpacked(shape_bytes(vertices, faces.astype(np.int32)))
    distinct = [len(set(face)) == 3 for face in faces.tolist()]
    np.testing.assert_allclose(points[found], vertices[faces[distinct]], atol=300 / 65535)
    assert len(unpacked(shape_bytes(np.zeros((0, 3)), np.zeros((0, 3), int)))[0]) == 0


def test_large_meshes_are_cut_to_the_clash(tmp_path):
    """A long fence of many faces, and a post of it."""
    posts = [block((0.1, 0.1, 1), (k, 0, 0)) for k in range(WHOLE_FACES // 12 + 1)]
    count = np.cumsum([0, *(len(v) for v, _ in posts)])
    vertices = np.concatenate([v for v, _ in posts])
    faces = np.concatenate([f + k for (_, f), k in zip(posts, count, strict=False)])
    parts = table({"fence": (vertices, faces), "rail": block((0.3, 0.05, 0.05), (5, 0, 0.5))})
    clashes = check_pairs(parts, all_pairs(parts), [Check("all")], device="cpu")
    text = written(tmp_path / "a.html", clashes, columns_of(clashes, facts_in(parts)))
    shapes = [unpacked(inflated(data)) for name, data in BLOCK.findall(text) if name[0] == "q"]
    ((points, cut),) = shapes
    assert json.loads(inflated(dict(BLOCK.findall(text))["v0"]))["cut"] == [True, False]
    assert 8 <= len(cut) <= 12
    assert points[:, 0].min() >= 5 - 1e-9 and points[:, 0].max() <= 5.1 + 1e-9


def test_the_budget_keeps_the_severest(house, tmp_path):
    clashes, columns = house
    text = written(tmp_path / "a.html", clashes, columns, budget=1)
    views = [name for name, _ in BLOCK.findall(text) if re.fullmatch(r"v\d+", name)]
    assert [clashes.verdict[int(name[1:])] for name in views] == ["duplicate"]
    assert facts_in_page(text)["views_left_out"] == len(clashes) - 1
    text = written(tmp_path / "a.html", clashes, columns, budget=0)
    assert facts_in_page(text)["views_left_out"] == len(clashes)
    assert facts_in_page(written(tmp_path / "a.html", clashes, columns))["views_left_out"] == 0


def test_rows_without_parts_and_places(tmp_path):
    clashes = make_clashes(5)
    clashes.box[0], clashes.point_a[0] = np.nan, np.nan
    text = written(tmp_path / "deep" / "a.html", clashes, columns_of(clashes, facts_of))
    assert facts_in_page(text)["count"] == 5
    none = make_clashes(0)
    assert (
        facts_in_page(written(tmp_path / "b.html", none, columns_of(none, facts_of)))["count"] == 0
    )
    with pytest.raises(FileError, match=r"c\.html"):
        write_page(none, columns_of(none, facts_of), tmp_path / "b.html" / "c.html")
