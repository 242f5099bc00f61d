"""Exact proximity queries between triangle meshes, on CPU and CUDA."""

from abut.errors import (
    AbutError,
    CapacityError,
    DeviceError,
    FileError,
    MeshError,
    OptionError,
    PoseError,
    ToolError,
)
from abut.mesh import Mesh
from abut.options import Bound, Method
from abut.query import primitives
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import Contacts

__all__ = [
    "AbutError",
    "Bound",
    "CapacityError",
    "Contacts",
    "DeviceError",
    "FileError",
    "Mesh",
    "MeshError",
    "Method",
    "OptionError",
    "PoseError",
    "ToolError",
    "collide",
    "primitives",
    "self_collide",
]
