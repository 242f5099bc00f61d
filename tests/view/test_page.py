"""The page in a real browser."""

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.view.page.show_page import make_page
from browser import Tab, on_screen

pytest.importorskip("viser")


def open_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def require_free(port):
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        again.bind(("127.0.0.1", port))


@pytest.fixture(scope="module")
def meshes():
    return [abut.Mesh(*shape, device="cpu") for shape in cases.pair("spheres", faces=300)]


@pytest.fixture(scope="module")
def shown(meshes):
    page = abut.view.show(meshes, open_page=False, block=False, port=open_port())
    assert page.shown.wait(120)
    yield page
    page.close()


@pytest.fixture(scope="module")
def opened(browser, shown):
    tab = Tab(browser)
    tab.open(shown.url)
    tab.until(lambda: tab.fact("face pairs in contact"))
    yield tab
    tab.close()


@pytest.fixture
def page(shown):
    """The page, with all objects where they were at the start."""
    shown.live.move({row: shown.live.start[row] for row in shown.live.objects})
    return shown


@pytest.fixture
def tab(opened, page, meshes):
    count = f"{len(abut.collide(*meshes)):,}"
    opened.until(lambda: opened.fact("face pairs in contact") == count)
    return opened


def camera_of(page):
    (client,) = page.server.get_clients().values()
    return client.camera


def test_counts_without_errors(tab, meshes):
    count = len(abut.collide(*meshes))
    assert tab.fact("face pairs in contact") == f"{count:,}"
    assert tab.fact("method") == "bvh"
    assert tab.fact("bound") == "aabb"
    assert tab.fact("device") == "cpu"
    assert tab.tab.get_by_text(f"0 · 1: {count} face pairs").is_visible()
    assert tab.errors == []
    assert all(url.startswith(("http://127.0.0.1", "blob:", "data:")) for url in tab.requests)


def test_the_picture_shows_red_faces_and_a_section(tab, page):
    tab.until(lambda: red_pixels(tab.pixels()) > 100)
    whole = tab.pixels()
    assert whole.std() > 20
    page.axis.value = "x"
    tab.until(lambda: page.sections.outline.visible)
    tab.until(lambda: (np.abs(tab.pixels() - whole).sum(axis=2) > 30).sum() > 1000)
    page.axis.value = "off"
    tab.until(lambda: not page.sections.outline.visible)
    assert tab.errors == []


def test_every_number_has_a_name_of_its_own(tab):
    """Regression: the distance and its milliseconds had one name."""
    names = tab.tab.evaluate(
        "() => [...document.querySelectorAll('td:first-child')].map(cell => cell.textContent)"
    )
    assert "time of distance" in names and len(set(names)) == len(names)


def test_names_of_rows_are_shown_whole(browser, meshes):
    """Regression: the number behind long names was cut off."""
    names = [f"storey {k}: outer wall of the house, left of the front door" for k in range(2)]
    page = make_page(abut.Scene(dict(zip(names, meshes, strict=True))), port=open_port())
    tab = Tab(browser)
    tab.open(page.url)
    label = tab.tab.locator(".mantine-Button-label").filter(has_text=names[0])
    label.wait_for()
    inside = label.evaluate(
        "e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"
    )
    outside = label.evaluate("e => e.clientHeight <= e.closest('button').clientHeight")
    assert inside and outside and tab.errors == []
    tab.close()
    page.close()


def red_pixels(pixels):
    red, green, blue = np.moveaxis(pixels, 2, 0)
    return ((red > 110) & (green < 80) & (blue < 80)).sum()


def test_dragging_changes_the_answers(tab, page, meshes):
    tab.tab.get_by_label("move").first.click()
    tab.tab.get_by_role("option", name="1 (1)").click()
    tab.until(lambda: page.gizmo.visible)
    tab.tab.wait_for_timeout(1000)
    before = tab.fact("face pairs in contact")
    lift = np.array([0, 0, 0.8 * page.gizmo.scale])
    ends = page.gizmo.position, page.gizmo.position + lift
    at, tip = (np.array(on_screen(camera_of(page), p, tab.canvas())) for p in ends)
    mouse = tab.tab.mouse
    mouse.move(*tip)
    tab.tab.wait_for_timeout(500)
    mouse.down()
    mouse.move(*(tip + 0.4 * (tip - at)), steps=6)
    mouse.up()
    tab.until(lambda: tab.fact("face pairs in contact") != before)
    tab.until(lambda: tab.fact("face pairs in contact") == f"{count_now(page, meshes):,}")
    assert page.live.poses[1, 2, 3] > 0.05
    assert tab.errors == []


def count_now(page, meshes):
    return len(abut.collide(*meshes, pose_b=page.live.poses[1]))


def test_clicking_a_row_moves_the_camera(tab, page):
    before = np.array(camera_of(page).position)
    tab.tab.get_by_role("button", name="0 · 1").click()
    tab.until(lambda: np.linalg.norm(camera_of(page).position - before) > 0.1)
    middle = page.frame.points(page.live.answers.segments).reshape(-1, 3)
    middle = (middle.min(axis=0) + middle.max(axis=0)) / 2
    tab.until(lambda: np.abs(camera_of(page).look_at - middle).max() < 1e-3)


def test_two_tabs_see_the_same_scene(browser, tab, page):
    other = Tab(browser)
    other.open(page.url)
    pose = np.eye(4)
    pose[2, 3] = 9.0
    page.live.move({1: pose})
    for seen in (tab, other):
        seen.until(lambda seen=seen: seen.fact("face pairs in contact") == "0")
    assert tab.fact("distance") == other.fact("distance") != "0"
    other.close()


