"""The mask and depth interval of a tile fragment agree with its fragments, pixel by pixel."""

import numpy as np
import pytest
import warp as wp

from abut.visibility.coverage import centre_of, covers, pixel_depths
from abut.visibility.screen_faces import (
    ROWS,
    load_own_screen_face,
    pixel_box,
    screen_face_of,
    store_face,
)
from abut.visibility.settings import View, ViewMap, map_of
from abut.visibility.tile_fragment import count_bits, lowest_bit_index, tile_depths, tile_mask
from hard_faces import FINE, needles, through_centres

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SIDE, COUNT = 64, 2000  # pixels of the view, faces


@wp.kernel
def tile_fragment_kernel(
    # in
    corners: wp.array2d[wp.vec3f],
    views: wp.array[ViewMap],
    # out
    rows_out: wp.array[wp.vec4f],
    covered_out: wp.array2d[wp.uint64],
    masks_out: wp.array2d[wp.uint64],
    outside_out: wp.array2d[wp.int32],
):
    """Covered pixels, one by one and as a mask; fragments outside the interval of the tile."""
    face, tile = wp.tid()
    view = views[0]
    p = corners[face, 0]
    q = corners[face, 1]
    r = corners[face, 2]
    store_face(rows_out, face, screen_face_of(p, q, r))
    f = load_own_screen_face(rows_out, face)
    box = pixel_box(p, q, r, view, wp.vec2i(0, view.pixels))
    column = (tile % 8) * 8
    row = (tile / 8) * 8
    masks_out[face, tile] = tile_mask(f, box, column, row, view)
    bound = tile_depths(f, column, row, view)
    for k in range(64):
        x = column + k % 8
        y = row + k / 8
        if x >= box[0] and x <= box[2] and y >= box[1] and y <= box[3]:
            if covers(f, centre_of(x, y), view):
                covered_out[face, tile] |= wp.uint64(1) << wp.uint64(k)
                depths = pixel_depths(f, centre_of(x, y), view)
                if depths[0] <= depths[1] and (depths[0] < bound[0] or depths[1] > bound[1]):
                    outside_out[face, tile] += 1


def faces_of(kind, rng):
    """(n, 3, 3) float32 corners in pixels and depth."""
    if kind == "needles":
        return np.resize(needles(rng, 60, SIDE), (COUNT, 3, 3))
    if kind == "through centres":
        return through_centres(rng, COUNT, SIDE)
    out = rng.uniform(size=(COUNT, 3, 3))
    if kind == "small":
        out = out[:, :1] * 0.9 + 0.1 * out
    elif kind == "thin":
        out[:, 2] = out[:, 0] + rng.normal(scale=1e-6, size=(COUNT, 3))
    elif kind in ("steep", "edge-on"):
        wide = {"steep": 0.03, "edge-on": 1e-5}[kind]
        out[:, :, 0] = out[:, :1, 0] + rng.normal(scale=wide, size=(COUNT, 3))
    elif kind == "grid":
        out = rng.integers(0, 129, size=out.shape) / 128  # many centres lie on edges
    elif kind == "flat":
        out[:, :, 2] = out[:, :1, 2]
    return (np.clip(out, 0.001, 0.999) * [SIDE, SIDE, 1]).astype(np.float32)


def tile_fragments(corners, reach, device):
    """Covered pixels, one by one and as a mask; fragments outside the intervals of tiles."""
    bounds = np.array([[0.0] * 3, [1.0] * 3])
    distance = 0.05 if reach == "near" else 0.0
    mapping = map_of(View("z"), bounds, SIDE, conservative=reach != "sampled", distance=distance)
    host = wp.zeros(1, dtype=ViewMap, device="cpu")
    host.numpy()[0] = mapping
    rows = wp.zeros(ROWS * COUNT, dtype=wp.vec4f, device=device)
    covered, masks = (wp.zeros((COUNT, 64), dtype=wp.uint64, device=device) for _ in range(2))
    outside = wp.zeros((COUNT, 64), dtype=wp.int32, device=device)
    args = [wp.array(corners, dtype=wp.vec3f, device=device), wp.clone(host, device=device), rows]
    wp.launch(tile_fragment_kernel, (COUNT, 64), [*args, covered, masks, outside], device=device)
    return covered.numpy(), masks.numpy(), outside.numpy()


KINDS = ["any", "small", "thin", "steep", "edge-on", "grid", "flat", "needles", "through centres"]


@pytest.mark.parametrize("reach", ["sampled", "conservative", "near"])
@pytest.mark.parametrize("kind", KINDS)
def test_tile_fragments_agree_with_pixels(kind, reach, device):
    corners = faces_of(kind, np.random.default_rng(1))
    covered, masks, outside = tile_fragments(corners, reach, device)
    assert np.array_equal(covered, masks)
    assert outside.sum() == 0
    few = reach == "sampled" and kind in ("thin", "edge-on", "needles")
    assert few or np.count_nonzero(covered) > COUNT


def true_masks(corners):
    """(n, 64) words: the pixels whose centres faces hold, by integers."""
    u, v = np.round(corners[..., :2].astype(float) / FINE).astype(np.int64).transpose(2, 0, 1)
    turn = np.sign(
        (u[:, 1] - u[:, 0]) * (v[:, 2] - v[:, 0]) - (u[:, 2] - u[:, 0]) * (v[:, 1] - v[:, 0])
    )
    at = np.round((np.arange(SIDE) + 0.5) / FINE).astype(np.int64)
    held = np.repeat((turn != 0)[:, None, None], SIDE, axis=1) & np.ones((SIDE, SIDE), bool)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        du, dv = (turn * (x[:, j] - x[:, i]) for x in (u, v))
        first = du[:, None, None] * (at[:, None] - v[:, i, None, None])
        side = first - dv[:, None, None] * (at[None, :] - u[:, i, None, None])
        owned = (dv < 0) | ((dv == 0) & (du > 0))
        held &= (side > 0) | ((side == 0) & owned[:, None, None])
    tiles = held.reshape(-1, 8, 8, 8, 8).transpose(0, 1, 3, 2, 4).reshape(-1, 64, 64)
    return (tiles.astype(np.uint64) << np.arange(64, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)


def test_centre_on_an_edge_is_exact(device):
    """The sign of a sum of rounded products may be wrong."""
    corners = through_centres(np.random.default_rng(2), COUNT, SIDE)
    truth = true_masks(corners)
    covered, masks, _ = tile_fragments(corners, "sampled", device)
    assert np.array_equal(masks, truth) and np.array_equal(covered, truth)


@wp.kernel
def bits_kernel(
    # in
    words: wp.array[wp.uint64],
    # out
    found_out: wp.array[wp.vec2i],
):
    """Lowest bit and number of bits of each word."""
    i = wp.tid()
    found_out[i] = wp.vec2i(lowest_bit_index(words[i]), count_bits(words[i]))


def test_bits(device):
    words = [1, 2, 3, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, (1 << 63) | (1 << 40)]
    found = wp.zeros(len(words), dtype=wp.vec2i, device=device)
    given = wp.array(np.array(words, dtype=np.uint64), device=device)
    wp.launch(bits_kernel, len(words), [given, found], device=device)
    want = [[(word & -word).bit_length() - 1, word.bit_count()] for word in words]
    assert found.numpy().tolist() == want
