"""Hand-made rows of clashes for the tests of reports."""

import numpy as np

from abut.coordination.clashes import Clashes, Verdict
from abut.coordination.report.report_columns import PartFacts, columns_of


def make_clashes(count=6, seed=0):
    rng = np.random.default_rng(seed)
    verdicts = [str(verdict) for verdict in Verdict]
    keys = [f"house/{k:022d}" for k in range(2 * count)]
    numbers = rng.uniform(0, 1, (count, 7))  # a row does not depend on the count
    low = 10 * numbers[:, :3]
    depth = np.where(np.arange(count) % 4 == 3, np.nan, 0.1 * numbers[:, 6])
    return Clashes(
        id=np.array([f"clash{k:04d}" for k in range(count)], object),
        a=np.array(keys[::2], object),
        b=np.array(keys[1::2], object),
        verdict=np.array([verdicts[k % len(verdicts)] for k in range(count)], object),
        check=np.array(["structure, ducts" if k % 2 else "all" for k in range(count)], object),
        depth=depth,
        depth_error=np.full(count, 1e-7),
        distance=np.where(np.arange(count) % 6 == 5, 0.03, 0.0),
        point_a=low,
        point_b=low + 0.01,
        box=np.stack([low, low + numbers[:, 3:6]], axis=1),
        region_count=np.arange(count, dtype=np.int32) % 3 + 1,
        solid=~np.isnan(depth),
        note=np.array(['a "quoted", note' if k == 1 else "" for k in range(count)], object),
        group=np.array([f"group{k // 2}" for k in range(count)], object),
        **{name: None for name in ("parts",) if name in Clashes.__dataclass_fields__},
    )


def facts_of(key):
    number = int(key.split("/")[1])
    kind = ("IfcWall", "IfcDuctSegment", "")[number % 3]
    return PartFacts("house.ifc", key.split("/")[1], f"Wände {number}", kind, "Level 1")


def make_columns(count=6, seed=0):
    return columns_of(make_clashes(count, seed), facts_of)
