"""Answers of a live scene: the rows of the verbs, after every change."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.options import Method
from abut.view.page.answer_rows import FACE_PAIRS, OBJECT_PAIRS, row_count, rows_from, title_of
from abut.view.page.answers import Question, answer
from abut.view.page.given_results import answers_of
from abut.view.page.live_scene import LiveScene, start_answering


@pytest.fixture
def scene(device):
    scene = abut.Scene(device)
    for name, shape in zip("ab", cases.pair("spheres", faces=300), strict=True):
        scene.add(abut.Mesh(*shape, device=device), name=name)
    return scene


def shifted(by):
    pose = np.eye(4)
    pose[0, 3] = by
    return pose


@pytest.mark.parametrize("method", [m for m in Method if "cullide" not in m])
def test_every_method_gives_the_rows_of_brute_force(scene, method):
    found, truth = (answer(scene, Question(m)) for m in (method, "brute"))
    assert len(truth.faces) > 10
    np.testing.assert_array_equal(found.faces, truth.faces)
    np.testing.assert_array_equal(found.objects, truth.objects)
    np.testing.assert_array_equal(found.segments, truth.segments)
    assert found.clearance == 0.0
    assert {"contacts", "curves", "distance"} <= set(found.milliseconds)


def test_distance_of_objects_apart(scene):
    scene.move("b", shifted(9.0))
    found = answer(scene, Question())
    near = abut.distance(scene.mesh("a"), scene.mesh("b"), pose_b=shifted(9.0))
    assert found.nearest is not None
    assert found.clearance == near.value > 0
    np.testing.assert_array_equal(found.nearest.points, near.points.numpy())
    assert np.isnan(answer(scene, Question(distance=False)).clearance)


def test_one_object_has_no_distance(device):
    mesh = abut.Mesh(*cases.single("folded_cloth", faces=600), device=device)
    scene = abut.Scene(device)
    scene.add(mesh)
    found = answer(scene, Question(self_collisions=True))
    np.testing.assert_array_equal(found.faces, abut.self_collide(mesh).pairs.numpy())
    assert found.nearest is None
    assert np.isnan(found.clearance)


def test_rows(scene):
    live = LiveScene(scene, Question())
    live.next_changes()
    live.answer()
    assert live.answers is not None
    count = len(live.answers.faces)
    (whole,) = rows_from(live, live.answers, OBJECT_PAIRS, 0, 5)
    assert whole.text == f"a · b: {count} face pairs"
    assert row_count(live.answers, FACE_PAIRS) == count
    assert title_of(live.answers, OBJECT_PAIRS) == "object pairs: 1"
    rows = rows_from(live, live.answers, FACE_PAIRS, 3, 4)
    assert [row.key[2:] for row in rows] == list(map(tuple, live.answers.faces[3:7].tolist()))
    live.move({1: shifted(9.0)})
    live.next_changes()
    live.answer()
    (near,) = rows_from(live, live.answers, FACE_PAIRS, 0, 5)
    a, b = live.answers.nearest.faces.tolist()
    assert near.text == f"a face {a} · b face {b}: distance {live.answers.clearance:.4g}"
    assert title_of(live.answers, OBJECT_PAIRS) == "nearest objects"
    assert rows_from(live, live.answers, FACE_PAIRS, 1, 5) == []


def test_a_row_about_one_object_names_it_once():
    cloth = abut.Mesh(*cases.single("folded_cloth", 500), device="cpu")
    live = LiveScene(abut.Scene({"cloth": cloth}), Question(self_collisions=True))
    live.next_changes()
    live.answer()
    (row,) = rows_from(live, live.answers, OBJECT_PAIRS, 0, 5)
    assert row.text == f"cloth · itself: {len(live.answers.faces)} face pairs"


def test_changes_are_coalesced(scene):
    live = LiveScene(scene, Question())
    assert live.next_changes() == ([], [])
    for by in (1.0, 2.0, 9.0):
        live.move({1: shifted(by)})
    assert live.next_changes() == ([1], [])
    np.testing.assert_array_equal(live.poses[1], shifted(9.0))
    np.testing.assert_array_equal(scene.poses.numpy()[1], shifted(9.0))
    live.close()
    assert live.next_changes() is None


def test_errors_become_messages_and_the_loop_goes_on(scene):
    live = LiveScene(scene, Question(method="kdop", self_collisions=True))
    shown = []
    thread = start_answering(live, lambda *_: (shown.append(live.message), live.close()))
    thread.join(60)
    assert not thread.is_alive()
    assert "self_collisions" in shown[0]


def test_deformed_objects(scene):
    live = LiveScene(scene, Question())
    vertices = scene.mesh("b").vertices.numpy() + np.array([9.0, 0.0, 0.0])
    live.deform({1: vertices})
    assert live.next_changes() == ([], [1])
    np.testing.assert_array_equal(live.points(1), vertices)
    live.answer()
    assert live.answers is not None
    assert live.answers.clearance > 0


def test_results_that_are_given(scene):
    live = LiveScene(scene, Question())
    mine = scene.mesh("a"), scene.mesh("b")
    hits, gaps = scene.collide(), abut.within(*mine, 0.01)
    found = answers_of(live, [hits, gaps])
    np.testing.assert_array_equal(found.faces[: len(hits)], hits.pairs.numpy())
    np.testing.assert_array_equal(found.objects, np.tile([0, 1], (len(hits) + len(gaps), 1)))
    np.testing.assert_array_equal(found.values[len(hits) :], gaps.distance.numpy())
    assert np.isnan(found.values[: len(hits)]).all()
    away = abut.distance(*mine, pose_b=shifted(9.0))
    assert answers_of(live, away).clearance == away.value
    culled = abut.cull(list(mine))
    assert set(map(tuple, hits.pairs.numpy()[:, :1])) <= {(f,) for _, f in culled.faces.numpy()}
    np.testing.assert_array_equal(answers_of(live, culled).culled, culled.faces.numpy())
    with pytest.raises(abut.OptionError, match="not dict"):
        answers_of(live, [{}])


def test_impacts_that_are_given(scene):
    scene.move("b", shifted(9.0))
    ends = np.stack([np.eye(4), shifted(0.0)])
    impacts = scene.ccd(ends)
    assert len(impacts) > 3
    live = LiveScene(scene, Question())
    found = answers_of(live, impacts)
    assert found.measure == "time"
    np.testing.assert_array_equal(found.values, impacts.time.numpy())
    starts = impacts.features.numpy()[impacts.kind.numpy() == 0]
    rows = np.flatnonzero(impacts.kind.numpy() == 0)
    np.testing.assert_array_equal(found.faces[rows, 1], starts[:, 1])
    np.testing.assert_allclose(found.segments[rows, 0], live.points(0)[starts[:, 0]], atol=1e-12)


def test_culling_set_holds_all_contacts(scene):
    found = answer(scene, Question(culled=True))
    rows = set(map(tuple, found.culled.tolist()))
    assert {(0, f) for f, _ in found.faces.tolist()} <= rows
    assert {(1, g) for _, g in found.faces.tolist()} <= rows
    assert "culled" in found.milliseconds


def test_overlap_of_solids(scene):
    found = answer(scene, Question(overlap=True))
    still = {"pose_a": np.eye(4), "pose_b": np.eye(4)}
    truth = abut.overlap(scene.mesh("a"), scene.mesh("b"), **still)
    (o,) = found.overlaps
    assert (o.objects, o.relation) == ((0, 1), "crossing")
    assert o.depths == (truth.inside_a, truth.inside_b)
    assert "overlap" in found.milliseconds
    live = LiveScene(scene, Question(overlap=True))
    live.answer()
    assert "depth" in rows_from(live, live.answers, OBJECT_PAIRS, 0, 1)[0].text
    moved = np.eye(4)
    moved[:3, 3] = o.separation
    scene.move("b", moved)
    assert answer(scene, Question(overlap=True)).overlaps == []


def test_open_meshes_have_no_overlap(device):
    scene = abut.Scene(device)
    for _ in range(2):
        scene.add(abut.Mesh(*cases.plane(4, 4), device=device))
    found = answer(scene, Question(overlap=True))
    assert found.overlaps == []
    assert "closed" in found.message or "open" in found.message
    assert len(found.faces) > 0


def test_bad_changes_become_messages(scene):
    live = LiveScene(scene, Question())
    live.move({1: 2 * np.eye(4)})
    live.next_changes()
    live.answer()
    assert "rigid" in live.message
    live.move({1: shifted(0.0)})
    live.deform({0: scene.mesh("a").vertices.numpy() * np.nan})
    live.next_changes()
    live.answer()
    assert "finite" in live.message
    live.move({1: shifted(9.0)})
    live.next_changes()
    live.answer()
    assert live.message == ""


def test_the_loop_survives_an_error_of_the_page(scene, capsys):
    live = LiveScene(scene, Question())
    seen = []

    def show(*changes):
        seen.append(changes)
        if len(seen) == 1:
            live.ask()
            raise RuntimeError("a page that cannot draw")
        live.close()

    thread = start_answering(live, show)
    thread.join(60)
    assert len(seen) == 2
    assert "a page that cannot draw" in capsys.readouterr().err
