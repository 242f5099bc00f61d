"""abut.self_collide: the pairs of faces of one mesh that meet beyond what they share."""

from functools import partial
from typing import Any

import numpy as np

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.lbvh import in_frame
from abut.core.pair_queue import KeyLayout, require_key_bits, unpack_keys
from abut.geometry.common_corners import SHARED_BY_INDEX, SHARED_BY_POSITION
from abut.mesh import Mesh, require_meshes
from abut.narrow.segments import contact_segments
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.options import CULL_METHODS, SELF_METHODS, Bound, Method, chosen
from abut.query.contact_plan import ContactPlan
from abut.query.shared import kdops_between, plans_of
from abut.query.steady import steady
from abut.results import Contacts

FACES_PER_EFFORT = 64  # searches among so many faces gain as much as one for a pair


@steady
def self_collide(
    mesh: Mesh,
    *,
    weld: bool = True,
    method: str = "bvh",
    bound: str = "aabb",
    pixels: int = 512,
) -> Contacts:
    """Find every pair of faces of a mesh that meet anywhere beyond what they share.

    Faces without a common vertex meet when they share a point; with one, when they meet outside
    it; with a common edge, when they are folded over each other; with all three, always.

    Args:
        mesh: The mesh, in its present shape.
        weld: Vertices at equal positions count as common, so that unmerged files do not report
            every neighbour. False goes by vertex index alone.
        method: ``bvh``; ``far``, by visibility, without a hierarchy; or ``brute``, all
            pairs. They return the same rows. ``cullide`` and ``quick_cullide`` may lose some.
        bound: Bounding volume of the hierarchy, ``aabb``, the fastest; ``obb``, ``rss`` or
            ``kdop`` (24). All return the same rows.
        pixels: Width of the views of ``far``, ``cullide`` and ``quick_cullide``.

    Returns:
        Sorted pairs (low, high).

    Guarantee:
        Exact and complete. With ``cullide`` and ``quick_cullide`` Approximate: pairs that meet
        between the centres of pixels are lost.
    """
    require_meshes(mesh=mesh)
    method = chosen(SELF_METHODS, method, "method")
    bound = chosen(Bound, bound, "bound")
    layout = KeyLayout.of(mesh.face_count, mesh.face_count)
    require_key_bits(layout, 1, mesh.face_count)
    sharing = SHARED_BY_POSITION if weld else SHARED_BY_INDEX
    if mesh.face_count > 1 and method not in CULL_METHODS:
        pairs = _pairs(mesh, sharing, layout, method, bound)
    else:
        mesh.finish_deform()
        keys = np.empty(0, dtype=np.int64)
        if mesh.face_count > 1:
            from abut.query.visible import visible_keys

            keys = visible_keys((mesh,), (None,), sharing, layout, method, pixels)
        pairs, _ = unpack_keys(keys, layout, False, mesh.device)
    side = defer_posed_mesh(mesh)
    segments = partial(contact_segments, side, side)
    return Contacts(pairs, None, pairs.shape[0] > 0, None, segments)


def _pairs(mesh: Mesh, sharing: int, layout: KeyLayout, method: Method, bound: Bound) -> Any:
    """(n, 2) pairs that meet. Vertices that are unchecked are checked meanwhile."""
    plan = _plan(mesh, sharing, layout, method, bound)
    pairs = plan.pairs(partial(_sound, mesh, plan) if mesh.deform_pending else None)
    if pairs is None:  # boxes were too coarse for where the mesh is now
        mesh.version += 1
        pairs = _plan(mesh, sharing, layout, method, bound).pairs()
    return pairs


def _sound(mesh: Mesh, plan: ContactPlan) -> bool:
    """Whether the tree was good for the vertices; refuses vertices that are not finite."""
    mesh.finish_deform()
    return all(in_frame(tree.origin, mesh.bounds) for tree in plan.trees)


def _plan(mesh: Mesh, sharing: int, layout: KeyLayout, method: Method, bound: Bound) -> ContactPlan:
    """The plan for a mesh against itself, kept while the mesh keeps its shape."""
    effort = 1 + mesh.face_count // FACES_PER_EFFORT
    trees, dops, axes = (), (), None
    if method is not Method.BRUTE:
        trees = (bvh_of(mesh, bound, effort, ahead=True),)
        if bound is Bound.KDOP:
            mesh.finish_deform()
            dops, axes = kdops_between((mesh, mesh), trees * 2)

    def make() -> ContactPlan:
        faces = make_posed_mesh(mesh.points, mesh.faces)
        how = (False, bound, dops, axes)
        return ContactPlan(mesh.device, faces, faces, trees, sharing, layout, 1, *how)

    return plans_of(mesh, mesh).get((sharing, bound, mesh.points, *trees, *dops), make)
