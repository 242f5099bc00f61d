"""BVHs: structure, boxes, refits, size and reproducibility."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import abut
import awkward
from abut import cases
from abut.bvh import bvh_cache
from abut.bvh.bvh_cache import bvh_of, ploc_effort
from abut.bvh.layout import MAX_DEPTH
from abut.bvh.lbvh import build_lbvh
from abut.bvh.morton import sort_by_code
from abut.bvh.ploc import build_ploc
from abut.bvh.refit import refit
from shapes import soup, strips
from trees import boxes_of, cost_of, escapes_of, leaf_boxes, links_of

FEW = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


# The origin of boxes is (1e6, 1, -1): coordinates relative to it are rounded inwards.
HIDDEN = np.array([[1e6, -1, -3], [1e6, 3, 1], [1e6, 2, -2], [1e6, -1e-20, 1e-20], [1e6, 1, -1]])


def family_shape(family, count=200):
    return soup(
        cases.Shape(
            family(np.random.default_rng(5), count, 3).reshape(-1, 3),
            np.arange(3 * count).reshape(-1, 3),
        )
    )


SHAPES = {
    "one face": cases.Shape(FEW, np.array([[0, 1, 2]])),
    "two faces": cases.Shape(FEW, np.array([[0, 1, 2], [1, 2, 3]])),
    "three faces": cases.Shape(FEW, np.array([[0, 1, 2], [1, 2, 3], [0, 2, 3]])),
    "equal faces": cases.Shape(FEW, np.tile([[0, 1, 2]], (1000, 1))),
    "points": cases.Shape(FEW, np.repeat(np.arange(4), 3).reshape(-1, 3)),
    "ball": cases.icosphere(1280),
    "far ball": cases.icosphere(1280).moved((1e6, -3e7, 5e8)),
    "small ball": cases.icosphere(320, 1e-9),
    "needles": cases.needles(100),
    "strips": strips(300),
    "hidden rounding": cases.Shape(HIDDEN, np.array([[0, 1, 2], [3, 4, 4]])),
    "one large, many small": cases.joined(cases.plane(2, 2, 1e9), cases.icosphere(320)),
    **{f"{f.__name__} triangles": family_shape(f) for f in awkward.FAMILIES},
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


@pytest.fixture(params=[build_lbvh, build_ploc])
def tree(request, shape, device):
    mesh = abut.Mesh(*shape, device)
    return request.param(mesh.points, mesh.faces, mesh.bounds)


def leaves_below(tree):
    """Return the faces in depth-first order, left before right; check links on the way."""
    links = links_of(tree)
    stack, faces, seen = [len(links) - 1], [], set()
    while stack:
        slot = stack.pop()
        assert slot not in seen
        seen.add(slot)
        if links[slot] < 0:
            faces.append(-1 - links[slot])
        else:
            stack += [2 * links[slot] + 1, 2 * links[slot]]
    assert len(seen) == len(links), "some slots cannot be reached"
    return faces


def test_every_face_is_one_leaf(tree, shape):
    assert len(links_of(tree)) == 2 * len(shape.faces) - 1
    assert sorted(leaves_below(tree)) == list(range(len(shape.faces)))


def test_leaves_and_splits_know_their_slots(tree, shape):
    links = links_of(tree)
    along = (-1 - links[tree.leaf_slots.numpy()]).tolist()
    assert along == leaves_below(tree)
    splits = np.arange(len(shape.faces) - 1)
    np.testing.assert_array_equal(links[tree.split_slots.numpy()[: len(splits)]], splits)


def test_boxes_contain_their_subtrees(tree):
    links, boxes = links_of(tree), boxes_of(tree)
    assert not np.isnan(boxes).any()
    for slot in np.flatnonzero(links >= 0):
        children = boxes[2 * links[slot] : 2 * links[slot] + 2]
        np.testing.assert_array_equal(boxes[slot, 0], children[:, 0].min(axis=0))
        np.testing.assert_array_equal(boxes[slot, 1], children[:, 1].max(axis=0))


def test_leaf_boxes_contain_their_faces_exactly(tree, shape):
    """Boxes are rounded outwards; compare them as fractions, with the origin."""
    links, boxes = links_of(tree), boxes_of(tree)
    origin = [Fraction(x) for x in tree.origin.tolist()]
    for slot in np.flatnonzero(links < 0)[:300]:
        corners = shape.vertices[shape.faces[-1 - links[slot]]]
        for axis in range(3):
            low, high = boxes[slot, :, axis].tolist()
            least, most = corners[:, axis].min(), corners[:, axis].max()
            assert low == -np.inf or Fraction(low) <= Fraction(float(least)) - origin[axis]
            assert high == np.inf or Fraction(high) >= Fraction(float(most)) - origin[axis]


def test_escapes_skip_subtrees(tree):
    """Escapes of unopened nodes visit the right spine of the BVH."""
    links, escapes = links_of(tree), escapes_of(tree)
    for slot in np.flatnonzero(links >= 0):
        left, right = 2 * links[slot], 2 * links[slot] + 1
        assert escapes[left] == right
        assert escapes[right] == escapes[slot]
    assert escapes[-1] == -1


def test_no_bvh_is_deeper_than_stacks_allow(tree):
    links = links_of(tree)
    depth = np.zeros(len(links), dtype=int)
    stack = [len(links) - 1]
    while stack:
        slot = stack.pop()
        if links[slot] >= 0:
            children = [2 * links[slot], 2 * links[slot] + 1]
            depth[children] = depth[slot] + 1
            stack += children
    assert depth.max() <= MAX_DEPTH


@pytest.mark.parametrize("shape", [cases.icosphere(5120), cases.single("thick_knot", 5000)])
def test_ploc_is_cheaper_to_traverse(shape, device):
    mesh = abut.Mesh(*shape, device)
    quick, careful = (
        make(mesh.points, mesh.faces, mesh.bounds) for make in (build_lbvh, build_ploc)
    )
    assert cost_of(careful) < cost_of(quick)


def test_search_effort_leads_to_ploc(device):
    mesh = abut.Mesh(*cases.icosphere(320), device)
    quick = bvh_of(mesh)
    assert not quick.improved
    careful = bvh_of(mesh, effort=10**6)
    assert careful.improved and bvh_of(mesh) is careful


def test_a_large_batch_improves_first(device, monkeypatch):
    """The first BVH is the better one where it pays at once."""
    monkeypatch.setattr(bvh_cache, "build_lbvh", None)
    mesh = abut.Mesh(*cases.icosphere(320), device)
    assert bvh_of(mesh, effort=10**6).improved


def test_a_bvh_improves_when_its_build_is_repaid(device):
    """The effort of all searches counts; larger meshes take more of it, tiny ones never improve."""
    for count in (320, 5120):
        mesh = abut.Mesh(*cases.icosphere(count), device)
        least = int(ploc_effort(count))
        assert not bvh_of(mesh, effort=least // 2).improved
        assert not bvh_of(mesh, effort=least - least // 2).improved
        assert bvh_of(mesh, effort=1).improved
    assert not bvh_of(abut.Mesh(*cases.box(), device), effort=10**9).improved


def test_a_rebuilt_bvh_counts_anew(device):
    mesh = abut.Mesh(*soup(cases.icosphere(320)), device)
    assert bvh_of(mesh, effort=10**6).improved
    shuffled = np.random.default_rng(0).permutation(mesh.vertices.numpy().reshape(-1, 9))
    for step in range(2):
        mesh.deform(shuffled.reshape(-1, 3) * (1 + step / 8))
        bvh_of(mesh)
    assert not bvh_of(mesh, effort=1).improved


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e9])
def test_boxes_are_tight(offset, device):
    """Boxes of distant meshes are tight too, relative to their origin."""
    ball = cases.icosphere(1280).moved((offset, offset, offset))
    tree = bvh_of(abut.Mesh(*ball, device))
    assert np.ptp(leaf_boxes(tree), axis=1).max() < 0.2


def test_refit_gives_the_boxes_of_a_rebuild(device):
    ball = cases.icosphere(1280)
    mesh = abut.Mesh(*ball, device)
    tree = bvh_of(mesh)
    before = links_of(tree).copy()
    for scale in ([1, 2, 3], [0.5, 0.1, 4]):
        mesh.deform(ball.vertices * scale)
        refit(tree, mesh.points, mesh.faces)
        new = bvh_of(abut.Mesh(ball.vertices * scale, ball.faces, device))
        np.testing.assert_array_equal(links_of(tree), before)
        for one in (tree, new):
            assert not one.origin.any()
        np.testing.assert_array_equal(leaf_boxes(tree), leaf_boxes(new))
        np.testing.assert_array_equal(boxes_of(tree)[-1], boxes_of(new)[-1])


@pytest.mark.parametrize("shape", [cases.icosphere(20000), cases.needles(5000)])
def test_memory(shape, device):
    tree = bvh_of(abut.Mesh(*shape, device))
    assert tree.nbytes <= 200 * len(shape.faces)


def test_the_bvh_is_cached_until_the_mesh_deforms(device):
    mesh = abut.Mesh(*cases.icosphere(320), device)
    tree = bvh_of(mesh)
    assert bvh_of(mesh) is tree
    before = tree.nodes.numpy().copy()
    mesh.deform(mesh.points.numpy() * 1.01)
    assert not np.array_equal(bvh_of(mesh).nodes.numpy(), before)


@pytest.mark.parametrize("count", [1, 2, 100, 70_000])
def test_codes_are_sorted_stably(count, device):
    rng = np.random.default_rng(count)
    codes = rng.integers(0, 2**30, size=count, dtype=np.int32)
    codes[count // 2 :] &= 2**30 - 2**12  # many equal ones
    held = [wp.empty(2 * count, dtype=wp.int32, device=device) for _ in range(2)]
    for array, values in zip(held, (codes, np.arange(count, dtype=np.int32)), strict=True):
        wp.copy(array, wp.array(values, device=device), count=count)
    sort_by_code(*held)
    np.testing.assert_array_equal(held[0].numpy()[:count], np.sort(codes))
    np.testing.assert_array_equal(held[1].numpy()[:count], np.argsort(codes, kind="stable"))
