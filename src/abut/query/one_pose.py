"""OnePose: two meshes prepared for questions about one pose of each, a few microseconds a call."""

from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.gap_boxes import gap_boxes
from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import Bvh, load_node, root_of
from abut.core.cache import ThreadCache
from abut.core.call import Call
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import NO_KEY, NO_KEY_INT, KeyLayout, PairQueue
from abut.core.team import TEAM_BLOCK
from abut.core.timing import is_recording
from abut.geometry.poses import is_plain_pose, is_rigid
from abut.mesh import Mesh
from abut.operands.contact_queues import ContactQueues
from abut.operands.distance_queues import box_limit, slack_of
from abut.operands.posed_mesh import make_posed_mesh, pose_of
from abut.operands.posed_pairs import MeshPairs, WorkItems, frame_of, mesh_pairs, pair_at
from abut.query.shared import plans_of
from abut.traversal.overlap.descend import descend_kernel_for
from abut.traversal.overlap.kdop_frames import KdopFrames

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

# Verdicts on two posed meshes.
REFUSED = wp.constant(wp.int64(0))  # a pose is not a rigid motion
APART = wp.constant(wp.int64(1))  # the boxes of the meshes are farther apart than asked for
NEAR = wp.constant(wp.int64(2))
REFUSED_INT, APART_INT, NEAR_INT = int(REFUSED), int(APART), int(NEAR)

MOST_UNDECIDED = 64  # pairs for the exact stage; plans take more of them
MOST_PAIRS = 1024  # of an answer
LONG_S = 3e-4  # of a search, from which a second thread pays
PLANS_IN_TURN = 16
NO_KEYS = np.empty(0, dtype=np.int64)

_prepared = ThreadCache()


@wp.kernel
def root_test_kernel(
    # in
    span: wp.vec3i,
    pairs: MeshPairs,
    distance: wp.array[wp.float64],
    # out
    counter_out: wp.array[wp.int32],
    answer_out: wp.array[wp.int64],
):
    """Check the poses, compare the boxes of the meshes and clear the answer of a search.

    The answer is a verdict, the key of a pair that meets, and the number of undecided pairs and of
    those that the exact stage finds to meet. Unless the meshes are near, the counter of work items
    says that there is none.
    """
    for rank in range(span[0] + wp.tid(), span[1], span[2]):
        pair = pair_at(pairs, rank)
        verdict = wp.int64(REFUSED)
        if is_rigid(pose_of(pair.a, rank)) and is_rigid(pose_of(pair.b, rank)):
            frame = frame_of(pair)
            a = load_node(pair.tree_a.nodes, root_of(pair.tree_a))
            b = load_node(pair.tree_b.nodes, root_of(pair.tree_b))
            gap = gap_boxes(frame, a.low, a.high, b.low, b.high)
            far = gap > box_limit(distance[0], slack_of(pair), frame.stretch)
            verdict = wp.where(far, APART, NEAR)
        counter_out[0] = wp.where(verdict == NEAR, 0, 1)
        answer_out[0] = verdict
        answer_out[1] = NO_KEY
        answer_out[2] = wp.int64(0)
        answer_out[3] = wp.int64(0)


