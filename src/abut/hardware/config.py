"""Machine: parameters of the hardware, and sizes derived from them."""

from dataclasses import dataclass

from abut.bounds.fixed import validate_width
from abut.bounds.kdop import axis_choices, kdop_normals
from abut.errors import OptionError

SLOT_BITS = 24  # index of a node or of a face
SIZE_BITS = 15  # size of a node, on a logarithmic scale
HEAD_BITS = SLOT_BITS + 1 + SIZE_BITS  # link, leaf, size
TAG_BITS = 4  # tag of a pair in flight
BURST_BITS = 512
RECORD_HEAD_BITS = 64  # as stored; the machine reads HEAD_BITS of them


@dataclass(frozen=True)
class Machine:
    """Parameters of the hardware.

    Attributes:
        width: Bits of reaches and weights.
        sides: Faces of a DOP, k.
        axis_count: Axes tested for a pair, n.
        pipelines: Axes tested at once.
        latency: Cycles from a memory request to its first beat.
        gap: Cycles between the bursts of one record.
        stack: Entries of the stack of pairs.
        leaf_queue: Capacity of the queue of leaf pairs before the triangle unit.
    """

    width: int = 18
    sides: int = 24
    axis_count: int = 24
    pipelines: int = 1
    latency: int = 7
    gap: int = 4
    stack: int = 128
    leaf_queue: int = 64

    def __post_init__(self) -> None:
        """Refuse invalid parameters."""
        validate_width(self.width)
        kdop_normals(self.sides)
        axis_choices(self.sides, self.axis_count)
        if not 1 <= self.pipelines <= self.axis_count:
            raise OptionError(
                f"pipelines must be from 1 to the {self.axis_count} axes, not {self.pipelines}."
            )

    @property
    def half(self) -> int:
        """Slabs of a DOP."""
        return self.sides // 2

    @property
    def steps(self) -> int:
        """Cycles to issue the tests of a pair."""
        return -(-self.axis_count // self.pipelines)

    @property
    def table_depth(self) -> int:
        """Rows of the axis table of one pipeline, a power of two."""
        return max(2, 1 << (self.steps - 1).bit_length())

    @property
    def split(self) -> bool:
        """Whether numbers are too wide for one multiplier of 18 bits."""
        return self.width > 18

    @property
    def depth(self) -> int:
        """Stages of a pipeline."""
        return 11 if self.split else 9

    @property
    def constant_bits(self) -> int:
        """Bits of a constant of an axis."""
        return self.width + 2

    @property
    def axis_bits(self) -> int:
        """Bits of a row of the axis table."""
        return 6 * 5 + 6 * self.width + 2 * self.constant_bits

    @property
    def sum_bits(self) -> int:
        """Bits of the sum of a pipeline."""
        return 2 * self.width + 2

    @property
    def beats(self) -> int:
        """Beats of a record: its head, then four reaches at a time."""
        return 1 + -(-self.half // 2)

    @property
    def beat_bits(self) -> int:
        """Bits of a beat."""
        return 4 * self.width

    @property
    def bursts(self) -> int:
        """Memory bursts of a record, packed."""
        return -(-(self.sides * self.width + RECORD_HEAD_BITS) // BURST_BITS)

    @property
    def burst_beats(self) -> int:
        """Beats of each burst of a record but the last."""
        return -(-self.beats // self.bursts)

    @property
    def leaf_room(self) -> int:
        """Most queued leaf pairs at which new pairs may start; the rest may be in flight."""
        return self.leaf_queue - self.depth - 7
