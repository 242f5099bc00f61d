"""BCF files: valid by the published schemas, read by an independent reader, equal bytes."""

import io
import re
import warnings
import zipfile
from datetime import UTC, datetime
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
import pytest

from abut.coordination.bcf.bcf import write_bcf
from abut.coordination.pictures.clash_frame import clash_frames, frame_corners
from abut.coordination.report.compare import Acceptance, compare
from abut.coordination.report.report_columns import columns_of
from abut.coordination.report.row_texts import part_name, part_names, row_title
from abut.errors import FileError, OptionError
from clash_house import HOSTILE, house_clashes
from clash_rows import facts_of, make_clashes, make_columns

DATE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
VERSIONS = ("3.0", "2.1")
SCHEMAS = {
    ".bcfv": "visinfo",
    ".bcf": "markup",
    ".bcfp": "project",
    "extensions.xml": "extensions",
    "bcf.version": "version",
}


@pytest.fixture(scope="module")
def house():
    return house_clashes()


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def schemas(version):
    """A function that finds the published schema of a file; the schemas come with bcf-client."""
    xmlschema = pytest.importorskip("xmlschema")
    pytest.importorskip("bcf")
    folder = files("bcf").joinpath(f"v{version[0]}", "xsd")
    known = {}

    def schema_of(name):
        kind = next(kind for end, kind in SCHEMAS.items() if name.endswith(end))
        if kind not in known:
            known[kind] = xmlschema.XMLSchema(str(folder.joinpath(f"{kind}.xsd")))
        return known[kind]

    return schema_of


def png(color=0):
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (4, 3), (color, 0, 0)).save(out, "png")
    return out.getvalue()


def report(house, tmp_path, version, name="report.bcf"):
    """A report with every status, pictures of some clashes, and one clash that is gone."""
    clashes, columns = house
    gone = compare({k: v[:1].copy() for k, v in columns.items()}, columns)
    kept = {k: v[1:] for k, v in columns.items()}
    names = columns["id"]
    accepted = {names[2]: Acceptance(names[2], "", ""), names[3]: Acceptance(names[3], "Ann", "ok")}
    rows = compare(kept, columns, accepted)
    assert {*rows["status"]} == {"same", "accepted", "gone"} and len(gone["id"]) == len(names)
    pictures = {name: png(k) for k, name in enumerate(names[:3].tolist())}
    path = tmp_path / name
    write_bcf(clashes, rows, path, version=version, pictures=pictures, created=DATE)
    return path, rows, pictures


def test_valid_by_the_schemas(house, tmp_path, version, schemas):
    path, _rows, _ = report(house, tmp_path, version)
    checked = set()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith((".png", ".xsd")):
                continue
            schemas(name).validate(archive.read(name).decode())
            checked.add(name.rpartition(".")[2])
    assert {"bcf", "bcfv", "version", "bcfp"} <= checked


def test_an_invalid_file_is_noticed(house, tmp_path, version, schemas):
    import xmlschema

    path, _, _ = report(house, tmp_path, version)
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("markup.bcf"))
        text = archive.read(name).decode()
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schemas(name).validate(text.replace("<Title>", "<Titel>").replace("</Title>", "</Titel>"))


def opened(path, version):
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(np, "float_", np.float64, raising=False)  # bcf-client is for NumPy 1
        reader = pytest.importorskip(f"bcf.v{version[0]}.bcfxml")
        return reader.BcfXml.load(path)


def test_an_independent_reader_reads_it(house, tmp_path, version):
    path, rows, pictures = report(house, tmp_path, version)
    with opened(path, version) as file:
        assert file.version.version_id == version
        assert len(file.topics) == len(rows["id"])
        by_id = {}
        for topic in file.topics.values():
            found = re.search(r"id: (\w+)", topic.topic.description)
            by_id[found[1]] = topic
        for k, name in enumerate(rows["id"].tolist()):
            topic = by_id[name]
            closed = rows["status"][k] in ("accepted", "gone")
            assert topic.topic.topic_status == ("Closed" if closed else "Open")
            assert topic.topic.topic_type == "Clash"
            labels = topic.topic.labels
            assert rows["verdict"][k] in (labels.label if version == "3.0" else labels)
            (first, *_) = topic.viewpoints.values()
            assert first.snapshot == pictures.get(name)
            views = [view.visualization_info for view in topic.viewpoints.values()]
            assert len(views) == 2
            for view in views:
                assert_frames(view, rows, k, house[0])
                assert_parts(view, rows, k, version)


def assert_frames(view, rows, k, clashes):
    """The camera sees the whole region of the clash."""
    camera = view.perspective_camera
    names = ("camera_view_point", "camera_direction", "camera_up_vector")
    eye, ahead, up = (np.array([t.x, t.y, t.z]) for t in (getattr(camera, n) for n in names))
    assert np.linalg.norm(ahead) == pytest.approx(1)
    assert ahead @ up == pytest.approx(0, abs=1e-12)
    frame = clash_frames(rows, clashes.parts)[k]
    offset = frame_corners(frame) - eye
    deep = offset @ ahead
    tangent = np.tan(np.radians(camera.field_of_view) / 2)
    assert (deep > 0).all()
    assert (np.abs(offset @ up) <= deep * tangent * 1.0001).all()
    assert (np.abs(offset @ np.cross(ahead, up)) <= deep * tangent * 4 / 3 * 1.0001).all()
    box = np.array([[rows[f"{c}_{x}"][k] for x in "xyz"] for c in ("low", "high")])
    assert (frame[0] <= box[0]).all() and (frame[1] >= box[1]).all()


