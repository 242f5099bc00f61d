"""What a Warp user would write: wp.Bvh, a box query for each face, wp.intersect_tri_tri.

A baseline rather than a library: float32 throughout, pairs in no order, room for a fixed number of
them, and in self-collision no pairs with a common vertex.
Warp's triangle test has an absolute tolerance of 1e-6, so meshes are enlarged, by a power of two.
"""

from typing import Any

import numpy as np
import warp as wp

from benchmarks.answers import posed_pairs, sorted_pairs, stacked
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

wp.set_module_options({"enable_backward": False})

NAME, PACKAGE = "warp_bvh", "warp-lang"
NOTE = "The Warp baseline decides in float32 and leaves out self-contacts of neighbours."
COMPILES = True
BASELINE = True
ON_DEVICE = "device_poses"  # poses that are on the GPU already
SUPPORTS = dict.fromkeys(
    (Question.PAIRS, Question.FIRST, Question.SELF, Question.SELF_REFIT), ("",)
)
SUPPORTS |= dict.fromkeys((Question.BUILD, Question.REFIT), ("",))
SUPPORTS |= dict.fromkeys((Question.POSES, Question.POSE_PAIRS), ("", ON_DEVICE))
ROOM = 1 << 20
POSED_ROOM = 1 << 23
EXTENT = 4096.0
CPU_POSES_TRIED = 100
FACES_TRIED, CPU_FACES_TRIED = 10**9, 10**6  # of a batch: faces of b, times poses


@wp.kernel
def bounds_kernel(
    # in
    points: wp.array[wp.vec3],
    faces: wp.array[wp.vec3i],
    # out
    lowers_out: wp.array[wp.vec3],
    uppers_out: wp.array[wp.vec3],
):
    """The box of each face."""
    i = wp.tid()
    p, q, r = points[faces[i][0]], points[faces[i][1]], points[faces[i][2]]
    lowers_out[i] = wp.min(p, wp.min(q, r))
    uppers_out[i] = wp.max(p, wp.max(q, r))


@wp.func
def share_vertex(f: wp.vec3i, g: wp.vec3i):
    """Whether two faces have a vertex in common."""
    for i in range(3):
        if f[i] == g[0] or f[i] == g[1] or f[i] == g[2]:
            return True
    return False


@wp.kernel
def pairs_kernel(
    # in
    bvh: wp.uint64,
    points_a: wp.array[wp.vec3],
    points_b: wp.array[wp.vec3],
    faces_a: wp.array[wp.vec3i],
    faces_b: wp.array[wp.vec3i],
    pose: wp.mat44,
    one_mesh: wp.bool,
    # out
    pairs_out: wp.array[wp.vec2i],
    count_out: wp.array[wp.int32],
):
    """All pairs of one face of b."""
    j = wp.tid()
    g = faces_b[j]
    p = wp.transform_point(pose, points_b[g[0]])
    q = wp.transform_point(pose, points_b[g[1]])
    r = wp.transform_point(pose, points_b[g[2]])
    query = wp.bvh_query_aabb(bvh, wp.min(p, wp.min(q, r)), wp.max(p, wp.max(q, r)))
    i = wp.int32(0)
    while wp.bvh_query_next(query, i):
        f = faces_a[i]
        if one_mesh and (i >= j or share_vertex(f, g)):
            continue
        if wp.intersect_tri_tri(points_a[f[0]], points_a[f[1]], points_a[f[2]], p, q, r) > 0:
            slot = wp.atomic_add(count_out, 0, 1)
            if slot < pairs_out.shape[0]:
                pairs_out[slot] = wp.vec2i(i, j)


