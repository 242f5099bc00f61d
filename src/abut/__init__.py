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
from abut.motion import Motion
from abut.options import Bound, Method, Solver, TrackerMethod
from abut.query import primitives
from abut.query.ccd import ccd
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.query.tracker import Tracker
from abut.results import Contacts, ImpactKind, Impacts

__all__ = [
    "AbutError",
    "Bound",
    "CapacityError",
    "Contacts",
    "DeviceError",
    "FileError",
    "ImpactKind",
    "Impacts",
    "Mesh",
    "MeshError",
    "Method",
    "Motion",
    "OptionError",
    "PoseError",
    "Solver",
    "Tracker",
    "TrackerMethod",
    "ccd",
    "collide",
    "primitives",
    "self_collide",
]
