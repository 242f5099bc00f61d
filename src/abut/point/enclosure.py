"""Enclosure: whether a mesh encloses a point, closed or open.

Rays count the turns of a closed mesh exactly. For an open one its boundary says how much is missing
(see boundary). A mesh that is nearly all boundary, a soup of faces, is summed over its tree.
"""

from functools import cache
from typing import Any

import warp as wp

from abut.bounds.float32 import difference_lower_bounds, to_vec3f
from abut.bounds.relative_frame import max_abs
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.dipoles import fit_dipoles
from abut.bvh.layout import BvhView, face_of, is_leaf, load_node, next_slot, root_of
from abut.core.timing import stage
from abut.geometry.predicates import UNDECIDED
from abut.geometry.winding_tri import cross_ray_tri, cross_ray_tri_filtered
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, load_face, make_posed_mesh
from abut.point.boundary import Boundary, boundary_of, strip_half_turns
from abut.point.strips import UNSURE, estimate_half_turns
from abut.point.winding import winding_around

LONG_BOUNDARY = 1 << 13  # edges, from which a sum over the tree of the mesh is faster


@wp.struct
class Enclosure:
    """Unmoved faces with their tree, and the boundary or, where that is long, dipoles."""

    faces: PosedMesh
    tree: BvhView
    boundary: Boundary
    dipoles: wp.array[wp.vec4f]


@cache
def cross_ray_for(exact: bool) -> wp.Function:
    """The traversal of a ray; without exact predicates it may leave the answer undecided."""

    @wp.func
    def cross_ray(p: wp.vec3d, side: PosedMesh, tree: BvhView):
        """Crossings of the ray from p along x with an unmoved mesh, by direction; or UNSURE.

        Guarantee:
            Exact for p not on the mesh.
        """
        low = difference_lower_bounds(p - tree.origin)
        high = -difference_lower_bounds(tree.origin - p)
        crossings = wp.int32(0)
        slot = root_of(tree)
        while slot >= 0:
            node = load_node(tree.nodes, slot)
            above = node.high[0] >= low[0] and node.high[1] >= low[1] and node.high[2] >= low[2]
            met = above and node.low[1] <= high[1] and node.low[2] <= high[2]
            slot = next_slot(node, met)
            if met and is_leaf(node):
                corners = load_face(side, face_of(node), 0)
                if wp.static(exact):
                    crossings += cross_ray_tri(p, corners)
                else:
                    way = cross_ray_tri_filtered(p, corners)
                    crossings += way
                    if way == UNDECIDED:
                        crossings = wp.int32(UNSURE)
                        slot = -1
        return crossings

    return cross_ray


cross_ray_exact, cross_ray_filtered = cross_ray_for(True), cross_ray_for(False)


@wp.func
def is_enclosed(p: wp.vec3d, mesh: Enclosure):
    """Does a mesh wind around p by more than half a turn, in either direction?

    Guarantee:
        Exact for a mesh without a boundary; otherwise up to the rounding of float64 sums.
    """
    if mesh.dipoles.shape[0] > 0:
        number = winding_around(p, mesh.faces, mesh.tree, mesh.dipoles, wp.float64(0.0))
        return wp.abs(number) > wp.float64(0.5)
    half_turns = 2 * cross_ray_exact(p, mesh.faces, mesh.tree)
    if mesh.boundary.corners.shape[0] > 0:
        half_turns += strip_half_turns(p, mesh.boundary.corners)
    return wp.abs(half_turns) > 1


@wp.func
def estimate_enclosed(p: wp.vec3d, mesh: Enclosure):
    """``is_enclosed`` of a mesh with a boundary, 0 or 1, where filters decide; else -1."""
    at = p - mesh.boundary.origin
    reach = wp.float32(wp.max(mesh.boundary.reach, max_abs(at)))
    half_turns = estimate_half_turns(to_vec3f(at), reach, mesh.boundary.rounded, UNSURE)
    crossings = cross_ray_filtered(p, mesh.faces, mesh.tree)
    if half_turns == UNSURE or crossings == UNSURE:
        return -1
    return wp.where(wp.abs(half_turns + 2 * crossings) > 1, 1, 0)


def enclosure_of(mesh: Mesh) -> Any:
    """The Enclosure of a mesh in its present shape."""

    def make() -> Any:
        with stage("enclosure", mesh.device):
            out, tree = Enclosure(), bvh_of(mesh)
            out.faces, out.tree = make_posed_mesh(mesh.points, mesh.faces), tree.view()
            if len(mesh.topology.boundary) <= LONG_BOUNDARY:
                out.boundary = boundary_of(mesh)
            else:
                out.dipoles = fit_dipoles(tree, mesh.points, mesh.faces)
            return out

    return mesh.per_shape("enclosure", make)
