"""Distances, abut beside its peers: ``python -m benchmarks.bench_distance --device cpu``."""

import sys

from benchmarks import cases
from benchmarks.comparison import Comparison

PEERS = ("meshlib", "coal", "fcl")
CASES = {
    "bunny_bunny_distance": cases.bunny_bunny_distance,
    "dragon_armadillo_10k_poses": cases.dragon_armadillo_10k_poses,
    "rings_2m_distance": cases.rings_2m_distance,
    "cloth_ball_distance": cases.cloth_ball_distance,
    "rss_245k": cases.rss_245k,
}


def main(argv: list[str] | None = None) -> int:
    """Run jobs, print a table for each, write the CSV. Returns 1 if an exact peer disagrees."""
    return Comparison("distance", CASES, PEERS).main(argv)


if __name__ == "__main__":
    sys.exit(main())
