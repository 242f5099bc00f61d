"""Options that a call does not have: errors that name the one that was probably meant."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, isfunction, signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Class = TypeVar("Class", bound=type)

POSES = ("pose_b", "pose", "poses", "end_pose")
BOUNDS = ("upper_bound", "distance", "min_distance", "band")

# Names that other libraries have for options, and those of abut for them, likeliest first.
OTHER_NAMES = {
    "algorithm": ("method",),
    "backend": ("method", "engine"),
    "bandwidth": ("band",),
    "batch": ("pose_b", "poses", "pose"),
    "bounding_volume": ("bound",),
    "broad_phase": ("broad",),
    "cell_size": ("spacing",),
    "center": ("centre",),
    "clearance": ("min_distance", "distance", "upper_bound"),
    "cutoff": BOUNDS,
    "distance_threshold": BOUNDS,
    "distance_upper_bound": BOUNDS,
    "end_vertices": ("end", "vertices"),
    "eps": ("tolerance", "min_distance"),
    "epsilon": ("tolerance", "min_distance"),
    "gap": ("min_distance", "distance"),
    "half_width": ("band",),
    "ids": ("which",),
    "k": ("nearest", "stiffness"),
    "kd": ("damping",),
    "kp": ("stiffness",),
    "ks": ("stiffness",),
    "max_dist": BOUNDS,
    "max_distance": BOUNDS,
    "matrix": POSES,
    "meshes": ("objects",),
    "min_dist": ("min_distance",),
    "minimum_distance": ("min_distance",),
    "mu": ("friction",),
    "num_nearest": ("nearest",),
    "objects": ("which",),
    "only_first": ("first",),
    "other": ("against",),
    "others": ("against",),
    "padding": ("margin",),
    "pitch": ("spacing",),
    "pose": ("pose_b", "poses", "end_pose"),
    "pose_a": ("pose", "poses", "start_pose"),
    "pose_b": ("pose", "poses", "end_pose"),
    "poses": ("pose_b", "pose", "end_pose"),
    "radius": ("distance", "upper_bound", "band"),
    "res": ("resolution", "pixels"),
    "return_first": ("first",),
    "security_margin": ("min_distance", "distance"),
    "self_collision": ("self_collisions",),
    "signed": ("sign",),
    "size": ("resolution",),
    "stop_at_first": ("first",),
    "threshold": BOUNDS,
    "tol": ("tolerance", "min_distance"),
    "transform": POSES,
    "transforms": ("pose_b", "poses", "pose"),
    "vel": ("velocity",),
    "voxel_size": ("spacing",),
}

# Names that other libraries have, and those of abut for them.
PUBLIC_NAMES = {
    "BVHModel": "Mesh",
    "CollisionManager": "Scene",
    "CollisionObject": "Scene",
    "SDF": "DistanceField",
    "Trimesh": "Mesh",
    "batch_collide": "collide",
    "broad_phase": "Scene",
    "check_collision": "collide",
    "collides": "collide",
    "collision": "collide",
    "continuous_collide": "ccd",
    "depth": "overlap",
    "inside": "contains",
    "intersect": "collide",
    "intersection": "collide",
    "intersections": "collide",
    "intersects": "collide",
    "is_inside": "contains",
    "load": "Mesh.load",
    "load_mesh": "Mesh.load",
    "min_distance": "distance",
    "minimum_distance": "distance",
    "penetration": "overlap",
    "penetration_depth": "overlap",
    "read": "Mesh.load",
    "relation": "overlap",
    "self_intersect": "self_collide",
    "self_intersections": "self_collide",
    "shortest_distance": "distance",
    "signed_distance_field": "DistanceField",
    "time_of_impact": "ccd",
}

NOT_NEEDED = {
    "return_distance": "the result has the distance",
    "return_distances": "the result has the distance",
    "return_face": "the result has the faces",
    "return_faces": "the result has the faces",
    "return_index": "the result has the faces",
    "return_names": "scene.name_of(hits.objects) has the names",
    "return_data": "the result has all rows",
    "return_pairs": "the result has the pairs",
    "return_point": "the result has the points",
    "return_points": "the result has the points",
    "return_normals": "the result has points, which give directions",
    "return_segments": "the result has the segments",
    "return_time": "the result has the times",
    "enable_contact": "the result has all contacts",
    "enable_nearest_points": "the result has the points",
    "max_contacts": "all are returned, or one with first=True",
    "num_max_contacts": "all are returned, or one with first=True",
    "device": "the mesh has a device: abut.Mesh(…, device=…), mesh.to(device)",
    "n_jobs": "the environment variable ABUT_THREADS sets the number of threads",
    "num_threads": "the environment variable ABUT_THREADS sets the number of threads",
    "threads": "the environment variable ABUT_THREADS sets the number of threads",
    "workers": "the environment variable ABUT_THREADS sets the number of threads",
}


def explain_options(call: Callable[P, R]) -> Callable[P, R]:
    """Return a call that explains an option it does not have."""

    @wraps(call)
    def explained(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except TypeError as error:
            explain_error(call, kwargs, error)
            raise

    return explained


def explain_methods(made: Class) -> Class:
    """Let the public methods of a class, and its construction, explain options they do not have."""
    for name, member in list(vars(made).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isfunction(member):
            setattr(made, name, explain_options(member))
        elif isinstance(member, classmethod):
            setattr(made, name, classmethod(explain_options(member.__func__)))
    return made


def explain_error(call: Callable[..., Any], options: dict[str, Any], error: TypeError) -> None:
    """Raise an error that names the right option if ``error`` is about one a call does not have.

    Or about options that were given by position.
    """
    taken = {
        name: parameter.kind
        for name, parameter in signature(call).parameters.items()
        if name not in ("self", "cls") and parameter.kind is not Parameter.VAR_KEYWORD
    }
    known = list(taken)
    if str(error).startswith(f"{call.__qualname__}() takes "):
        named = [f"{name}=" for name, kind in taken.items() if kind is Parameter.KEYWORD_ONLY]
        if named and "positional argument" in str(error):
            placed = ", ".join(known[: len(known) - len(named)]) or "nothing"
            others = f"others by name: {', '.join(named)}"
            raise TypeError(f"{_name_of(call)}() takes {placed} by position, {others}.") from None
    for name in options:
        if name not in known and repr(name) in str(error):
            raise TypeError(_explained(_name_of(call), name, known)) from None


def unknown_name(name: str, public: list[str]) -> str:
    """Return the message about a name that abut does not have."""
    from difflib import get_close_matches

    close = get_close_matches(name, public, 1) + get_close_matches(name.lower(), public, 1)
    meant = [PUBLIC_NAMES[name]] if name in PUBLIC_NAMES else close
    hint = f"; did you mean abut.{meant[0]}?" if meant else "; docs/reference.md lists all names."
    return f"abut has no {name!r}{hint}"


def _name_of(call: Callable[..., Any]) -> str:
    return call.__qualname__.removesuffix(".__init__")


def _explained(call: str, name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    meant = [other for other in OTHER_NAMES.get(name, ()) if other in known][:1]
    if not meant and name in NOT_NEEDED:
        return f"{call}() has no option {name!r}; {NOT_NEEDED[name]}."
    meant = meant or get_close_matches(name, known, 1)
    hint = f"; did you mean {meant[0]!r}?" if meant else f"; it takes {', '.join(known) or 'none'}."
    return f"{call}() has no option {name!r}{hint}"
