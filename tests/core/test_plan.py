"""Plans grow queues, keep keys between ranges of items, and abandon runs."""

import numpy as np
import pytest
import warp as wp

from abut.core.launch import launch
from abut.core.pair_queue import JoinedQueues, PairQueues
from abut.core.plan import Plan, Ranges
from abut.traversal.overlap.leaf_pairs import every_pair_kernel

ITEMS, EACH = 50, 7


def pairs_stage(queues, name, ranges):
    """A stage that pushes EACH pairs for every item of a range."""

    def run():
        args = [EACH, False, wp.vec2i(16, 16), queues[name]]
        launch(every_pair_kernel, ranges.size, args, queues.device, start=ranges.start)

    return name, run


@pytest.mark.parametrize("most", [5, 20, 100, 10_000])
def test_ranges_fit_a_bounded_queue(most, device):
    queues = PairQueues(wp.get_device(device), found=2, all=2)
    ranges = Ranges(ITEMS, "found", most, density=1.0)
    stages = [pairs_stage(queues, name, ranges) for name in ("found", "all")]

    def accept(counts):
        queues.keep("all", counts["all"])
        return True

    counts = Plan(queues, lambda: stages, accept=accept).run_ranges(ranges)
    assert sum(each["found"] for each in counts) == ITEMS * EACH == queues.kept("all")
    assert max(each["found"] for each in counts) <= max(most, EACH)
    keys = np.sort(queues["all"].keys.numpy()[: ITEMS * EACH])
    i, j = np.divmod(np.arange(ITEMS * EACH), EACH)
    assert np.array_equal(keys, (i << 16) | j)


def test_joined_queues_grow_together(device):
    parts = [PairQueues(wp.get_device(device), **{name: 2}) for name in ("one", "two")]
    ranges = Ranges(ITEMS, "one", 10_000, density=1.0)
    stages = [pairs_stage(part, *part.queues, ranges) for part in parts]
    counts = Plan(JoinedQueues(*parts), lambda: stages).run()
    assert counts == {"one": ITEMS * EACH, "two": ITEMS * EACH}
    rooms = [queue.keys.shape[0] for part in parts for queue in part.queues.values()]
    assert min(rooms) >= ITEMS * EACH


def test_needs_limits_growth_or_abandons(device):
    queues = PairQueues(wp.get_device(device), found=2, all=2)
    ranges = Ranges(ITEMS, "found", 10_000, density=1.0)
    stages = [pairs_stage(queues, name, ranges) for name in ("found", "all")]
    some = Plan(queues, lambda: stages, needs=lambda counts: {"all": counts["all"]})
    assert some.run()["found"] == ITEMS * EACH
    assert queues["found"].keys.shape[0] == 2
    assert queues["all"].keys.shape[0] >= ITEMS * EACH
    assert Plan(queues, lambda: stages, needs=lambda counts: None).run() is None
    assert Plan(queues, lambda: stages, needs=lambda counts: None).run_ranges(ranges) is None
