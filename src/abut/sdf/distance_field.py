"""DistanceField: signed distance to a mesh and its gradient, on a regular grid."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import wait_for_readers
from abut.core.device import resolve_device
from abut.core.pickling import device_or_cpu
from abut.core.unknown_options import explain_methods
from abut.errors import MeshError, OptionError
from abut.mesh import Mesh, require_meshes
from abut.options import TREE_METHODS, Sign, chosen
from abut.query.points import checked_points
from abut.sdf import field_answers
from abut.sdf.build import Progress, fill_field, is_certain, sign_of
from abut.sdf.closest_sample import Proximity
from abut.sdf.field_bounds import ResponseBounds
from abut.sdf.field_files import load_archive, require_known, save_archive, save_nanovdb
from abut.sdf.grid import Box, FieldGrid, box_around, make_grid
from abut.sdf.grid_properties import centre_of_inside, depth_images_of, margin_of, sign_jumps_of
from abut.sdf.refill import refill
from abut.sdf.response import Response
from abut.sdf.sample import FieldSamples, FieldTextures, sampled, textures_of
from abut.sdf.tape import TapedResponse


@explain_methods
class DistanceField:
    """The signed distance to a mesh, sampled on a regular grid over its box and a margin.

    The field stores the present shape: after ``mesh.deform`` make a new field, or ``rebuild`` it.

    Args:
        mesh: A mesh with at least one face.
        resolution: Samples along the longest side of the box, from 2 to 1024; None is 256.
        spacing: Distance of neighbouring samples [mesh length unit], in place of ``resolution``.
        margin: Space between the mesh and the box [mesh length unit]; None is a tenth of
            the mesh's longest side.
        sign: Rule that decides the inside: ``pseudonormal`` (closed, oriented meshes only),
            ``winding``, or ``auto``: the first where both provably agree, else the second.
        band: Clamp distances to this value, without a gradient beyond it, which saves time; None:
            all are exact.
        method: ``bvh``, or ``brute`` for the reference.
        progress: Called repeatedly with the share done, from 0 to 1.

    Attributes:
        grid: The struct for kernels, see abut.sdf.grid.
        sign: The rule that decided the inside.
        certain: Whether the sign changes at the surface alone: the mesh is closed and oriented.

    Raises:
        MeshError: The mesh has no face, or a sign by pseudonormals is asked of an open mesh.
        OptionError: An option has none of the values above.

    Guarantee:
        Samples are true distances up to roundings of float32, see docs/distance_field.md; the same
        bytes by every method. Between them Approximate: within half a cell's diagonal, and of
        second order in the spacing where the distance is smooth.
    """

    grid: Any
    _flipped: bool | None = None  # whether normals of the mesh point inwards, once it is known

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
        method = chosen(TREE_METHODS, method, "method")
        self.device = mesh.device
        self.box = box_around(mesh.surface_bounds, resolution, spacing, margin)
        self.band = float("inf") if band is None else float(band)
        self.sign = sign_of(mesh, sign)
        distance = wp.empty(self.box.shape, dtype=wp.float32, device=self.device)
        gradient = wp.empty(self.box.shape, dtype=wp.vec3s, device=self.device)
        self.grid = make_grid(self.box, distance, gradient)
        fill_field(mesh, self.box, self.grid, self.sign, self.band, method, progress)
        self.certain = is_certain(mesh, self.sign)
        self._find_sign_jumps()

    def rebuild(self, mesh: Mesh) -> None:
        """Fill the field again from a mesh as it is now, in the same box and memory.

        For meshes that deform from frame to frame, with a ``band``. The first mesh given decides
        whether normals point outwards; a mesh that is later turned inside out needs a new field.

        Args:
            mesh: Closed and oriented, inside the field's box, on the field's device.

        Raises:
            MeshError: The mesh has no face, is open, or leaves the box.

        Guarantee:
            The samples of a new field in the same box, with signs by winding number.
        """
        refill(self, mesh)

    @property
    def distance(self) -> wp.array:
        """(nx, ny, nz) float32, negative inside."""
        return self.grid.distance

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        return self.grid.distance.capacity + self.grid.gradient.capacity

    def sample(self, points: Any, *, texture: bool = False) -> FieldSamples:
        """The field at points (n, 3), linear between samples.

        Outside the box it is the distance to the closest point of the nearest point of the box.

        Args:
            points: (n, 3) float32 or float64, on the field's device or in NumPy.
            texture: Interpolate by the texture units of a CUDA device, see docs/distance_field.md.
                The first call copies the field for them.

        Raises:
            DeviceError: The points live on another device than the field.
            PointError: A point is not finite, or the shape is another.

        Guarantee:
            Approximate. Within half a cell's diagonal of the true distance inside the box; not
            below it, up to that, outside. With ``texture`` 0.024 of a cell more on CUDA.
        """
        rows, _ = checked_points(points, self.device)
        field = (self.textures, FieldTextures) if texture else (self.grid, FieldGrid)
        samples = sampled(*field, rows)
        wait_for_readers(points, self.device)
        return samples

    @cached_property
    def textures(self) -> Any:
        """The field in textures, 12 bytes a sample, for kernels: see abut.sdf.sample."""
        return textures_of(self.grid, self.device)

    @cached_property
    def centre(self) -> np.ndarray:
        """(3,) Centre of mass of the object at constant density."""
        return centre_of_inside(self.grid)

    @cached_property
    def margin(self) -> float:
        """Lower bound of the gap between the object and the sides of the box, at least 0."""
        return margin_of(self.grid)

    @cached_property
    def depth_images(self) -> Any:
        """The object's depth images along each axis, see abut.sdf.grid_properties."""
        return depth_images_of(self.grid)

    def closest(
        self, other: Mesh, pose: Any = None, *, pixels: int = 1024, sampling: str = "dominant"
    ) -> Proximity:
        """Find the sampled point of a mesh that is closest to the object, or deepest inside it.

        Args:
            other: A mesh on the field's device; it may deform from call to call.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Pixels along the longest side of the field's box, at most 8192.
            sampling: Where the mesh is sampled, see abut.Sampling. Corners and centroids of faces
                are sampled in any case, except for ``vertices``.

        Returns:
            Its distance (negative inside), the points on the object and on the mesh, its face.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Approximate; ``closest_bounds`` is certified. Of samples at the same distance the one of
            the lowest face, then the first of it: deterministic.
        """
        return field_answers.answer_closest(self, other, pose, pixels, sampling)

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
        per_vertex: bool = False,
    ) -> Response:
        """Add up penalty, damping and friction over the part of a mesh inside the object.

        Morvan et al. 2008, section 3.4. Everything is in the field's frame.

        Args:
            other: A mesh on the field's device; it may deform from call to call.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Pixels along the longest side of the field's box, at most 8192.
            velocity: Of ``other``: (6,) or (B, 6), velocity of its frame's origin and spin; or
                (n, 3), those of its vertices, in its own frame. None: at rest.
            field_velocity: Of the object: (6,) or (B, 6). None: at rest.
            stiffness: Force for a unit of depth and area.
            damping: Force for a unit of closing speed and area.
            friction: Dynamic friction coefficient.
            slip: Sliding speed below which friction fades; 0 as in the paper.
            centre: (3,) The point that torques are about; None is the object's centre of mass.
            sampling: See abut.Sampling; ``views`` is ``dominant`` here.
            early_out: How fragments outside are culled; see abut.EarlyOut. The answer is the same.
            per_vertex: Also divide force and torque among the vertices of ``other``, by the place
                of each sample in its face, for meshes that deform.

        Returns:
            Force and torque on the object and on ``other``, the area inside, the energy; with
            ``per_vertex`` the shares of vertices, which add up to force and torque.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face.
            OptionError: An option has none of the values above.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Approximate: a sum over samples; ``response_bounds`` is certified. Deterministic: the
            same bytes on every run.
        """
        about = {"velocity": velocity, "field_velocity": field_velocity, "centre": centre}
        material = stiffness, damping, friction, slip
        how = {"sampling": sampling, "early_out": early_out, "per_vertex": per_vertex}
        return field_answers.answer_response(self, other, pose, pixels, material, **about, **how)

    def closest_bounds(self, other: Mesh, pose: Any = None, *, pixels: int = 1024) -> wp.array:
        """Bound the least signed distance of all points of a mesh, not of samples alone.

        Args:
            other: A mesh on the field's device.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Parts of faces are bounded that are at most a pixel long.

        Returns:
            (2,) float64, lower and upper bound; (B, 2) for a batch. Infinite beyond a ``band``.

        Raises:
            MeshError: The mesh has no face, or the field is not ``certain``.

        Guarantee:
            Certified: the true least distance lies between, see docs/distance_field.md.
        """
        return field_answers.answer_closest_bounds(self, other, pose, pixels)

    def response_bounds(
        self,
        other: Mesh,
        pose: Any = None,
        *,
        pixels: int = 1024,
        stiffness: float = 1.0,
        centre: Any = None,
    ) -> ResponseBounds:
        """Bound the integrals that ``response`` without damping and friction sums up.

        Args:
            other, pose: As for ``closest_bounds``.
            pixels: Parts of faces are bounded that are at most a pixel long.
            stiffness, centre: As for ``response``.

        Returns:
            Bounds of force, torque, area and energy of the continuous surface inside.

        Raises:
            MeshError: The mesh has no face, or the field is not ``certain``.

        Guarantee:
            Certified: the true integrals lie between, see docs/distance_field.md.
        """
        return field_answers.answer_response_bounds(self, other, pose, pixels, stiffness, centre)

    def response_on_tape(
        self,
        other: Mesh,
        pose: Any,
        *,
        pixels: int = 256,
        velocity: Any = None,
        field_velocity: Any = None,
        stiffness: float = 1.0,
        damping: float = 0.0,
        friction: float = 0.0,
        slip: float = 0.0,
        centre: Any = None,
    ) -> TapedResponse:
        """Compute ``response`` with ``sampling="faces"`` as a differentiable function of the pose.

        Call it inside ``with wp.Tape():``; ``tape.backward`` then propagates derivatives of
        force, torque and energy to ``pose.grad``. It is slower than ``response`` and holds every
        sample in memory.

        Args:
            other: A mesh on the field's device.
            pose: Warp array (B,) of wp.transformd with ``requires_grad``.
            pixels, stiffness, damping, friction, slip, centre: As for ``response``.
            velocity, field_velocity: (6,), the same for all poses.

        Guarantee:
            Approximate, as the field is. Derivatives are those of the sum over samples, one-sided
            where a sample enters the object and where it crosses from cell to cell.
        """
        about = {"velocity": velocity, "field_velocity": field_velocity, "centre": centre}
        material = stiffness, damping, friction, slip
        return field_answers.answer_on_tape(self, other, pose, pixels, material, **about)

    def save(self, path: Any) -> None:
        """Write a file: ``.npz`` for ``load``, or ``.nvdb`` (NanoVDB, distances alone) for others.

        Raises:
            FileError: The name ends in neither, or the file cannot be written.
        """
        path = Path(path)
        require_known(path)
        if path.suffix == ".nvdb":
            save_nanovdb(path, self.distance.numpy(), self.box.lower, self.box.spacing)
        else:
            state = self.__getstate__()
            del state["device"]
            save_archive(path, state)

    @classmethod
    def load(cls, path: Any, device: Any = None) -> "DistanceField":
        """Read a field that was saved as ``.npz``.

        Raises:
            FileError: There is no such file, or it holds no field.
        """
        state = load_archive(Path(path))
        field = cls.__new__(cls)
        field.__setstate__(state | {"device": resolve_device(device).alias})
        return field

    def to(self, device: Any) -> "DistanceField":
        """Return this field on another device; itself if it is there already."""
        device = resolve_device(device)
        if device == self.device:
            return self
        field = DistanceField.__new__(DistanceField)
        field.__setstate__(self.__getstate__() | {"device": device.alias})
        return field

    def __getstate__(self) -> dict[str, Any]:
        """Return samples as NumPy arrays, and the device's name."""
        return {
            "lower": self.box.lower,
            "spacing": self.box.spacing,
            "distance": self.grid.distance.numpy(),
            "gradient": self.grid.gradient.numpy(),
            "sign": str(self.sign),
            "band": self.band,
            "certain": self.certain,
            "device": self.device.alias,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the field on its device, or on the CPU where that is missing."""
        self.device = device_or_cpu(state["device"])
        distance = wp.array(state["distance"], dtype=wp.float32, device=self.device)
        gradient = wp.array(state["gradient"], dtype=wp.vec3s, device=self.device)
        lower, spacing = np.asarray(state["lower"], np.float64), float(state["spacing"])
        self.box = Box(lower, spacing, distance.shape)
        self.band = float(state["band"])
        self.sign = Sign(str(state["sign"]))
        self.certain = bool(state.get("certain", False))  # older files do not say
        self.grid = make_grid(self.box, distance, gradient)
        self._find_sign_jumps()

    def _find_sign_jumps(self) -> None:
        if self.sign == Sign.WINDING and not self.certain:  # else the surface is closed
            self.grid.sign_jumps = sign_jumps_of(self.grid)

    def __repr__(self) -> str:
        """Shape, spacing, sign and device."""
        shape = " x ".join(map(str, self.box.shape))
        return f"DistanceField({shape}, spacing {self.box.spacing:.6g}, {self.sign}, {self.device})"
