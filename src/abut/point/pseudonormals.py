"""Pseudonormals: the side of an oriented surface that a point is on, from its closest point.

At an edge the normals of its faces are added, at a vertex they are weighted by the faces' angles
there (Bærentzen and Aanæs 2005). Each sum has an error bound: slivers have poor normals and faces
without area none. A side within the error bound is undecided.
"""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.timing import stage
from abut.geometry.topology import Topology
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, load_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

ROUNDING = wp.constant(wp.float64(2.0**-46))  # some dozen roundings of everything that is added
ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class Pseudonormals:
    """Normals of edges and vertices, (x, y, z, error), and their indices by face.

    Edge k of a face leads from its corner k to the next.
    """

    edges: wp.array[wp.vec4d]
    vertices: wp.array[wp.vec4d]
    edge_of: wp.array2d[wp.int32]
    vertex_of: wp.array2d[wp.int32]


@wp.func
def add_normal(total: wp.vec4d, t: wp.mat33d, corner: wp.int32, by_angle: wp.bool):
    """Add the unit normal of a triangle, weighted by its angle at a corner if ``by_angle``."""
    u = t[(corner + 1) % 3] - t[corner]
    v = t[(corner + 2) % 3] - t[corner]
    normal = wp.cross(u, v)
    size = wp.length(normal)
    weight = wp.float64(1.0)
    if by_angle:
        weight = wp.atan2(size, wp.dot(u, v))
    error = ROUNDING * (weight + wp.length(u) * wp.length(v) / size)  # not finite without area
    return total + wp.vec4d(
        weight * normal[0] / size, weight * normal[1] / size, weight * normal[2] / size, error
    )


@wp.kernel
def sum_normals_kernel(
    # in
    span: wp.vec3i,
    side: PosedMesh,
    starts: wp.array[wp.int32],
    corners: wp.array[wp.int32],
    by_angle: wp.bool,
    # out
    normals_out: wp.array[wp.vec4d],
):
    """Normals of edges or vertices; ``corners`` lists the (3 face + corner) of each of them."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.vec4d(ZERO, ZERO, ZERO, ZERO)
        for k in range(starts[i], starts[i + 1]):
            face = corners[k] / 3
            total = add_normal(total, load_face(side, face, 0), corners[k] - 3 * face, by_angle)
        normals_out[i] = total


@wp.func
def pseudonormal_side(
    normals: Pseudonormals, side: PosedMesh, face: wp.int32, p: wp.vec3d, weights: wp.vec3d
):
    """1 where p is in front of the surface, -1 behind, 0 undecided; unmoved meshes only.

    ``face`` is nearest to p and ``weights`` are the closest point's barycentric coordinates.

    Guarantee:
        Conservative. A side is right for a closed, oriented surface that does not cross itself.
    """
    t = load_face(side, face, 0)
    normal = wp.vec4d(ZERO, ZERO, ZERO, ZERO)
    if wp.max(weights) == wp.float64(1.0):
        normal = normals.vertices[normals.vertex_of[face, wp.int32(wp.argmax(weights))]]
    elif wp.min(weights) == ZERO:
        normal = normals.edges[normals.edge_of[face, (wp.int32(wp.argmin(weights)) + 1) % 3]]
    else:
        normal = add_normal(normal, t, 0, False)
    out = (p - t[0]) - weights[1] * (t[1] - t[0]) - weights[2] * (t[2] - t[0])
    size = wp.max(wp.abs(p - t[0])) + wp.max(wp.abs(p - t[1])) + wp.max(wp.abs(p - t[2]))
    return sign_of_product(normal, out, size)


@wp.func
def sign_of_product(normal: wp.vec4d, out: wp.vec3d, size: wp.float64):
    """Sign of the product of a pseudonormal and a vector, or 0 within the error of both."""
    n = wp.vec3d(normal[0], normal[1], normal[2])
    product = wp.dot(n, out)
    error = normal[3] * wp.length(out) + ROUNDING * size * (wp.length(n) + normal[3])
    return wp.where(product > error, 1, wp.where(-product > error, -1, 0))


def pseudonormals_of(mesh: Mesh, side: PosedMesh) -> Pseudonormals:
    """The pseudonormals of a mesh in its present shape; ``side`` are its unmoved faces."""

    def make() -> Pseudonormals:
        with stage("pseudonormals", mesh.device):
            return _pseudonormals(mesh.topology, mesh.faces.numpy(), side)

    return mesh.per_shape("pseudonormals", make)


def _pseudonormals(topology: Topology, faces: np.ndarray, side: PosedMesh) -> Pseudonormals:
    corners = topology.welded[faces]
    ends = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2)
    keys = np.sort(ends, axis=2) @ [len(topology.welded), 1]
    out = Pseudonormals()
    out.vertices, out.vertex_of = _summed(side, corners, by_angle=True)
    out.edges, out.edge_of = _summed(side, keys, by_angle=False)
    return out


def _summed(side: PosedMesh, keys: np.ndarray, by_angle: bool) -> tuple[wp.array, wp.array]:
    """Normals summed over corners with equal keys (m, 3), and the index of each corner's normal."""
    device = side.points.device
    unique, which = np.unique(keys.reshape(-1), return_inverse=True)
    order = np.argsort(which, kind="stable").astype(np.int32)
    starts = np.zeros(len(unique) + 1, dtype=np.int32)
    np.cumsum(np.bincount(which, minlength=len(unique)), out=starts[1:])
    starts, order, which = (
        wp.array(a, dtype=wp.int32, device=device) for a in (starts, order, which.reshape(-1, 3))
    )
    normals = wp.empty(len(unique), dtype=wp.vec4d, device=device)
    launch(sum_normals_kernel, len(unique), [side, starts, order, by_angle, normals], device)
    return normals, which
