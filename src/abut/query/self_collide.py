"""abut.self_collide: the pairs of faces of one mesh that meet beyond what they share."""

from functools import partial

import warp as wp

from abut.faces import posed_faces
from abut.geometry.common_corners import INDEXED, WELDED
from abut.hierarchy.owner import hierarchy_of
from abut.mesh import Mesh
from abut.narrow.meet import meeting_segments
from abut.options import Method, chosen
from abut.pairs import KeyLayout, require_room, to_rows
from abut.query.face_pairs import FacePairs
from abut.results import Contacts
from abut.traversal.self_tree import list_self_candidates, test_self_candidates


def self_collide(mesh: Mesh, *, weld: bool = True, method: str = "bvh") -> Contacts:
    """Find every pair of faces of a mesh that meet anywhere beyond what they share.

    Faces without a common vertex meet when they share a point; with one, when they meet outside
    it; with a common edge, when they are folded over each other; with all three, always.

    Args:
        mesh: The mesh, in its present shape.
        weld: Vertices at equal positions count as common, so that unmerged files do not report
            every neighbour. False goes by vertex index alone.
        method: ``bvh``, or ``brute`` for the slow truth. All methods return the same rows.

    Returns:
        Sorted pairs (low, high).

    Guarantee:
        Exact and complete.
    """
    method = chosen(Method, method, "method")
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    require_room(layout, 1, mesh.face_count)
    faces = posed_faces(mesh)
    pairs = FacePairs(faces, faces, WELDED if weld else INDEXED, layout, 1, mesh.device)
    if mesh.face_count < 2:
        keys = wp.empty(0, dtype=wp.int64, device=mesh.device)
    elif method is Method.BRUTE:
        keys = pairs.all_pairs(pairs.classify_every_pair)
    else:
        keys = _search(pairs, mesh)
    pose, rows = to_rows(keys, layout)
    segments = partial(meeting_segments, faces, faces, rows, pose)
    return Contacts(rows, None, rows.shape[0] > 0, None, segments)


def _search(pairs: FacePairs, mesh: Mesh) -> wp.array:
    """Sorted keys of the pairs found by walking one tree."""
    tree = hierarchy_of(mesh).view()

    def search() -> None:
        if mesh.device.is_cpu:
            test_self_candidates(pairs.search(), tree, mesh.face_count)
        else:
            queue = pairs.queues["candidates"]
            list_self_candidates(tree, mesh.face_count, pairs.layout.bits, queue)
            pairs.classify()

    return pairs.all_pairs(search)
