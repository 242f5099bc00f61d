"""Surfaces with an inside: a mesh, and the cones that close it where it is open.

A mesh and its closure together wind around a point a whole number of times, which a ray counts
exactly. The winding number of the closure is a sum over its faces, which are few where the boundary
is short. The difference is the generalised winding number of the mesh.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.dipoles import fit_dipoles
from abut.bvh.layout import BvhView
from abut.core.timing import stage
from abut.geometry.topology import Topology, components
from abut.mesh import Mesh
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, make_posed_mesh
from abut.point.winding import winding_around

LONG_BOUNDARY = 0.02  # edges a face, from which the mesh is summed and not its closure


@wp.struct
class Surface:
    """Unmoved faces and their tree, with dipoles where the surface is to be summed."""

    faces: PosedMesh
    tree: BvhView
    dipoles: wp.array[wp.vec4f]


@wp.func
def winding_number(p: wp.vec3d, mesh: Surface, closure: Surface):
    """Winding number of a mesh about p, exact or on the correct side of 1/2 (see surfaces_of).

    Guarantee:
        Exact for a mesh without a boundary. Otherwise within the error of ``winding_around``.
    """
    number = wp.float64(0.0)
    if mesh.dipoles.shape[0] > 0:
        number = winding_around(p, mesh.faces, mesh.tree, mesh.dipoles, number)
    else:
        whole = cross_ray_tree(p, mesh.faces, 0, mesh.tree)[0]
        if closure.dipoles.shape[0] > 0:
            whole += cross_ray_tree(p, closure.faces, 0, closure.tree)[0]
            number = winding_around(
                p, closure.faces, closure.tree, closure.dipoles, -wp.float64(whole)
            )
        else:
            number = wp.float64(whole)
    return wp.abs(number)


@wp.func
def is_inside(p: wp.vec3d, mesh: Surface, closure: Surface):
    """Does a mesh wind around p by more than half a turn, in either direction?"""
    return winding_number(p, mesh, closure) > wp.float64(0.5)


def surfaces_of(mesh: Mesh) -> tuple[Any, Any]:
    """(mesh, closure) for ``winding_number``.

    A mesh without a boundary needs no closure. One with a short boundary has the cones that close
    it, with dipoles. One that is mostly boundary (a soup of faces) has dipoles itself.
    """

    def make() -> tuple[Any, Any]:
        with stage("surfaces", mesh.device):
            return _surfaces(mesh)

    return mesh.per_shape("surfaces", make)


def closed_surfaces(mesh: Mesh) -> tuple[Any, Any]:
    """Return the pair of ``surfaces_of`` for a mesh that is known to be closed."""
    return mesh.per_shape("closed_surfaces", lambda: (_surface(mesh, summed=False), Surface()))


def _surfaces(mesh: Mesh) -> tuple[Any, Any]:
    boundary_length = len(mesh.topology.boundary)
    if boundary_length > LONG_BOUNDARY * mesh.face_count:
        return _surface(mesh, summed=True), Surface()
    closure = _closure(mesh, mesh.topology)
    if closure is None:
        return _surface(mesh, summed=False), Surface()
    return _surface(mesh, summed=False), _surface(closure, summed=True)


def _surface(mesh: Mesh, summed: bool) -> Any:
    tree = bvh_of(mesh)
    out = Surface()
    out.faces = make_posed_mesh(mesh.points, mesh.faces)
    out.tree = tree.view()
    if summed:
        out.dipoles = fit_dipoles(tree, mesh.points, mesh.faces)
    return out


def _closure(mesh: Mesh, topology: Topology) -> Mesh | None:
    """A cone over each component of the boundary of a mesh; None where there is no boundary."""
    if not len(topology.boundary):
        return None
    corners, edges = np.unique(topology.boundary, return_inverse=True)
    edges = edges.reshape(-1, 2)
    points = mesh.points.numpy()[corners]
    _, part = np.unique(components(edges, len(corners)), return_inverse=True)
    share = 1.0 / np.bincount(part)
    tips = np.stack([np.bincount(part, weights=x * share[part]) for x in points.T], axis=1)
    faces = np.column_stack([edges[:, 1], edges[:, 0], len(corners) + part[edges[:, 0]]])
    return Mesh(np.concatenate([points, tips]), faces.astype(np.int32), mesh.device)