@wp.kernel
def any_kernel(
    # in
    bvh: wp.uint64,
    points_a: wp.array[wp.vec3],
    points_b: wp.array[wp.vec3],
    faces_a: wp.array[wp.vec3i],
    faces_b: wp.array[wp.vec3i],
    poses: wp.array[wp.mat44],
    # out
    found_out: wp.array[wp.int32],
):
    """Whether one face of b in one pose has a pair, unless the pose is known to have one."""
    pose, j = wp.tid()
    if found_out[pose] > 0:
        return
    g = faces_b[j]
    p = wp.transform_point(poses[pose], points_b[g[0]])
    q = wp.transform_point(poses[pose], points_b[g[1]])
    r = wp.transform_point(poses[pose], points_b[g[2]])
    query = wp.bvh_query_aabb(bvh, wp.min(p, wp.min(q, r)), wp.max(p, wp.max(q, r)))
    i = wp.int32(0)
    while wp.bvh_query_next(query, i):
        f = faces_a[i]
        if wp.intersect_tri_tri(points_a[f[0]], points_a[f[1]], points_a[f[2]], p, q, r) > 0:
            found_out[pose] = 1
            return


@wp.kernel
def posed_pairs_kernel(
    # in
    bvh: wp.uint64,
    points_a: wp.array[wp.vec3],
    points_b: wp.array[wp.vec3],
    faces_a: wp.array[wp.vec3i],
    faces_b: wp.array[wp.vec3i],
    poses: wp.array[wp.mat44],
    # out
    rows_out: wp.array[wp.vec3i],
    count_out: wp.array[wp.int32],
):
    """All pairs of one face of b in one pose."""
    pose, j = wp.tid()
    g = faces_b[j]
    p = wp.transform_point(poses[pose], points_b[g[0]])
    q = wp.transform_point(poses[pose], points_b[g[1]])
    r = wp.transform_point(poses[pose], points_b[g[2]])
    query = wp.bvh_query_aabb(bvh, wp.min(p, wp.min(q, r)), wp.max(p, wp.max(q, r)))
    i = wp.int32(0)
    while wp.bvh_query_next(query, i):
        f = faces_a[i]
        if wp.intersect_tri_tri(points_a[f[0]], points_a[f[1]], points_a[f[2]], p, q, r) > 0:
            slot = wp.atomic_add(count_out, 0, 1)
            if slot < rows_out.shape[0]:
                rows_out[slot] = wp.vec3i(pose, i, j)


class Mesh:
    """Points enlarged by ``scale``, faces and their tree."""

    def __init__(self, vertices: np.ndarray, faces: np.ndarray, device: str, scale: float) -> None:
        self.scale = np.float32(scale)
        self.points = wp.array(vertices * self.scale, dtype=wp.vec3, device=device)
        self.faces = wp.array(faces, dtype=wp.vec3i, device=device)
        self.boxes = [wp.empty(len(faces), dtype=wp.vec3, device=device) for _ in range(2)]
        self.rebuild()

    def fit(self) -> None:
        """Boxes of all faces."""
        inputs, device = [self.points, self.faces], self.points.device
        wp.launch(bounds_kernel, len(self.faces), inputs, self.boxes, device=device)

    def rebuild(self) -> int:
        """A new tree by Warp's default constructor; returns the number of leaves."""
        self.fit()
        self.tree = wp.Bvh(*self.boxes)
        return len(self.faces)

    def refit(self, vertices: wp.array) -> int:
        """The same tree for moved vertices, scaled already."""
        wp.copy(self.points, vertices)
        self.fit()
        self.tree.refit()
        return len(self.faces)


def prepare(case: Case, choice: str = "") -> Prepared | None:
    """Trees and room for pairs."""
    if choice == ON_DEVICE and case.device == "cpu":
        return None
    scale = 2.0 ** round(np.log2(EXTENT / np.ptp(case.vertices, axis=0).max()))
    a = Mesh(case.vertices, case.faces, case.device, scale)
    steps = len(case.frames)
    frames = [wp.array(f * a.scale, dtype=wp.vec3, device=case.device) for f in case.frames]
    if case.question is Question.BUILD:
        return Prepared(a.rebuild, device=case.device)
    if case.question is Question.REFIT:
        return Prepared(lambda: [a.refit(f) for f in frames][-1], steps, case.device)
    if case.question is Question.SELF:
        return Prepared(lambda: [_pairs(a, a, None)], device=case.device)
    if case.question is Question.SELF_REFIT:
        return Prepared(lambda: [_moved_pairs(a, f) for f in frames], steps, case.device)
    faces = case.faces if case.other_faces is None else case.other_faces
    b = a if case.other is None else Mesh(case.other, faces, case.device, scale)
    pose = np.eye(4) if case.pose is None else case.pose.copy()
    pose[..., :3, 3] *= scale
    if case.question is Question.PAIRS:
        return Prepared(lambda: _pairs(a, b, pose), device=case.device)
    return _batch(case, choice, a, b, pose.reshape(-1, 4, 4))


