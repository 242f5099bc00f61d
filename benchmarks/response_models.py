"""Two identical models posed by the protocol of bench_response, and the peers' calls.

Peers: the field sampled at the vertices alone (the paper's "CPU distance fields"), MeshLib's signed
distances of the vertices, and Warp's ``mesh_query_point`` at abut's samples, without a field. In
the role of SOLID: Coal's hierarchies, for all pairs of faces that meet and their depths, or the
distance; and abut's own, for all pairs or the distance, rigid and deformed (refitted) before each
call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

import abut
from abut.sdf.tape import subdivided_samples
from benchmarks.cases import _gem, _model

wp.set_module_options({"enable_backward": False})

MODELS = {
    "cow": "cow_5k",
    "bunny": "bunny_69k",
    "horse": "horse_97k",
    "dragon": "dragon_202k",
}
Call = Callable[[np.ndarray], Any]


class TwinModels:
    """A model, its fields, and the poses of its copy at each distance."""

    def __init__(self, name: str, device: str, resolution: int) -> None:
        self.prefix, self.vertices, self.faces = _model(f"models/{MODELS[name]}.ply", _gem)
        self.mesh = abut.Mesh(self.vertices, self.faces, device)
        self.size = np.ptp(self.mesh.bounds, axis=0)
        self.middle = self.mesh.bounds.mean(axis=0)
        self.touch = self._touching()
        around = float(self.size.max())
        self.near = abut.DistanceField(self.mesh, resolution=resolution)
        self.wide = abut.DistanceField(self.mesh, resolution=resolution, margin=around)

    def poses(self, distance: float, count: int) -> np.ndarray:
        """Return (count, 4, 4) poses: half rotate about y, half about z."""
        half = count // 2
        angles = np.arange(half) * 2 * np.pi / half
        rotations = [_rotation(axis, angle) for axis in (1, 2) for angle in angles]
        beyond = max(distance - 1, 0.0) * self.size[0]
        shift = np.array([min(distance, 1.0) * self.touch + beyond, 0, 0])
        poses = np.tile(np.eye(4), (2 * half, 1, 1))
        poses[:, :3, :3] = rotations
        poses[:, :3, 3] = self.middle + shift - np.array(rotations) @ self.middle
        return poses

    def _touching(self) -> float:
        """Find the least shift along x without contact, to a thousandth of the extent."""
        low, high = 0.0, 1.01 * self.size[0]
        while high - low > 1e-3 * self.size[0]:
            pose = np.eye(4)
            pose[0, 3] = (low + high) / 2
            met = bool(abut.collide(self.mesh, self.mesh, pose_b=pose, first=True))
            low, high = (pose[0, 3], high) if met else (low, pose[0, 3])
        return high


def of_vertices(models: TwinModels, collision: bool, pixels: int) -> Call:
    """Sample the field at the vertices: the sum of depths, or the least distance."""
    field = models.near if collision else models.wide
    points = models.vertices.astype(np.float64)

    def call(pose: np.ndarray) -> Any:
        found = field.sample(points @ pose[:3, :3].T + pose[:3, 3])
        distance = found.distance.numpy()
        if not collision:
            return float(distance.min())
        inside = distance < 0
        return (distance[inside, None] * found.gradient.numpy()[inside]).sum(axis=0)

    return call


def of_meshlib(models: TwinModels, collision: bool, pixels: int) -> Call:
    """Call ``findSignedDistances`` on the vertices."""
    from meshlib import mrmeshnumpy, mrmeshpy

    mesh = mrmeshnumpy.meshFromFacesVerts(models.faces, models.vertices)
    mesh.getAABBTree()
    points = models.vertices.astype(np.float64)

    def call(pose: np.ndarray) -> Any:
        placed = (points @ pose[:3, :3].T + pose[:3, 3]).astype(np.float32)
        cloud = mrmeshnumpy.pointCloudFromPoints(placed)
        found = mrmeshpy.findSignedDistances(mesh, cloud.points)
        return found.vec[0] if found.size() else None

    return call


@wp.kernel
def query_kernel(
    mesh: wp.uint64,
    points: wp.array[wp.vec3f],
    pose: wp.mat44f,
    limit: wp.float32,
    nearest_out: wp.array[wp.float32],
    force_out: wp.array[wp.vec3f],
):
    """Query Warp's signed closest point at one sample."""
    p = wp.transform_point(pose, points[wp.tid()])
    query = wp.mesh_query_point_sign_normal(mesh, p, limit)
    if query.result:
        way = p - wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance = query.sign * wp.length(way)
        if distance < 0.0:
            wp.atomic_add(force_out, 0, way)
        if distance < nearest_out[0]:
            wp.atomic_min(nearest_out, 0, distance)


