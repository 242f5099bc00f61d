"""DistanceField: signed distance to a mesh and the way to its closest point, on a regular grid."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.errors import MeshError, OptionError
from abut.faces import posed_faces
from abut.field.box import Box, box_around
from abut.field.closest import Proximity
from abut.field.grid import FieldGrid, make_grid
from abut.field.inside import centre_of_inside, margin_of
from abut.field.queries import ask_closest, ask_response
from abut.field.response import Response
from abut.field.sample import FieldSamples, sampled
from abut.field.slabs import positions_kernel, store_kernel
from abut.mesh import Mesh, require_meshes
from abut.options import Method, Sign, chosen
from abut.query.closest_point import closest_point
from abut.query.points import checked_points
from abut.query.signs import chosen_sign
from abut.runtime import launch

SLAB = 1 << 21  # samples at a time

Progress = Callable[[float], Any]


class DistanceField:
    """The signed distance to a mesh, sampled on a regular grid over its box and a margin.

    The field is of the mesh as it is now: after ``mesh.deform`` make a new one.

    Args:
        mesh: A mesh with at least one face.
        resolution: Samples along the longest side of the box, from 2 to 1024; None is 256.
        spacing: Distance of neighbouring samples [mesh length unit], in place of ``resolution``.
        margin: What the box leaves free around the mesh [mesh length unit]; None is a tenth of
            the mesh's longest side.
        sign: How the inside is told: ``pseudonormal`` (closed, oriented meshes only), ``winding``,
            or ``auto``, which takes the first where it is sure to be right.
        band: Distances beyond are cut off there and have no gradient, which saves time; None:
            all are exact.
        method: ``bvh``, or ``brute`` for the slow truth.
        progress: Called now and then with the share done, from 0 to 1.

    Attributes:
        grid: What kernels see, see abut.field.grid.
        sign: How the inside was told.

    Raises:
        MeshError: The mesh has no face, or a sign by pseudonormals is asked of an open mesh.
        OptionError: An option has none of the values above.

    Guarantee:
        Samples are true distances rounded to float32. Between them Approximate: within half a
        cell's diagonal, and of second order in the spacing where the distance is smooth.
    """

    grid: Any

    def __init__(
        self,
        mesh: Mesh,
        *,
        resolution: int | None = None,
        spacing: float | None = None,
        margin: float | None = None,
        sign: str = "auto",
        band: float | None = None,
        method: str = "bvh",
        progress: Progress | None = None,
    ) -> None:
        require_meshes(mesh=mesh)
        if mesh.face_count == 0:
            raise MeshError("the mesh has no faces, so nothing has a distance from it.")
        if band is not None and not band > 0:
            raise OptionError(f"band must be a distance above 0, not {band!r}.")
        self.method = chosen(Method, method, "method")
        self.device = mesh.device
        self.box = box_around(mesh.bounds, resolution, spacing, margin)
        self.band = float("inf") if band is None else float(band)
        self.sign = chosen_sign(mesh, True if sign == "auto" else sign) or Sign.WINDING
        self.held: dict[str, Any] = {}  # what was computed from the field when first asked for
        self.grid = empty_grid(self.box, self.device)
        self._fill(mesh, progress or (lambda share: None))

    @property
    def distance(self) -> wp.array:
        """(nx, ny, nz) float32, negative inside."""
        return self.grid.distance

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        return self.grid.distance.capacity + self.grid.gradient.capacity

    def sample(self, points: Any) -> FieldSamples:
        """The field at points (n, 3), linear between samples.

        Outside the box: the distance of the point closest to the nearest point of the box.

        Guarantee:
            Approximate. Within half a cell's diagonal of the true distance inside the box; not
            below it, up to that, outside.
        """
        rows, _ = checked_points(points, self.device)
        return sampled(self.grid, rows)

    @property
    def centre(self) -> np.ndarray:
        """(3,) Centre of mass of what is inside, of even density."""
        if "centre" not in self.held:
            self.held["centre"] = centre_of_inside(self.grid)
        return self.held["centre"]

    @property
    def margin(self) -> float:
        """How near the object comes to the sides of the box; 0 where it may reach beyond."""
        if "margin" not in self.held:
            self.held["margin"] = margin_of(self.grid)
        return self.held["margin"]

    def closest(
        self, other: Mesh, pose: Any = None, *, pixels: int = 1024, sampling: str = "dominant"
    ) -> Proximity:
        """Find the sampled point of a mesh that is closest to the object, or deepest inside it.

        Args:
            other: A mesh on the field's device; it may deform from call to call.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Pixels along the longest side of the field's box, at most 8192.
            sampling: Where the mesh is looked at: ``dominant``, ``views`` or ``faces``, see
                abut.Sampling. The corners and centroids of faces are looked at in any case.

        Returns:
            Its distance (negative inside), the points on the object and on the mesh, its face.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Approximate. Where the point lies in the field's box, the distance is within a cell's
            diagonal and a pixel's of the true one. Of samples at the same distance the one of the
            lowest face, then the first of it: deterministic.
        """
        return ask_closest(self, other, pose, pixels, sampling)

    def response(
        self,
        other: Mesh,
        pose: Any = None,
        *,
        pixels: int = 1024,
        velocity: Any = None,
        field_velocity: Any = None,
        stiffness: float = 1.0,
        damping: float = 0.0,
        friction: float = 0.0,
        slip: float = 0.0,
        centre: Any = None,
        sampling: str = "dominant",
        early_out: str = "bound",
    ) -> Response:
        """Add up penalty, damping and friction over the part of a mesh inside the object.

        Morvan et al. 2008, section 3.4. Everything is in the field's frame.

        Args:
            other: A mesh on the field's device; it may deform from call to call.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Pixels along the longest side of the field's box, at most 8192.
            velocity: Of ``other``: (6,) or (B, 6), velocity of its frame's origin and spin; or
                (n, 3), those of its vertices. None: at rest.
            field_velocity: Of the object: (6,) or (B, 6). None: at rest.
            stiffness: Force for a unit of depth and area.
            damping: Force for a unit of closing speed and area.
            friction: Dynamic friction coefficient.
            slip: Sliding speed below which friction fades; 0 as in the paper.
            centre: (3,) The point that torques are about; None is the object's centre of mass.
            sampling: ``dominant`` or ``faces``, see abut.Sampling; ``views`` is ``dominant`` here.
            early_out: How what is outside is left out; see abut.EarlyOut. The answer is the same.

        Returns:
            Force and torque on the object and on ``other``, the area inside, the energy.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face.
            OptionError: An option has none of the values above.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Approximate: a sum over samples. Deterministic: the same bytes on every run.
        """
        material = (stiffness, damping, friction, slip)
        how = (sampling, early_out)
        return ask_response(
            self, other, pose, pixels, *how, velocity, field_velocity, material, centre
        )

    def _fill(self, mesh: Mesh, progress: Progress) -> None:
        count = int(np.prod(self.box.shape))
        side = posed_faces(mesh.points, mesh.faces)
        for start in range(0, count, SLAB):
            size = min(SLAB, count - start)
            points = wp.empty(size, dtype=wp.vec3d, device=self.device)
            launch(positions_kernel, size, [self.grid, start, points], self.device)
            near = closest_point(mesh, points, signed=self.sign, method=self.method)
            found = [near.distance, near.point, near.face]
            args = [side, points, *found, wp.float64(self.band), start, self.grid]
            launch(store_kernel, size, args, self.device)
            progress((start + size) / count)


def empty_grid(box: Box, device: wp.Device) -> FieldGrid:
    """A grid with room for its samples."""
    distance = wp.empty(box.shape, dtype=wp.float32, device=device)
    gradient = wp.empty(box.shape, dtype=wp.vec3s, device=device)
    return make_grid(box.lower, box.spacing, distance, gradient)
