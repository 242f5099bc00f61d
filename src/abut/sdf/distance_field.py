"""DistanceField: signed distance to a mesh and its gradient, on a regular grid."""

from functools import cached_property, partial
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
from abut.options import TREE_METHODS, EarlyOut, Method, Sampling, Sign, chosen, number_from
from abut.query.points import checked_points
from abut.query.signs import signed_volume
from abut.sdf.build import Progress, fill_field, is_certain, is_closed_now, sign_of
from abut.sdf.closest_sample import ClosestPlan, Proximity
from abut.sdf.field_arguments import (
    batch_of,
    centre_later,
    checked_centre,
    checked_material,
    checked_twist,
    pixel_of,
    require_sampled,
    vertex_velocities_of,
)
from abut.sdf.field_bounds import ResponseBounds, bound_closest, bound_response
from abut.sdf.field_files import load_archive, require_known, save_archive, save_nanovdb
from abut.sdf.field_pairs import MARGIN
from abut.sdf.field_plan import answer_rows
from abut.sdf.grid import Box, FieldGrid, box_around, make_grid
from abut.sdf.grid_properties import centre_of_inside, depth_images_of, margin_of, sign_jumps_of
from abut.sdf.response import Response, ResponsePlan, fill_inputs
from abut.sdf.response_plans import response_plan_of
from abut.sdf.sample import FieldSamples, FieldTextures, sampled, textures_of
from abut.sdf.tape import ContactLaw, TapedResponse, record_response, subdivided_samples
from abut.sdf.vertex_samples import VertexClosestPlan


