"""Newton: mesh against mesh in its collision pipeline, a world for each pose.

Newton tests the edges of each mesh against the signed distance of the other and makes contact
points for solvers. Where none is made, the meshes are apart. It has no query for face pairs or
distances of meshes. Poses are transforms on the device; contacts are read back as yes and no.
"""

from typing import Any

import newton
import numpy as np
import warp as wp

from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "newton", "newton"
NOTE = "Newton finds contacts of solids in float32, with room for a fixed number of them."
COMPILES = True
SUPPORTS = dict.fromkeys((Question.FIRST, Question.POSES), ("",))
CPU_POSES_TRIED = 20
FACES_TRIED = 10**8  # of a batch: faces of both meshes, times poses
ROOM = 200  # contacts a pose


def prepare(case: Case, choice: str = "") -> Prepared:
    """A world of two bodies for each pose, as many as do not take too long."""
    poses = np.eye(4)[None] if case.pose is None else case.pose.reshape(-1, 4, 4)
    faces = case.faces if case.other_faces is None else case.other_faces
    most = FACES_TRIED // (len(case.faces) + len(faces))
    count = min(len(poses), CPU_POSES_TRIED if case.device == "cpu" else most)
    first = newton.Mesh(case.vertices, case.faces.reshape(-1), compute_inertia=False)
    second = first
    if case.other is not None:
        second = newton.Mesh(case.other, faces.reshape(-1), compute_inertia=False)
    model = _worlds(first, second, count).finalize(device=case.device)
    room = {"rigid_contact_max": ROOM * count}
    pipeline = newton.CollisionPipeline(model, broad_phase="explicit", **room)
    contacts, state = pipeline.contacts(), model.state()
    given = wp.array(_transforms(poses[:count]), dtype=wp.transform, device=case.device)

    def call() -> np.ndarray:
        wp.copy(state.body_q, given)
        pipeline.collide(state, contacts)
        found = int(contacts.rigid_contact_count.numpy()[0])
        colliding = np.zeros(count, bool)
        colliding[contacts.rigid_contact_shape0.numpy()[: min(found, ROOM * count)] // 2] = True
        return colliding

    one = case.question is Question.FIRST
    return Prepared(lambda: bool(call()[0]) if one else call(), count / len(poses), case.device)


def run(prepared: Prepared) -> Any:
    """Yes and no."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Yes and no."""
    return result


def _worlds(first: newton.Mesh, second: newton.Mesh, count: int) -> newton.ModelBuilder:
    one, worlds = newton.ModelBuilder(), newton.ModelBuilder()
    shape = newton.ModelBuilder.ShapeConfig(density=0.0, margin=0.0, gap=0.0)
    for mesh in (first, second):
        one.add_shape_mesh(one.add_body(), mesh=mesh, cfg=shape)
    worlds.replicate(one, count)
    return worlds


def _transforms(poses: np.ndarray) -> np.ndarray:
    """(2 B, 7) float32: the first body at rest and the second at each pose, in turns."""
    rows = np.zeros((len(poses), 2, 7), np.float32)
    rows[:, 0, 6] = 1.0
    rows[:, 1, :3] = poses[:, :3, 3]
    rows[:, 1, 3:] = [wp.quat_from_matrix(wp.mat33(pose[:3, :3])) for pose in poses]
    return rows.reshape(-1, 7)
