"""Cells of the search for the deepest common point: bounds of the depth within each.

A cell is a node of b's tree, a face of b or a part of it, or a box of space. The depth of a point
is its distance to a's surface, 0 outside a. design/overlap.md proves the bounds.
"""

import warp as wp

from abut.bvh.layout import BvhView, face_of, is_leaf, link_of, load_node
from abut.bvh.wide import wide_reach
from abut.geometry.closest_point_tri import closest_point_tri, point_at
from abut.geometry.poses import move_point, rotation_of
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of
from abut.point.nearest_face import (
    NO_FACE,
    nearer_face,
    nearest_face,
    no_face_within,
    probe_at,
)
from abut.query.solids.depth_samples import DepthSamples, depth_range

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

TRIANGLE = wp.constant(-1)  # in place of a slot of b's tree: a part of a face
BOX = wp.constant(-2)  # a box in a's frame
MEDIAL = wp.constant(-3)  # less the index of a box of a's medial tree
IN_A = wp.constant(1)  # bits of ``known``: the cell is known to lie inside a, inside b
IN_B = wp.constant(2)
MIDDLE_OUT = wp.constant(4)  # the middle is outside a; parts do not inherit this
DROPPED = wp.constant(wp.float64(-1.0))  # upper bound of a cell that cannot hold the maximum
ZERO = wp.constant(wp.float64(0.0))
FAR = wp.constant(wp.float64(1e300))
SKEW = wp.constant(wp.float64(1.0001))  # poses are rigid up to 1e-5


@wp.struct
class SolidOperand:
    """A closed mesh at its poses, with what searches need."""

    faces: PosedMesh
    tree: BvhView
    wide: wp.array[wp.vec4f]
    samples: DepthSamples  # empty for few poses
    noise: wp.float64  # largest error of a distance by rounding


@wp.struct
class Cells:
    """Cells, one a row. Faces are some of a near the deepest point of the parent; -1 for none."""

    pose: wp.array[wp.int32]
    slot: wp.array[wp.int32]
    shape: wp.array[wp.mat33d]  # corners of a triangle; centre and half extents of a box
    faces: wp.array[wp.vec4i]
    known: wp.array[wp.int32]


@wp.struct
class DepthBounds:
    """Bounds found for each cell."""

    upper: wp.array[wp.float64]
    lower: wp.array[wp.float64]  # depth of ``point``, 0 for none
    point: wp.array[wp.vec3d]
    floor: wp.array[wp.float64]  # some point of the cell is as deep


@wp.struct
class Precision:
    """Lengths that the search does not tell apart."""

    tolerance: wp.float64  # of the answer
    noise: wp.float64  # errors of distances
    margin: wp.float64  # factor of squared lengths by which an ascent must be clear


@wp.struct
class MedialTree:
    """Boxes that may hold local maxima of the depth in a solid, with bounds; the root is the first.

    Depths and points are those of the unmoved solid.
    """

    shape: wp.array[wp.mat33d]  # centre and half extents
    upper: wp.array[wp.float64]
    lower: wp.array[wp.float64]  # depth of ``point``
    point: wp.array[wp.vec3d]
    faces: wp.array[wp.vec4i]
    known: wp.array[wp.int32]
    first: wp.array[wp.int32]  # the first part
    count: wp.array[wp.int32]  # parts


@wp.struct
class Polytope:
    """A triangle (corners in rows) or a parallelepiped (half edges in rows), and a ball around."""

    rows: wp.mat33d
    middle: wp.vec3d
    radius: wp.float64
    corners: wp.int32


@wp.struct
class Scratch:
    """Room of one thread."""

    payoff: wp.array[wp.float64]
    tableau: wp.array[wp.float64]
    weights: wp.array[wp.float64]
    shares: wp.array[wp.float64]
    faces: wp.array[wp.int32]
    links: wp.array[wp.int32]
    gaps: wp.array[wp.float32]


