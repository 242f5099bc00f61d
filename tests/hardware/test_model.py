"""The integer model against Python's integers, and the Warp kernels against the model."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bounds.kdop import axis_choices, kdop_normals
from abut.bvh.bvh_cache import bvh_of, kdops_of
from abut.bvh.node_kdops import KdopShape
from abut.hardware import Machine, model
from abut.hardware.program import program
from abut.operands.posed_mesh import make_posed_mesh
from abut.traversal.overlap.kdop_frames import KdopFrames, kdop_frames, overlap_kdops
from shapes import random_poses

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SHAPES = [(24, w) for w in (10, 17, 18, 19, 30, 31, 35)] + [(6, 18), (14, 12), (18, 35), (26, 18)]


@wp.kernel
def overlaps_kernel(
    # in
    dops: KdopFrames,
    slots: wp.array[wp.vec2i],
    # out
    overlap_out: wp.array[wp.bool],
):
    i = wp.tid()
    overlap_out[i] = overlap_kdops(dops, 0, slots[i][0], slots[i][1])


def plain_separations(axes, width, reaches_a, reaches_b):
    """The definition, one axis after the other, in integers of any size."""
    half = len(reaches_a) // 2
    out = []
    for picks, *weights, before, behind in axes.tolist():
        j = [(picks >> (5 * i)) & 31 for i in range(6)]
        o = [(n + half) % (2 * half) for n in j]
        a, b = [int(x) for x in reaches_a], [int(x) for x in reaches_b]
        along = [a[n] for n in j[:3]] + [b[n] for n in o[3:]]
        against = [a[n] for n in o[:3]] + [b[n] for n in j[3:]]
        one = 1 << (width - 1)
        sums = [
            sum(w * r for w, r in zip(weights, reaches, strict=True)) + one * constant + one - 1
            for reaches, constant in ((along, before), (against, behind))
        ]
        assert max(abs(s) for s in sums) < 2 ** (2 * width + 1)  # fits the machine's sum
        out.append(max(sums) >= 0)
    return out


def posed_program(sides, width, seed=0):
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", faces=300))
    pose = random_poses(1, 0.3, seed)[0]
    axes = min(24, sides)
    return program(a, b, None, pose, Machine(width=width, sides=sides, axis_count=axes))


@pytest.mark.parametrize(("sides", "width"), SHAPES)
def test_model_against_plain_integers(sides, width):
    question = posed_program(sides, width)
    rng = np.random.default_rng(1)
    slots = rng.integers(0, len(question.a.links), size=(60, 2))
    slots[:10] = question.a.root, question.b.root
    a, b = question.a.reaches[slots[:, 0]], question.b.reaches[slots[:, 1]]
    found = model.AxisTable(question.axes, width - 1, sides).separations(a, b)
    truth = [plain_separations(question.axes, width, x, y) for x, y in zip(a, b, strict=True)]
    assert found.tolist() == truth
    assert 0 < found.any(axis=1).sum() < len(slots)


@pytest.mark.parametrize("width", [12, 18, 19, 31, 35])
def test_model_where_sums_are_near_zero(width):
    """The last bits decide, and decide alike."""
    rng = np.random.default_rng(width)
    one = 1 << (width - 1)
    for _ in range(200):
        a, b = rng.integers(-one, one, size=(2, 24))
        axes = np.zeros((1, 9), np.int64)
        axes[0, 0] = sum(int(n) << (5 * i) for i, n in enumerate(rng.integers(0, 24, size=6)))
        axes[0, 1:7] = -rng.integers(0, one // 4, size=6)
        for side in (7, 8):
            axes[0, side] = -(4 * one)
        picks = model.picks_of(axes)[0]
        others = (picks + 12) % 24
        reaches = [*a[picks[:3]].tolist(), *b[others[3:]].tolist()]
        total = sum(w * r for w, r in zip(axes[0, 1:7].tolist(), reaches, strict=True))
        axes[0, 7] = -(total // one) - 1 + rng.integers(-1, 2)
        truth = plain_separations(axes, width, a, b)
        assert model.AxisTable(axes, width - 1, 24).separations(a, b).tolist() == truth


@pytest.mark.parametrize(("sides", "width"), SHAPES)
def test_kernels_against_the_model(sides, width, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("knot", faces=600))
    poses = random_poses(1, 0.2, seed=width)
    shape, count = KdopShape(sides, width), min(24, sides)
    dops = kdops_of(a, bvh_of(a), shape), kdops_of(b, bvh_of(b), shape)
    posed = make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, poses)
    frames, task = kdop_frames(*posed, *dops, axis_choices(sides, count), 1)
    task.run()
    rng = np.random.default_rng(2)
    counts = 2 * a.face_count - 1, 2 * b.face_count - 1
    slots = np.stack([rng.integers(0, count, size=3000) for count in counts], axis=1)
    out = wp.zeros(len(slots), dtype=wp.bool, device=device)
    rows = wp.array(slots.astype(np.int32), dtype=wp.vec2i, device=device)
    wp.launch(overlaps_kernel, len(slots), [frames, rows, out], device=device)
    machine = Machine(width=width, sides=sides, axis_count=count)
    question = program(a.to("cpu"), b.to("cpu"), None, poses[0], machine)
    assert np.array_equal(frames.axes.numpy(), question.axes)  # host and device round alike
    table = model.AxisTable(question.axes, width - 1, sides)
    reaches = question.a.reaches[slots[:, 0]], question.b.reaches[slots[:, 1]]
    found = table.separations(*reaches).any(axis=1)
    assert np.array_equal(out.numpy(), ~found)
    assert 0 < found.sum() < len(slots)


def test_reaches_bound_all_corners():
    """In rational arithmetic: every reach of a leaf is above its corners, by at most two units."""
    mesh = abut.Mesh(*cases.icosphere(80), "cpu")
    for width in (10, 18, 35):
        dops = kdops_of(mesh, bvh_of(mesh), KdopShape(24, width))
        question = program(mesh, mesh, None, None, Machine(width=width))
        normals = np.concatenate([kdop_normals(24), -kdop_normals(24)])
        centre = [Fraction(x) for x in dops.centre.tolist()]
        corners = mesh.points.numpy()[mesh.faces.numpy()]
        for slot in np.flatnonzero(question.a.leaves)[:12]:
            for j, normal in enumerate(normals.tolist()):
                reach = max(
                    sum(
                        Fraction(n) * (Fraction(x) - c)
                        for n, x, c in zip(normal, p, centre, strict=True)
                    )
                    for p in corners[question.a.links[slot]].tolist()
                ) / Fraction(dops.unit)
                assert reach <= int(question.a.reaches[slot, j]) <= reach + 2


def test_triangle_unit_is_conservative():
    """The integer test never separates intersecting faces."""
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair("knot", faces=3000))
    question = program(a, b, None, None, Machine())
    pairs = abut.collide(a, b).pairs.numpy()
    assert len(pairs) > 100
    verdicts = [model.triangle_apart(question, *pair) for pair in pairs.tolist()]
    assert set(verdicts) == {model.TRIANGLE_AXES}


@pytest.mark.parametrize("seed", range(40))
def test_triangle_unit_at_the_limits_of_its_numbers(seed):
    """Single faces as large as their meshes, which touch in a corner, far from both centres."""
    rng = np.random.default_rng(seed)
    corners = rng.choice([-1.0, 1.0, 0.3], size=(2, 3, 3)) * rng.choice([1.0, 0.2], size=(2, 1, 1))
    a, b = (abut.Mesh(some, [[0, 1, 2]], "cpu") for some in corners)
    pose = random_poses(1, 0.0, seed)[0]
    point = corners[1].mean(axis=0) if seed % 2 else corners[1, seed % 3]
    pose[:3, 3] = corners[0, seed % 3] - pose[:3, :3] @ point
    question = program(a, b, None, pose, Machine())
    placed = (question.a.triangles[0] @ question.rotation.T + question.shift) >> 16
    assert np.abs(placed).max() < 1 << 17
    assert model.triangle_apart(question, 0, 0) == model.TRIANGLE_AXES


def test_surplus_of_the_triangle_unit():
    """Few pairs are reported that do not intersect."""
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair("knot", faces=3000))
    question, truth = program(a, b, None, None, Machine()), abut.collide(a, b).pairs.numpy()
    near = abut.within(a, b, 2e-3 * float(np.ptp(a.bounds, axis=0).max())).pairs.numpy()
    found = sum(model.triangle_apart(question, *p) == model.TRIANGLE_AXES for p in near.tolist())
    assert len(near) > 1.1 * len(truth)
    assert len(truth) <= found <= 1.04 * len(truth)


@pytest.mark.parametrize("width", [10, 14, 18])
@pytest.mark.parametrize("seed", range(3))
def test_no_axis_separates_dops_with_a_common_point(width, seed):
    """Tables as they are made for real poses, DOPs as tight about a point as integers allow.

    The point is a corner of a's DOP, so that nothing is given away on that side.
    """
    rng = np.random.default_rng(seed)
    shapes = cases.pair("tori", faces=60)
    a, b = (
        abut.Mesh(np.asarray(v) * s, f, "cpu") for (v, f), s in zip(shapes, (0.6, 1), strict=True)
    )
    poses = random_poses(2, 0.3, seed)
    question = program(a, b, poses[0], poses[1], Machine(width=width))
    dops = [kdops_of(mesh, bvh_of(mesh), KdopShape(24, width)) for mesh in (a, b)]
    normals = np.concatenate([kdop_normals(24), -kdop_normals(24)])
    turns, shifts = poses[:, :3, :3], poses[:, :3, 3]
    most = (1 << (width - 1)) - 1
    for n, picks in enumerate(model.picks_of(question.axes)):
        reaches_a = np.zeros((4000, 24), np.int64)
        corners = rng.integers(-most // 2, most // 2, size=(4000, 3))
        corners[:2000] = rng.choice([-most // 2, most // 2], size=(2000, 3))
        reaches_a[:, picks[:3]] = corners
        reaches_a[:, (picks[:3] + 12) % 24] = -corners
        y_a = np.linalg.solve(normals[picks[:3]], (corners * dops[0].unit).T).T
        x = (y_a + dops[0].centre) @ turns[0].T + shifts[0]
        y_b = (x - shifts[1]) @ turns[1] - dops[1].centre
        reaches_b = np.ceil(y_b @ normals.T / dops[1].unit - 1e-6).astype(np.int64)
        held = np.abs(reaches_b).max(axis=1) <= most
        table = model.AxisTable(question.axes[n : n + 1], width - 1, 24)
        assert held.sum() > 500
        assert not table.separations(reaches_a[held], reaches_b[held]).any()
