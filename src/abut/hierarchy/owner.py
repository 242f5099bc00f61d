"""The hierarchy a mesh has now: built when first asked for, refitted after the mesh deformed."""

from abut.hierarchy.dops import Dops, DopShape, fit_dops
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


def dops_of(mesh: Mesh, shape: DopShape) -> Dops:
    """The up-to-date DOPs of a mesh's tree, of the kind asked for."""
    with mesh.lock:
        tree = hierarchy_of(mesh)
        held = mesh.held.setdefault("dops", {})
        known = held.get((shape.sides, shape.width))
        if known is None or known[:2] != (mesh.version, id(tree)):
            with stage("hierarchy", mesh.device):
                fitted = fit_dops(tree, mesh, shape.sides, shape.width)
            known = held[shape.sides, shape.width] = (mesh.version, id(tree), fitted)
        return known[2]


def _build(mesh: Mesh) -> Tree:
    tree = build(mesh.points, mesh.faces, mesh.bounds)
    start_cost(tree, mesh.bounds)
    tree.built_cost = finished_cost(tree)
    return tree


def _refitted(tree: Tree, mesh: Mesh) -> Tree:
    """Refit; or build anew: out of frame, an earlier refit made a bad tree, or time is up.

    An earlier one, because to wait for the cost of this one would stall the device. And time,
    because a tree that was built for a mess is bad from the start and no refit tells.
    """
    tree.refits += 1
    renew = tree.refits > tree.patience or not in_frame(tree.origin, mesh.bounds)
    if renew or tree.refits % COST_EVERY == 0:
        cost = finished_cost(tree)
        if renew or cost > WORN_OUT * tree.built_cost:
            fresh = _build(mesh)
            if cost <= WORN_OUT * fresh.built_cost:  # it was as good as new
                fresh.patience = min(2 * tree.patience, LONGEST_PATIENCE)
            return fresh
    refit(tree, mesh.points, mesh.faces)
    if tree.refits % COST_EVERY == 1:
        start_cost(tree, mesh.bounds)
    return tree