@wp.func
def make_scratch(
    payoff: wp.array[wp.float64],
    tableau: wp.array[wp.float64],
    weights: wp.array[wp.float64],
    shares: wp.array[wp.float64],
    faces: wp.array[wp.int32],
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """Arrays of a thread in one struct."""
    out = Scratch()
    out.payoff = payoff
    out.tableau = tableau
    out.weights = weights
    out.shares = shares
    out.faces = faces
    out.links = links
    out.gaps = gaps
    return out


@wp.struct
class CellVerdict:
    """DepthBounds of one cell, and what its parts shall know."""

    upper: wp.float64
    lower: wp.float64
    floor: wp.float64
    point: wp.vec3d
    faces: wp.vec4i
    known: wp.int32


@wp.func
def triangle_of(corners: wp.mat33d):
    """A triangle as a polytope."""
    out = Polytope()
    out.rows = corners
    out.middle = (corners[0] + corners[1] + corners[2]) / wp.float64(3.0)
    out.radius = wp.max(
        wp.length(corners[0] - out.middle),
        wp.max(wp.length(corners[1] - out.middle), wp.length(corners[2] - out.middle)),
    )
    out.corners = 3
    return out


@wp.func
def parallelepiped_of(middle: wp.vec3d, edges: wp.mat33d):
    """A parallelepiped with half edges in rows."""
    out = Polytope()
    out.rows = edges
    out.middle = middle
    out.radius = ZERO
    for k in range(4):
        second = wp.where((k & 1) != 0, -edges[1], edges[1])
        third = wp.where((k & 2) != 0, -edges[2], edges[2])
        out.radius = wp.max(out.radius, wp.length(edges[0] + second + third))
    out.corners = 8
    return out


@wp.func
def corner_of(cell: Polytope, j: wp.int32):
    """Corner j of a polytope."""
    out = cell.middle
    if cell.corners == 3:
        out = cell.rows[j]
    else:
        for axis in range(3):
            out += wp.where((j >> axis & 1) != 0, cell.rows[axis], -cell.rows[axis])
    return out


@wp.func
def posed_box(side: PosedMesh, pose: wp.int32, centre: wp.vec3d, half: wp.vec3d):
    """A box in the frame of a mesh at a pose."""
    motion = pose_of(side, pose)
    edges = wp.transpose(rotation_of(motion) * wp.diag(half))
    return parallelepiped_of(move_point(motion, centre), edges)


@wp.func
def node_of(side: PosedMesh, tree: BvhView, pose: wp.int32, slot: wp.int32):
    """A node of a tree as a polytope: its face if it is a leaf, else its box."""
    out = Polytope()
    node = load_node(tree.nodes, slot)
    if is_leaf(node):
        out = triangle_of(load_face(side, face_of(node), pose))
    else:
        low = to_vec3d(node.low)
        high = to_vec3d(node.high)
        centre = tree.origin + wp.float64(0.5) * (low + high)
        out = posed_box(side, pose, centre, wp.float64(0.5) * (high - low))
    return out


@wp.func
def to_vec3d(v: wp.vec4f):
    """The first three components in float64."""
    return wp.vec3d(wp.float64(v[0]), wp.float64(v[1]), wp.float64(v[2]))


@wp.func
def load_cell(cells: Cells, i: wp.int32, a: SolidOperand, b: SolidOperand, medial: MedialTree):
    """The polytope of a cell."""
    out = Polytope()
    slot = cells.slot[i]
    if slot >= 0:
        out = node_of(b.faces, b.tree, cells.pose[i], slot)
    elif slot == TRIANGLE:
        out = triangle_of(cells.shape[i])
    else:
        box = cells.shape[i]
        if slot <= MEDIAL:
            box = medial.shape[MEDIAL - slot]
        out = posed_box(a.faces, cells.pose[i], box[0], box[1])
    return out


@wp.func
def upper_of(medial: MedialTree, index: wp.int32, noise: wp.float64):
    """An upper bound of the depth in a box of a medial tree, at any pose."""
    return SKEW * medial.upper[index] + noise


@wp.func(inline=False)
def find_nearest(
    solid: SolidOperand,
    pose: wp.int32,
    p: wp.vec3d,
    guess: wp.int32,
    bound: wp.float64,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """The face of a solid nearest to p, within a bound, squared; ``guess`` is tested first."""
    reach = wide_reach(solid.wide)
    probe = probe_at(p, solid.faces.poses, pose, solid.tree.origin, reach)
    start = no_face_within(bound)
    if guess >= 0 and guess != NO_FACE:
        start = nearer_face(start, squared_to(solid, pose, p, guess), guess)
    return nearest_face(probe, solid.faces, pose, solid.wide, start, links, gaps)


@wp.func(inline=False)
def squared_to(solid: SolidOperand, pose: wp.int32, p: wp.vec3d, face: wp.int32):
    """The squared distance of a point to a face of a solid."""
    return closest_point_tri(p, load_face(solid.faces, face, pose)).squared


@wp.func(inline=False)
def away_from(solid: SolidOperand, pose: wp.int32, p: wp.vec3d, face: wp.int32):
    """The unit vector to p from its nearest point of a face; 0 on the face."""
    corners = load_face(solid.faces, face, pose)
    return wp.normalize(p - point_at(corners, closest_point_tri(p, corners).weights))


@wp.func(inline=False)
def is_in(solid: SolidOperand, pose: wp.int32, p: wp.vec3d):
    """Whether p lies inside a solid."""
    depths = depth_range(solid.samples, solid.faces, pose, p, solid.noise)
    if depths[0] > ZERO or depths[1] < ZERO:
        return depths[0] > ZERO
    return cross_ray_tree(p, solid.faces, pose, solid.tree)[0] != 0


@wp.func
def inner_point(side: PosedMesh, tree: BvhView, pose: wp.int32, slot: wp.int32):
    """A corner of a face within an inner node."""
    split = link_of(load_node(tree.nodes, slot))
    face = face_of(load_node(tree.nodes, tree.leaf_slots[split]))
    return load_face(side, face, pose)[0]
