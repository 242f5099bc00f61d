"""Mesh: vertices and triangular faces on one device."""

import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import warp as wp

from abut.core.arrays import copy_vec3_array, scalar_dtype, to_plain
from abut.core.cache import RecentCache
from abut.core.device import resolve_device
from abut.core.pickling import device_or_cpu
from abut.core.point_check import PointCheck, PointCheckBuffers, not_finite_error, vertex_rows
from abut.core.unknown_options import explain_options
from abut.errors import MeshError

if TYPE_CHECKING:
    from abut.geometry.topology import Topology

Made = TypeVar("Made")

SPARE_BUFFERS = 2  # of points, for the next shapes

shape_changes = [0]  # of all meshes so far
_change_lock = threading.Lock()


class Mesh:
    """A triangle mesh on one device.

    Coordinates are kept as given (float32 or float64); exact answers refer to them. Arrays are
    copied: writing into them later has no effect until they are passed to ``deform``.

    Args:
        vertices: (n, 3) float32 or float64; finite.
        faces: (m, 3) integers, indices into ``vertices``.
        device: Device of the mesh; None means that of ``vertices`` if it is a device array, else
            the first CUDA device, else the CPU.

    Attributes:
        faces: (m,) vec3i, the mesh's own array; read-only.
        deviation: Largest distance of the mesh from the round shape that it contains and replaces,
            such as a sphere of a robot's file; 0 for other meshes.

    Raises:
        MeshError: Names the first offending row.
    """

    points: wp.array  # vertices in float64 (exact); reused once no lease refers to them
    faces: wp.array
    deviation: float = 0.0
    parts: np.ndarray | None = None  # first face of each part, then face_count; None: one part

    @explain_options
    def __init__(self, vertices: Any, faces: Any = None, device: Any = None) -> None:
        if faces is None:
            raise MeshError(f"Mesh takes vertices and faces{_way_to_mesh(vertices, 'two arrays')}.")
        vertices, faces = to_plain(vertices), to_plain(faces)
        if device is None and isinstance(vertices, wp.array):
            device = vertices.device
        self.device = resolve_device(device)
        self.version = 0  # grows with every deform
        self.changed_at = 0  # shape_changes after the last one
        self.cache: dict[Any, Any] = {}  # BVHs and other derived data, by name
        self.lock = threading.RLock()  # guards ``cache`` and the point buffers
        _require_rows(vertices, "vertices", "n")
        self.faces = self._checked_faces(faces, vertices)
        self._point_checks = RecentCache()
        self._check_buffers = PointCheckBuffers(self.device)
        self._unchecked: tuple[Any, ...] | None = None
        self._buffers: list[tuple[wp.array, weakref.ref[Lease]]] = []
        self._set_points(*self.checked_points(vertices, "vertices"))

    @classmethod
    def load(cls, path: Any, device: Any = None) -> "Mesh":
        """Read a mesh file: OBJ, and all formats of trimesh; several objects become ``parts``.

        Raises:
            FileError: There is no such file, it holds no triangle, or it is damaged.
            MeshError: The mesh in it cannot be used.
        """
        from abut.io import read_mesh

        vertices, faces, parts = read_mesh(path)
        try:
            mesh = cls(vertices, faces, device)
        except MeshError as error:
            raise MeshError(f"{path}: {error}") from None
        mesh.parts = parts
        return mesh

    @classmethod
    def from_trimesh(cls, mesh: Any, device: Any = None) -> "Mesh":
        """Make the mesh of a ``trimesh.Trimesh``."""
        return cls(np.asarray(mesh.vertices), np.asarray(mesh.faces), device)

    def deform(self, vertices: Any) -> None:
        """Move the vertices; faces stay. BVHs are refitted at their next use.

        The vertices are copied. Earlier results keep referring to the shape that was queried.
        Other threads may query the mesh meanwhile; each answer is about the old shape or about
        the new one.
        """
        with self.lock:
            self.start_deform(vertices)
            self.finish_deform()

    def start_deform(self, vertices: Any) -> None:
        """Copy new vertices and start their check; ``finish_deform`` waits and may refuse them.

        In between only the caller may use the mesh, with work that overlaps the check.
        """
        vertices = self._as_rows(vertices)
        if vertices.shape != (self.vertex_count, 3) and vertices.shape != (self.vertex_count,):
            raise MeshError(
                f"the mesh has {self.vertex_count} vertices, so deform needs shape "
                f"({self.vertex_count}, 3), not {tuple(vertices.shape)}."
            )
        with self.lock:
            self.finish_deform()
            lease, source = self._copy_points(vertices, "vertices")
            check = self._start_check(lease, source)
            self._unchecked = (check, source, self.lease)
            self._change_shape(lease, self._bounds)

    def finish_deform(self) -> None:
        """Wait for the check that ``start_deform`` started; a bad shape restores the one before."""
        if self._unchecked is None:
            return
        with self.lock:
            if self._unchecked is None:
                return
            (check, _, before), self._unchecked = self._unchecked, None
            first_bad, bounds = check.read()
            if first_bad >= 0:
                bad = self.vertices
                self._change_shape(before, self._bounds)
                raise not_finite_error("vertices", bad, first_bad)
            self._bounds = bounds

    @property
    def deform_pending(self) -> bool:
        """Whether a check that ``start_deform`` started is not finished."""
        return self._unchecked is not None

    @property
    def bounds(self) -> np.ndarray:
        """(2, 3) bounds of the vertices."""
        self.finish_deform()
        return self._bounds

    @property
    def surface_bounds(self) -> np.ndarray:
        """(2, 3) bounds of the vertices that faces use."""
        if not self.used.shape[0] or not self.face_count:
            return self.bounds
        points = self.points.numpy()[self.used.numpy()]
        return np.array([points.min(axis=0), points.max(axis=0)])

    @property
    def recent_bounds(self) -> np.ndarray:
        """Bounds, or those of the shape before if the vertices are unchecked."""
        return self._bounds

    def to(self, device: Any) -> "Mesh":
        """Return this mesh on another device; itself if it is there already."""
        device = resolve_device(device)
        if device == self.device:
            return self
        moved = Mesh(self.vertices.to(device), self.faces.to(device), device)
        moved.parts, moved.deviation = self.parts, self.deviation
        return moved

    @property
    def vertices(self) -> wp.array:
        """(n,) vec3f or vec3d as given, a copy at each access: write into it, then ``deform``."""
        return self.lease.vertices()

    @property
    def vertex_count(self) -> int:
        """Number of vertices."""
        return self.points.shape[0]

    @property
    def face_count(self) -> int:
        """Number of faces."""
        return self.faces.shape[0]

    @cached_property
    def edges(self) -> wp.array:
        """Unique edges (low, high), in lexicographic order."""
        ends = self.faces.numpy()[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).astype(np.int64)
        keys = np.unique(np.sort(ends, axis=1) @ [self.vertex_count, 1])
        edges = np.stack(np.divmod(keys, max(self.vertex_count, 1)), axis=1).astype(np.int32)
        return wp.array(edges, dtype=wp.vec2i, device=self.device)

    @cached_property
    def used(self) -> wp.array:
        """(n,) bool, whether a face uses the vertex; empty if all are used."""
        used = np.zeros(self.vertex_count, bool)
        used[self.faces.numpy().ravel()] = True
        return wp.array(used[:0] if used.all() else used, dtype=wp.bool, device=self.device)

    @property
    def topology(self) -> "Topology":
        """Topology of the present shape."""
        from abut.geometry.topology import topology_of

        faces = self.faces.numpy()
        return self.per_shape("topology", lambda: topology_of(self.points.numpy(), faces))

    def per_shape(self, name: str, make: Callable[[], Made], *about: Any) -> Made:
        """Return a value cached for the present shape and ``about``; ``make`` it on a miss."""
        entry = self.cache.get(name)
        if entry is None or entry[0] != (self.version, *about):
            entry = self.cache[name] = ((self.version, *about), make())
        return entry[1]

    @property
    def watertight(self) -> bool:
        """Every edge is shared by an even number of faces; equal positions are one vertex."""
        return self.topology.closed

    @property
    def oriented(self) -> bool:
        """Watertight, and each edge has as many faces in one direction as in the other."""
        return self.topology.oriented

    def __getstate__(self) -> dict[str, Any]:
        """Return vertices, faces, parts, deviation and the device's alias, without BVHs."""
        return {
            "vertices": self.vertices.numpy(),
            "faces": self.faces.numpy(),
            "parts": self.parts,
            "deviation": self.deviation,
            "device": self.device.alias,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the mesh on its device, or on the CPU if it is missing."""
        self.__init__(state["vertices"], state["faces"], device_or_cpu(state["device"]))
        self.parts, self.deviation = state["parts"], state.get("deviation", 0.0)

    def __repr__(self) -> str:
        """Counts and device."""
        return f"Mesh({self.vertex_count} vertices, {self.face_count} faces, {self.device})"

    def checked_points(self, vertices: Any, name: str) -> tuple["Lease", np.ndarray]:
        """Return a copy of the vertices of another shape of this mesh, and their bounds."""
        self.finish_deform()
        with self.lock:  # checks share buffers
            lease, source = self._copy_points(self._as_rows(vertices), name)
            first_bad, bounds = self._start_check(lease, source).read()
        if first_bad >= 0:
            raise not_finite_error(name, lease.vertices(), first_bad)
        return lease, bounds

    def _as_rows(self, vertices: Any) -> Any:
        """Return a plain array, or ``vertices`` if they are 3-vectors on the device."""
        return vertices if self._is_ready(vertices) else to_plain(vertices)

    def _is_ready(self, vertices: Any) -> bool:
        if not isinstance(vertices, wp.array) or vertices.dtype not in (wp.vec3f, wp.vec3d):
            return False
        return vertices.device == self.device and vertices.is_contiguous

    def _copy_points(self, vertices: Any, name: str) -> tuple["Lease", wp.array | None]:
        """Copy vertices to float64; on CUDA, return float32 rows for the check to convert."""
        rows = vertices
        if not self._is_ready(vertices):
            rows = vertex_rows(vertices, self.device, name)
        lease = self._lease_buffer(rows)
        if self.device.is_cpu:
            lease.points.numpy()[:] = rows.numpy()
        elif rows.dtype is wp.vec3f:
            return lease, rows
        else:
            wp.copy(lease.points, rows)
        return lease, None

    def _start_check(self, lease: "Lease", source: wp.array | None) -> PointCheck:
        """Start the check of leased points, which converts float32 rows first."""
        points = lease.points
        key = (points.ptr or 0, points.shape[0], int(source is not None))
        check = self._point_checks.get(key, lambda: PointCheck(points, self._check_buffers, source))
        check.start(source)
        return check

    def _lease_buffer(self, rows: wp.array) -> "Lease":
        """Lease a buffer for points: an earlier one without a lease, or a new one."""
        with self.lock:
            spare = [points for points, lease in self._buffers if lease() is None]
            if spare:
                points = spare.pop()  # the last used, which has recorded launches
            else:
                points = wp.empty(rows.shape[0], dtype=wp.vec3d, device=self.device)
            lease = Lease(points, rows.dtype)
            gone = {id(old) for old in spare[:-SPARE_BUFFERS]} | {id(points)}
            kept = [buffer for buffer in self._buffers if id(buffer[0]) not in gone]
            self._buffers = [*kept, (points, weakref.ref(lease))]
            return lease

    def set_shape(self, lease: "Lease", bounds: np.ndarray) -> None:
        """Take the shape that ``checked_points`` returned."""
        with self.lock:
            self.finish_deform()
            self._change_shape(lease, bounds)

    def _change_shape(self, lease: "Lease", bounds: np.ndarray) -> None:
        """Set the points; what other threads make meanwhile is of a version between two shapes."""
        self._count_change()
        self._set_points(lease, bounds)
        self._count_change()

    def _count_change(self) -> None:
        with _change_lock:
            self.version += 1  # first: who has seen the change of all has seen this one
            shape_changes[0] += 1
            self.changed_at = shape_changes[0]

    def _set_points(self, lease: "Lease", bounds: np.ndarray) -> None:
        self.lease, self.points, self._bounds = lease, lease.points, bounds

    def _checked_faces(self, faces: Any, vertices: Any) -> wp.array:
        if len(faces.shape) == 1 and faces.shape[0] == 0:
            faces = np.zeros((0, 3), np.int32)
        _require_rows(faces, "faces", "m")
        if scalar_dtype(faces).kind not in "iu":
            raise MeshError(f"faces must be integers, not {scalar_dtype(faces)}.")
        host = faces if isinstance(faces, np.ndarray) else faces.numpy()
        count = vertices.shape[0]
        if host.size and (host.min() < 0 or host.max() >= count):
            row = int(np.argmax(((host < 0) | (host >= count)).any(axis=1)))
            corner = int(np.argmax((host[row] < 0) | (host[row] >= count)))
            raise MeshError(
                f"faces[{row}] refers to vertex {host[row][corner]} but the mesh has {count} "
                "vertices; reindex the mesh."
            )
        if scalar_dtype(faces) != np.int32:
            faces = host.astype(np.int32)
        return copy_vec3_array(faces, wp.vec3i, self.device)


def require_meshes(**operands: Any) -> None:
    """Refuse operands that are not meshes."""
    for name, operand in operands.items():
        if not isinstance(operand, Mesh):
            way = _way_to_mesh(operand)
            raise MeshError(f"{name} must be an abut.Mesh, not {type(operand).__name__}{way}.")


def _way_to_mesh(operand: Any, arrays: str = "abut.Mesh(vertices, faces) makes one") -> str:
    """Return how to make a mesh of an operand that is none; "" where there is no way."""
    if isinstance(operand, str | PathLike):
        return "; abut.Mesh.load reads a file"
    if hasattr(operand, "faces"):
        return "; abut.Mesh.from_trimesh makes one"
    if operand is None:
        return "; abut.self_collide and abut.within(mesh, None, …) ask about one mesh"
    return f"; {arrays}" if hasattr(operand, "__len__") else ""


def _require_rows(data: Any, name: str, count: str) -> None:
    if len(data.shape) != 2 or data.shape[1] != 3:
        raise MeshError(f"{name} must have shape ({count}, 3), not {tuple(data.shape)}.")


class Lease:
    """A reference to a mesh's copy of points, which is not overwritten while it lives.

    Attributes:
        points: (n,) vec3d.
        dtype: Type of the vertices as given, vec3f or vec3d.
    """

    def __init__(self, points: wp.array, dtype: Any) -> None:
        self.points, self.dtype = points, dtype

    def vertices(self) -> wp.array:
        """Return a copy of the vertices as given."""
        if self.dtype is wp.vec3d:
            return wp.clone(self.points)
        out = wp.empty(self.points.shape[0], dtype=wp.vec3f, device=self.points.device)
        if out.device.is_cpu:
            out.numpy()[:] = self.points.numpy()
        elif out.shape[0]:
            wp.utils.array_cast(self.points, out)
        return out
