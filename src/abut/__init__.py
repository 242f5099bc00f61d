"""Exact proximity queries between triangle meshes, on CPU and CUDA."""

from abut.errors import (
    AbutError,
    CapacityError,
    DeviceError,
    FileError,
    MeshError,
    OptionError,
    PoseError,
)
from abut.mesh import Mesh
from abut.options import Bound, Method
from abut.query import primitives
from abut.query.collide import collide
from abut.query.distance import distance
from abut.query.self_collide import self_collide
from abut.query.within import within
from abut.results import Contacts, Distances, Gaps

__all__ = [
    "AbutError",
    "Bound",
    "CapacityError",
    "Contacts",
    "DeviceError",
    "Distances",
    "FileError",
    "Gaps",
    "Mesh",
    "MeshError",
    "Method",
    "OptionError",
    "PoseError",
    "collide",
    "distance",
    "primitives",
    "self_collide",
    "within",
]
