"""Spheres of objects: few that cover all faces of a mesh, and few inside a closed one.

The spheres of a cover contain every face: a ball that contains the corners of a piece of a face
contains the piece. A sphere inside has a radius of at most the distance of its centre, which is
inside, from the mesh. Radii are rounded so that both hold for the coordinates of the mesh.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import max_abs
from abut.bvh.layout import BvhView, is_leaf, load_node, max_abs_coordinate, next_slot, root_of
from abut.geometry.poses import move_point, rotation_of, translation_of
from abut.mesh import Mesh
from abut.query.closest_point import closest_point
from abut.query.point_signs import contains

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

OUTER, INNER = 6, 6  # spheres of a mesh, as measured (design/robots.md)
PIECES = 8  # of the longest side of a mesh: faces are divided until their edges are shorter
MOST_PIECES = 40_000
LLOYD_STEPS, BALL_STEPS = 6, 10
INNER_GRID = 10  # points along the longest side
RADIUS_SLACK = 1e-9  # of radii, and of the size of the mesh
RIGID_SLACK = wp.constant(wp.float64(4e-5))  # of lengths at poses that are rigid up to 1e-5
ROUNDING = wp.constant(wp.float64(2.0**-20))  # 8 float32 roundings of the largest number met
LEAST_SQUARE = wp.constant(wp.float32(1e-37))  # covers the rounding of subnormal squares


@wp.struct
class SphereCovers:
    """Spheres (x, y, z, radius) of each slice of a scene, in its own frame; empty without any."""

    outer: wp.array[wp.vec4d]
    outer_starts: wp.array[wp.int32]  # one more than slices
    inner: wp.array[wp.vec4d]
    inner_starts: wp.array[wp.int32]


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    float sum = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float gap = fmaxf(fmaxf(low.c[i] - p.c[i], p.c[i] - high.c[i]), 0.0f);
        sum += gap * gap;
    }
    return sum;
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 l, h, x;
    __builtin_memcpy(&l, &low, 16);
    __builtin_memcpy(&h, &high, 16);
    __builtin_memcpy(&x, &p, 16);
    const v4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    const v4 below = l - x, above = x - h;
    v4 gap = below > above ? below : above;
    gap = gap > zero ? gap : zero;
    gap *= gap;
    return gap[0] + gap[1] + gap[2];
#endif
""")
def squared_gap_point_box(low: wp.vec4f, high: wp.vec4f, p: wp.vec4f) -> wp.float32:
    """Return the squared distance of a point from a box, rounded; fourth components are ignored."""
    ...


@wp.func
def is_near_tree(tree: BvhView, p: wp.vec3d, radius: wp.float64):
    """Whether a ball may meet a face of a tree, in the frame of its boxes.

    Guarantee:
        Conservative. False only where no face is within the radius of the point.
    """
    reach = max_abs_coordinate(load_node(tree.nodes, root_of(tree)))
    wide = wp.float32(radius + ROUNDING * (max_abs(p) + reach + radius))
    at = wp.vec4f(wp.float32(p[0]), wp.float32(p[1]), wp.float32(p[2]), wp.float32(0.0))
    most = wide * wide * wp.float32(1.0001) + LEAST_SQUARE
    found = wp.bool(False)
    slot = root_of(tree)
    while slot >= 0:
        node = load_node(tree.nodes, slot)
        near = not (squared_gap_point_box(node.low, node.high, at) > most)
        if near and is_leaf(node):
            found = True
            slot = -1
        else:
            slot = next_slot(node, near)
    return found


@wp.func
def cover_is_clear(
    covers: SphereCovers,
    shape: wp.int32,
    pose: wp.mat44d,
    tree: BvhView,
    tree_pose: wp.mat44d,
    gap: wp.float64,
):
    """Whether the cover of a posed slice proves that no face of a posed tree is within a gap."""
    if covers.outer.shape[0] == 0:
        return False
    first = covers.outer_starts[shape]
    stop = covers.outer_starts[shape + 1]
    back = wp.inverse(rotation_of(tree_pose))
    at = translation_of(tree_pose)
    clear = first < stop
    k = wp.int32(first)
    while k < stop and clear:
        sphere = covers.outer[k]
        world = move_point(pose, wp.vec3d(sphere[0], sphere[1], sphere[2]))
        p = back * (world - at) - tree.origin
        size = max_abs(world) + max_abs(at) + max_abs(tree.origin)
        radius = (sphere[3] + gap) * (wp.float64(1.0) + RIGID_SLACK) + wp.float64(1e-12) * size
        clear = not is_near_tree(tree, p, radius)
        k += 1
    return clear


@wp.func
def cores_meet(
    covers: SphereCovers,
    shape_a: wp.int32,
    pose_a: wp.mat44d,
    shape_b: wp.int32,
    pose_b: wp.mat44d,
):
    """Whether a sphere inside one posed solid certainly has a point in one inside another."""
    met = wp.bool(False)
    if covers.inner.shape[0] > 0:
        for i in range(covers.inner_starts[shape_a], covers.inner_starts[shape_a + 1]):
            if not met:
                a = covers.inner[i]
                p = move_point(pose_a, wp.vec3d(a[0], a[1], a[2]))
                for j in range(covers.inner_starts[shape_b], covers.inner_starts[shape_b + 1]):
                    b = covers.inner[j]
                    q = move_point(pose_b, wp.vec3d(b[0], b[1], b[2]))
                    reach = (a[3] + b[3]) * (wp.float64(1.0) - RIGID_SLACK)
                    reach -= wp.float64(1e-12) * (max_abs(p) + max_abs(q))
                    if reach > wp.float64(0.0) and wp.length_sq(p - q) < reach * reach:
                        met = True
    return met


