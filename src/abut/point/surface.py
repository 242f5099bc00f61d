"""Surface: a mesh as those who ask about its inside see it."""

from typing import Any

import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.dipoles import fit_dipoles
from abut.bvh.layout import BvhView
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.narrow.crossings import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, make_posed_mesh
from abut.point.closure import closure_of
from abut.point.winding import winding_around

LONG_RIM = 0.02  # edges for each face: from there on the mesh itself is summed, not its closure


@wp.struct
class Surface:
    """Unmoved faces and their tree, with dipoles where the surface is to be summed."""

    faces: PosedMesh
    tree: BvhView
    dipoles: wp.array[wp.vec4f]


@wp.func
def winding_number(p: wp.vec3d, mesh: Surface, closure: Surface):
    """How often a mesh winds around p, exactly, or on the right side of 1/2 (see surfaces_of).

    Guarantee:
        Exact for a mesh without a rim. Otherwise within the error of ``winding_around``.
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
    """Does a mesh wind around p more than half a time, either way?"""
    return winding_number(p, mesh, closure) > wp.float64(0.5)


def surfaces_of(mesh: Mesh) -> tuple[Any, Any]:
    """(mesh, closure) as ``winding_number`` wants them.

    A mesh without a rim has no closure: a ray tells all. One with a short rim has the cones that
    close it, with dipoles. One that is mostly rim (a soup of faces) has dipoles itself.
    """

    def make() -> tuple[Any, Any]:
        with stage("surfaces", mesh.device):
            return _surfaces(mesh)

    return mesh.per_shape("surfaces", make)


def _surfaces(mesh: Mesh) -> tuple[Any, Any]:
    rim_length = len(mesh.topology.boundary)
    if rim_length > LONG_RIM * mesh.face_count:
        return _surface(mesh, summed=True), Surface()
    closure = closure_of(mesh)
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
