"""The hierarchy a mesh has now: built when first asked for, refitted after the mesh deformed."""

from collections.abc import Callable

import numpy as np

from abut.hierarchy.lbvh import build, in_frame
from abut.hierarchy.oriented import orient
from abut.hierarchy.refit import finished_cost, refit, start_cost
from abut.hierarchy.tree import Tree
from abut.mesh import Mesh
from abut.options import Bound
from abut.runtime import stage

COST_EVERY = 2  # refits
LONGEST_PATIENCE = 256  # refits
WORN_OUT = 1.5  # rebuild when a random query would visit this many times more nodes than at first


def hierarchy_of(mesh: Mesh, bound: Bound = Bound.AABB) -> Tree:
    """The up-to-date tree of a mesh with at least one face, with the boxes asked for."""
    with mesh.lock:
        held = mesh.held.get("tree")
        if held is None or held[0] != mesh.version:
            with stage("hierarchy", mesh.device):
                tree = _build(mesh) if held is None else _refitted(held[1], mesh)
            held = mesh.held["tree"] = (mesh.version, tree)
        tree = held[1]
        if bound is Bound.OBB and mesh.held.get("oriented") != (mesh.version, id(tree)):
            with stage("hierarchy", mesh.device):
                orient(tree, mesh.points, mesh.faces)
            mesh.held["oriented"] = (mesh.version, id(tree))
        return tree


def _build(mesh: Mesh) -> Tree:
    return costed(build(mesh.points, mesh.faces, mesh.bounds), mesh.bounds)


def _refitted(tree: Tree, mesh: Mesh) -> Tree:
    return followed(
        tree,
        mesh.bounds,
        lambda: _build(mesh),
        lambda: refit(tree, mesh.points, mesh.faces),
    )


def costed(tree: Tree, bounds: np.ndarray) -> Tree:
    """A tree just built, with its traversal cost."""
    start_cost(tree, bounds)
    tree.built_cost = finished_cost(tree)
    return tree


def followed(
    tree: Tree, bounds: np.ndarray, build_anew: Callable[[], Tree], fit: Callable[[], None]
) -> Tree:
    """Refit; or build anew: out of frame, an earlier refit made a bad tree, or time is up.

    An earlier one, because to wait for the cost of this one would stall the device. And time,
    because a tree that was built for a mess is bad from the start and no refit tells.
    """
    tree.refits += 1
    renew = tree.refits > tree.patience or not in_frame(tree.origin, bounds)
    if renew or tree.refits % COST_EVERY == 0:
        cost = finished_cost(tree)
        if renew or cost > WORN_OUT * tree.built_cost:
            fresh = build_anew()
            if cost <= WORN_OUT * fresh.built_cost:  # it was as good as new
                fresh.patience = min(2 * tree.patience, LONGEST_PATIENCE)
            return fresh
    fit()
    if tree.refits % COST_EVERY == 1:
        start_cost(tree, bounds)
    return tree