def test_methods_show_the_same_rows(tab, page):
    count = tab.fact("face pairs in contact")
    for method in ("brute", "kdop", "far", "front"):
        page.panel.method.value = method
        tab.until(lambda method=method: tab.fact("method") == method)
        assert tab.fact("face pairs in contact") == count
    page.panel.method.value = "bvh"


def test_closing_the_tab_ends_the_page(browser, meshes, monkeypatch):
    monkeypatch.setattr("abut.view.page.page.GRACE", 0.3)
    port = open_port()
    page = abut.view.show(meshes, open_page=False, block=False, port=port)
    tab = Tab(browser)
    tab.open(page.url)
    tab.until(page.server.get_clients)
    tab.close()
    page.wait()
    page.close()
    require_free(port)


def test_errors_are_on_the_page(browser):
    page = abut.view.show(
        [], open_page=False, block=False, port=open_port(), messages=["no <b>file</b> here"]
    )
    tab = Tab(browser)
    tab.open(page.url)
    assert tab.until(lambda: tab.tab.get_by_text("no <b>file</b> here").is_visible())
    assert tab.errors == []
    tab.close()
    page.close()


def test_no_file_of_the_disk_is_served(page):
    for path in ("/../viser/__init__.py", "/%2e%2e/%2e%2e/__init__.py", "//etc/passwd"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(page.url + path)


def test_only_this_machine_by_default(page):
    assert page.url.startswith("http://127.0.0.1:")
    assert page.server.get_host() == "127.0.0.1"
    assert page.server.request_share_url() is None


def test_interrupt_ends_the_command_and_frees_the_port(tmp_path, meshes):
    """A file that cannot be read is reported; the other one is shown."""
    path = tmp_path / "ball.ply"
    trimesh.Trimesh(meshes[0].vertices.numpy(), meshes[0].faces.numpy()).export(path)
    (tmp_path / "broken.ply").write_bytes(b"ply")
    port = open_port()
    words = ["view", path, tmp_path / "broken.ply", "--no-open", "--port", port, "--device", "cpu"]
    command = [sys.executable, "-m", "abut", *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == f"abut: http://127.0.0.1:{port} (Ctrl-C ends)\n"
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}").status == 200
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=300)  # kernels being compiled are finished
        finally:
            process.kill()
    assert process.returncode == 0
    assert out == ""
    assert "broken.ply" in said
    assert "Traceback" not in said
    require_free(port)


def test_objects_that_share_a_mesh_are_one_batch():
    mesh = abut.Mesh(*cases.box(), device="cpu")
    poses = np.tile(np.eye(4), (100, 1, 1))
    poses[:, 0, 3] = 3.0 * np.arange(100)
    scene = abut.Scene("cpu")
    scene.add(mesh, pose=poses)
    page = make_page(scene, port=0)
    assert page.shown.wait(120)
    (node,) = page.objects.nodes
    np.testing.assert_array_equal(node.rows, np.arange(100))
    page.shown.clear()
    page.live.move({7: poses[6]})
    assert page.shown.wait(120)
    at = page.frame.world(node.handle.batched_positions)
    np.testing.assert_allclose(at[7], at[6], atol=1e-4)
    np.testing.assert_allclose(at[8, 0] - at[6, 0], 6.0, atol=1e-3)
    assert page.live.answers.object_pairs[0].tolist() == [[6, 7]]
    marked = page.frame.world(page.answers.faces.vertices)
    np.testing.assert_allclose(marked.mean(axis=0), at[6], atol=1e-2)
    page.close()


def test_large_coordinates_are_sent_near_the_origin():
    shape = cases.icosphere(320).moved((1e6, 0, 0))
    page = make_page(abut.Mesh(*shape, device="cpu"), port=0)
    (node,) = page.objects.nodes
    sent = node.handle.vertices / page.frame.scale
    np.testing.assert_allclose(sent, shape.vertices - [1e6, 0, 0], atol=1e-6)
    page.close()


def test_scene_that_moves_is_followed(meshes):
    scene = abut.Scene("cpu")
    for mesh in meshes:
        scene.add(mesh)
    page = make_page(scene, scene.collide(), port=0)
    assert page.shown.wait(120)
    assert len(page.live.answers.faces) == len(abut.collide(*meshes))
    pose = np.eye(4)
    pose[0, 3] = 9.0
    scene.move(1, pose)
    page.shown.clear()
    page.update()
    assert page.shown.wait(120)
    assert page.live.answers.clearance == abut.distance(*meshes, pose_b=pose).value
    page.close()


@pytest.mark.slow
def test_two_bunnies_are_answered_30_times_a_second(data):
    """Poses arrive faster than answers, as from a drag; contacts and distances alternate."""
    mesh = abut.Mesh.load(data / "models" / "bunny_69k.ply", "cpu")
    size = np.ptp(mesh.vertices.numpy(), axis=0).max()
    page = make_page([mesh, mesh], port=0)
    assert page.shown.wait(120)

    def drag(seconds):
        before, start = page.panel.answered, time.monotonic()
        while (now := time.monotonic() - start) < seconds:
            pose = np.eye(4)
            pose[0, 3] = size * (0.75 + 0.7 * np.cos(2 * now))
            page.live.move({1: pose})
            time.sleep(1 / 240)
        return (page.panel.answered - before) / seconds

    drag(2.0)  # loads kernels
    assert drag(4.0) > 30
    page.close()
