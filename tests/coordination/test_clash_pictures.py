"""Pictures of clashes: both colours, red where the parts share their interior, stable cameras."""

import io
import logging

import numpy as np
import pytest

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.pictures.clash_cameras import clash_views
from abut.coordination.pictures.clash_frame import part_frames
from abut.coordination.pictures.clash_pictures import clash_pictures, severest
from abut.coordination.pictures.picture_meshes import PictureMeshes, drawn_edges
from abut.core.device import resolve_device
from blocks import all_pairs, block, table, tube, union
from clash_house import house_clashes

SIZE = (160, 120)
CHECK = Check("all", CheckKind.CLEARANCE, clearance=0.05, tolerance=1e-3, touch=True)
WALL = block((6, 0.25, 2.5))
DUCT = block((0.3, 1.5, 0.3), (2, -0.5, 1.8))


def pixels_of(png):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def clashes_of_shapes(shapes, **options):
    parts = table(shapes, **options)
    return check_pairs(parts, all_pairs(parts), [CHECK], device="cpu")


def pictures_of(clashes, device, **options):
    drawn = clash_pictures(clashes, size=SIZE, device=device, **options)
    return {name: pixels_of(png) for name, png in drawn.items()}


def red(pixels):
    r, g, b = np.moveaxis(pixels, 2, 0)
    return (r > 90) & (r > 1.6 * g) & (r > 1.6 * b)


def teal(pixels):
    r, _, b = np.moveaxis(pixels, 2, 0)
    return b > r + 25


def amber(pixels):
    r, g, b = np.moveaxis(pixels, 2, 0)
    return (r > b + 25) & (g > 1.15 * b)


def test_every_clash_has_a_picture(device):
    clashes, _ = house_clashes()
    pictures = pictures_of(clashes, device)
    assert list(pictures) == clashes.id.tolist()
    for name, pixels in pictures.items():
        assert pixels.shape == (SIZE[1], SIZE[0], 3), name
        assert red(pixels).sum() > 5, name
    again = pictures_of(clashes, device)
    for name, pixels in pictures.items():
        np.testing.assert_array_equal(pixels, again[name])


def test_both_parts_and_their_common_interior(device):
    (pixels,) = pictures_of(clashes_of_shapes({"wall": WALL, "duct": DUCT}), device).values()
    assert red(pixels).sum() > 150
    assert teal(pixels).sum() > 150
    assert amber(pixels).sum() > 400


