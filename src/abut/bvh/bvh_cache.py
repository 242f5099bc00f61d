"""The BVH cache of a mesh: build on first use, improve with use, refit or rebuild when deformed.

Modules of better BVHs and of other volumes are imported when they are needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh
from abut.bvh.lbvh import build_lbvh, in_frame
from abut.bvh.refit import TraversalCost, refit
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.options import Bound

if TYPE_CHECKING:
    from abut.bvh.node_kdops import KdopShape, NodeKdops

COST_INTERVAL = 2  # refits between two measurements of the cost
MAX_REFITS = 256  # before a rebuild
MAX_COST_RATIO = 1.5  # traversal cost over that of the BVH as built; beyond, rebuild
FEW_FACES = 64  # below, PLOC gains nothing
PLOC_EFFORT = 2400  # search effort that a PLOC build repays, of any mesh
PLOC_EFFORT_PER_FACE = 0.4
OBB_FACES_PER_EFFORT = 16  # whose oriented boxes a unit of search effort on the CPU repays


def bvh_of(
    mesh: Mesh,
    bound: Bound = Bound.AABB,
    effort: int = 0,
    ahead: bool = False,
    on_demand: bool = False,
    lazy: bool = False,
) -> Bvh:
    """Return the up-to-date BVH of a mesh with at least one face, with the volumes of ``bound``.

    It is an LBVH until a PLOC BVH would have saved as much time as its build takes.

    Args:
        mesh: The mesh.
        bound: Node volumes that the search needs.
        effort: What a PLOC BVH would save the searches about to be made, in units of a search of
            one pose for one pair that meets; 0 never changes the kind of the BVH. An estimate that
            depends on the question alone, so that BVHs are the same on every device.
        ahead: The vertices may be unchecked still; the caller checks that they are finite and
            ``in_frame`` of the BVH.
        on_demand: The search fits swept spheres that are missing (see rss_on_demand); on the CPU.
        lazy: The search builds subtrees that are deferred (see lazy_lbvh); on the CPU.
    """
    if not ahead:
        mesh.finish_deform()
    with mesh.lock:
        version, tree = mesh.cache.get("tree", (-1, None))
        if tree is not None and tree.deferred is not None:
            if not lazy or version != mesh.version:
                from abut.bvh.deferred_subtrees import build_deferred

                with stage("hierarchy", mesh.device):
                    build_deferred(tree, mesh.points, mesh.faces)
        if tree is not None and version != mesh.version:
            with stage("hierarchy", mesh.device):
                tree = _refit_or_rebuild(tree, mesh)
        spent = effort + (0 if tree is None else tree.search_effort)
        improves = effort > 0 and spent > ploc_effort(mesh.face_count)
        if tree is None or (improves and not tree.improved):
            with stage("hierarchy", mesh.device):
                tree = _build(mesh, improves, lazy)
        tree.search_effort = spent
        mesh.cache["tree"] = mesh.version, tree
        if bound in (Bound.OBB, Bound.RSS) and tree.fitted_versions.get(bound) != mesh.version:
            with stage("hierarchy", mesh.device):
                if on_demand:
                    _clear_rss(tree, mesh.version)
                else:
                    _fit_volumes(tree, mesh, bound)
        return tree


def ploc_effort(face_count: int) -> float:
    """Return the search effort after which a PLOC BVH would have repaid its build.

    Waiting for it costs at most a quarter more than the best choice in hindsight.
    """
    return np.inf if face_count <= FEW_FACES else PLOC_EFFORT + PLOC_EFFORT_PER_FACE * face_count


def curve_effort(a: Mesh, b: Mesh) -> int:
    """Return the effort of a search for all pairs or for the nearest faces of two meshes.

    It ends along a curve on both surfaces, and grows with the root of their faces.
    """
    return 1 + isqrt(a.face_count + b.face_count) // 4


def obbs_pay(a: Mesh, b: Mesh) -> bool:
    """Return whether oriented boxes would have repaid their fitting in searches for all pairs."""
    if not a.device.is_cpu:
        return False
    trees = [mesh.cache.get("tree", (0, None))[1] for mesh in (a, b)]
    spent = min(0 if tree is None else tree.search_effort for tree in trees)
    return spent * OBB_FACES_PER_EFFORT >= a.face_count + b.face_count


def version_of_tree(mesh: Mesh, tree: Bvh) -> int:
    """Return the version of the mesh that a BVH fits; another thread may have deformed it since."""
    version, present = mesh.cache.get("tree", (mesh.version, tree))
    return version if present is tree else mesh.version


def kdops_of(mesh: Mesh, tree: Bvh, shape: KdopShape) -> NodeKdops:
    """Return the up-to-date k-DOPs of a BVH of a mesh, which may have another BVH by now."""
    from abut.bvh.node_kdops import fit_node_kdops

    with mesh.lock:
        known, version = tree.kdops.get(shape), version_of_tree(mesh, tree)
        if known is None or known[0] != version:
            with stage("hierarchy", mesh.device):
                fitted = fit_node_kdops(tree, mesh, shape.sides, shape.width)
            known = tree.kdops[shape] = (version, fitted)
        return known[1]


def _fit_volumes(tree: Bvh, mesh: Mesh, bound: Bound) -> None:
    from abut.bvh.node_obbs import fit_node_obbs, fit_node_rss

    if bound is Bound.OBB:
        fit_node_obbs(tree, mesh.points, mesh.faces)
    else:
        afresh = tree.cleared_version is not None  # searches may be fitting the present ones
        fit_node_rss(tree, mesh.points, mesh.faces, afresh)
        tree.cleared_version = None
    tree.fitted_versions[bound] = mesh.version


def _clear_rss(tree: Bvh, version: int) -> None:
    """Take the swept spheres of other shapes away; another thread may still be fitting them."""
    others = tree.rss_threads - {threading.get_ident()}
    tree.rss_threads.add(threading.get_ident())
    if tree.rss is None or (others and tree.cleared_version != version):
        # NumPy's memory is not touched before it is used.
        rows = np.zeros((4 * (2 * tree.face_count - 1), 4), np.float32)
        tree.rss = wp.array(rows, dtype=wp.vec4f, device="cpu", copy=False)
    elif tree.cleared_version != version:
        tree.rss.zero_()
    tree.cleared_version = version


def _build(mesh: Mesh, improved: bool = False, lazy: bool = False) -> Bvh:
    build = build_lbvh
    if improved:
        from abut.bvh.ploc import build_ploc as build
    elif lazy and mesh.device.is_cpu:
        from abut.bvh.lazy_lbvh import build_lazy_lbvh as build
    tree = build(mesh.points, mesh.faces, mesh.bounds)
    tree.improved = improved
    return tree


def _refit_or_rebuild(tree: Bvh, mesh: Mesh) -> Bvh:
    return refit_or_rebuild(
        tree, mesh.recent_bounds, lambda: _build(mesh), lambda: refit(tree, mesh.points, mesh.faces)
    )


def _cost_as_built(tree: Bvh) -> TraversalCost:
    """Measure the traversal cost of a BVH that was never refitted."""
    cost = tree.cost = TraversalCost(tree.nodes)
    cost.start()
    tree.built_cost = cost.read()
    return cost


def refit_or_rebuild(
    tree: Bvh, bounds: np.ndarray, rebuild: Callable[[], Bvh], fit: Callable[[], None]
) -> Bvh:
    """Refit a BVH; or rebuild it when out of frame, too costly or refitted too often.

    The cost is that of an earlier refit, because waiting for this one would stall the device.
    Refit cost cannot reveal a BVH that was poor when built, so rebuild periodically.
    """
    cost = _cost_as_built(tree) if tree.cost is None else tree.cost
    tree.refits += 1
    out_of_frame = not in_frame(tree.origin, bounds)
    too_old = tree.refits > tree.max_refits
    if out_of_frame or too_old or tree.refits % COST_INTERVAL == 0:
        present = cost.read()
        if out_of_frame or too_old or present > MAX_COST_RATIO * tree.built_cost:
            fresh = rebuild()
            _cost_as_built(fresh)
            if present <= MAX_COST_RATIO * fresh.built_cost:  # the rebuild was not needed
                fresh.max_refits = min(2 * tree.max_refits, MAX_REFITS)
            if out_of_frame or present >= fresh.built_cost:
                return fresh
            tree.max_refits, tree.refits = fresh.max_refits, 0
            tree.built_cost = fresh.built_cost  # a rebuild is no better for these shapes
    fit()
    if tree.refits % COST_INTERVAL == 1:
        cost.start()
    return tree
