"""Check: a question about pairs of parts, with its clearance and tolerance."""

from dataclasses import dataclass
from enum import StrEnum


class CheckKind(StrEnum):
    """Findings that a check reports."""

    HARD = "hard"  # duplicate, envelope, pierce, protrude
    CLEARANCE = "clearance"  # those, and parts closer than the clearance
    DUPLICATE = "duplicate"  # duplicates alone
    TOUCH = "touch"  # those of hard, and parts that touch: ``Check.touch``


@dataclass(frozen=True)
class Check:
    """A question about pairs of parts.

    Attributes:
        name: Name in the rules.
        kind: Findings that are reported.
        clearance: Gap to keep [m]; used by ``clearance`` alone.
        tolerance: Depths and gaps up to this are a touch [m].
        touch: Parts that touch are reported, too.
    """

    name: str
    kind: CheckKind = CheckKind.HARD
    clearance: float = 0.0
    tolerance: float = 0.0
    touch: bool = False

    @property
    def reach(self) -> float:
        """Largest distance of parts that the check may report [m], without deviations.

        Duplicates within the tolerance meet or are at most this far apart.
        """
        return max(self.clearance if self.kind is CheckKind.CLEARANCE else 0.0, self.tolerance)
