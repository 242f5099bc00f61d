"""Named inputs for tests, benchmarks, examples and demos, made in pure NumPy."""

from abut.cases.breaking import breaking, broken_sites, cell_labels, shattered
from abut.cases.draped_sheets import drape_ball, drape_table, round_table, sheet
from abut.cases.height_field import height_field
from abut.cases.outer_shapes import (
    OuterShape,
    outer_box,
    outer_capsule,
    outer_cone,
    outer_cylinder,
    outer_ellipsoid,
    outer_sphere,
)
from abut.cases.placed_shapes import PlacedShapes, balls, boxes
from abut.cases.plant import Plant
from abut.cases.scenes import PAIRS, SINGLES, pair, single
from abut.cases.shape import Shape, joined
from abut.cases.shapes import (
    box,
    folded_cloth,
    gem,
    icosphere,
    needles,
    plane,
    torus,
    torus_knot,
    tube,
    uv_sphere,
)
from abut.cases.tree import leaf, leaves
from abut.cases.zero_area import point_cloud, segments

__all__ = [
    "PAIRS",
    "SINGLES",
    "OuterShape",
    "PlacedShapes",
    "Plant",
    "Shape",
    "balls",
    "box",
    "boxes",
    "breaking",
    "broken_sites",
    "cell_labels",
    "drape_ball",
    "drape_table",
    "folded_cloth",
    "gem",
    "height_field",
    "icosphere",
    "joined",
    "leaf",
    "leaves",
    "needles",
    "outer_box",
    "outer_capsule",
    "outer_cone",
    "outer_cylinder",
    "outer_ellipsoid",
    "outer_sphere",
    "pair",
    "plane",
    "point_cloud",
    "round_table",
    "segments",
    "shattered",
    "sheet",
    "single",
    "torus",
    "torus_knot",
    "tube",
    "uv_sphere",
]
