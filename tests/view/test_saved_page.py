"""Pages and pictures in files, and sequences."""

import numpy as np
import pytest
import trimesh
from PIL import Image

import abut
from abut import cases
from abut.cli import main
from abut.view.page.saved_page import save_page
from abut.view.page.show_page import make_page
from browser import Tab

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meshes")
    for name, shape in zip("ab", cases.pair("spheres", faces=300), strict=True):
        trimesh.Trimesh(*shape, process=False).export(folder / f"{name}.ply")
    ball = cases.icosphere(320)
    for k in range(4):
        stretched = ball.vertices * [1.0, 1.0, 1.0 + k / 4]
        trimesh.Trimesh(stretched, ball.faces, process=False).export(folder / f"ball_{k}.ply")
    return folder


def run(*words):
    return main([*map(str, words), "--device", "cpu"])


def test_saved_page_opens_offline(browser, files, capsys):
    path = files / "page.html"
    assert run("view", files / "a.ply", files / "b.ply", "--save", path) == 0
    assert capsys.readouterr().out == ""
    meshes = [abut.Mesh.load(files / f"{name}.ply", "cpu") for name in "ab"]
    tab = Tab(browser, offline=True)
    tab.open(path.as_uri())
    assert tab.fact("face pairs in contact") == f"{len(abut.collide(*meshes)):,}"
    tab.until(lambda: tab.pixels().std() > 20)
    assert tab.errors == []
    assert all(url.startswith(("file:", "blob:", "data:")) for url in tab.requests)
    tab.close()


def test_picture_without_a_browser(files):
    path = files / "picture.png"
    words = (files / "a.ply", files / "b.ply", "--picture", path, "--size", "240x160")
    assert run("view", *words) == 0
    pixels = np.asarray(Image.open(path)).astype(int)
    assert pixels.shape == (160, 240, 3)
    red = (pixels[..., 0] > 120) & (pixels[..., 1] < 80) & (pixels[..., 2] < 80)
    assert red.sum() > 20


def test_files_that_cannot_be_drawn(files, capsys):
    assert run("view", files / "none.ply", "--picture", files / "none.png") == 2
    said = capsys.readouterr().err
    assert "none.ply" in said
    assert "nothing to draw" in said
    assert not (files / "none.png").exists()


def test_numbered_files_are_frames(files):
    from argparse import Namespace

    from abut.cli.view import load_files

    numbered = sorted(map(str, files.glob("ball_*.ply")))
    args = Namespace(files=numbered, frames=None, demo=None, device="cpu")
    scene, frames, messages = load_files(args)
    assert (len(scene), len(frames), messages) == (1, 4, [])
    args.frames = False
    scene, frames, _ = load_files(args)
    assert (len(scene), len(frames)) == (4, 0)
    assert set(scene.names) == {f"ball_{k}" for k in range(4)}
    args.files = [str(files / "a.ply"), str(files / "b.ply")]
    args.frames = None
    assert len(load_files(args)[0]) == 2
    args.files = [numbered[0], numbered[0]]
    args.frames = False
    assert set(load_files(args)[0].names) == {"ball_0", "ball_0 2"}


def test_sequence(browser):
    """Two balls that come apart, as one mesh: numbers of each frame are those of the verb."""
    a, b = cases.pair("spheres", faces=300)
    whole = cases.joined(a, b)
    frames = [np.concatenate([a.vertices, b.moved((x, 0, 0)).vertices]) for x in (0.0, 0.4, 3.0)]
    mesh = abut.Mesh(*whole, device="cpu")
    page = make_page(mesh, port=0, frames=frames)
    assert page.shown.wait(120)
    tab = Tab(browser)
    tab.open(page.url)
    tab.tab.get_by_role("button", name="play").click()
    player = page.player
    tab.until(lambda: np.isfinite(player.numbers["face pairs"]).all())
    tab.tab.get_by_role("button", name="pause").click()
    counts = [len(abut.self_collide(abut.Mesh(f, whole.faces, device="cpu"))) for f in frames]
    np.testing.assert_array_equal(player.numbers["face pairs"], counts)
    assert counts[0] > counts[1] > counts[2] == 0
    assert tab.fact("impacts") is None
    tab.until(lambda: tab.tab.locator(".uplot").count() >= 2)
    player.ccd.value = True
    for frame in (2, 1, 0):
        player.slider.value = frame
        tab.until(lambda frame=frame: tab.fact("face pairs in contact") == f"{counts[frame]:,}")
    mesh = abut.Mesh(*whole, device="cpu")
    impacts = abut.ccd(abut.Motion(mesh, end=frames[1]))
    tab.until(lambda: tab.fact("impacts") == f"{len(impacts):,}")
    assert len(page.player.points.points) == len(impacts)
    assert tab.errors == []
    tab.close()
    page.close()


