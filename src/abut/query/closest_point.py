"""abut.closest_point: the nearest point of a mesh for each of many points, and on which side."""

from typing import Any

import numpy as np
import warp as wp

from abut.errors import MeshError, OptionError
from abut.faces import posed_faces
from abut.hierarchy.morton import point_order
from abut.hierarchy.owner import hierarchy_of
from abut.hierarchy.wide import wide_nodes_of
from abut.mesh import Mesh, require_meshes
from abut.options import Method, Sign, chosen
from abut.pairs import PairQueue, PairQueues
from abut.point.feet import feet_kernel
from abut.point.nearest_face import nearest_face_kernel, nearest_of_all_kernel
from abut.point.pseudonormals import pseudonormals_of
from abut.point.signs import normals_kernel, winding_kernel
from abut.point.surface import surfaces_of
from abut.poses import batch_size, checked_poses
from abut.query.points import checked_points, in_unit, unit_of
from abut.query.self_collide import self_collide
from abut.results import ClosestPoints
from abut.runtime import EVERYTHING, launch, stage

FEW_POINTS = 512  # not worth sorting


def closest_point(
    mesh: Mesh,
    points: Any,
    *,
    signed: bool | str = False,
    pose: Any = None,
    upper_bound: float = float("inf"),
    method: str = "bvh",
) -> ClosestPoints:
    """Find the point of a mesh that is closest to each of many points.

    Args:
        mesh: A mesh with at least one face.
        points: (n, 3) float32 or float64, on the mesh's device or in NumPy.
        signed: Negative distances inside. ``True`` takes pseudonormals where they are sure to be
            right and winding numbers elsewhere; ``"pseudonormal"`` or ``"winding"`` takes those.
        pose: Rigid motion (4, 4) of the mesh, or a batch (B, 4, 4); None leaves it in place.
        upper_bound: Points farther away are answered by infinity and face -1.
        method: ``bvh``, or ``brute`` for the slow truth. All methods return the same rows.

    Returns:
        Distance, point, face and barycentric coordinates of each point; with a batch of poses a
        leading axis.

    Raises:
        DeviceError: The points live on another device than the mesh.
        MeshError: The mesh has no face, or a sign by pseudonormals is asked of an open mesh.
        OptionError: A point is not finite, or an option has none of the values above.

    Guarantee:
        The true minimum in float64, exactly zero on the surface; of faces equally near, the
        lowest. Signs are exact for closed meshes; see docs/closest_point.md for open ones.
    """
    require_meshes(mesh=mesh)
    method = chosen(Method, method, "method")
    if mesh.face_count == 0:
        raise MeshError("the mesh has no faces, so no point of it is closest.")
    if not upper_bound >= 0:
        raise OptionError(f"upper_bound must be a distance from 0 up, not {upper_bound!r}.")
    batch = batch_size(pose, None)
    poses = checked_poses(pose, "pose")
    queries, bounds = checked_points(points, mesh.device)
    unit = unit_of(mesh, bounds)
    if unit != 1.0:
        mesh = in_unit(mesh, unit)
        queries = wp.array(queries.numpy() / unit, dtype=wp.vec3d, device=mesh.device)
        bounds, upper_bound = bounds / unit, upper_bound / unit
        poses = poses if poses is None else poses / [[1, 1, 1, unit]]
    sign = chosen_sign(mesh, signed)
    rows = Rows(1 if poses is None else len(poses), queries.shape[0], mesh.device)
    if rows.face.size:
        order = empty_order(mesh.device)
        if method is not Method.BRUTE and queries.shape[0] > FEW_POINTS:
            order = point_order(queries, bounds)
        find_closest(mesh, queries, order, poses, upper_bound, method, rows)
        if sign is not None:
            set_signs(mesh, queries, order, poses, sign, rows)
    return rows.result(batch is None, sign, unit)


def chosen_sign(mesh: Mesh, signed: bool | str) -> Sign | None:
    """How to tell the inside of a mesh; None where no sign is wanted."""
    if isinstance(signed, bool):
        if not signed:
            return None
        return Sign.PSEUDONORMAL if _is_plain(mesh) else Sign.WINDING
    sign = chosen(Sign, signed, "signed")
    if sign is Sign.PSEUDONORMAL and not mesh.oriented:
        what = "is not consistently oriented" if mesh.watertight else "is open"
        raise MeshError(
            f"a sign by pseudonormals needs a closed, oriented mesh, but this one {what}; "
            'repair it, or take signed="winding".'
        )
    return sign


