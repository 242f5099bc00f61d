"""abut.cull: the faces of a scene that may collide, told by what hides what."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.errors import OptionError
from abut.mesh import Mesh, require_meshes
from abut.options import CullBackend, CullMethod, Level, Order, chosen, number_from
from abut.pairs import to_rows
from abut.soup import Soup, soup_of
from abut.visibility.candidates import layout_of, sweep_faces
from abut.visibility.culled import Culled, PassStatistics
from abut.visibility.culler import Culler
from abut.visibility.settings import Settings
from abut.visibility.state import BOTH
from abut.visibility.view import checked_pixels, checked_views

PASSES = {1: "1", 2: "2", 3: "1+2"}


def cull(
    scene: Any,
    *,
    poses: Any = None,
    method: str = "far",
    pixels: int = 1024,
    views: str = "xyz",
    level: str = "face",
    distance: float = 0.0,
    order: str | None = None,
    self_collisions: bool = False,
    backend: str = "warp",
) -> Culled:
    """Find the objects and faces of a scene that may collide, by looking at it along axes.

    Nothing is built beforehand, so objects may deform and break from one call to the next.

    Args:
        scene: Meshes on one device, or anything with ``meshes`` and ``poses``.
        poses: A rigid motion (4, 4), or None, for each mesh; not for scenes, which have their own.
        method: ``far``; or ``cullide`` or ``quick_cullide``, which sample faces at pixel centres.
        pixels: Width and height of the views.
        views: Letters: x, y, z look along the axes, X, Y, Z against them.
        level: ``face``, or ``object`` to tell whole objects apart only.
        distance: Keep everything that is at most so far apart, not only what meets; ``far`` only.
        order: ``free``, the default of ``far``: faces are told apart by depth alone. ``drawn``, the
            default of the others: by what is drawn before and after, as in the papers.
        self_collisions: Look for collisions within objects too.
        backend: ``warp``, kernels; or ``gl``, the graphics pipeline.

    Returns:
        The potentially colliding set, candidate pairs, and what each pass did.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or their number is wrong.
        OptionError: An option has a value that makes no sense.

    Guarantee:
        ``far``: Conservative. At any resolution no face that meets another (or is within the
        distance of one) is left out. ``cullide`` and ``quick_cullide``: Approximate. Faces that
        meet between the centres of pixels may be lost.
    """
    meshes, poses = _operands(scene, poses)
    settings = _settings(method, pixels, views, level, distance, order, self_collisions)
    backend = chosen(CullBackend, backend, "backend")
    if backend is CullBackend.GL:
        raise OptionError("backend 'gl' is not here yet; use 'warp'.")
    if not any(mesh.face_count for mesh in meshes):
        return _nothing(meshes, settings)
    soup = soup_of(meshes, poses)
    culler = culler_of(soup, settings)
    culler.run()
    return _culled(soup, culler)


def culler_of(soup: Soup, settings: Settings) -> Culler:
    """The culler of a soup with these settings, kept with it."""
    held: dict[Settings, Culler] = soup.__dict__.setdefault("cullers", {})
    if settings not in held:
        held.pop(next(iter(held)) if len(held) > 1 else None, None)
        held[settings] = Culler(soup, settings)
    return held[settings]


def _operands(scene: Any, poses: Any) -> tuple[list[Mesh], Any]:
    """Meshes and poses of whatever was given."""
    if hasattr(scene, "meshes"):
        if poses is not None:
            raise OptionError("a scene has poses of its own; move its objects instead.")
        held = scene.poses
        return list(scene.meshes), held.numpy() if isinstance(held, wp.array) else held
    meshes = list(scene) if isinstance(scene, Sequence) else [scene]
    for i, mesh in enumerate(meshes):
        require_meshes(**{f"meshes[{i}]": mesh})
    return meshes, poses


def _settings(
    method: str,
    pixels: int,
    views: str,
    level: str,
    distance: float,
    order: str | None,
    within: bool,
) -> Settings:
    method, level = chosen(CullMethod, method, "method"), chosen(Level, level, "level")
    if order is None:
        order = Order.FREE if method is CullMethod.FAR else Order.DRAWN
    order = chosen(Order, order, "order")
    distance = number_from(distance, "distance", 0.0)
    if distance and method is not CullMethod.FAR:
        raise OptionError(f"method '{method}' has no distance; use 'far'.")
    if within and level is Level.OBJECT:
        raise OptionError("self_collisions are found among faces; use level='face'.")
    size, seen = checked_pixels(pixels), checked_views(views)
    return Settings(method, size, seen, level, distance, order, bool(within))


def _culled(soup: Soup, culler: Culler) -> Culled:
    """What a culler has left."""
    settings = culler.settings
    if settings.level is Level.OBJECT:
        objects = np.flatnonzero(culler.object_state.numpy() != BOTH)
        left = (culler.object_state.numpy() != BOTH)[soup.object_of.numpy()]
    else:
        left = culler.face_state.numpy() != BOTH
        objects = np.unique(soup.object_of.numpy()[left])
    faces = np.flatnonzero(left)
    state = culler.face_state
    if settings.level is Level.OBJECT:
        state = wp.array(culler.object_state.numpy()[soup.object_of.numpy()], device=soup.device)
    pairs = partial(_pairs, soup, settings, _onto(faces, soup.device), wp.clone(state))
    return Culled(
        _onto(objects, soup.device),
        _onto(soup.rows(faces), soup.device),
        settings.level,
        _statistics(culler),
        pairs,
    )


def _pairs(
    soup: Soup, settings: Settings, faces: wp.array, state: wp.array
) -> tuple[wp.array, wp.array, wp.array]:
    """(pairs of objects, objects of each pair of faces, pairs of faces)."""
    within = settings.within
    queues, count = sweep_faces(soup, faces, state, distance=settings.distance, within=within)
    layout = layout_of(soup)
    keys = queues.sorted_keys("pairs", count, layout.width)
    found, _ = to_rows(keys, layout, False, soup.device)
    rows = [soup.rows(side) for side in found.numpy().T]
    owners = np.stack([side[:, 0] for side in rows], axis=1)
    pairs = np.stack([side[:, 1] for side in rows], axis=1)
    return tuple(_onto(x, soup.device) for x in (np.unique(owners, axis=0), owners, pairs))


def _statistics(culler: Culler) -> tuple[PassStatistics, ...]:
    numbers = zip(culler.steps, culler.counters.tolist(), culler.milliseconds, strict=True)
    return tuple(
        PassStatistics(str(step.level), step.view.name, PASSES[step.passes], *row, spent)
        for step, row, spent in numbers
    )


def _onto(rows: np.ndarray, device: wp.Device) -> wp.array:
    return wp.array(np.ascontiguousarray(rows, dtype=np.int32), device=device)


def _nothing(meshes: list[Mesh], settings: Settings) -> Culled:
    """The answer where there are no faces."""
    device = meshes[0].device if meshes else wp.get_device("cpu")
    none, pairs = _onto(np.zeros(0), device), _onto(np.zeros((0, 2)), device)
    return Culled(none, pairs, settings.level, (), lambda: (pairs, pairs, pairs))
