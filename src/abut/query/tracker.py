"""Tracker: the contacts or impacts of a sequence of frames."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from abut.bvh.bvh_cache import bvh_of
from abut.core.cache import RecentCache
from abut.core.device import require_same_device
from abut.core.pair_queue import (
    JoinedQueues,
    KeyLayout,
    PairQueues,
    require_key_bits,
    unpack_keys,
)
from abut.core.plan import Plan, Stage
from abut.core.timing import stage
from abut.core.unknown_options import explain_methods
from abut.errors import OptionError
from abut.mesh import Mesh, require_meshes
from abut.motion import Motion
from abut.narrow.segments import contact_segments
from abut.operands.contact_queues import contact_queues
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.operands.posed_pairs import mesh_pairs
from abut.options import FRAME_METHODS, MOVING_BOUNDS, Method, chosen
from abut.query.bvtt_front import LEAST_ROOM, MOST_PAIRS, MeshFront
from abut.query.ccd import impacts_of, sharing_of
from abut.query.ccd_candidates import CcdFronts, CcdStrategy
from abut.query.ccd_plan import CcdExecution
from abut.query.collide import collide
from abut.query.contact_stages import ContactStages, Strategy
from abut.query.self_collide import self_collide
from abut.results import Contacts, Impacts


@explain_methods
class Tracker:
    """Contacts and impacts of one mesh with itself, or of two meshes, frame after frame.

    ``step`` returns the contacts of a frame, ``advance`` the impacts of the motion to it.

    Args:
        operands: A mesh, or a pair of meshes on one device; they are deformed by ``step`` and
            ``advance``.
        method: ``bvh`` starts each search at the root, ``front`` where the last one stopped; all
            methods return the same rows.
        bound: Bounding volume of the hierarchies, ``aabb``, the fastest; ``obb`` or ``rss``. All
            return the same rows.
        weld: For one mesh, vertices at equal positions count as common (see self_collide and ccd).

    Raises:
        DeviceError: The meshes live on different devices.

    Guarantee:
        ``step`` is exact and complete: the rows of ``self_collide`` or ``collide``. ``advance`` is
        conservative: the rows of ``ccd``.
    """

    def __init__(
        self,
        operands: Mesh | tuple[Mesh, Mesh],
        *,
        method: str = "bvh",
        bound: str = "aabb",
        weld: bool = True,
    ) -> None:
        self.meshes = (operands,) if isinstance(operands, Mesh) else tuple(operands)
        if len(self.meshes) not in (1, 2):
            raise OptionError(f"a tracker takes one mesh or two, not {len(self.meshes)}.")
        require_meshes(**dict(zip("ab", self.meshes, strict=False)))
        self.device = require_same_device(*self.meshes)
        self.method = chosen(FRAME_METHODS, method, "method")
        self.bound = chosen(MOVING_BOUNDS, bound, "bound")
        self.weld = weld
        self.layout = KeyLayout.of(self.meshes[0].face_count, self.meshes[-1].face_count)
        require_key_bits(self.layout, 1, self.meshes[0].face_count)
        self._search: FrontContacts | None = None
        self._fronts = CcdFronts()
        self._most_pairs = MOST_PAIRS  # of a front

    def __repr__(self) -> str:
        """One mesh or two."""
        return f"Tracker({', '.join(map(repr, self.meshes))})"

    def __getstate__(self) -> dict[str, Any]:
        """The arguments it was made of; fronts are not pickled."""
        how = {"method": str(self.method), "bound": str(self.bound), "weld": self.weld}
        return {"meshes": self.meshes, "how": how}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start at the next frame."""
        self.__init__(state["meshes"], **state["how"])

    @property
    def front_size(self) -> int:
        """Node pairs in the fronts; 0 where there is none."""
        contacts = 0 if self._search is None else self._search.front.size
        return contacts + self._fronts.size

    def step(self, *vertices: Any) -> Contacts:
        """Deform the operands to these vertices (None keeps one) and find the contacts."""
        for mesh, moved in zip(self.meshes, self._shapes(vertices), strict=True):
            if moved is not None:
                (mesh.start_deform if self._checks_late else mesh.deform)(moved)
        keys = self._from_front() if self._has_front else None
        if keys is None:
            return self._from_root()
        pairs, _ = unpack_keys(keys, self.layout, False, self.device)
        sides = defer_posed_mesh(self.meshes[0]), defer_posed_mesh(self.meshes[-1])
        segments = partial(contact_segments, *sides)
        return Contacts(pairs, None, pairs.shape[0] > 0, None, segments)

    def advance(
        self,
        *vertices: Any,
        min_distance: float = 0.0,
        tolerance: float = 1e-6,
        first: bool = False,
        solver: str = "conservative",
    ) -> Impacts:
        """Move the vertices in straight lines to these positions and find the impacts.

        Args:
            vertices: (n, 3) for each of the operands; None keeps one.
            min_distance, tolerance, first, solver: As in ``ccd``.

        Returns:
            The rows of ``ccd`` for the motions from the last frame to this one.
        """
        shapes = self._shapes(vertices)
        motions = tuple(
            Motion(mesh, mesh.points if end is None else end)
            for mesh, end in zip(self.meshes, shapes, strict=True)
        )
        impacts = impacts_of(
            motions,
            min_distance=min_distance,
            tolerance=tolerance,
            first=first,
            weld=self.weld,
            solver=solver,
            execution=self._execution(),
        )
        for motion, moved in zip(motions, shapes, strict=True):
            if moved is not None:
                motion.arrive()
        return impacts

    def _shapes(self, vertices: tuple[Any, ...]) -> tuple[Any, ...]:
        """Vertices for each mesh, None for those not given."""
        if len(vertices) > len(self.meshes):
            raise OptionError(f"{len(vertices)} arrays of vertices for {len(self.meshes)} meshes.")
        return (*vertices, *[None] * (len(self.meshes) - len(vertices)))

    @property
    def _has_front(self) -> bool:
        return self.method is Method.FRONT and min(m.face_count for m in self.meshes) > 1

    @property
    def _checks_late(self) -> bool:
        """Whether the search may begin while vertices are being checked, which saves a wait."""
        return len(self.meshes) == 1 and self.method is Method.BVH

    def _execution(self) -> CcdExecution:
        if self.method is Method.FRONT:
            return CcdExecution(fronts=self._fronts, bound=self.bound)
        brute = self.method is Method.BRUTE
        return CcdExecution(CcdStrategy.BRUTE if brute else None, bound=self.bound)

    @property
    def _method(self) -> Method:
        """Method of a search from the root."""
        return Method.BRUTE if self.method is Method.BRUTE else Method.BVH

    def _from_root(self) -> Contacts:
        if len(self.meshes) == 1:
            how = {"weld": self.weld, "method": self._method, "bound": self.bound}
            return self_collide(self.meshes[0], **how)
        return collide(*self.meshes, method=self._method, bound=self.bound)

    def _from_front(self) -> Any:
        """Sorted keys of the pairs that meet; None where the front has grown too long."""
        trees = tuple(bvh_of(mesh, self.bound) for mesh in self.meshes)
        if self._search is None or not self._search.front.fits(trees, self.bound):
            sharing = sharing_of(self.meshes, self.weld)
            front = MeshFront(trees, most_pairs=self._most_pairs, bound=self.bound)
            self._search = FrontContacts(self.meshes, front, sharing, self.layout)
        keys = self._search.run()
        if keys is None:
            self._search = None
        return keys