def test_one_inside_the_other_is_seen_through_it(device):
    inner = block((0.1, 0.1, 0.1), (5, 0.08, 1.0))
    (pixels,) = pictures_of(clashes_of_shapes({"wall": WALL, "x": inner}), device).values()
    assert red(pixels)[SIZE[1] // 2, SIZE[0] // 2]
    assert red(pixels).sum() > 150


def test_apart_is_a_line(device):
    near = block((1, 1, 1), (0, 0.28, 0))
    clashes = clashes_of_shapes({"wall": WALL, "x": near})
    assert clashes.verdict.tolist() == ["encroach"]
    (pixels,) = pictures_of(clashes, device).values()
    assert 5 < red(pixels).sum() < 200


def test_surroundings_are_faint_and_hide_nothing(device):
    """A box around everything leaves the clash visible."""
    shapes = {"duct": DUCT, "wall": WALL}
    (alone,) = pictures_of(clashes_of_shapes(shapes), device).values()
    cover = block((8, 4, 4), (-1, -2, -1))
    hollow = union(cover, block((7.8, 3.8, 3.8), (-0.9, -1.9, -0.9)))
    hollow[1][12:] = hollow[1][12:, ::-1]
    clashes = clashes_of_shapes({**shapes, "z cover": hollow})
    pictures = pictures_of(clashes.take(clashes.b == "model/wall"), device)
    (pixels,) = pictures.values()
    assert np.abs(pixels - alone).sum() > 10_000
    assert red(pixels).sum() > 0.7 * red(alone).sum()


def test_far_from_the_origin_is_the_same_picture(device):
    away = np.array([4e5, 5e6, 100.0])
    shapes = {"duct": DUCT, "wall": WALL}
    (here,) = pictures_of(clashes_of_shapes(shapes), device).values()
    moved = {name: (v + away, f) for name, (v, f) in shapes.items()}
    (there,) = pictures_of(clashes_of_shapes(moved), device).values()
    assert (np.abs(here - there).max(axis=2) > 12).mean() < 0.01


def test_an_instance_is_drawn_at_its_pose(device):
    """The same parts, one of them turned by its pose rather than by its vertices."""
    turn = np.eye(4)
    turn[:2, :2], turn[:3, 3] = [[0, -1], [1, 0]], (2.3, -0.5, 1.8)
    rod = block((1.5, 0.3, 0.3))
    poses = {"duct": turn, "wall": np.eye(4)}
    clashes = clashes_of_shapes({"duct": rod, "wall": WALL}, poses=poses)
    (turned,) = pictures_of(clashes, device).values()
    (plain,) = pictures_of(clashes_of_shapes({"duct": DUCT, "wall": WALL}), device).values()
    assert (np.abs(turned - plain).max(axis=2) > 12).mean() < 0.01


@pytest.mark.parametrize("side", [-1, 1])
def test_the_camera_is_where_the_contact_is_seen(device, side):
    """A duct that ends in a wall is seen from its own side."""
    duct = block((0.3, 1.0, 0.3), (2, 0.1 if side > 0 else -0.85, 1.0))
    clashes = clashes_of_shapes({"duct": duct, "wall": WALL})
    assert clashes.verdict.tolist() == ["protrude"]
    frames = part_frames(clashes.box, clashes.parts, np.array([[0, 1]]))
    meshes = PictureMeshes(clashes.parts, resolve_device(device))
    ends = np.stack([clashes.point_a, clashes.point_b], axis=1)
    (view,) = clash_views(meshes, [(0, 1)], frames, ends, 4 / 3)
    assert (view.camera.eye[1] - 0.125) * side > 0
    assert view.glass == (False, False)
    assert len(view.lines) >= 8


def test_open_meshes_have_pictures(device):
    vertices, faces = WALL
    clashes = clashes_of_shapes({"duct": DUCT, "wall": (vertices, faces[:-1])})
    assert not clashes.solid.any()
    (pixels,) = pictures_of(clashes, device).values()
    assert red(pixels).sum() > 5


def test_the_limit_keeps_the_severest(device, caplog):
    clashes, _ = house_clashes()
    with caplog.at_level(logging.WARNING, "abut"):
        drawn = clash_pictures(clashes, size=SIZE, limit=2, device=device)
    assert f"{len(clashes) - 2} clashes have no picture" in caplog.text
    verdict = dict(zip(clashes.id, clashes.verdict, strict=True))
    assert [verdict[name] for name in drawn] == ["envelope", "duplicate"]
    rows = severest(clashes, np.arange(len(clashes)), None)
    assert rows.tolist() == list(range(len(clashes)))
    assert clash_pictures(clashes, [], device=device) == {}
    (one,) = clash_pictures(clashes, [4], size=SIZE, device=device)
    assert one == clashes.id[4]


def test_drawn_edges_are_creases_and_boundaries():
    from abut.cases.shape import Shape

    cube = block((1, 1, 1))
    assert bits(drawn_edges(Shape(*cube))) == 24  # 12 edges of two faces, no diagonal
    vertices, faces = tube(0.5, 0.4, 1.0, sections=24)
    count = bits(drawn_edges(Shape(vertices, faces.astype(np.int32))))
    assert count == 4 * 24 * 2  # four rims
    assert bits(drawn_edges(Shape(cube[0], cube[1][:-1]))) == 23  # three around the hole


def bits(edges):
    return sum(int(edge).bit_count() for edge in edges)


def test_surroundings_that_coincide_with_a_part_do_not_speckle(device):
    """A second wall in the place of the first one."""
    shapes = {"duct": DUCT, "wall": WALL}
    (alone,) = pictures_of(clashes_of_shapes(shapes), device).values()
    clashes = clashes_of_shapes({**shapes, "z wall": WALL})
    pictures = pictures_of(
        clashes.take((clashes.a == "model/duct") & (clashes.b == "model/wall")), device
    )
    (pixels,) = pictures.values()
    assert (np.abs(pixels - alone).max(axis=2) > 3).mean() < 0.02
