"""The hierarchy a mesh has now: built when first asked for, refitted after the mesh deformed."""

from collections.abc import Callable

import numpy as np

from abut.bvh.layout import Bvh
from abut.bvh.lbvh import build, in_frame
from abut.bvh.node_kdops import Dops, DopShape, fit_dops
from abut.bvh.node_obbs import fit_obbs
from abut.bvh.node_rss import sweep
from abut.bvh.ploc import build_ploc
from abut.bvh.refit import Cost, refit
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.options import Bound

FITTED = {Bound.OBB: fit_obbs, Bound.RSS: sweep}  # volumes beside the boxes that every tree has
COST_EVERY = 2  # refits
LONGEST_PATIENCE = 256  # refits
WORN_OUT = 1.5  # rebuild when a random query would visit this many times more nodes than at first
FEW_FACES = 64  # below, no tree is better than another
WORTH_IMPROVING = 512  # of effort: searches of one pose for one pair


def bvh_of(mesh: Mesh, bound: Bound = Bound.AABB, effort: int = 0, ahead: bool = False) -> Bvh:
    """The up-to-date tree of a mesh with at least one face, with the volumes asked for.

    Built quickly at first; once it has served for enough ``effort``, built again with more care.
    Without effort it is the one handed out last. ``ahead``: vertices may be unchecked still; the
    caller will ask whether they are finite, and ``in_frame`` of the tree.
    """
    if not ahead:
        mesh.settle()
    with mesh.lock:
        held = mesh.cache.get("tree")
        if held is None or held[0] != mesh.version:
            with stage("hierarchy", mesh.device):
                tree = _build(mesh) if held is None else _refitted(held[1], mesh)
            held = mesh.cache["tree"] = (mesh.version, tree)
        tree = held[1]
        tree.served += effort
        worth_it = effort > 0 and tree.served > WORTH_IMPROVING and mesh.face_count > FEW_FACES
        if worth_it and not tree.improved:
            with stage("hierarchy", mesh.device):
                tree = _build(mesh, improved=True)
            mesh.cache["tree"] = (mesh.version, tree)
        fit = FITTED.get(bound)
        if fit is not None and tree.fitted.get(bound) != mesh.version:
            with stage("hierarchy", mesh.device):
                fit(tree, mesh.points, mesh.faces)
            tree.fitted[bound] = mesh.version
        return tree


def kdops_of(mesh: Mesh, tree: Bvh, shape: DopShape) -> Dops:
    """The up-to-date DOPs of a tree of a mesh, which may have got a better one since."""
    with mesh.lock:
        known = tree.dops.get(shape)
        if known is None or known[0] != mesh.version:
            with stage("hierarchy", mesh.device):
                fitted = fit_dops(tree, mesh, shape.sides, shape.width)
            known = tree.dops[shape] = (mesh.version, fitted)
        return known[1]


def _build(mesh: Mesh, improved: bool = False) -> Bvh:
    tree = (build_ploc if improved else build)(mesh.points, mesh.faces, mesh.bounds)
    tree.improved = improved
    return with_traversal_cost(tree)


def _refitted(tree: Bvh, mesh: Mesh) -> Bvh:
    return refit_or_rebuild(
        tree,
        mesh.recent_bounds,
        lambda: _build(mesh),
        lambda: refit(tree, mesh.points, mesh.faces),
    )


def with_traversal_cost(tree: Bvh) -> Bvh:
    """A tree just built, with its traversal cost."""
    tree.cost = Cost(tree.nodes)
    tree.cost.start()
    tree.built_cost = tree.cost.read()
    return tree


def refit_or_rebuild(
    tree: Bvh, bounds: np.ndarray, build_anew: Callable[[], Bvh], fit: Callable[[], None]
) -> Bvh:
    """Refit; or build anew: out of frame, an earlier refit made a bad tree, or time is up.

    An earlier one, because to wait for the cost of this one would stall the device. And time,
    because a tree that was built for a mess is bad from the start and no refit tells.
    """
    tree.refits += 1
    out_of_frame = not in_frame(tree.origin, bounds)
    time_is_up = tree.refits > tree.patience
    if out_of_frame or time_is_up or tree.refits % COST_EVERY == 0:
        cost = tree.cost.read()
        if out_of_frame or time_is_up or cost > WORN_OUT * tree.built_cost:
            fresh = build_anew()
            if cost <= WORN_OUT * fresh.built_cost:  # it was as good as new
                fresh.patience = min(2 * tree.patience, LONGEST_PATIENCE)
            if out_of_frame or cost >= fresh.built_cost:
                return fresh
            tree.patience, tree.refits = fresh.patience, 0
            tree.built_cost = fresh.built_cost  # no better tree is to be had for these shapes
    fit()
    if tree.refits % COST_EVERY == 1:
        tree.cost.start()
    return tree
