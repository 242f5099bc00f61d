"""abut.self_collide: the pairs of faces of one mesh that meet beyond what they share."""

from functools import partial

import numpy as np

from abut.faces import posed_faces, posed_later
from abut.geometry.common_corners import INDEXED, WELDED
from abut.hierarchy.owner import hierarchy_of
from abut.mesh import Mesh, require_meshes
from abut.narrow.meet import meeting_segments
from abut.options import Method, chosen
from abut.pairs import KeyLayout, require_room, to_rows
from abut.query.plan import ContactPlan, plans_of
from abut.results import Contacts


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
    require_meshes(mesh=mesh)
    method = chosen(Method, method, "method")
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    require_room(layout, 1, mesh.face_count)
    keys = np.empty(0, dtype=np.int64)
    if mesh.face_count > 1:
        keys = _plan(mesh, WELDED if weld else INDEXED, layout, method).run()
    pairs, _ = to_rows(keys, layout, False, mesh.device)
    side = posed_later(mesh)
    segments = partial(meeting_segments, side, side, pairs, None)
    return Contacts(pairs, None, pairs.shape[0] > 0, None, segments)


def _plan(mesh: Mesh, relation: int, layout: KeyLayout, method: Method) -> ContactPlan:
    """The plan for a mesh against itself, kept while the mesh keeps its shape."""
    trees = () if method is Method.BRUTE else (hierarchy_of(mesh),)

    def make() -> ContactPlan:
        faces = posed_faces(mesh.points, mesh.faces)
        return ContactPlan(mesh.device, faces, faces, trees, relation, layout, 1)

    return plans_of(mesh, mesh).get((relation, mesh.points, *trees), make)