class OnePose:
    """Two meshes with trees, prepared for questions about one pose of each.

    Args:
        a, b: The meshes.
        trees: Their hierarchies.
        posed: Which of them have a pose.

    Attributes:
        layout: Layout of keys.
        trees: The hierarchies.
        versions: Versions of the meshes for which it was prepared.
    """

    versions: tuple[int, int] | None = None

    def __init__(self, a: Mesh, b: Mesh, trees: tuple[Bvh, Bvh], posed: tuple[bool, bool]) -> None:
        self.layout, self.trees = KeyLayout.of(a.face_count, b.face_count), trees
        self._device = device = a.device
        poses = wp.empty(2, dtype=wp.mat44d, device=device)
        sides = [make_posed_mesh(mesh.points, mesh.faces) for mesh in (a, b)]
        for k in (0, 1):
            if posed[k]:
                sides[k].poses, sides[k].pose_count = poses[k : k + 1], 1
        self._view = mesh_pairs(*sides, trees=[tree.view() for tree in trees])
        self._inputs = poses, wp.zeros(1, dtype=wp.float64, device=device)
        self._counter = wp.zeros(1, dtype=wp.int32, device=device)
        self._answer = wp.zeros(4, dtype=wp.int64, device=device)
        args = [self._view, self._inputs[1], self._counter, self._answer]
        self._test = Task(root_test_kernel, 1, args, device)
        self._roots = Call([self._test], self._inputs, [self._answer])
        self._plans_due = 0

    def apart(self, pose_a: Any, pose_b: Any, distance: float = 0.0) -> bool:
        """Whether the boxes of the meshes are farther apart; False if a pose is not rigid."""
        return self._ask(self._roots, pose_a, pose_b, distance)[0] == APART_INT

    def first(self, pose_a: Any, pose_b: Any) -> tuple[bool, int | None]:
        """Return whether the trees were searched, and the key of the first pair, or NO_KEY.

        The key is None if a pose is not rigid, or if too many pairs need the exact stage.
        """
        call = self._first
        verdict, key, undecided, _ = self._ask(call, pose_a, pose_b, 0.0)
        if verdict == NEAR_INT and self._device.is_cpu:
            self._first_search.run()
            _, key, undecided, _ = call.outputs[0].tolist()
        if verdict == REFUSED_INT or (key == NO_KEY_INT and undecided > MOST_UNDECIDED):
            return False, None
        if key == NO_KEY_INT and undecided:
            key = min(self._exact_keys().tolist(), default=NO_KEY_INT)
        return verdict == NEAR_INT, key

    def every(self, pose_a: Any, pose_b: Any) -> tuple[bool, np.ndarray | None]:
        """Return whether the trees were searched, and the keys of all pairs that meet.

        The keys are None if a pose is not rigid, and where a plan is the better choice: on CUDA,
        for many pairs, and for a while after a search that was long enough for several threads.
        """
        verdict = self._ask(self._roots, pose_a, pose_b, 0.0)[0]
        if verdict == APART_INT:
            return False, NO_KEYS
        if verdict == REFUSED_INT or self._device.is_cuda or self._plans_due:
            self._plans_due = max(self._plans_due - 1, 0)
            return False, None
        start = perf_counter()
        self._every_search.run()
        _, _, undecided, count = self._roots.outputs[0].tolist()
        few = undecided <= MOST_UNDECIDED and count + undecided <= MOST_PAIRS
        keys = (self._exact_keys() if undecided else self._hits[:count]) if few else None
        if keys is None or perf_counter() - start > LONG_S:
            self._plans_due = PLANS_IN_TURN
        return few, keys

    def count_search(self, a: Mesh, b: Mesh, effort: int) -> None:
        """Count a search of the trees; where that makes a better tree, it serves from now on."""
        bvh_of(a, effort=effort, lazy=True)
        bvh_of(b, effort=effort, lazy=True)

    def serves(self, a: Mesh, b: Mesh) -> bool:
        """Return whether the meshes have the shapes and the trees for which it was prepared."""
        tree_a, tree_b = self.trees
        same = tree_a is a.cache["tree"][1] and tree_b is b.cache["tree"][1]
        return same and self.versions == (a.version, b.version)

    def _ask(self, call: Call, pose_a: Any, pose_b: Any, distance: float) -> list[int]:
        poses, limit = call.inputs
        if pose_a is not None:
            poses[0] = pose_a
        if pose_b is not None:
            poses[1] = pose_b
        limit[0] = distance
        call.run()
        return call.outputs[0].tolist()

    def _exact_keys(self) -> np.ndarray:
        """The hits, after the exact stage has added those of the undecided pairs that meet."""
        self._exact.run()
        answer, keys = self._exact.outputs
        return keys[: answer[3]]

    @cached_property
    def _queues(self) -> Any:
        """ContactQueues whose best key and counts are parts of the answer."""
        out = ContactQueues()
        out.bits, out.best = self.layout.bits, self._answer[1:2]
        out.undecided, out.hits = PairQueue(), PairQueue()
        out.undecided.keys = wp.empty(MOST_UNDECIDED, dtype=wp.int64, device=self._device)
        out.hits.keys = wp.empty(MOST_PAIRS, dtype=wp.int64, device=self._device)
        out.undecided.count, out.hits.count = self._answer[2:3], self._answer[3:4]
        return out

    def _search(self, first: bool) -> Task:
        """The descent of both trees."""
        device, items = self._device, WorkItems()
        items.each, items.leaves = 1, 1
        no_frames, no_flags = wp.empty(0, RelativeFrame, device), wp.empty(0, wp.int32, device)
        args = [self._view, no_frames, items, False, KdopFrames(), self._counter]
        args += [self._queues, no_flags]
        kernel = descend_kernel_for(MeshPairs, False, False, first, device.is_cuda)
        if device.is_cpu:
            return Task(kernel, 1, args, device)
        return Task(kernel, UNKNOWN_COUNT, args, device, threads=WARP_SIZE, block=TEAM_BLOCK)

    @cached_property
    def _first_search(self) -> Task:
        return self._search(first=True)

    @cached_property
    def _every_search(self) -> Task:
        return self._search(first=False)

    @cached_property
    def _hits(self) -> np.ndarray:
        return self._queues.hits.keys.numpy()

    @cached_property
    def _first(self) -> Call:
        """The root test; on CUDA also the search, in one graph."""
        if self._device.is_cpu:
            return self._roots
        return Call([self._test, self._first_search], self._inputs, [self._answer])

    @cached_property
    def _exact(self) -> Call:
        """The exact stage of the undecided pairs."""
        from abut.narrow.exact import exact_kernel_for

        queues, kernel = self._queues, exact_kernel_for(MeshPairs)
        stage = Task(kernel, MOST_UNDECIDED, [self._view, queues], self._device)
        return Call([stage], [], [self._answer, queues.hits.keys])


def one_pose(a: Any, b: Any, pose_a: Any, pose_b: Any, at_once: bool = True) -> OnePose | None:
    """This thread's OnePose of two meshes as they are now, None for unusual operands.

    Usual are two meshes with faces on one device, and poses that are None or NumPy arrays (4, 4).
    Nor is there one while stages are timed. Unless ``at_once``, one is made at the second call.
    """
    if not (isinstance(a, Mesh) and isinstance(b, Mesh)) or is_recording():
        return None
    if not (is_plain_pose(pose_a) and is_plain_pose(pose_b)):
        return None
    posed = pose_a is not None, pose_b is not None
    known = _prepared.get((a, b), dict)
    found = known.get(posed)
    if found is None and not at_once and posed not in known:
        known[posed] = None
        return None
    if found is None or not found.serves(a, b):
        if a.device != b.device or not a.face_count or not b.face_count:
            return None
        versions = a.version, b.version  # before the trees: another thread may deform meanwhile
        trees = bvh_of(a, lazy=True), bvh_of(b, lazy=True)
        about = (OnePose, *posed, a.points, b.points, *trees)
        found = plans_of(a, b).get(about, lambda: OnePose(a, b, trees, posed))
        found.versions = versions
        known[posed] = found
    return found
