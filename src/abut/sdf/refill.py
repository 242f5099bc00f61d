"""Fill a DistanceField again from a mesh that has deformed."""

from typing import Any

from abut.errors import MeshError
from abut.mesh import Mesh
from abut.options import Method, Sign
from abut.query.signs import signed_volume
from abut.sdf.build import fill_field, is_closed_now
from abut.sdf.field_arguments import require_sampled
from abut.sdf.grid_properties import depth_images_of

DERIVED = ("centre", "margin", "textures")  # cached properties of the samples


def refill(field: Any, mesh: Mesh) -> None:
    """Answer ``DistanceField.rebuild``."""
    require_sampled(field, mesh)
    if not (field.certain and is_closed_now(mesh)):
        raise MeshError("rebuild needs a closed, oriented mesh, before and now; make a field.")
    low, high = mesh.bounds
    if (low < field.box.lower).any() or (high > field.box.upper).any():
        raise MeshError("the mesh leaves the field's box; make a field with a wider margin.")
    if field._flipped is None:
        field._flipped = signed_volume(mesh) < 0
    images = field.__dict__.pop("depth_images", None)
    for name in DERIVED:
        field.__dict__.pop(name, None)
    field.sign = Sign.WINDING
    fill = mesh, field.box, field.grid, field.sign, field.band, Method.BVH, None
    fill_field(*fill, flipped=field._flipped, is_closed=True)
    if images is not None:  # plans hold them
        field.__dict__["depth_images"] = depth_images_of(field.grid, images)