def test_demos_and_robots(files, capsys):
    from abut.cli.view import load_demo

    scene, frames = load_demo("tori", "cpu")
    assert (set(scene.names), frames) == ({"tori 1", "tori 2"}, [])
    assert run("view", files / "a.ply", "--demo", "tori") == 2
    assert run("view") == 2
    assert "--demo" in capsys.readouterr().err


ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="1 1 0.2"/></geometry></collision></link>
  <link name="low"><collision><origin xyz="0 0 0.7"/><geometry><box size="0.2 0.2 1"/></geometry>
  </collision></link>
  <link name="high"><collision><origin xyz="0 0 0.7"/><geometry><box size="0.2 0.2 1.3"/></geometry>
  </collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="low"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="continuous"><parent link="low"/><child link="high"/>
    <origin xyz="0 0 1.3"/><axis xyz="0 1 0"/></joint>
</robot>"""


def test_joints_of_a_robot(browser, files):
    """The arm folds back onto its base when the elbow turns."""
    from abut.cli.view import load_objects

    (files / "arm.urdf").write_text(ARM)
    scene, messages = load_objects([str(files / "a.ply"), str(files / "arm.urdf")], "cpu")
    assert messages == []
    assert len(scene) == 4
    scene.move("a", np.array([[1, 0, 0, 9], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    page = make_page(scene, port=0)
    assert page.shown.wait(120)
    tab = Tab(browser)
    tab.open(page.url)
    assert tab.tab.get_by_text("elbow").first.is_visible()
    assert tab.until(lambda: tab.fact("object pairs in contact")) == "0"
    shoulder, elbow = page.joints.sliders
    assert (shoulder.min, shoulder.max) == (-1, 1)
    elbow.value = 3.0
    truth = abut.Scene.load(files / "arm.urdf", "cpu")
    truth.move([0, 1, 2], truth.robot.poses([0.0, 3.0]))
    count = len(truth.collide())
    assert count > 0
    tab.until(lambda: tab.fact("face pairs in contact") == f"{count:,}")
    assert tab.errors == []
    tab.close()
    page.close()


def test_saved_sequence_plays_offline(browser, files):
    """The film of a ball that becomes longer: its picture changes by itself."""
    numbered = sorted(files.glob("ball_*.ply"))
    path = files / "film.html"
    assert run("view", *numbered, "--save", path) == 0
    tab = Tab(browser, offline=True)
    tab.open(path.as_uri())
    assert tab.fact("faces") == "320"
    first = tab.pixels()
    tab.until(lambda: (np.abs(tab.pixels() - first).sum(axis=2) > 30).sum() > 50)
    assert tab.errors == []
    tab.close()


def shapes_of(*factors):
    return [cases.icosphere(80).vertices * factor for factor in factors]


def test_frames_of_one_array():
    page = make_page(
        abut.Mesh(*cases.icosphere(80), device="cpu"), port=0, frames=np.stack(shapes_of(1.0, 1.2))
    )
    page.wait_until_shown()
    page.show_frame(1)
    assert page.player.shown == 1
    page.close()


def test_a_frame_that_comes_back(tmp_path):
    """The first frame is also the last one."""
    first, other = shapes_of(1.0, 1.2)
    mesh = abut.Mesh(*cases.icosphere(80), device="cpu")
    page = make_page(mesh, port=0, frames=[first, other, first])
    save_page(page, tmp_path / "page.html")
    assert page.player.shown == 2
    assert np.isfinite(page.player.numbers["milliseconds"]).all()
    with pytest.raises(abut.OptionError, match="no frame 3"):
        page.show_frame(3)
    page.close()
    page.shown.clear()
    with pytest.raises(abut.AbutError, match="closed"):
        page.show_frame(1)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (np.full((42, 3), np.nan), r"frames\[1\]: vertex 0 is not finite"),
        (np.zeros((5, 3)), r"frames\[1\] has shape \(5, 3\)"),
        ("ball.ply", "arrays"),
    ],
)
def test_frames_that_cannot_be_played(frame, said):
    mesh = abut.Mesh(*cases.icosphere(80), device="cpu")
    with pytest.raises(abut.AbutError, match=said):
        make_page(mesh, port=0, frames=[*shapes_of(1.0), frame])


def test_a_page_that_cannot_answer_is_not_waited_for(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("abut.view.page.live_scene.answer", fail)
    page = make_page(abut.Mesh(*cases.icosphere(80), device="cpu"), port=0)
    with pytest.raises(abut.AbutError, match="out of memory"):
        save_page(page, tmp_path / "page.html")
    assert "out of memory" in page.panel.message.content
    page.close()
    assert not (tmp_path / "page.html").exists()