def of_warp(models: TwinModels, collision: bool, pixels: int) -> Call:
    """Query Warp's mesh at the samples that abut takes from faces."""
    device = models.mesh.device
    field = models.near if collision else models.wide
    pixel = field.box.spacing * (max(field.box.shape) - 1) / pixels
    samples, _ = subdivided_samples(models.vertices.astype(np.float64), models.faces, pixel)
    points = wp.array(samples, dtype=wp.vec3f, device=device)
    mesh = wp.Mesh(
        wp.array(models.vertices, dtype=wp.vec3f, device=device),
        wp.array(models.faces.reshape(-1), dtype=wp.int32, device=device),
    )
    nearest = wp.zeros(1, dtype=wp.float32, device=device)
    force = wp.zeros(1, dtype=wp.vec3f, device=device)
    limit = float(models.size.max()) * (0.5 if collision else 3.0)

    def call(pose: np.ndarray, _held: Any = mesh) -> Any:
        nearest.fill_(1e30)
        force.zero_()
        inputs = [mesh.id, points, wp.mat44f(pose), limit, nearest, force]
        wp.launch(query_kernel, points.shape[0], inputs, device=device)
        return force.numpy() if collision else float(nearest.numpy()[0])

    return call


def of_coal(models: TwinModels, collision: bool, pixels: int) -> Call:
    """All pairs of faces that meet, with depths; or the distance."""
    import coal

    from benchmarks.peers.coal import UNKNOWN_COUNT, _model, _pose

    model = _model(models.vertices, models.faces, "obbrss")
    still = coal.Transform3s()
    if collision:
        request = coal.CollisionRequest()
        request.enable_contact, request.num_max_contacts = True, UNKNOWN_COUNT
        collide = coal.ComputeCollision(model, model)

        def call(pose: np.ndarray, _held: Any = model) -> Any:
            return collide(still, _pose(pose), request, coal.CollisionResult())

        return call
    distance = coal.ComputeDistance(model, model)

    def measure(pose: np.ndarray, _held: Any = model) -> Any:
        return distance(still, _pose(pose), coal.DistanceRequest(), coal.DistanceResult())

    return measure


def of_bvh(models: TwinModels, collision: bool, pixels: int, refit: bool = False) -> Call:
    """All pairs of faces that meet by abut's hierarchies, or the distance."""
    other = abut.Mesh(models.vertices, models.faces, models.mesh.device)
    verb = abut.collide if collision else abut.distance

    def call(pose: np.ndarray) -> Any:
        if refit:
            other.deform(models.vertices)
        found = verb(models.mesh, other, pose_b=pose)
        return len(found) if collision else found.value

    return call


def of_refitted_bvh(models: TwinModels, collision: bool, pixels: int) -> Call:
    """The same, with a second mesh that is deformed before each call."""
    return of_bvh(models, collision, pixels, refit=True)


PEERS = {
    "vertices": of_vertices,
    "meshlib": of_meshlib,
    "warp": of_warp,
    "coal": of_coal,
    "abut_bvh": of_bvh,
    "abut_refit": of_refitted_bvh,
}
VARIANTS = {"warp": "samples", "coal": "obbrss", "abut_bvh": "rigid", "abut_refit": "deformed"}


def _rotation(axis: int, angle: float) -> np.ndarray:
    rotation = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rotation[i, i] = rotation[j, j] = np.cos(angle)
    rotation[j, i] = np.sin(angle)
    rotation[i, j] = -rotation[j, i]
    return rotation
