"""The medial tree of a solid: boxes that may hold local maxima of the depth, cached with the mesh.

Interior maxima of the depth lie on the medial axis, wherever the other solid is. The tree has their
boxes with bounds of the depth, so that a search at a pose asks only where the other solid lies.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh
from abut.bvh.lbvh import build_lbvh
from abut.bvh.wide import make_wide_nodes
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.solids.depth_cells import BOX, IN_B, MedialTree, Precision, SolidOperand
from abut.query.solids.depth_parts import make_cells
from abut.query.solids.depth_samples import depth_samples_of
from abut.query.solids.depth_search import DepthSearch

LEVELS = 10
BOXES_PER_POSE = 8  # of one level that pay
MOST_BOXES = 1 << 17
MANY_POSES = 64  # repay trees and samples
ROUNDING = 2.0**-45  # of the largest coordinate: more than the error of any distance
MARGIN = 1.0005  # factor of squared lengths, more than any pose changes them
EVERYWHERE = -0.5  # a depth that no box is below
TOLERANCE = 2.0**-10  # of the size: a plane that is off by less is one


def solid_operand(
    mesh: Mesh, noise: float, poses: np.ndarray | None = None, pose_count: int = 1
) -> Any:
    """The struct of a solid that kernels receive, with samples for many poses."""
    solid = SolidOperand()
    if pose_count >= MANY_POSES:
        solid.samples = depth_samples_of(mesh, pose_count)
    tree, solid.wide = _steady_tree(mesh)
    solid.faces = make_posed_mesh(mesh.points, mesh.faces, poses)
    solid.tree, solid.noise = tree.view(), noise
    return solid


def _steady_tree(mesh: Mesh) -> tuple[Bvh, wp.array]:
    """A BVH and its wide nodes that depend on the shape alone, so that answers do, too.

    Cells are its nodes. The BVH of other queries may have been refitted or improved.
    """

    def make() -> tuple[Bvh, wp.array]:
        tree = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
        return tree, make_wide_nodes(tree, mesh.points, mesh.faces)

    return mesh.per_shape("steady_tree", make)


def first_cells(slots: list[int], known: list[int], shapes: np.ndarray, device: wp.Device) -> Any:
    """Cells with the given slots and flags for each pose; ``shapes`` are (n, 3, 3) boxes."""
    pose_count, per_pose = len(shapes) // len(slots), len(slots)
    cells = make_cells(len(shapes), device)
    cells.pose.assign(np.repeat(np.arange(pose_count, dtype=np.int32), per_pose))
    cells.slot.assign(np.tile(np.array(slots, np.int32), pose_count))
    cells.shape.assign(shapes)
    cells.faces.fill_(wp.vec4i(-1))
    cells.known.assign(np.tile(np.array(known, np.int32), pose_count))
    return cells


def box_shape(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rows: centres, half extents and zeros of boxes."""
    return np.stack([0.5 * (low + high), 0.5 * (high - low), np.zeros_like(low)], axis=-2)


def medial_tree_of(mesh: Mesh, pose_count: int) -> Any:
    """The medial tree of a closed mesh, as fine as pays for so many poses, with samples."""
    effort = BOXES_PER_POSE << (pose_count - 1).bit_length()
    known = mesh.per_shape("medial tree", dict)
    if effort not in known:
        known[effort] = _medial_tree(mesh, effort)
    return known[effort]


def _medial_tree(mesh: Mesh, most_boxes: int) -> Any:
    """A medial tree with levels of at most so many boxes."""
    precision = Precision()
    size = float(np.linalg.norm(mesh.bounds[1] - mesh.bounds[0]))
    precision.tolerance, precision.margin = TOLERANCE * size, MARGIN
    noise = precision.noise = ROUNDING * float(np.abs(mesh.bounds).max())
    solid = solid_operand(mesh, noise)
    start = EVERYWHERE - precision.tolerance
    search = DepthSearch(solid, solid, MedialTree(), 1, precision, mesh.device, start)
    search.deepest.floor.fill_(EVERYWHERE)
    shape = box_shape(mesh.bounds[:1] - noise, mesh.bounds[1:] + noise)
    cells = first_cells([int(BOX)], [int(IN_B)], shape, mesh.device)
    return _tree(search, cells, min(most_boxes, MOST_BOXES))


def _tree(search: DepthSearch, cells: Any, most_boxes: int) -> Any:
    """Divide cells level by level, and join the levels."""
    rows, first = [], 0
    for level in range(LEVELS):
        bounds, faces, known = search.bound(cells)
        count = cells.pose.shape[0]
        first += count
        starts, parts = search.divide(cells, bounds, faces, known)
        arrays = cells.shape, bounds.upper, bounds.lower, bounds.point, faces, known
        row = [array.numpy() for array in arrays]
        begins = starts.numpy()
        last = parts is None or level == LEVELS - 1 or parts.pose.shape[0] > most_boxes
        row += [first + begins[:-1], np.zeros(count, np.int32) if last else np.diff(begins)]
        rows.append(row)
        if last:
            break
        cells = parts
    _lower_bounds_upwards(rows)
    return _joined(rows, search.device)


def _lower_bounds_upwards(rows: list[list[np.ndarray]]) -> None:
    """Bound the depth of boxes by the bounds of their parts."""
    for row, below in zip(rows[-2::-1], rows[:0:-1], strict=True):
        inner = row[-1] > 0
        if inner.any():
            starts = row[-2][inner] - row[-2][0]
            row[1][inner] = np.minimum(row[1][inner], np.maximum.reduceat(below[1], starts))


def _joined(rows: list[list[np.ndarray]], device: wp.Device) -> Any:
    """The struct of a tree."""
    tree = MedialTree()
    types = [wp.mat33d, wp.float64, wp.float64, wp.vec3d, wp.vec4i, wp.int32, wp.int32, wp.int32]
    names = ["shape", "upper", "lower", "point", "faces", "known", "first", "count"]
    for k, (name, dtype) in enumerate(zip(names, types, strict=True)):
        values = np.concatenate([row[k] for row in rows])
        setattr(tree, name, wp.array(values, dtype=dtype, device=device))
    return tree
