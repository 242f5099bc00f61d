"""The BVH cache of a mesh: build on first use, refit or rebuild after a deformation."""

from collections.abc import Callable

import numpy as np

from abut.bvh.layout import Bvh
from abut.bvh.lbvh import build_lbvh, in_frame
from abut.bvh.node_kdops import KdopShape, NodeKdops, fit_node_kdops
from abut.bvh.node_obbs import fit_node_obbs, fit_node_rss
from abut.bvh.ploc import build_ploc
from abut.bvh.refit import TraversalCost, refit
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.options import Bound

NODE_VOLUMES = {Bound.OBB: fit_node_obbs, Bound.RSS: fit_node_rss}  # beside the boxes
COST_INTERVAL = 2  # refits between two measurements of the cost
MAX_REFITS = 256  # before a rebuild
MAX_COST_RATIO = 1.5  # traversal cost over that of the BVH as built; beyond, rebuild
FEW_FACES = 64  # below, PLOC gains nothing
IMPROVE_EFFORT = 512  # searches of one pose for one pair; beyond, PLOC pays


def bvh_of(mesh: Mesh, bound: Bound = Bound.AABB, effort: int = 0, ahead: bool = False) -> Bvh:
    """Return the up-to-date BVH of a mesh with at least one face, with the volumes of ``bound``.

    The first BVH is an LBVH; after enough search effort a PLOC BVH replaces it.

    Args:
        mesh: The mesh.
        bound: Node volumes that the search needs.
        effort: Searches about to be made; 0 never changes the kind of the BVH.
        ahead: The vertices may be unchecked still; the caller checks that they are finite and
            ``in_frame`` of the BVH.
    """
    if not ahead:
        mesh.finish_deform()
    with mesh.lock:
        entry = mesh.cache.get("tree")
        if entry is None or entry[0] != mesh.version:
            with stage("hierarchy", mesh.device):
                tree = _build(mesh) if entry is None else _refit_or_rebuild(entry[1], mesh)
            entry = mesh.cache["tree"] = (mesh.version, tree)
        tree = entry[1]
        tree.search_effort += effort
        pays = effort > 0 and tree.search_effort > IMPROVE_EFFORT and mesh.face_count > FEW_FACES
        if pays and not tree.improved:
            with stage("hierarchy", mesh.device):
                tree = _build(mesh, improved=True)
            mesh.cache["tree"] = (mesh.version, tree)
        fit = NODE_VOLUMES.get(bound)
        if fit is not None and tree.fitted_versions.get(bound) != mesh.version:
            with stage("hierarchy", mesh.device):
                fit(tree, mesh.points, mesh.faces)
            tree.fitted_versions[bound] = mesh.version
        return tree


def kdops_of(mesh: Mesh, tree: Bvh, shape: KdopShape) -> NodeKdops:
    """Return the up-to-date k-DOPs of a BVH of a mesh, which may have another BVH by now."""
    with mesh.lock:
        known = tree.kdops.get(shape)
        if known is None or known[0] != mesh.version:
            with stage("hierarchy", mesh.device):
                fitted = fit_node_kdops(tree, mesh, shape.sides, shape.width)
            known = tree.kdops[shape] = (mesh.version, fitted)
        return known[1]


def _build(mesh: Mesh, improved: bool = False) -> Bvh:
    tree = (build_ploc if improved else build_lbvh)(mesh.points, mesh.faces, mesh.bounds)
    tree.improved = improved
    return tree


def _refit_or_rebuild(tree: Bvh, mesh: Mesh) -> Bvh:
    return refit_or_rebuild(
        tree, mesh.recent_bounds, lambda: _build(mesh), lambda: refit(tree, mesh.points, mesh.faces)
    )


def _measure_built_cost(tree: Bvh) -> Bvh:
    """Set the traversal cost of a BVH that was never refitted; returns the BVH."""
    tree.cost = TraversalCost(tree.nodes)
    tree.cost.start()
    tree.built_cost = tree.cost.read()
    return tree


def refit_or_rebuild(
    tree: Bvh, bounds: np.ndarray, rebuild: Callable[[], Bvh], fit: Callable[[], None]
) -> Bvh:
    """Refit a BVH; or rebuild it when out of frame, too costly or refitted too often.

    The cost is that of an earlier refit, because waiting for this one would stall the device.
    Refit cost cannot reveal a BVH that was poor when built, so rebuild periodically.
    """
    if tree.cost is None:
        _measure_built_cost(tree)
    tree.refits += 1
    out_of_frame = not in_frame(tree.origin, bounds)
    too_old = tree.refits > tree.max_refits
    if out_of_frame or too_old or tree.refits % COST_INTERVAL == 0:
        cost = tree.cost.read()
        if out_of_frame or too_old or cost > MAX_COST_RATIO * tree.built_cost:
            fresh = _measure_built_cost(rebuild())
            if cost <= MAX_COST_RATIO * fresh.built_cost:  # the rebuild was not needed
                fresh.max_refits = min(2 * tree.max_refits, MAX_REFITS)
            if out_of_frame or cost >= fresh.built_cost:
                return fresh
            tree.max_refits, tree.refits = fresh.max_refits, 0
            tree.built_cost = fresh.built_cost  # a rebuild is no better for these shapes
    fit()
    if tree.refits % COST_INTERVAL == 1:
        tree.cost.start()
    return tree
