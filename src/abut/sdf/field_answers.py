"""Questions to a DistanceField: arguments validated, plans run, answers wrapped."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.mesh import Mesh
from abut.options import EarlyOut, Sampling, chosen, number_from
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
from abut.sdf.field_pairs import MARGIN
from abut.sdf.field_plan import answer_rows
from abut.sdf.response import Response, ResponsePlan, fill_inputs
from abut.sdf.response_plans import response_plan_of
from abut.sdf.tape import ContactLaw, TapedResponse, record_response, subdivided_samples
from abut.sdf.vertex_samples import VertexClosestPlan

Material = tuple[float, float, float, float]  # stiffness, damping, friction, slip


def answer_closest(field: Any, other: Mesh, pose: Any, pixels: int, sampling: str) -> Proximity:
    """Answer ``DistanceField.closest``."""
    require_sampled(field, other)
    options = {"sampling": chosen(Sampling, sampling, "sampling")}
    plan = VertexClosestPlan if options["sampling"] is Sampling.VERTICES else ClosestPlan
    poses, single = batch_of(pose)

    def fill(inputs: np.ndarray, _chunk: slice) -> None:
        inputs[:, MARGIN] = field.margin

    asked = field, other, poses, pixels, options
    rows = answer_rows(plan, *asked, constants=field.margin, fill=fill)
    return Proximity(rows, single, field.device)


def answer_response(
    field: Any,
    other: Mesh,
    pose: Any,
    pixels: int,
    material: Material,
    *,
    velocity: Any,
    field_velocity: Any,
    centre: Any,
    sampling: str,
    early_out: str,
    per_vertex: bool,
) -> Response:
    """Answer ``DistanceField.response``."""
    require_sampled(field, other)
    sampling = chosen(Sampling, sampling, "sampling")
    poses, single = batch_of(pose)
    early_out = chosen(EarlyOut, early_out, "early_out")
    own = vertex_velocities_of(velocity, other)
    only_poses = velocity is None and field_velocity is None and centre is None
    about = checked_centre(field, centre)
    fill = partial(
        fill_inputs,
        pose_count=len(poses),
        velocities=(velocity if own is None else None, field_velocity),
        centre=about,
        material=material,
        vertex_velocities=own,
    )
    plan_type, options = response_plan_of(
        sampling, early_out, material[1] != 0 or material[2] != 0, own is not None, bool(per_vertex)
    )
    shares = np.zeros((len(poses), other.vertex_count, 6)) if per_vertex else None

    def keep(plan: ResponsePlan, chunk: slice) -> None:
        if shares is not None:
            shares[chunk] = plan.vertex_rows.numpy()

    asked = field, other, poses, pixels, options
    constants = (*material, *about.tolist()) if only_poses else None
    how = {"constants": constants, "fill": fill, "velocities": own}
    rows = answer_rows(plan_type, *asked, **how, keep=keep)
    return Response(rows, single, field.device, centre_later(other, poses), about, shares)


def answer_closest_bounds(field: Any, other: Mesh, pose: Any, pixels: int) -> wp.array:
    """Answer ``DistanceField.closest_bounds``."""
    require_sampled(field, other)
    poses, single = batch_of(pose)
    rows = bound_closest(field, other, poses, pixel_of(field, pixels))
    return wp.array(rows[0] if single else rows, dtype=wp.float64, device=field.device)


def answer_response_bounds(
    field: Any, other: Mesh, pose: Any, pixels: int, stiffness: float, centre: Any
) -> ResponseBounds:
    """Answer ``DistanceField.response_bounds``."""
    require_sampled(field, other)
    poses, single = batch_of(pose)
    about = checked_centre(field, centre)
    stiff = number_from(stiffness, "stiffness", 0.0)
    rows = bound_response(field, other, poses, pixel_of(field, pixels), about, stiff)
    return ResponseBounds(rows, single, field.device)


def answer_on_tape(
    field: Any,
    other: Mesh,
    pose: Any,
    pixels: int,
    material: Material,
    *,
    velocity: Any,
    field_velocity: Any,
    centre: Any,
) -> TapedResponse:
    """Answer ``DistanceField.response_on_tape``."""
    require_sampled(field, other)
    law = ContactLaw()
    law.centre = wp.vec3d(*checked_centre(field, centre))
    twist = checked_twist(velocity, 1, "velocity").ravel()
    law.other_velocity, law.other_spin = wp.vec3d(*twist[:3]), wp.vec3d(*twist[3:])
    twist = checked_twist(field_velocity, 1, "field_velocity").ravel()
    law.velocity, law.spin = wp.vec3d(*twist[:3]), wp.vec3d(*twist[3:])
    law.material = wp.vec4d(*checked_material(material))
    mesh = other.points.numpy(), other.faces.numpy()
    points, areas = subdivided_samples(*mesh, pixel_of(field, pixels))
    return record_response(field.grid, points, areas, pose, law)