def _is_plain(mesh: Mesh) -> bool:
    """Whether a mesh is one closed surface, normals outwards, that nowhere meets itself."""
    held = mesh.held.get("plain")
    if held is None or held[0] != mesh.version:
        plain = (
            mesh.oriented
            and len(mesh.topology.anchors) == 1
            and signed_volume(mesh) > 0
            and not self_collide(mesh)
        )
        held = mesh.held["plain"] = (mesh.version, plain)
    return held[1]


def signed_volume(mesh: Mesh) -> float:
    """Volume that a closed mesh encloses, negative where its normals point inwards."""
    held = mesh.held.get("volume")
    if held is None or held[0] != mesh.version:
        corners = (mesh.points.numpy() - mesh.bounds.mean(axis=0))[mesh.faces.numpy()]
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        held = (mesh.version, float(np.einsum("ni,ni->", a, np.cross(b, c))) / 6.0)
        mesh.held["volume"] = held
    return held[1]


class Rows:
    """Room for the answers of ``pose_count`` times ``point_count`` queries."""

    def __init__(self, pose_count: int, point_count: int, device: wp.Device) -> None:
        shape = pose_count, point_count
        self.face = wp.empty(shape, dtype=wp.int32, device=device)
        self.distance = wp.empty(shape, dtype=wp.float64, device=device)
        self.point = wp.empty(shape, dtype=wp.vec3d, device=device)
        self.weights = wp.empty(shape, dtype=wp.vec3d, device=device)

    def result(self, single: bool, sign: Sign | None, unit: float) -> ClosestPoints:
        """Wrap the rows, without the axis of poses for a single one."""
        distance, point = self.distance, self.point.view(wp.float64)
        if unit != 1.0:
            distance, point = (
                wp.array(a.numpy() * unit, dtype=wp.float64, device=a.device)
                for a in (distance, point)
            )
        arrays = distance, point, self.face, self.weights.view(wp.float64)
        return ClosestPoints(*(a.reshape(a.shape[1:]) if single else a for a in arrays), sign)


def empty_order(device: wp.Device) -> wp.array:
    """Points as they come."""
    return wp.empty(0, dtype=wp.int32, device=device)


def find_closest(
    mesh: Mesh,
    points: wp.array,
    order: wp.array,
    poses: np.ndarray | None,
    upper_bound: float,
    method: Method,
    rows: Rows,
) -> None:
    """Fill all rows, distances without signs."""
    device = mesh.device
    count = rows.face.size
    side = posed_faces(mesh.points, mesh.faces, poses)
    bound = wp.float64(upper_bound * upper_bound * (1.0 + 2.0**-50))  # looked at again below
    if method is Method.BRUTE:
        with stage("search", device):
            launch(nearest_of_all_kernel, count, [points, side, bound, rows.face], device, grain=1)
    else:
        tree = hierarchy_of(mesh)
        wide = wide_nodes_of(mesh, tree)
        with stage("search", device):
            args = [points, order, side, tree.view(), wide, bound, True, rows.face]
            # on CUDA threads take several points each: the room for their stacks is made once
            span = EVERYTHING if device.is_cuda else count
            launch(nearest_face_kernel, span, args, device, grain=256)
    with stage("feet", device):
        outputs = [rows.face, rows.distance, rows.point, rows.weights]
        launch(feet_kernel, count, [points, side, wp.float64(upper_bound), *outputs], device)


def set_signs(
    mesh: Mesh,
    points: wp.array,
    order: wp.array,
    poses: np.ndarray | None,
    sign: Sign,
    rows: Rows,
) -> None:
    """Turn distances negative inside."""
    device = mesh.device
    count = rows.face.size
    side = posed_faces(mesh.points, mesh.faces, poses)
    surfaces = surfaces_of(mesh)
    if sign is Sign.WINDING:
        with stage("sign", device):
            args = [points, order, side, *surfaces, False, PairQueue(), rows.distance]
            launch(winding_kernel, count, args, device, grain=256)
        return
    normals = pseudonormals_of(mesh, surfaces[0].faces)
    with stage("sign", device):
        undecided = PairQueues(device, points=count)["points"]
        args = [points, side, surfaces[0].faces, normals, rows.face, rows.weights]
        launch(normals_kernel, count, [*args, rows.distance, undecided], device)
        left = EVERYTHING if device.is_cuda else int(undecided.count.numpy()[0])
        flipped = signed_volume(mesh) < 0
        args = [points, order, side, *surfaces, flipped, undecided, rows.distance]
        launch(winding_kernel, left, args, device, grain=64)
