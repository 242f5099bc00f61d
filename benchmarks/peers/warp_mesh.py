"""wp.Mesh: Warp's own queries for the nearest point of a mesh, in float32."""

from typing import Any

import numpy as np
import warp as wp

import abut
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

wp.set_module_options({"enable_backward": False})

NAME, PACKAGE = "warp_mesh", "warp-lang"
NOTE = "wp.Mesh answers in float32, and its signs of open meshes are approximate."
COMPILES = True
TOLERANCE = 1e-5
SUPPORTS = dict.fromkeys((Question.POINTS, Question.SIGNED_POINTS), ("",))
CPU_POINTS_TRIED = 50_000
UNSIGNED, BY_NORMALS, BY_WINDING = 0, 1, 2


@wp.kernel
def query_kernel(
    # in
    mesh: wp.uint64,
    points: wp.array[wp.vec3f],
    sign: wp.int32,
    # out
    distance_out: wp.array[wp.float32],
):
    """Warp's own search; ``sign``: 0 none, 1 by normals, 2 by winding numbers."""
    i = wp.tid()
    p = points[i]
    if sign == 0:
        query = wp.mesh_query_point_no_sign(mesh, p, 1e30)
        at = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance_out[i] = wp.length(p - at)
    elif sign == 1:
        query = wp.mesh_query_point_sign_normal(mesh, p, 1e30)
        at = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance_out[i] = query.sign * wp.length(p - at)
    else:
        query = wp.mesh_query_point_sign_winding_number(mesh, p, 1e30)
        at = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance_out[i] = query.sign * wp.length(p - at)


def prepare(case: Case, choice: str = "") -> Prepared:
    """The mesh and points on the device; one point comes from the host, and its answer goes there.

    On the CPU a launch is one thread, so fewer points.
    """
    device, total = case.device, len(case.points)
    count = total if device != "cpu" else min(total, CPU_POINTS_TRIED)
    closed = abut.Mesh(case.vertices, case.faces, "cpu").watertight
    sign = UNSIGNED
    if case.question is Question.SIGNED_POINTS:
        sign = BY_NORMALS if closed else BY_WINDING
    mesh = wp.Mesh(
        wp.array(case.vertices, dtype=wp.vec3f, device=device),
        wp.array(case.faces.reshape(-1), dtype=wp.int32, device=device),
        support_winding_number=sign == BY_WINDING,
    )
    points = case.points[:count].astype(np.float32)
    given = wp.array(points, dtype=wp.vec3f, device=device)
    out = wp.empty(count, dtype=wp.float32, device=device)

    def call() -> wp.array | np.ndarray:
        if count == 1:
            given.assign(points)
        wp.launch(query_kernel, count, [mesh.id, given, sign], [out], device=device)
        return out.numpy() if count == 1 else out

    return Prepared(call, count / total, device)


def run(prepared: Prepared) -> Any:
    """Distances."""
    return prepared.call()


def answer(result: Any) -> np.ndarray:
    """Distances in float64."""
    return np.asarray(result if isinstance(result, np.ndarray) else result.numpy(), np.float64)
