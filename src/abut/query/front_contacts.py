"""FrontContacts: pairs of faces that meet, found from a BVTT front."""

from collections.abc import Iterator
from typing import Any

from abut.bvh.layout import Bvh
from abut.core.cache import RecentCache
from abut.core.pair_queue import JoinedQueues, KeyLayout, PairQueues
from abut.core.plan import Plan, Stage
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.operands.contact_queues import contact_queues
from abut.operands.pair_rows import MeshRows
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import mesh_pairs
from abut.query.bvtt_front import LEAST_ROOM, MeshFront
from abut.query.contact_stages import ContactStages, Strategy

QUEUES = ("candidates", "hits", "undecided")


class FrontContacts:
    """The front of one mesh or two, and the plans that advance it and test the faces found."""

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        trees: tuple[Bvh, ...],
        sharing: int,
        layout: KeyLayout,
        most_pairs: int,
    ) -> None:
        self.meshes, self.sharing, self.layout = meshes, sharing, layout
        self.device = meshes[0].device
        self.queues = PairQueues(self.device, **dict.fromkeys(QUEUES, LEAST_ROOM))
        self.front = MeshFront(trees, most_pairs=most_pairs)
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