def assert_parts(view, rows, k, version):
    """Both parts are selected and coloured, by GlobalId if the file is IFC."""
    names = [rows[f"{side}_id"][k] for side in "ab"]
    files = [rows[f"{side}_file"][k] for side in "ab"]
    selected = view.components.selection.component
    for name, file, part in zip(names, files, selected, strict=True):
        given = part.ifc_guid if file.endswith(".ifc") else part.authoring_tool_id
        assert given == name
        assert (part.ifc_guid is None) == (not file.endswith(".ifc"))
    colors = view.components.coloring.color
    parts = [c.components.component[0] if version == "3.0" else c.component[0] for c in colors]
    assert parts == selected
    assert colors[0].color != colors[1].color
    shown = view.components.visibility
    if not shown.default_visibility:
        assert shown.exceptions.component == selected


def test_equal_reports_are_equal_bytes(house, tmp_path, version):
    first, *_ = report(house, tmp_path, version)
    again, *_ = report(house_clashes(), tmp_path, version, "again.bcfzip")
    assert first.read_bytes() == again.read_bytes()


def test_a_clash_keeps_its_topic(tmp_path, version):
    """The next run has other clashes before it, and another depth."""
    folders = []
    for count in (3, 6):
        clashes = make_clashes(count)
        clashes.depth[:] += count
        columns = columns_of(clashes, facts_of)
        path = write_bcf(clashes, columns, tmp_path / "r.bcf", version=version, created=DATE)
        with zipfile.ZipFile(path) as archive:
            folders.append({name.partition("/")[0] for name in archive.namelist() if "/" in name})
    assert len(folders[0]) == 3
    assert folders[0] < folders[1]


def test_hostile_texts_stay_texts(house, tmp_path, version):
    """A name with markup and control characters is a text of a well-formed file."""
    path, rows, _ = report(house, tmp_path, version)
    assert HOSTILE in [*rows["a_name"], *rows["b_name"]]
    seen = 0
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith("markup.bcf"):
                root = ElementTree.fromstring(archive.read(name))
                title = root.findtext("Topic/Title")
                seen += "<script>window.hurt=1</script>" in title
                assert not root.findall(".//script")
    assert seen


def test_related_topics_are_those_of_the_group(house, tmp_path, version):
    clashes, columns = house
    path = write_bcf(clashes, columns, tmp_path / "r.bcf", version=version, created=DATE)
    with zipfile.ZipFile(path) as archive:
        texts = [archive.read(name) for name in archive.namelist() if name.endswith("markup.bcf")]
    topics = {}
    for k, text in enumerate(texts):
        root = ElementTree.fromstring(text)
        related = {element.get("Guid") for element in root.iter("RelatedTopic")}
        topics[root.find("Topic").get("Guid")] = (columns["group"][k], related)
    for own, (group, related) in topics.items():
        others = {name for name, (g, _) in topics.items() if g == group and name != own}
        assert related == others  # groups of two


def test_a_clash_without_a_place_has_no_viewpoint(tmp_path, version):
    clashes = make_clashes(2)
    clashes.box[0], clashes.point_a[0] = np.nan, np.nan
    columns = columns_of(clashes, facts_of)
    path = write_bcf(clashes, columns, tmp_path / "r.bcf", version=version, created=DATE)
    with zipfile.ZipFile(path) as archive:
        views = [name for name in archive.namelist() if name.endswith(".bcfv")]
    assert len(views) == 2


def test_no_rows(tmp_path, version):
    clashes = make_clashes(0)
    columns = columns_of(clashes, facts_of)
    path = write_bcf(clashes, columns, tmp_path / "deep" / "r.bcf", version=version)
    with opened(path, version) as file:
        assert len(file.topics) == 0


def test_refused(house, tmp_path):
    with pytest.raises(OptionError, match=r"3\.0.*2\.1.*'2\.0'"):
        write_bcf(*house, tmp_path / "r.bcf", version="2.0")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"r\.bcf"):
        write_bcf(*house, tmp_path / "file" / "r.bcf")


def test_sizes_are_for_people():
    """Nobody looks at nanometres."""
    from abut.coordination.report.row_texts import row_size

    clashes = make_clashes(4)
    clashes.depth[:], clashes.distance[:] = [2e-10, 0.0123, 0.0, 1e-4], [0.0, 0.0, 3e-9, 0.0]
    clashes.depth_error[3] = 9e-4
    columns = columns_of(clashes, facts_of)
    sizes = [row_size(columns, row) for row in range(4)]
    assert sizes == ["<0.001 mm deep", "12.3 mm deep", "<0.001 mm apart", "at most 1 mm deep"]


def test_parts_of_one_name_are_told_apart():
    """A part that two files have, and two parts of a file."""
    columns = make_columns(3)
    columns["b_name"], columns["b_type"] = columns["a_name"].copy(), columns["a_type"].copy()
    columns["b_file"][1] = "other/services.ifc"
    first, second = part_names(columns, 0), part_names(columns, 1)
    assert first == [f"{part_name(columns, 'a', 0)} {columns[f'{side}_id'][0]}" for side in "ab"]
    assert [name.rpartition(" ")[2] for name in second] == ["house.ifc", "services.ifc"]
    assert all(name in row_title(columns, 1) for name in second)
    columns["b_name"][2] = "another"
    assert part_names(columns, 2) == [part_name(columns, side, 2) for side in "ab"]
