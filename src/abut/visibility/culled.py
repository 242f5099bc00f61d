"""Culled: the potentially colliding set of a scene, and statistics of each pass."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import warp as wp

from abut.core.pickling import PicklableResult
from abut.options import Level


@dataclass(frozen=True)
class PassStatistics:
    """Statistics of one pass over one view, or of two passes at once.

    Attributes:
        level: Whether objects or faces were culled.
        view: The view's letter.
        pixels: Width and height of the viewport.
        passes: ``"1"``, ``"2"``, or ``"1+2"`` where both orders were tested together.
        queries: Primitives tested for visibility.
        faces: Faces rasterised.
        fragments: Fragments of these, where several objects (or faces) cover a pixel, or touch a
            tile of 8 by 8 pixels. 0 for the backend ``gl``, which does not count them.
        bfv, ffv, sfv, nfv: Primitives fully visible in both passes (pruned, now or before), in the
            first only, in the second only, in neither.
        milliseconds: Time of the pass.
    """

    level: str
    view: str
    pixels: int
    passes: str
    queries: int
    faces: int
    fragments: int
    bfv: int
    ffv: int
    sfv: int
    nfv: int
    milliseconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Culled(PicklableResult):
    """The potentially colliding set of a scene.

    Attributes:
        faces: (n, 2) int32 rows (object, face) of faces that may collide, sorted. Where whole
            objects were culled, all faces of those that may collide.
        level: Whether objects or faces were culled.
        statistics: One row per pass and view.
    """

    row_name = "faces"

    faces: wp.array = field(repr=False)
    level: Level
    statistics: tuple[PassStatistics, ...] = field(repr=False)
    _objects: np.ndarray = field(repr=False)
    _pair: Callable[[], tuple[wp.array, wp.array, wp.array]] = field(repr=False)

    def __len__(self) -> int:
        """Number of faces that may collide."""
        return self.faces.shape[0]

    def __bool__(self) -> bool:
        """Whether anything may collide."""
        return len(self) > 0

    @cached_property
    def objects(self) -> wp.array:
        """(k,) int32, objects that may collide; sorted."""
        return wp.array(self._objects, dtype=wp.int32, device=self.faces.device)

    @property
    def object_pairs(self) -> wp.array:
        """(m, 2) int32, pairs of objects that may collide, computed on first access."""
        return self._pairs[0]

    @property
    def pair_objects(self) -> wp.array:
        """(n, 2) int32, the objects of each pair of ``pairs``."""
        return self._pairs[1]

    @property
    def pairs(self) -> wp.array:
        """(n, 2) int32, pairs of faces that may collide, computed on first access.

        Rows are sorted by ``pair_objects``, then by themselves.
        """
        return self._pairs[2]

    @property
    def milliseconds(self) -> float:
        """Time of all passes."""
        return sum(row.milliseconds for row in self.statistics)

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        names = ("objects", "faces", "object_pairs", "pair_objects", "pairs")
        return {name: getattr(self, name).numpy() for name in names}

    @cached_property
    def _pairs(self) -> tuple[wp.array, wp.array, wp.array]:
        return self._pair()
