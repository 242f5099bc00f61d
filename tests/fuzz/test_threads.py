"""One thread deforms a mesh while others query it: every answer is about one shape."""

import threading
import time

import numpy as np
import pytest

import abut
from abut import cases

BALL = cases.icosphere(320)
SHAPES = [BALL.moved((0, 0, 1.2)).vertices, BALL.vertices * 1.3 + [0.1, 0, 1.0]]
POINTS = np.random.default_rng(0).normal(size=(100, 3))


def near_rows(answer):
    return answer.value, answer.faces.numpy().tobytes()


VERBS = {
    "collide": lambda mesh, other: abut.collide(mesh, other).pairs.numpy().tobytes(),
    "collide first": lambda mesh, other: bool(abut.collide(mesh, other, first=True)),
    "kdop": lambda mesh, other: abut.collide(mesh, other, method="kdop").pairs.numpy().tobytes(),
    "obb": lambda mesh, other: abut.collide(mesh, other, bound="obb").pairs.numpy().tobytes(),
    "self_collide": lambda mesh, other: abut.self_collide(mesh).pairs.numpy().tobytes(),
    "within": lambda mesh, other: abut.within(mesh, other, 0.05).pairs.numpy().tobytes(),
    "distance": lambda mesh, other: near_rows(abut.distance(mesh, other, pose_b=AWAY)),
    "closest_point": lambda m, _: abut.closest_point(m, POINTS).distance.numpy().tobytes(),
    "one point": lambda mesh, _: float(abut.closest_point(mesh, POINTS[:1]).distance.numpy()[0]),
    "signed": lambda m, _: abut.closest_point(m, POINTS, signed=True).distance.numpy().tobytes(),
    "cull": lambda mesh, other: abut.cull([mesh, other], pixels=32).faces.numpy().tobytes(),
}
AWAY = np.eye(4)
AWAY[2, 3] = 5.0


def torn_answers(verb, device, seconds, threads=2):
    """Return how many answers were asked, and those that belong to neither shape."""
    other = abut.Mesh(*BALL, device)
    right = {verb(abut.Mesh(shape, BALL.faces, device), other) for shape in SHAPES}
    mesh = abut.Mesh(SHAPES[0], BALL.faces, device)
    done, asked, wrong = threading.Event(), [], []

    def ask():
        while not done.is_set():
            try:
                answer = verb(mesh, other)
            except Exception as error:
                wrong.append(repr(error))
            else:
                asked.append(1)
                if answer not in right:
                    wrong.append("an answer of neither shape")

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    end, k = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        k += 1
        mesh.deform(SHAPES[k % 2])
        time.sleep(0.002 * (k % 4))
    done.set()
    for worker in workers:
        worker.join()
    return len(asked), wrong


@pytest.mark.parametrize("verb", VERBS)
def test_deforming_while_others_query(verb, device):
    """Regression: torn answers, such as 170, 199 and 305 rows where 420 or 466 were right."""
    asked, wrong = torn_answers(VERBS[verb], device, 0.4)
    assert asked and not wrong


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_deforming_while_many_query(verb, device):
    asked, wrong = torn_answers(VERBS[verb], device, 8.0, threads=6)
    assert asked and not wrong


def test_volumes_are_not_fitted_to_vertices_of_another_shape(monkeypatch):
    """Regression: a thread fitted the swept spheres of the next shape to the one it had read.

    Others then found no distance until the mesh deformed again.
    """
    from abut.bvh.bvh_cache import bvh_of
    from abut.options import Bound
    from abut.query import one_distance

    meshes = [abut.Mesh(shape, BALL.faces, "cpu") for shape in SHAPES]
    mesh, other = meshes[0], abut.Mesh(*BALL, "cpu")
    right = abut.distance(meshes[1], other, pose_b=AWAY).value
    make, deformed = one_distance.make_posed_mesh, []

    def deform_in_another_thread():
        mesh.deform(SHAPES[1])
        bvh_of(mesh, Bound.RSS, on_demand=True)

    def make_and_deform(*of):
        side = make(*of)
        if not deformed:
            deformed.append(threading.Thread(target=deform_in_another_thread))
            deformed[0].start()
            deformed[0].join()
        return side

    monkeypatch.setattr(one_distance, "make_posed_mesh", make_and_deform)
    assert abut.distance(mesh, other, pose_b=AWAY).value == right
    assert deformed and abut.distance(mesh, other, pose_b=AWAY).value == right


def test_a_query_that_never_sees_one_shape(monkeypatch):
    """It says so."""
    from abut.query import steady

    mesh = abut.Mesh(*BALL, "cpu")

    @steady.steady
    def ask(operand):
        operand.deform(BALL.vertices)

    with pytest.raises(abut.MeshError, match="hold a lock"):
        ask(mesh)
