# The public names. Each is imported when it is first used: see __init__.py.

from . import adapters, cases, hardware, primitives, scale, sim, view
from .coordination.clash import clash
from .coordination.clashes import Clashes, Verdict
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
from .mesh import Mesh
from .motion import Motion
from .options import (
    Bound,
    BroadMethod,
    CullBackend,
    EarlyOut,
    Level,
    Method,
    Order,
    Sampling,
    Sign,
    Solver,
)
from .query.ccd import ccd
from .query.closest_point import closest_point
from .query.collide import collide
from .query.cull import cull
from .query.distance import distance
from .query.overlap import Overlap, overlap
from .query.point_signs import contains, signed_distance
from .query.self_collide import self_collide
from .query.solids.relation import Relation
from .query.tracker import Tracker
from .query.within import within
from .results import ClosestPoints, Contacts, Distances, Gaps, ImpactKind, Impacts
from .scene import (
    LeastDistance,
    MotionImpacts,
    MotionVerdicts,
    Robot,
    RobotClearance,
    RobotMotion,
    Scene,
    SceneContacts,
    SceneDistances,
    SceneGaps,
    SceneImpacts,
    SceneObject,
)
from .scene.object_overlaps import SceneOverlaps
from .sdf.closest_sample import Proximity
from .sdf.distance_field import DistanceField
from .sdf.field_contact import ContactResponse, FieldContact
from .sdf.response import Response
from .sdf.sample import FieldSamples
from .visibility.culled import Culled, PassStatistics

__version__: str

__all__ = [
    "AbutError",
    "Bound",
    "BroadMethod",
    "CapacityError",
    "Clashes",
    "ClosestPoints",
    "ContactResponse",
    "Contacts",
    "CullBackend",
    "Culled",
    "DeviceError",
    "DistanceField",
    "Distances",
    "EarlyOut",
    "FieldContact",
    "FieldSamples",
    "FileError",
    "Gaps",
    "ImpactKind",
    "Impacts",
    "LeastDistance",
    "Level",
    "Mesh",
    "MeshError",
    "Method",
    "Motion",
    "MotionImpacts",
    "MotionVerdicts",
    "OptionError",
    "Order",
    "Overlap",
    "PassStatistics",
    "PointError",
    "PoseError",
    "Proximity",
    "Relation",
    "Response",
    "Robot",
    "RobotClearance",
    "RobotMotion",
    "Sampling",
    "Scene",
    "SceneContacts",
    "SceneDistances",
    "SceneError",
    "SceneGaps",
    "SceneImpacts",
    "SceneObject",
    "SceneOverlaps",
    "Sign",
    "Solver",
    "ToolError",
    "Tracker",
    "Verdict",
    "adapters",
    "cases",
    "ccd",
    "clash",
    "closest_point",
    "collide",
    "contains",
    "cull",
    "distance",
    "hardware",
    "overlap",
    "primitives",
    "scale",
    "self_collide",
    "signed_distance",
    "sim",
    "view",
    "within",
]
