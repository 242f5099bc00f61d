"""Machine: parameters of the hardware, and sizes derived from them."""

from dataclasses import dataclass

from abut.bounds.fixed import MAX_WIDTH, validate_width
from abut.bounds.kdop import axis_choices, kdop_normals
from abut.errors import OptionError

SLOT_BITS = 24  # index of a node or of a face
SIZE_BITS = 15  # size of a node, on a logarithmic scale
HEAD_BITS = SLOT_BITS + 1 + SIZE_BITS  # link, leaf, size
TAG_BITS = 4  # tag of a pair in flight
TRIANGLE_BITS = 9 * 18  # three corners
BUS_BITS = 72
BURST_BEATS = 8  # of the bus
WIDE_BUS = 0
CACHE_WAYS = 4
EXPONENT_BITS = 5  # of the unit in which a pair of siblings has its deltas
WIDE_BURST_BITS = 512  # of the wide bus, with records of k values and a head of 64 bits


@dataclass(frozen=True)
class Machine:
    """Parameters of the hardware.

    Attributes:
        width: Bits of reaches, b in the paper.
        weight_bits: Bits of weights, c in the paper; 0 for ``width``.
        constant_bits: Bits of the constants of an axis, z in the paper; 0 for ``width`` + 2.
        sides: Faces of a DOP, k.
        axis_count: Axes tested for a pair, n.
        pipelines: Axes tested at once.
        bus: Bits of a beat of the memory, which records and triangles share, at least two values.
            0: four values a beat at any width, and a port of their own for triangles.
        latency: Cycles from a memory request to its first beat, at least two.
        gap: Cycles between the bursts of one record.
        cache: Records kept on the chip; 0 for none. This and what follows have no RTL yet.
        row_values: Values that pipelines load in a cycle from the cache, four or more.
        triangle_units: Triangle units.
        delta_bits: Bits of a value relative to that of its node's parent, which the memory then
            holds; 0 for whole values. Needs a cache.
        stack: Entries of the stack of pairs.
        leaf_queue: Capacity of the queue of leaf pairs before the triangle unit.
    """

    width: int = 18
    weight_bits: int = 0
    constant_bits: int = 0
    sides: int = 24
    axis_count: int = 24
    pipelines: int = 1
    bus: int = BUS_BITS
    latency: int = 7
    gap: int = 4
    cache: int = 0
    row_values: int = 4
    triangle_units: int = 1
    delta_bits: int = 0
    stack: int = 128
    leaf_queue: int = 64

    def __post_init__(self) -> None:
        """Refuse invalid parameters."""
        validate_width(self.width)
        self._settle_widths()
        kdop_normals(self.sides)
        axis_choices(self.sides, self.axis_count)
        least = max(2 * self.width, HEAD_BITS)
        if self.bus != WIDE_BUS and self.bus < least:
            raise OptionError(f"bus must be 0 or at least {least} bits here, not {self.bus}.")
        if self.cache < 0 or self.cache % CACHE_WAYS:
            raise OptionError(f"cache must be a multiple of {CACHE_WAYS}, not {self.cache}.")
        if self.delta_bits and not (self.cache and 2 <= self.delta_bits < self.width):
            raise OptionError("delta_bits must be below the width, from 2, and needs a cache.")
        if self.row_values < 4 or not 1 <= self.triangle_units <= 4:
            raise OptionError("row_values must be at least 4, triangle_units from 1 to 4.")
        if self.latency < 2:
            raise OptionError(f"latency must be at least 2 cycles, not {self.latency}.")
        if not 1 <= self.pipelines <= self.axis_count:
            raise OptionError(
                f"pipelines must be from 1 to the {self.axis_count} axes, not {self.pipelines}."
            )

    def _settle_widths(self) -> None:
        """Replace zeros by the widths they stand for, and validate."""
        weight_bits = self.weight_bits or self.width
        constant_bits = self.constant_bits or self.width + 2
        if not 8 <= weight_bits <= MAX_WIDTH:
            raise OptionError(f"weight_bits must be from 8 to {MAX_WIDTH}, not {weight_bits}.")
        most = min(self.width + weight_bits + 1, 48)
        if not 8 <= constant_bits <= most:
            raise OptionError(f"constant_bits must be from 8 to {most} here, not {constant_bits}.")
        object.__setattr__(self, "weight_bits", weight_bits)
        object.__setattr__(self, "constant_bits", constant_bits)

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
        return max(self.width, self.weight_bits) > 18

    @property
    def depth(self) -> int:
        """Stages of a pipeline."""
        return 11 if self.split else 9

    @property
    def constant_shift(self) -> int:
        """Bits of a sum below a constant; the lane fills them with ones."""
        return self.width + self.weight_bits + 1 - self.constant_bits

    @property
    def axis_bits(self) -> int:
        """Bits of a row of the axis table."""
        return 6 * 5 + 6 * self.weight_bits + 2 * self.constant_bits

    @property
    def sum_bits(self) -> int:
        """Bits of the sum of a pipeline."""
        return self.width + self.weight_bits + 2

    @property
    def shared_bus(self) -> bool:
        """Whether records and triangles share the bus."""
        return self.bus != WIDE_BUS

    @property
    def beat_bits(self) -> int:
        """Bits of a beat of a record."""
        return self.bus or 4 * self.width

    @property
    def row_beats(self) -> int:
        """Beats of four values."""
        return 1 if self.beat_bits >= 4 * self.width else 2

    @property
    def beats(self) -> int:
        """Beats of a record: its head, then rows of four values."""
        return 1 + self.row_beats * -(-self.half // 2)

    @property
    def bursts(self) -> int:
        """Memory bursts of a record."""
        if self.shared_bus:
            return -(-self.beats // BURST_BEATS)
        return -(-(self.sides * self.width + 64) // WIDE_BURST_BITS)

    @property
    def burst_beats(self) -> int:
        """Beats of each burst of a record but the last."""
        return BURST_BEATS if self.shared_bus else -(-self.beats // self.bursts)

    @property
    def triangle_beat_bits(self) -> int:
        """Bits of a beat of a triangle."""
        return self.bus or TRIANGLE_BITS

    @property
    def triangle_beats(self) -> int:
        """Beats of a triangle, in one burst."""
        return -(-TRIANGLE_BITS // self.triangle_beat_bits)

    @property
    def sibling_beats(self) -> int:
        """Beats of two siblings relative to their parent: heads, its slot, unit, flags, deltas."""
        bits = 2 * HEAD_BITS + SLOT_BITS + EXPONENT_BITS + self.sides * (1 + self.delta_bits)
        return -(-bits // self.beat_bits)

    @property
    def has_rtl(self) -> bool:
        """Whether the RTL has everything that these parameters ask for."""
        return not self.cache and self.row_values == 4 and self.triangle_units == 1

    @property
    def leaf_room(self) -> int:
        """Most queued leaf pairs at which new pairs may start; the rest may be in flight."""
        return self.leaf_queue - self.depth - 7
