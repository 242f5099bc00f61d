"""Verdicts of constructed pairs, and rows that depend on their pair alone."""

import numpy as np
import pytest

from abut import cases
from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from blocks import all_pairs, block, table, tube, union

ALL = Check("all", CheckKind.CLEARANCE, clearance=0.05, tolerance=0.0, touch=True)


def rows(parts, check=ALL):
    return list(check_pairs(parts, all_pairs(parts), [check], device="cpu"))


def verdict(a, b, check=ALL):
    """The row of two shapes, or None."""
    found = rows(table({"a": a, "b": b}), check)
    return found[0] if found else None


WALL = block((6, 0.25, 2.5))


def u_shape():
    """A U that opens downwards, of three blocks that share faces: one solid without them."""
    import trimesh

    outline = [(0, 0), (0.2, 0), (0.2, 1), (1, 1), (1, 0), (1.2, 0), (1.2, 1.2), (0, 1.2)]
    ears = [(0, 1, 2), (0, 2, 7), (2, 6, 7), (2, 3, 6), (3, 5, 6), (3, 4, 5)]
    made = trimesh.creation.extrude_triangulation(np.array(outline), np.array(ears), height=0.2)
    assert made.is_watertight
    return np.asarray(made.vertices), np.asarray(made.faces)


def subdivided(shape):
    """The same surface in four times as many faces."""
    import trimesh

    return trimesh.remesh.subdivide(*shape)


