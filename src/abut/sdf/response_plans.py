"""The plan that answers ``response`` for a sampling, and its options."""

from typing import Any

from abut.errors import OptionError
from abut.options import EarlyOut, Sampling
from abut.sdf.field_plan import FieldPlan
from abut.sdf.response import ResponsePlan
from abut.sdf.vertex_samples import VertexResponsePlan


def response_plan_of(
    sampling: Sampling,
    early_out: EarlyOut,
    dissipative: bool,
    vertex_velocities: bool = False,
    per_vertex: bool = False,
) -> tuple[type[FieldPlan], dict[str, Any]]:
    """Return the type of plan, and the options for its construction."""
    options: dict[str, Any] = {
        "sampling": sampling,
        "vertex_velocities": vertex_velocities,
        "dissipative": dissipative,
    }
    if sampling is not Sampling.VERTICES:
        return ResponsePlan, options | {"early_out": early_out, "per_vertex": per_vertex}
    if per_vertex:
        raise OptionError("per_vertex divides samples of faces; sampling='vertices' has none.")
    return VertexResponsePlan, options
