"""What a distance field answers about meshes."""

from functools import cached_property
from typing import Any

import numpy as np

from abut.mesh import Mesh
from abut.sdf.centre_of_mass import centre_of_inside, margin_of
from abut.sdf.closest_sample import Proximity
from abut.sdf.depth_images import columns_of
from abut.sdf.queries import ask_closest, ask_on_tape, ask_response
from abut.sdf.response import Response
from abut.sdf.tape import TapedResponse


class MeshQueries:
    """The part of DistanceField that is about other meshes."""

    grid: Any

    @cached_property
    def centre(self) -> np.ndarray:
        """(3,) Centre of mass of what is inside, of even density."""
        return centre_of_inside(self.grid)

    @cached_property
    def margin(self) -> float:
        """How near the object comes to the sides of the box; 0 where it may reach beyond."""
        return margin_of(self.grid)

    @cached_property
    def depth_images(self) -> Any:
        """Between which depths the object can be inside, along each axis; see columns."""
        return columns_of(self.grid)

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
                (n, 3), those of its vertices, in its own frame. None: at rest.
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

    def response_on_tape(
        self,
        other: Mesh,
        poses: Any,
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
        """``response`` with ``sampling="faces"`` as a function of poses that can be differentiated.

        Call it inside ``with wp.Tape():``; ``tape.backward`` then carries derivatives of whatever
        is made of force, torque and energy back to ``poses.grad``. It is slower than ``response``
        and holds every sample in memory.

        Args:
            other: A mesh on the field's device.
            poses: Warp array (B,) of wp.transformd with ``requires_grad``.
            pixels, stiffness, damping, friction, slip, centre: As for ``response``.
            velocity, field_velocity: (6,), the same for all poses.

        Guarantee:
            Approximate, as the field is. Derivatives are those of the sum over samples, one-sided
            where a sample enters the object and where it crosses from cell to cell.
        """
        material = (stiffness, damping, friction, slip)
        twists = (velocity, field_velocity)
        return ask_on_tape(self, other, poses, pixels, *twists, material, centre)