def outer_spheres(mesh: Mesh, count: int = OUTER) -> np.ndarray:
    """(n, 4) centres and radii of at most ``count`` balls that contain all faces of a mesh.

    Guarantee:
        Conservative. Every point of a face is in one of the balls.
    """
    return mesh.per_shape(f"outer_spheres_{count}", lambda: _outer(mesh, count))


def inner_spheres(mesh: Mesh, count: int = INNER) -> np.ndarray:
    """(n, 4) centres and radii of at most ``count`` balls inside a closed mesh.

    Guarantee:
        Conservative. Every point of the balls is in the solid.
    """
    return mesh.per_shape(f"inner_spheres_{count}", lambda: _inner(mesh, count))


def _outer(mesh: Mesh, count: int) -> np.ndarray:
    pieces = _pieces(mesh.points.numpy()[mesh.faces.numpy()])
    middles = pieces.mean(axis=1)
    centres = _farthest_points(middles, count)
    for _ in range(LLOYD_STEPS):
        label = _nearest(middles, centres)
        centres = np.array([_ball_centre(pieces[label == k]) for k in np.unique(label)])
    label = _nearest(middles, centres)
    size = float(np.abs(pieces).max())
    out = []
    for k in np.unique(label):
        gaps = pieces[label == k].reshape(-1, 3) - centres[k]
        radius = np.sqrt((gaps * gaps).sum(axis=1).max())
        out.append([*centres[k], radius * (1.0 + RADIUS_SLACK) + RADIUS_SLACK * size])
    return np.array(out).reshape(-1, 4)


def _pieces(corners: np.ndarray) -> np.ndarray:
    """(m, 3, 3) triangles whose union holds faces, divided at the middle of their longest edges.

    Middles are rounded, by less than the slack of radii.
    """
    side = np.ptp(corners.reshape(-1, 3), axis=0).max() / PIECES
    done, open_ = [], corners
    while len(open_):
        edges = np.linalg.norm(np.roll(open_, -1, axis=1) - open_, axis=2)
        longest = edges.argmax(axis=1)
        small = edges.max(axis=1) <= side
        if sum(map(len, done)) + len(open_) > MOST_PIECES:
            small[:] = True
        done.append(open_[small])
        rows, first = open_[~small], longest[~small]
        each = np.arange(len(rows))
        p, q, r = (rows[each, (first + k) % 3] for k in range(3))
        middle = (p + q) / 2.0
        open_ = np.concatenate([np.stack([p, middle, r], 1), np.stack([middle, q, r], 1)])
    return np.concatenate(done)


def _farthest_points(points: np.ndarray, count: int) -> np.ndarray:
    """At most ``count`` of the points, each the farthest from those before."""
    gap = np.linalg.norm(points - points.mean(axis=0), axis=1)
    chosen = []
    for _ in range(min(count, len(points))):
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(
            gap if len(chosen) > 1 else np.inf, np.linalg.norm(points - points[chosen[-1]], axis=1)
        )
    return points[chosen]


def _nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    gaps = (points * points).sum(axis=1)[:, None] - 2.0 * points @ centres.T
    return np.argmin(gaps + (centres * centres).sum(axis=1), axis=1)


def _ball_centre(pieces: np.ndarray) -> np.ndarray:
    """The middle of a small ball around triangles (Badoiu and Clarkson)."""
    points = pieces.reshape(-1, 3)
    centre = (points.min(axis=0) + points.max(axis=0)) / 2.0
    for k in range(BALL_STEPS):
        gaps = points - centre
        centre = centre + gaps[np.argmax((gaps * gaps).sum(axis=1))] / (k + 2.0)
    return centre


def _inner(mesh: Mesh, count: int) -> np.ndarray:
    if not (mesh.watertight and mesh.face_count):
        return np.zeros((0, 4))
    low, high = np.asarray(mesh.bounds, float)
    step = (high - low).max() / INNER_GRID
    if step <= 0:
        return np.zeros((0, 4))
    axes = [a + (np.arange(n) + 0.5) * (b - a) / n for a, b, n in _axes(low, high, step)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[contains(mesh, points).numpy()]
    if not len(points):
        return np.zeros((0, 4))
    depth = closest_point(mesh, points).distance.numpy().astype(float)
    size = float(np.abs(np.stack([low, high])).max())
    radius = depth * (1.0 - RADIUS_SLACK) - RADIUS_SLACK * size
    points, radius = points[radius > 0], radius[radius > 0]
    out: list[np.ndarray] = []
    gain = radius.copy()
    while len(out) < count and len(gain) and gain.max() > 0.25 * radius.max():
        k = int(np.argmax(gain))
        out.append(np.append(points[k], radius[k]))
        gap = np.linalg.norm(points - points[k], axis=1)
        gain = np.minimum(gain, np.minimum(radius, (gap + radius - radius[k]) / 2.0))
    return np.array(out).reshape(-1, 4)


def _axes(low: np.ndarray, high: np.ndarray, step: float) -> list[tuple[float, float, int]]:
    counts = np.maximum(np.ceil((high - low) / step), 1).astype(int)
    return list(zip(low.tolist(), high.tolist(), counts.tolist(), strict=True))


def sphere_covers(
    outer: dict[int, np.ndarray], inner: dict[int, np.ndarray], count: int, device: wp.Device
) -> Any:
    """SphereCovers of ``count`` slices, of which some have spheres."""
    none = np.zeros((0, 4))
    out = SphereCovers()
    for name, spheres in (("outer", outer), ("inner", inner)):
        rows = [spheres.get(k, none) for k in range(count)]
        starts = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        held = np.concatenate([none, *rows])
        setattr(out, name, wp.array(held, dtype=wp.vec4d, device=device))
        setattr(out, f"{name}_starts", wp.array(starts, device=device))
    return out