CASES = {
    "apart": (WALL, block((1, 1, 1), (0, 2, 0)), None, None),
    "on the slab": (WALL, block((6, 4, 0.2), (0, 0, -0.2)), "touch", 0.0),
    "edge on edge": (WALL, block((6, 1, 1), (0, 0.25, 2.5)), "touch", 0.0),
    "corner on corner": (WALL, block((1, 1, 1), (6, 0.25, 2.5)), "touch", 0.0),
    "aligned walls": (WALL, block((6, 0.25, 2.5), (5.95, 0, 0)), "protrude", 0.05),
    "walls at a corner": (WALL, block((0.25, 3, 2.5), (0, 0, 0)), "protrude", 0.125),
    "walls that cross, flush": (WALL, block((0.25, 6, 2.5), (3, -3, 0)), "pierce", 0.125),
    "duct through": (WALL, block((0.3, 1.5, 0.3), (2, -0.5, 1.8)), "pierce", 0.15),
    "duct flush with the top": (WALL, block((0.3, 1.5, 0.3), (2, -0.5, 2.2)), "pierce", None),
    "duct end": (WALL, block((0.05, 3, 0.05), (4, 0.1, 1.0)), "protrude", 0.125),
    "duct along the face": (WALL, block((8, 0.3, 0.3), (-1, 0.2, 1)), "protrude", 0.05),
    "box in the wall": (WALL, block((0.1, 0.1, 0.1), (5, 0.08, 1.0)), "envelope", None),
    "box in the wall, flush": (WALL, block((0.1, 0.1, 0.1), (5, 0.15, 1.0)), "envelope", None),
    "the same": (WALL, WALL, "duplicate", 0.125),
    "the same in other faces": (WALL, subdivided(WALL), "duplicate", 0.125),
    "near": (WALL, block((1, 1, 1), (0, 0.28, 0)), "encroach", 0.0),
    "two of two pieces": (
        union(WALL, block((1, 1, 1), (0, 5, 0))),
        union(block((1, 1, 1), (0, 7, 0)), block((0.1, 0.1, 0.1), (0.2, 5.2, 0.2))),
        "protrude",
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name):
    a, b, wanted, depth = CASES[name]
    for first, second in ((a, b), (b, a)):
        row = verdict(first, second)
        assert (row and row["verdict"]) == wanted
        if depth is not None and row is not None:
            assert row["depth"] - 1e-12 <= depth <= row["depth"] + row["depth_error"] + 1e-12


def test_a_u_with_both_ends_in_a_wall_protrudes_twice():
    vertices, faces = u_shape()
    row = verdict((vertices, faces), block((3, 1, 1), (-1, -0.8, -0.4)))
    assert (row["verdict"], row["region_count"]) == ("protrude", 2)
    row = verdict((vertices, faces), block((3, 0.1, 1), (-1, 0.3, -0.4)))
    assert (row["verdict"], row["region_count"]) == ("pierce", 4)


def test_a_ring_pressed_into_a_post_does_not_cut_it():
    """The surface of the post falls apart, the post does not."""
    post = np.array(cases.box((0.5, 0.5, 4))[0], float), cases.box((0.5, 0.5, 4))[1]
    assert verdict(tube(0.4, 0.34, 0.1), post)["verdict"] == "protrude"
    assert verdict(tube(0.4, 0.2, 0.1), post)["verdict"] == "protrude"


def test_a_frame_pressed_into_a_wall_does_not_cut_it():
    frame, wall = tube(1.0, 0.9, 0.1), block((4, 4, 1), (-2, -2, 0.04))
    row = verdict(frame, wall)
    assert row["verdict"] == "protrude" and row["region_count"] == 2


def test_a_pipe_through_a_wall_is_cut():
    slab = block((3, 3, 0.2), (-1.5, -1.5, -0.1))
    assert verdict(tube(0.2, 0.15, 2.0), slab)["verdict"] == "pierce"
    tank = tube(1.0, 0.9, 2.0)
    rod = block((0.5, 0.1, 0.1), (0.7, 0, 0))
    assert verdict(tank, rod)["verdict"] == "pierce"


def test_a_shallow_overlap_is_a_touch_and_says_so():
    slab = block((6, 4, 0.2), (0, 0, -0.1996))
    check = Check("all", tolerance=0.001, touch=True)
    row = verdict(WALL, slab, check)
    assert row["verdict"] == "touch" and row["note"] == "0.4 mm deep, below the tolerance"
    assert verdict(WALL, slab, Check("all", tolerance=0.001)) is None
    assert verdict(WALL, slab, Check("all", tolerance=0.0003))["verdict"] == "protrude"
    row = verdict(WALL, block((6, 1, 1), (0, 0.2505, 0)), check)
    assert row["verdict"] == "touch" and row["note"] == "0.5 mm apart, below the tolerance"


def test_duplicates_within_the_tolerance():
    check = Check("same", CheckKind.DUPLICATE, tolerance=0.001)
    moved = WALL[0] + [0.0005, 0, 0], WALL[1]
    assert verdict(WALL, moved, check)["verdict"] == "duplicate"
    assert verdict(WALL, (WALL[0] + [0.002, 0, 0], WALL[1]), check) is None
    assert verdict(WALL, (subdivided(WALL)[0] + [0, 0.0005, 0], subdivided(WALL)[1]), check)
    open_wall = WALL[0], WALL[1][1:]
    row = verdict(open_wall, (open_wall[0], open_wall[1][::-1]), check)
    assert row["verdict"] == "duplicate" and not row["solid"]


def test_open_parts():
    """A sheet that crosses, touches, or lies in a solid."""
    corners = np.array([[0, -1, 1], [1, -1, 1], [1, 1, 1], [0, 1, 1]], float)
    sheet = corners, np.array([[0, 1, 2], [0, 2, 3]])
    row = verdict(WALL, sheet)
    assert row["verdict"] == "protrude" and np.isnan(row["depth"]) and not row["solid"]
    assert "open" in row["note"]
    on_top = sheet[0] * [1, 1, 0] + [0, 0, 2.5], sheet[1]
    assert verdict(WALL, on_top)["verdict"] == "touch"
    inside = sheet[0] * 0.1 + [1, 0.12, 1], sheet[1]
    assert verdict(WALL, inside)["verdict"] == "envelope"
    upright = sheet[0][:, [2, 1, 0]] + [-0.5, 0, 0.5], sheet[1]
    assert verdict(sheet, upright)["verdict"] == "protrude"


def test_a_pair_has_the_same_row_in_any_company():
    shapes = {str(k): b for k, (_, b, _, _) in enumerate(CASES.values())} | {"wall": WALL}
    shapes["open"] = WALL[0] + [0.1, 0.1, 0.1], WALL[1][1:]
    parts = table(shapes)
    pairs = all_pairs(parts)
    whole = {(r["a"], r["b"]): bytes_of(r) for r in check_pairs(parts, pairs, [ALL], device="cpu")}
    single = [list(check_pairs(parts, [pair], [ALL], device="cpu")) for pair in pairs]
    alone = {(r["a"], r["b"]): bytes_of(r) for found in single for r in found}
    assert alone == whole and len(whole) > 60
    mixed = np.random.default_rng(0).permutation(pairs)[:, ::-1]
    some = check_pairs(parts, mixed[: len(pairs) // 2], [ALL], device="cpu")
    assert all(bytes_of(r) == whole[r["a"], r["b"]] for r in some)


def bytes_of(row):
    return [v.tobytes() if isinstance(v, np.ndarray | np.generic) else v for v in row.values()]


def test_open_duplicates_that_are_apart_have_a_distance():
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    moved = corners + np.array([0, 0, 0.0005])
    for kind in (CheckKind.DUPLICATE, CheckKind.HARD):
        row = verdict((corners, faces), (moved, faces), Check("all", kind, tolerance=0.001))
        assert row["verdict"] == "duplicate" and abs(row["distance"] - 0.0005) < 1e-12


def test_overlaps_by_rounding_are_touches_without_a_search(monkeypatch):
    """A translation of a 64th of the tolerance parts them; so also parts that meet themselves."""
    from abut.coordination.checks import pair_depths

    monkeypatch.setattr(pair_depths, "_searched", None)
    check = Check("all", tolerance=0.001, touch=True)
    pressed = block((1, 1, 1), (0, 0.25 - 1e-13, 0))
    crossed = union(
        block((1, 1, 1), (0, 0.25 - 1e-13, 0)), block((1, 1, 1), (0.5, 0.25 - 1e-13, 0))
    )
    corner = union(block((9, 1, 9), (-1, 0.25 - 1e-13, -1)), block((1, 9, 9), (-1 + 1e-13, -4, -1)))
    for other in (pressed, crossed, corner):
        row = verdict(WALL, other, check)
        assert row["verdict"] == "touch" and row["depth"] == 0.0
        assert 1e-13 <= row["depth_error"] <= 1e-3 / 63
        assert "at most 0.0156 mm deep, below the tolerance" in row["note"]
        assert verdict(WALL, other, Check("all", tolerance=0.001)) is None


def test_deep_overlaps_are_not_parted(monkeypatch):
    """A common point that lies deeper than the translation forbids it, and is found first."""
    from abut.coordination.checks import shallow_overlaps

    monkeypatch.setattr(shallow_overlaps, "relations", None)
    for other in (WALL, subdivided(WALL), block((1, 1, 1), (0.5, 0.2, 0.5))):
        assert verdict(WALL, other, Check("all", tolerance=0.001))["depth"] > 0.02


def test_touches_that_are_not_reported_need_no_close_depth(monkeypatch):
    """A girder that fits its pocket but for rounding: no short translation takes it out."""
    from abut.coordination.checks import pair_depths

    sides = [block((2, 1, 1), (0, 1, 0)), block((2, 1, 1), (0, -1, 0))]
    wall = union(*sides, block((2, 1, 1), (0, 0, -1)), block((2, 1, 1), (0, 0, 1)))
    girder = block((3, 1 + 2e-13, 1 + 2e-13), (0, -1e-13, -1e-13))
    row = verdict(wall, girder, Check("all", tolerance=0.001, touch=True))
    assert row["verdict"] == "touch" and row["depth_error"] <= 0.000125 + 1e-12
    monkeypatch.setattr(pair_depths, "inside_depths", None)
    assert verdict(wall, girder, Check("all", tolerance=0.001)) is None


def test_a_row_whose_depth_is_uncertain_says_so(monkeypatch):
    """Parts that intersect themselves, and a search that gives up."""
    from abut.query.solids import inside_depth

    monkeypatch.setattr(inside_depth, "USUAL_CELLS", 2)
    sides = [block((2, 1, 1), (0, 1, 0)), block((2, 1, 1), (0, -1, 0))]
    wall = union(*sides, block((2, 2, 1), (0, -0.5, -1)), block((2, 1, 1), (0, 0, 1)))
    girder = block((3, 1 + 2e-13, 1 + 2e-13), (0, -1e-13, -1e-13))
    for touch in (False, True):
        row = verdict(wall, girder, Check("all", tolerance=0.001, touch=touch))
        assert row["verdict"] == "pierce" and row["depth"] <= 1e-12 and row["depth_error"] > 0.1
        assert row["note"].startswith("it may be a touch: the depth is between ")
        assert row["note"].endswith(" mm; a intersects itself")


def test_depths_that_a_search_leaves_open_are_bounded_by_a_translation(monkeypatch):
    from abut.coordination.checks import pair_depths
    from abut.coordination.checks.pair_depths import PairDepth

    def searched(*_):
        return PairDepth(0.0, 1.0, np.zeros((2, 3)))

    monkeypatch.setattr(pair_depths, "_searched", searched)
    for depth, wanted in ((0.0009, "touch"), (0.0011, "protrude")):
        other = block((1, 1, 1), (0, 0.25 - depth, 0))
        row = verdict(WALL, other, Check("all", tolerance=0.001, touch=True))
        assert row["verdict"] == wanted
        assert (row["depth_error"] < 0.001) == (wanted == "touch")


def test_a_part_in_another_that_meets_itself_is_never_a_touch():
    """It touches an inner face alone, so the relation after a translation proves nothing."""
    two = union(block((2, 2, 2)), block((2, 2, 2), (1, 0.25, 0.25)))
    inside = block((0.25, 0.5, 0.5), (0.75, 0.5, 0.5))
    row = verdict(two, inside, Check("all", tolerance=0.125, touch=True))
    assert row is None or row["verdict"] != "touch"
