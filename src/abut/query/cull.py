"""abut.cull: the potentially colliding set of a scene, by visibility."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.pair_queue import unpack_keys
from abut.errors import OptionError
from abut.mesh import Mesh, require_meshes
from abut.operands.soup import Soup, soup_of
from abut.options import (
    CULL_METHODS,
    CullBackend,
    Level,
    Method,
    Order,
    chosen,
    number_from,
)
from abut.query.steady import steady
from abut.visibility.candidate_pairs import Candidates
from abut.visibility.culled import Culled, PassStatistics
from abut.visibility.culler import Culler, HostCuller
from abut.visibility.gl.gl_visibility import GlVisibility
from abut.visibility.settings import Settings, checked_pixels, checked_views
from abut.visibility.survivors import layout_of

CULLERS = 4  # cached with a soup
PASSES = {1: "1", 2: "2", 3: "1+2"}


@steady
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
    conservative: bool | None = None,
) -> Culled:
    """Find the objects and faces of a scene that may collide, by visibility along axes.

    No hierarchy is built, so objects may deform and break from one call to the next.

    Args:
        scene: Meshes on one device, or anything with ``meshes`` and ``poses``.
        poses: A rigid motion (4, 4), or None, for each mesh; not for scenes, which have their own.
        method: ``far``; or ``cullide`` or ``quick_cullide``, which sample faces at pixel centres.
        pixels: Width and height of the views.
        views: Letters: x, y, z look along the axes, X, Y, Z against them. Where drawing order
            counts, a view that is repeated after others prunes more.
        level: ``face``, or ``object`` to cull whole objects only.
        distance: Keep faces at most this far apart, not only intersecting ones; ``far`` only.
        order: ``free``, the default of ``far``: faces that overlap in depth occlude each other.
            ``drawn``, the default of the others and of ``gl``: faces drawn before occlude, as in
            the papers.
        self_collisions: Test faces of one object against each other too.
        backend: ``warp``, kernels; or ``gl``, the graphics pipeline.
        conservative: Faces cover every pixel that they touch, with an interval of depths. The
            default, None, is True for ``far``, which has no other form, and False for the others.

    Returns:
        The potentially colliding set, candidate pairs, and statistics of each pass.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or their number is wrong.
        OptionError: An option has an invalid value.
        ToolError: There is no OpenGL for ``gl``; the message says what to install.

    Guarantee:
        ``far``, and all methods with ``conservative=True``: Conservative. At any resolution no face
        that intersects another (or is within the distance of one) is left out. ``cullide`` and
        ``quick_cullide`` otherwise: Approximate. Faces that intersect between the centres of pixels
        may be lost.
    """
    meshes, poses = _operands(scene, poses)
    backend = chosen(CullBackend, backend, "backend")
    if backend is CullBackend.GL:
        order = order or Order.DRAWN
    args = method, pixels, views, level, distance, order, self_collisions, conservative
    settings = _settings(*args)
    if not any(mesh.face_count for mesh in meshes):
        return _nothing(meshes, settings)
    with meshes[0].lock:  # guards the soup, too
        soup = soup_of(meshes, poses)
        if backend is CullBackend.GL:
            culler = HostCuller(soup, settings, GlVisibility(soup, settings))
        else:
            culler = culler_of(soup, settings)
        culler.run()
        return _culled(soup, culler)


def culler_of(soup: Soup, settings: Settings) -> Culler:
    """The culler of a soup with these settings, cached with the soup."""
    held: dict[Settings, Culler] = soup.__dict__.setdefault("cullers", {})
    if settings not in held:
        if len(held) >= CULLERS:
            held.pop(next(iter(held)))
        held[settings] = Culler(soup, settings)
    return held[settings]


def _operands(scene: Any, poses: Any) -> tuple[list[Mesh], Any]:
    """Meshes and poses of a scene, or of meshes and their poses."""
    if hasattr(scene, "meshes"):
        if poses is not None:
            raise OptionError("a scene has poses of its own; move its objects instead.")
        held = scene.poses
        return list(scene.meshes), held.numpy() if isinstance(held, wp.array) else held
    meshes = list(scene) if isinstance(scene, Sequence) else [scene]
    if not set(map(type, meshes)) <= {Mesh}:
        require_meshes(**{f"meshes[{i}]": mesh for i, mesh in enumerate(meshes)})
    return meshes, poses


def _settings(
    method: str,
    pixels: int,
    views: str,
    level: str,
    distance: float,
    order: str | None,
    within: bool,
    conservative: bool | None = None,
) -> Settings:
    method, level = chosen(CULL_METHODS, method, "method"), chosen(Level, level, "level")
    if order is None:
        order = Order.FREE if method is Method.FAR else Order.DRAWN
    order = chosen(Order, order, "order")
    distance = number_from(distance, "distance", 0.0)
    if conservative is None:
        conservative = method is Method.FAR
    if method is Method.FAR and not conservative:
        raise OptionError("method 'far' is conservative; use 'cullide' to sample pixel centres.")
    if distance and not conservative:
        raise OptionError(f"method '{method}' has a distance only with conservative=True.")
    if within and level is Level.OBJECT:
        raise OptionError("self_collisions are found among faces; use level='face'.")
    size, seen = checked_pixels(pixels), checked_views(views)
    within, conservative = bool(within), bool(conservative)
    return Settings(method, size, seen, level, distance, order, within, conservative)


def _culled(soup: Soup, culler: Culler | HostCuller) -> Culled:
    survivors, level = culler.survivors, culler.settings.level
    pairs = partial(_pairs, soup, Candidates(soup, culler))
    return Culled(survivors.rows, level, _statistics(culler), survivors.objects, pairs)


def _pairs(soup: Soup, candidates: Candidates) -> tuple[wp.array, ...]:
    """(pairs of objects, objects of each pair of faces, pairs of faces)."""
    found, _ = unpack_keys(candidates.sorted_keys(), layout_of(soup), False, soup.device)
    owners, pairs = soup.pair_rows(*found.numpy().T)
    return tuple(_onto(x, soup.device) for x in (np.unique(owners, axis=0), owners, pairs))


def _statistics(culler: Culler | HostCuller) -> tuple[PassStatistics, ...]:
    numbers = zip(culler.steps, culler.counters.tolist(), culler.milliseconds, strict=True)
    return tuple(
        PassStatistics(
            str(s.level), s.view.name, s.pixels, PASSES[s.passes], *row, milliseconds=spent
        )
        for s, row, spent in numbers
    )


def _onto(rows: np.ndarray, device: wp.Device) -> wp.array:
    return wp.array(np.ascontiguousarray(rows, dtype=np.int32), device=device)


def _nothing(meshes: list[Mesh], settings: Settings) -> Culled:
    """The answer for a scene without faces."""
    device = meshes[0].device if meshes else wp.get_device("cpu")
    pairs = _onto(np.zeros((0, 2)), device)
    none = np.zeros(0, dtype=np.int32)
    return Culled(pairs, settings.level, (), none, lambda: (pairs, pairs, pairs))