def _batch(case: Case, choice: str, a: Mesh, b: Mesh, poses: np.ndarray) -> Prepared:
    """As many poses as do not take too long."""
    most = FACES_TRIED // len(b.faces)
    if case.device == "cpu":
        most = min(CPU_POSES_TRIED, CPU_FACES_TRIED // len(b.faces))
    tried = poses[:most]
    if choice == ON_DEVICE:
        tried = wp.array(tried, dtype=wp.mat44, device=case.device)
    steps = len(tried) / len(poses)
    if case.question is Question.POSE_PAIRS:
        rows = wp.empty(POSED_ROOM, dtype=wp.vec3i, device=case.device)
        part = len(tried) if steps < 1.0 else None
        return Prepared(lambda: _posed_pairs(a, b, tried, rows), steps, case.device, part=part)
    return Prepared(lambda: _any(a, b, tried, case.question), steps, case.device)


def run(prepared: Prepared) -> Any:
    """Pairs as they came, or yes and no."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, one list for all frames; yes and no; or a count."""
    if isinstance(result, list):
        return stacked([sorted_pairs(pairs.numpy(), unordered=True) for pairs in result])
    if isinstance(result, wp.array) and result.dtype is wp.vec3i:
        rows = result.numpy()
        return posed_pairs(rows[:, 1:], rows[:, 0])
    return sorted_pairs(result.numpy()) if isinstance(result, wp.array) else result


def _pairs(a: Mesh, b: Mesh, pose: np.ndarray | None) -> wp.array:
    """Without a pose: of one mesh with itself."""
    device = a.points.device
    pairs = wp.empty(ROOM, dtype=wp.vec2i, device=device)
    count = wp.zeros(1, dtype=wp.int32, device=device)
    motion = wp.mat44(np.eye(4) if pose is None else pose)
    inputs = [a.tree.id, a.points, b.points, a.faces, b.faces, motion, pose is None]
    wp.launch(pairs_kernel, len(b.faces), inputs, [pairs, count], device=device)
    return pairs[: int(count.numpy()[0])]


def _moved_pairs(mesh: Mesh, vertices: wp.array) -> wp.array:
    mesh.refit(vertices)
    return _pairs(mesh, mesh, None)


def _any(a: Mesh, b: Mesh, poses: np.ndarray | wp.array, question: Question) -> Any:
    device = a.points.device
    found = wp.zeros(len(poses), dtype=wp.int32, device=device)
    inputs = [a.tree.id, a.points, b.points, a.faces, b.faces, _motions(poses, device)]
    wp.launch(any_kernel, (len(poses), len(b.faces)), inputs, [found], device=device)
    colliding = found.numpy() > 0
    return colliding if question is Question.POSES else bool(colliding[0])


def _posed_pairs(a: Mesh, b: Mesh, poses: np.ndarray | wp.array, rows: wp.array) -> wp.array:
    device = a.points.device
    count = wp.zeros(1, dtype=wp.int32, device=device)
    inputs = [a.tree.id, a.points, b.points, a.faces, b.faces, _motions(poses, device)]
    shape = (len(poses), len(b.faces))
    wp.launch(posed_pairs_kernel, shape, inputs, [rows, count], device=device)
    found = int(count.numpy()[0])
    if found > len(rows):
        raise RuntimeError(f"room for {len(rows)} pairs, found {found}")
    return rows[:found]


def _motions(poses: np.ndarray | wp.array, device: Any) -> wp.array:
    if isinstance(poses, wp.array):
        return poses
    return wp.array(poses, dtype=wp.mat44, device=device)