@explain_methods
class DistanceField:
    """The signed distance to a mesh, sampled on a regular grid over its box and a margin.

    The field is of the mesh as it is now: after ``mesh.deform`` make a new one, or ``rebuild`` it.

    Args:
        mesh: A mesh with at least one face.
        resolution: Samples along the longest side of the box, from 2 to 1024; None is 256.
        spacing: Distance of neighbouring samples [mesh length unit], in place of ``resolution``.
        margin: What the box leaves free around the mesh [mesh length unit]; None is a tenth of
            the mesh's longest side.
        sign: Rule that decides the inside: ``pseudonormal`` (closed, oriented meshes only),
            ``winding``, or ``auto``, which takes the first where it is sure to be right.
        band: Distances are clamped there and have no gradient, which saves time; None:
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

        For meshes that deform from frame to frame, with a ``band``. Whether normals point outwards
        is taken from the first mesh that is rebuilt from; one turned inside out needs a new field.

        Args:
            mesh: Closed and oriented, inside the field's box, on the field's device.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face, is open, or leaves the box.

        Guarantee:
            The samples of a new field in the same box, with signs by winding number.
        """
        require_sampled(self, mesh)
        if not (self.certain and is_closed_now(mesh)):
            raise MeshError("rebuild needs a closed, oriented mesh, before and now; make a field.")
        low, high = mesh.bounds
        if (low < self.box.lower).any() or (high > self.box.upper).any():
            raise MeshError("the mesh leaves the field's box; make a field with a wider margin.")
        if self._flipped is None:
            self._flipped = signed_volume(mesh) < 0
        images = self.__dict__.pop("depth_images", None)
        for name in ("centre", "margin", "textures"):
            self.__dict__.pop(name, None)
        self.sign = Sign.WINDING
        fill = mesh, self.box, self.grid, self.sign, self.band, Method.BVH, None
        fill_field(*fill, flipped=self._flipped, is_closed=True)
        if images is not None:  # plans hold them
            self.__dict__["depth_images"] = depth_images_of(self.grid, images)

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

        Outside the box: the distance of the point closest to the nearest point of the box.

        Args:
            points: (n, 3) float32 or float64, on the field's device or in NumPy.
            texture: Let the texture units of a CUDA device blend, see docs/distance_field.md. The
                first time a copy of the field is made for them.

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
            Approximate; ``closest_bounds`` is certified. Where the point lies in the field's box,
            the distance is within a cell's diagonal and a pixel's of the true one. Of samples at
            the same distance the one of the lowest face, then the first of it: deterministic.
        """
        require_sampled(self, other)
        options = {"sampling": chosen(Sampling, sampling, "sampling")}
        plan = VertexClosestPlan if options["sampling"] is Sampling.VERTICES else ClosestPlan
        poses, single = batch_of(pose)

        def fill(inputs: np.ndarray, _chunk: slice) -> None:
            inputs[:, MARGIN] = self.margin

        asked = self, other, poses, pixels, options
        rows = answer_rows(plan, *asked, constants=self.margin, fill=fill)
        return Proximity(rows, single, self.device)

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
        require_sampled(self, other)
        sampling = chosen(Sampling, sampling, "sampling")
        poses, single = batch_of(pose)
        early_out = chosen(EarlyOut, early_out, "early_out")
        own = vertex_velocities_of(velocity, other)
        only_poses = velocity is None and field_velocity is None and centre is None
        about = checked_centre(self, centre)
        material = stiffness, damping, friction, slip
        fill = partial(
            fill_inputs,
            pose_count=len(poses),
            velocities=(velocity if own is None else None, field_velocity),
            centre=about,
            material=material,
            vertex_velocities=own,
        )
        plan_type, options = response_plan_of(
            sampling, early_out, damping != 0 or friction != 0, own is not None, bool(per_vertex)
        )
        shares = np.zeros((len(poses), other.vertex_count, 6)) if per_vertex else None

        def keep(plan: ResponsePlan, chunk: slice) -> None:
            if shares is not None:
                shares[chunk] = plan.vertex_rows.numpy()

        asked = self, other, poses, pixels, options
        constants = (*material, *about.tolist()) if only_poses else None
        how = {"constants": constants, "fill": fill, "velocities": own}
        rows = answer_rows(plan_type, *asked, **how, keep=keep)
        return Response(rows, single, self.device, centre_later(other, poses), about, shares)

    def closest_bounds(self, other: Mesh, pose: Any = None, *, pixels: int = 1024) -> wp.array:
        """Bound the true distance, or depth, of which ``closest`` finds an estimate.

        The least signed distance of all points of a mesh, not of samples alone.

        Args:
            other: A mesh on the field's device.
            pose: Rigid motion (4, 4) of ``other`` in the field's frame, or a batch (B, 4, 4).
            pixels: Parts of faces are bounded that are at most a pixel long.

        Returns:
            (2,) float64, lower and upper bound; (B, 2) for a batch. Infinite beyond a ``band``.

        Raises:
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face, or the field is not ``certain``.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Certified: the true least distance lies between, see docs/distance_field.md.
        """
        require_sampled(self, other)
        poses, single = batch_of(pose)
        rows = bound_closest(self, other, poses, pixel_of(self, pixels))
        return wp.array(rows[0] if single else rows, dtype=wp.float64, device=self.device)

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
            DeviceError: The mesh lives on another device.
            MeshError: The mesh has no face, or the field is not ``certain``.
            PoseError: The pose is not a rigid motion.

        Guarantee:
            Certified: the true integrals lie between, see docs/distance_field.md.
        """
        require_sampled(self, other)
        poses, single = batch_of(pose)
        about = checked_centre(self, centre)
        stiff = number_from(stiffness, "stiffness", 0.0)
        rows = bound_response(self, other, poses, pixel_of(self, pixels), about, stiff)
        return ResponseBounds(rows, single, self.device)

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
        require_sampled(self, other)
        law = ContactLaw()
        law.centre = wp.vec3d(*checked_centre(self, centre))
        twist = checked_twist(velocity, 1, "velocity").ravel()
        law.other_velocity, law.other_spin = wp.vec3d(*twist[:3]), wp.vec3d(*twist[3:])
        twist = checked_twist(field_velocity, 1, "field_velocity").ravel()
        law.velocity, law.spin = wp.vec3d(*twist[:3]), wp.vec3d(*twist[3:])
        law.material = wp.vec4d(*checked_material((stiffness, damping, friction, slip)))
        mesh = other.points.numpy(), other.faces.numpy()
        points, areas = subdivided_samples(*mesh, pixel_of(self, pixels))
        return record_response(self.grid, points, areas, pose, law)

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