class FrontContacts:
    """The front of one mesh or two, and the plans that advance it and test the faces found."""

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        front: MeshFront,
        sharing: int,
        layout: KeyLayout,
    ) -> None:
        self.meshes, self.front, self.sharing, self.layout = meshes, front, sharing, layout
        self.device = meshes[0].device
        names = ("candidates", "hits", "undecided")
        self.queues = PairQueues(self.device, **dict.fromkeys(names, LEAST_ROOM))
        self._plans = RecentCache()

    def run(self) -> Any:
        """Sorted keys of the pairs that meet; None where the front has grown too long."""
        front = self.front
        if front.steps == 0 and not front.start(self.queues["candidates"]):
            return None
        points = [mesh.points for mesh in self.meshes]
        counts = self._plans.get((front.is_odd, front.climbs, *points), self._plan).run()
        if counts is None:
            return None
        front.turn(counts[front.names[1]])
        front.steps += 1
        with stage("sort", self.device):
            return self.queues.sorted_keys("hits", counts["hits"], self.layout.width)

    def _plan(self) -> Plan:
        queues = JoinedQueues(self.queues, self.front.queues)
        return Plan(queues, self._stages, needs=self.front.needs)

    def _stages(self) -> Iterator[Stage]:
        yield from self.front.stages(self.layout.bits, self.queues["candidates"])
        sides = [make_posed_mesh(mesh.points, mesh.faces) for mesh in self.meshes]
        rows = MeshRows(mesh_pairs(sides[0], sides[-1], self.sharing), self.device)
        out = contact_queues(self.queues, self.layout)
        stages = ContactStages(rows, self.queues, out, Strategy.BRUTE)
        yield stages.filter(self.queues["candidates"])
        yield stages.exact()
