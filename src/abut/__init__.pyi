# The public names. Each is imported when it is first used: see __init__.py.

from . import cases, hardware, primitives, sim, view
from .distance_field import DistanceField
from .errors import (
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
from .field.closest import Proximity
from .field.response import Response
from .field.sample import FieldSamples
from .mesh import Mesh
from .motion import Motion
from .options import (
    Bound,
    BroadMethod,
    ContactMethod,
    CullBackend,
    CullMethod,
    EarlyOut,
    Level,
    Method,
    Order,
    Sampling,
    SceneMethod,
    Sign,
    Solver,
    TrackerMethod,
)
from .query.ccd import ccd
from .query.closest_point import closest_point
from .query.collide import collide
from .query.cull import cull
from .query.distance import distance
from .query.self_collide import self_collide
from .query.tracker import Tracker
from .query.within import within
from .results import ClosestPoints, Contacts, Distances, Gaps, ImpactKind, Impacts
from .scene import Scene, SceneContacts, SceneDistances, SceneGaps, SceneImpacts
from .visibility.culled import Culled, PassStatistics

__version__: str

__all__ = [
    "AbutError",
    "Bound",
    "BroadMethod",
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
    "SceneMethod",
    "Sign",
    "Solver",
    "ToolError",
    "Tracker",
    "TrackerMethod",
    "cases",
    "ccd",
    "closest_point",
    "collide",
    "cull",
    "distance",
    "hardware",
    "primitives",
    "self_collide",
    "sim",
    "view",
    "within",
]
