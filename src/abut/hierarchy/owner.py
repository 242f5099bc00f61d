"""The hierarchy a mesh has now: built when first asked for, refitted after the mesh deformed."""

from abut.hierarchy.lbvh import build, in_frame
from abut.hierarchy.refit import finished_cost, refit, start_cost
from abut.hierarchy.tree import Tree
from abut.mesh import Mesh
from abut.options import Bound
from abut.runtime import stage

WORN_OUT = 1.5  # rebuild when a random query would visit this many times more nodes than at first


def hierarchy_of(mesh: Mesh, bound: Bound = Bound.AABB) -> Tree:
    """The up-to-date tree of a mesh with at least one face."""
    held = mesh.held.get("aabb")
    if held is not None and held[0] == mesh.version:
        return held[1]
    with stage("hierarchy", mesh.device):
        tree = _build(mesh) if held is None else _refitted(held[1], mesh)
    mesh.held["aabb"] = (mesh.version, tree)
    return tree


def _build(mesh: Mesh) -> Tree:
    tree = build(mesh.points, mesh.faces, mesh.bounds)
    start_cost(tree, mesh.bounds)
    tree.built_cost = finished_cost(tree)
    return tree


def _refitted(tree: Tree, mesh: Mesh) -> Tree:
    """Refit, or build anew when the mesh left its frame or the last refit made a bad tree.

    The last one, because to wait for the cost of this one would stall the device.
    """
    if not in_frame(tree.origin, mesh.bounds) or finished_cost(tree) > WORN_OUT * tree.built_cost:
        return _build(mesh)
    refit(tree, mesh.points, mesh.faces)
    start_cost(tree, mesh.bounds)
    return tree
