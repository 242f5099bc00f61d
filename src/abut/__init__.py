"""Exact proximity queries between triangle meshes, on CPU and CUDA."""

from abut.distance_field import DistanceField
from abut.errors import (
    AbutError,
    CapacityError,
    DeviceError,
    FileError,
    MeshError,
    OptionError,
    PointError,
    PoseError,
    SceneError,
    ToolError,
)
from abut.field.closest import Proximity
from abut.field.response import Response
from abut.field.sample import FieldSamples
from abut.mesh import Mesh
from abut.motion import Motion
from abut.options import (
    Bound,
    ContactMethod,
    CullBackend,
    CullMethod,
    EarlyOut,
    Level,
    Method,
    Order,
    Sampling,
    Sign,
    Solver,
    TrackerMethod,
)
from abut.query import primitives
from abut.query.ccd import ccd
from abut.query.closest_point import closest_point
from abut.query.collide import collide
from abut.query.cull import cull
from abut.query.distance import distance
from abut.query.self_collide import self_collide
from abut.query.tracker import Tracker
from abut.query.within import within
from abut.results import ClosestPoints, Contacts, Distances, Gaps, ImpactKind, Impacts
from abut.scene import Scene, SceneContacts, SceneDistances, SceneGaps, SceneImpacts
from abut.visibility.culled import Culled, PassStatistics

__all__ = [
    "AbutError",
    "Bound",
    "CapacityError",
    "ClosestPoints",
    "ContactMethod",
    "Contacts",
    "CullBackend",
    "CullMethod",
    "Culled",
    "DeviceError",
    "DistanceField",
    "Distances",
    "EarlyOut",
    "FieldSamples",
    "FileError",
    "Gaps",
    "ImpactKind",
    "Impacts",
    "Level",
    "Mesh",
    "MeshError",
    "Method",
    "Motion",
    "OptionError",
    "Order",
    "PassStatistics",
    "PointError",
    "PoseError",
    "Proximity",
    "Response",
    "Sampling",
    "Scene",
    "SceneContacts",
    "SceneDistances",
    "SceneError",
    "SceneGaps",
    "SceneImpacts",
    "Sign",
    "Solver",
    "ToolError",
    "Tracker",
    "TrackerMethod",
    "ccd",
    "closest_point",
    "collide",
    "cull",
    "distance",
    "primitives",
    "self_collide",
    "within",
]
