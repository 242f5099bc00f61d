"""DistanceField.response: against equations 4 to 15 in NumPy, and against closed forms."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import bowl, moved, random_poses, shift

PIXELS = (64, 128, 256, 512)
MATERIAL = {"stiffness": 3.0, "damping": 0.7, "friction": 0.4}


def field_of(shape, device, resolution=32, **options):
    return abut.DistanceField(abut.Mesh(*shape, device), resolution=resolution, **options)


def fragments(field, corners, pixels):
    """Return centres and areas of the pixels that a triangle covers along its dominant axis."""
    pixel = field.box.spacing * (max(field.box.shape) - 1) / pixels
    c = (corners - field.box.lower) / pixel
    normal = np.cross(c[1] - c[0], c[2] - c[0])
    axis = int(np.abs(normal).argmax())
    u, v = (axis + 1) % 3, (axis + 2) % 3
    flat = c[:, [u, v]]
    low, high = np.floor(flat.min(axis=0)).astype(int), np.ceil(flat.max(axis=0)).astype(int)
    grid = np.meshgrid(*(np.arange(a, b + 1) + 0.5 for a, b in zip(low, high, strict=True)))
    at = np.stack(grid, axis=-1).reshape(-1, 2)
    sides = [
        (flat[k] - flat[k - 1])[0] * (at - flat[k - 1])[:, 1]
        - (flat[k] - flat[k - 1])[1] * (at - flat[k - 1])[:, 0]
        for k in range(3)
    ]
    inside = (np.array(sides) * np.sign(normal[axis]) > 0).all(axis=0)
    at = at[inside]
    depth = c[0, axis] - ((at - flat[0]) @ normal[[u, v]]) / normal[axis]
    points = np.empty((len(at), 3))
    points[:, u], points[:, v], points[:, axis] = at[:, 0], at[:, 1], depth
    area = pixel**2 * np.linalg.norm(normal) / abs(normal[axis])
    return points * pixel + field.box.lower, np.full(len(at), area)


def reference(field, vertices, faces, pixels, centre, v_p, v_q, material):
    """Equations 4 to 13: force, torque and area, fragment by fragment."""
    found = [fragments(field, vertices[face], pixels) for face in faces]
    p, area = (np.concatenate(part) for part in zip(*found, strict=True))
    probe = field.sample(p).numpy()
    inside = (probe["distance"] < 0) & (p >= field.box.lower).all(axis=1)
    inside &= (p <= field.box.upper).all(axis=1)
    p, area, d = p[inside], area[inside], probe["distance"][inside].astype(float)[:, None]
    q = p - d * probe["gradient"][inside]
    way = (p - q) / np.linalg.norm(p - q, axis=1, keepdims=True)
    rel = v_p(p) - v_q(q)
    normal_part = (rel * way).sum(axis=1, keepdims=True) * way
    f_p = material["stiffness"] * (p - q) + material["damping"] * normal_part
    slide = rel - normal_part
    speed = np.linalg.norm(slide, axis=1, keepdims=True)
    unit = np.divide(slide, speed, out=np.zeros_like(slide), where=speed > 0)
    f = f_p + material["friction"] * np.linalg.norm(f_p, axis=1, keepdims=True) * unit
    force = (area[:, None] * f).sum(axis=0)
    torque = (area[:, None] * np.cross(q - centre, f)).sum(axis=0)
    return force, torque, area.sum(), len(p)


def rigid(velocity, spin, origin):
    return lambda p: velocity + np.cross(spin, p - origin)


@pytest.mark.parametrize("seed", range(4))
def test_against_the_equations(seed, device):
    rng = np.random.default_rng(seed)
    field = field_of(cases.gem(500), device)
    ball = cases.torus(24, 12)
    pose = random_poses(1, 0.6, seed=seed)[0]
    twist, field_twist = rng.normal(size=(2, 6))
    centre = rng.normal(size=3) * 0.2
    got = field.response(
        abut.Mesh(*ball, device),
        pose,
        pixels=96,
        velocity=twist,
        field_velocity=field_twist,
        centre=centre,
        **MATERIAL,
    )
    v_p = rigid(twist[:3], twist[3:], pose[:3, 3])
    v_q = rigid(field_twist[:3], field_twist[3:], np.zeros(3))
    placed = moved(ball.vertices, pose)
    want = reference(field, placed, ball.faces, 96, centre, v_p, v_q, MATERIAL)
    force, torque, area, count = want
    assert count > 200
    assert abs(got.fragment_count - count) <= 2  # on an edge, or on the surface
    size = np.linalg.norm(force)
    np.testing.assert_allclose(got.force.numpy(), force, atol=5e-3 * size)
    np.testing.assert_allclose(got.torque.numpy(), torque, atol=5e-3 * size)
    np.testing.assert_allclose(got.area, area, rtol=5e-3)
    np.testing.assert_allclose(got.mean_force.numpy(), got.force.numpy() / got.area)
    np.testing.assert_allclose(got.mean_torque.numpy(), got.torque.numpy() / got.area)


def test_two_spheres(device):
    """The force is along the axis and there is no torque; both converge as pixels double."""
    ball = cases.icosphere(8000)
    field, other = field_of(ball, device, 64), abut.Mesh(*ball, device)
    way = np.array([2.0, 1.0, -0.5]) / np.linalg.norm([2.0, 1.0, -0.5])
    apart = 1.6
    pose = shift(*(apart * way))
    found = [field.response(other, pose, pixels=n, stiffness=2.0) for n in PIXELS]
    force = np.array([r.force.numpy() for r in found])
    along = force @ way
    assert (along < 0).all()
    noise = (0.2 / np.array(PIXELS) + 2e-4) * abs(along[-1])  # of pixels, and of the field
    assert (np.abs(force - along[:, None] * way).max(axis=1) < noise).all()
    assert (np.array([np.abs(r.torque.numpy()).max() for r in found]) < noise).all()
    cap = 2 * np.pi * (1 - apart / 2)
    areas = np.array([r.area for r in found])
    assert abs(areas[-1] / cap - 1) < 0.01
    assert abs(along[-1] / _force_of_cap(apart, 2.0) + 1) < 0.02
    steps = np.abs(np.diff(along))
    assert steps[2] < 0.5 * steps[0] + 1e-5


def _force_of_cap(apart, stiffness):
    """Depth times the component of its direction along the axis, over the cap inside."""
    t = np.linspace(0, np.arccos(apart / 2), 20001)
    x, y = apart - np.cos(t), np.sin(t)
    r = np.hypot(x, y)
    inner = stiffness * (1 - r) * x / r * 2 * np.pi * np.sin(t)
    return ((inner[1:] + inner[:-1]) / 2 * np.diff(t)).sum()


@pytest.mark.parametrize("sampling", abut.Sampling)
@pytest.mark.parametrize("depth", [0.02, 0.1])
def test_a_sheet_in_a_box(depth, sampling, device):
    """A level sheet below the top of a box: area, force, torque and energy are known."""
    field = field_of(cases.box((2.0, 1.0, 1.0)), device, 81)
    sheet = abut.Mesh(*cases.plane(7, 9, size=0.6), device)
    pose = shift(0.3, 0.0, 0.5 - depth)
    got = field.response(
        sheet, pose, pixels=160, sampling=sampling, stiffness=5.0, centre=[0, 0, 0]
    )
    area = 0.36
    tolerance = 0.02 if sampling != "faces" else 1e-6
    np.testing.assert_allclose(got.area, area, rtol=tolerance)
    push = 5.0 * depth * area
    np.testing.assert_allclose(got.force.numpy(), [0, 0, -push], rtol=tolerance, atol=1e-5 * push)
    want = [0, 0.3 * push, 0]
    np.testing.assert_allclose(got.torque.numpy(), want, rtol=2 * tolerance, atol=1e-3 * push)
    np.testing.assert_allclose(got.energy, 0.5 * push * depth, rtol=tolerance)


def test_every_pixel_is_covered_once(device):
    """Faces that share edges leave no gaps and count nothing twice."""
    field = field_of(cases.box(), device, 33, margin=0.5)
    sheet = cases.plane(40, 31, size=0.9)
    jitter = np.random.default_rng(0).uniform(-1, 1, size=sheet.vertices.shape) * [0.008, 0.008, 0]
    rim = (np.abs(sheet.vertices[:, :2]) > 0.44).any(axis=1, keepdims=True)
    vertices = sheet.vertices + np.where(rim, 0, jitter)
    pixels = 512
    got = field.response(abut.Mesh(vertices, sheet.faces, device), pixels=pixels)
    centres = (np.arange(pixels) + 0.5) * 2.0 / pixels - 1.0
    assert got.fragment_count == (np.abs(centres) < 0.45).sum() ** 2


def test_action_is_reaction(device):
    field = field_of(cases.gem(500), device)
    other = abut.Mesh(*cases.torus(32, 16), device)
    pose = random_poses(1, 0.5, seed=3)[0]
    got = field.response(other, pose, pixels=128, velocity=np.arange(6.0), **MATERIAL)
    force, torque = got.force.numpy(), got.torque.numpy()
    theirs = got.on_other
    np.testing.assert_array_equal(theirs.force.numpy(), -force)
    about_origin = torque + np.cross(field.centre, force)
    centre = pose[:3, 3]  # of the ring, which is about its frame's origin
    other_about_origin = theirs.torque.numpy() + np.cross(centre, -force)
    np.testing.assert_allclose(other_about_origin, -about_origin, atol=1e-9)


def test_the_frame_does_not_matter(device):
    """Field and mesh moved together: the answer moves along, up to sampling."""
    gem, ring = cases.gem(1500), cases.torus(48, 24)
    move = random_poses(1, 5.0, seed=8)[0]
    turn = move[:3, :3]
    pose, twist = shift(0.9, 0.1, 0.2), np.array([1.0, -2.0, 0.5, 0.3, 0.2, -0.4])
    to_raster = np.concatenate([turn @ twist[:3], turn @ twist[3:]])
    placed = cases.Shape(moved(gem.vertices, move), gem.faces)
    options = {"pixels": 256, "sampling": "faces", **MATERIAL}
    other = abut.Mesh(*ring, device)
    here = field_of(gem, device, 64).response(other, pose, velocity=twist, **options)
    there = field_of(placed, device, 64).response(other, move @ pose, velocity=to_raster, **options)
    size = np.linalg.norm(here.force.numpy())
    np.testing.assert_allclose(there.force.numpy(), turn @ here.force.numpy(), atol=0.02 * size)
    np.testing.assert_allclose(there.torque.numpy(), turn @ here.torque.numpy(), atol=0.02 * size)
    np.testing.assert_allclose(there.area, here.area, rtol=0.01)


def test_large_faces_in_many_slices(device):
    """Blocks of large faces are opened by several threads: none is lost."""
    field = field_of(cases.box(), device, 33)
    sheet = cases.plane(3, 3, size=1.6)
    got = field.response(abut.Mesh(*sheet, device), shift(0.01, 0.02, 0.45), pixels=2000)
    pixel = field.box.spacing * 32 / 2000
    centres = field.box.lower[0] + pixel * (np.arange(2000) + 0.5)
    assert got.fragment_count == pytest.approx((np.abs(centres) < 0.5).sum() ** 2, rel=2e-3)
    many = field.response(abut.Mesh(*sheet, device), shift(0.01, 0.02, 0.45), pixels=2000)
    assert (many.force.numpy() == got.force.numpy()).all()


@pytest.mark.parametrize("shape", [cases.gem(2000), bowl()], ids=["closed", "open"])
@pytest.mark.parametrize("sampling", ["dominant", "faces"])
def test_early_outs_give_the_same_bytes(sampling, shape, device):
    """Also where the field of an open mesh jumps from outside to inside, in its hole."""
    field = field_of(shape, device, 48)
    other = abut.Mesh(*cases.torus_knot(96, 12), device)
    poses = random_poses(5, 1.0, seed=1)
    rows = [
        field.response(other, poses, pixels=200, early_out=early_out, sampling=sampling, **MATERIAL)
        for early_out in [*abut.EarlyOut, "bound", "bound"]
    ]
    for row in rows[1:]:
        for name, value in rows[0].numpy().items():
            np.testing.assert_array_equal(row.numpy()[name], value)
        np.testing.assert_array_equal(row.fragment_count.numpy(), rows[0].fragment_count.numpy())
    assert (rows[0].area.numpy() > 0).sum() >= 3


def test_a_batch_equals_its_single_poses(device):
    field = field_of(cases.gem(500), device)
    other = abut.Mesh(*cases.torus(24, 12), device)
    poses, twists = random_poses(12, 1.0), np.random.default_rng(0).normal(size=(12, 6))
    together = field.response(other, poses, velocity=twists, pixels=100, **MATERIAL)
    assert together.force.shape == (12, 3) and together.area.shape == (12,)
    for k in range(12):
        alone = field.response(other, poses[k], velocity=twists[k], pixels=100, **MATERIAL)
        np.testing.assert_array_equal(alone.force.numpy(), together.force.numpy()[k])
        np.testing.assert_array_equal(alone.torque.numpy(), together.torque.numpy()[k])
        assert alone.area == together.area.numpy()[k]
        np.testing.assert_array_equal(
            alone.on_other.torque.numpy(), together.on_other.torque.numpy()[k]
        )


def test_velocities_of_vertices(device):
    """A rigid motion given vertex by vertex is that motion."""
    field = field_of(cases.gem(500), device)
    ring = cases.torus(32, 16)
    pose, twist = shift(0.8, 0, 0.1), np.array([0.5, -1.0, 0.3, 0.2, 0.4, -0.3])
    other = abut.Mesh(*ring, device)
    velocities = rigid(twist[:3], twist[3:], pose[:3, 3])(moved(ring.vertices, pose))
    one = field.response(other, pose, velocity=twist, pixels=128, **MATERIAL)
    two = field.response(other, pose, velocity=velocities, pixels=128, **MATERIAL)
    size = np.linalg.norm(one.force.numpy())
    np.testing.assert_allclose(two.force.numpy(), one.force.numpy(), atol=1e-6 * size)
    np.testing.assert_allclose(two.torque.numpy(), one.torque.numpy(), atol=1e-6 * size)


def test_a_deforming_mesh(device):
    field = field_of(cases.gem(500), device)
    ring = cases.torus(32, 16)
    other = abut.Mesh(*ring, device)
    for size in (1.0, 0.8, 1.2):
        vertices = ring.vertices * [size, 1, 1]
        other.deform(vertices)
        got = field.response(other, shift(0.8, 0, 0), pixels=64)
        fresh = field.response(abut.Mesh(vertices, ring.faces, device), shift(0.8, 0, 0), pixels=64)
        np.testing.assert_array_equal(got.force.numpy(), fresh.force.numpy())


def test_large_faces_and_large_meshes(device):
    """Two faces many times the box: only the part in the box counts."""
    field = field_of(cases.box(), device, 33)
    sheet = abut.Mesh(*cases.plane(2, 2, size=500.0), device)
    for pixels, tolerance in ((64, 0.05), (300, 0.02)):
        got = field.response(sheet, shift(0, 0, 0.45), pixels=pixels)
        np.testing.assert_allclose(got.area, 1.0, rtol=tolerance)
    to_raster = np.eye(4)
    to_raster[:3, :3] = [[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]]
    got = field.response(sheet, to_raster, pixels=700)
    np.testing.assert_allclose(got.area, 1.25, rtol=0.02)


def test_queues_grow_without_loss(device, monkeypatch):
    """Queues of blocks, patches and draw batches grow until all keys have room."""
    from abut.sdf import field_plan

    field = field_of(cases.torus_knot(64, 10), device, 40)
    pose = shift(0.1, 0.2, 0.0)
    shapes = cases.torus_knot(64, 12), cases.box((3.0, 3.0, 0.1))
    want = [field.response(abut.Mesh(*s, device), pose, pixels=400).numpy() for s in shapes]
    for name in ("LEAST_KEYS", "MOST_KEYS_AT_FIRST"):
        monkeypatch.setattr(field_plan, name, 1)
    monkeypatch.setattr(field_plan, "_queues", field_plan.ThreadCache())
    got = [field.response(abut.Mesh(*s, device), pose, pixels=400).numpy() for s in shapes]
    for a, b in zip(want, got, strict=True):
        assert a["area"] > 0
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_queues_that_cannot_be_counted_are_refused():
    """Tiles of blocks are numbered in 32 bits; none is left out silently."""
    from abut.sdf.draw_batches import MOST_KEYS, QUEUES, missing_room

    counts = dict.fromkeys(QUEUES, 1) | {"blocks": MOST_KEYS}
    assert missing_room(counts, dict.fromkeys(QUEUES, 1)) == {"blocks": MOST_KEYS}
    assert MOST_KEYS * 64 < 2**31
    with pytest.raises(abut.CapacityError, match="too many pixels"):
        missing_room(counts | {"blocks": MOST_KEYS + 1}, dict.fromkeys(QUEUES, 1))


def test_an_interrupt_leaves_nothing_behind(device, monkeypatch):
    from abut.sdf.response import ResponsePlan

    field = field_of(cases.torus_knot(64, 10), device, 40)
    mesh = abut.Mesh(*cases.torus_knot(32, 8), device)
    want = field.response(mesh, shift(0.1, 0.2, 0.0), pixels=60).numpy()
    stages = ResponsePlan.stages

    def interrupt():
        raise KeyboardInterrupt

    def interrupted(plan):
        """Ctrl-C before the last stage."""
        return [(name, interrupt if name == "rows" else run) for name, run in stages(plan)]

    with monkeypatch.context() as patch:
        patch.setattr(ResponsePlan, "stages", interrupted)
        fresh = abut.Mesh(*cases.torus_knot(32, 8), device)
        with pytest.raises(KeyboardInterrupt):
            field.response(fresh, shift(0.1, 0.2, 0.0), pixels=60)
    got = field.response(fresh, shift(0.1, 0.2, 0.0), pixels=60).numpy()
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


def test_nothing_inside(device):
    field = field_of(cases.gem(500), device)
    got = field.response(abut.Mesh(*cases.box(), device), shift(9, 0, 0), **MATERIAL)
    assert got.area == 0 and got.fragment_count == 0 and got.energy == 0
    assert (got.force.numpy() == 0).all() and (got.mean_force.numpy() == 0).all()


@pytest.mark.parametrize("scale, offset", [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (1e-3, 1e3)])
def test_any_size_anywhere(scale, offset, device):
    ball, ring = cases.gem(500), cases.torus(24, 12)
    pose = random_poses(1, 0.0, seed=6)[0]
    pose[:3, 3] = 1.6, 0.3, 0.2  # off the middle, where closest points jump
    here = field_of(ball, device).response(abut.Mesh(*ring, device), pose, pixels=128)
    pose[:3, 3] = pose[:3, 3] * scale + offset
    placed = cases.Shape(ball.vertices * scale + offset, ball.faces)
    other = abut.Mesh(ring.vertices * scale, ring.faces, device)
    there = field_of(placed, device).response(other, pose, pixels=128)
    tolerance = 1e-2 if offset else 1e-4
    np.testing.assert_allclose(there.area / scale**2, here.area, rtol=tolerance)
    size = np.linalg.norm(here.force.numpy())
    np.testing.assert_allclose(
        there.force.numpy() / scale**3, here.force.numpy(), atol=tolerance * size
    )


def test_slip_smooths_friction(device):
    field = field_of(cases.box(), device, 33)
    sheet = abut.Mesh(*cases.plane(5, 5, size=0.5), device)
    pose = shift(0, 0, 0.4)
    push = 0.1 * 0.25
    for speed, share in ((2.0, 1.0), (0.5, 0.5), (0.0, 0.0)):
        twist = [speed, 0, 0, 0, 0, 0]
        got = field.response(sheet, pose, sampling="faces", velocity=twist, friction=0.5, slip=1.0)
        np.testing.assert_allclose(got.force.numpy()[0], 0.5 * push * share, rtol=1e-5, atol=1e-9)


def test_bad_input_is_refused(device):
    field = field_of(cases.box(), device, 16)
    box = abut.Mesh(*cases.box(), device)
    empty = abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), int), device)
    with pytest.raises(abut.MeshError, match="no faces"):
        field.response(empty)
    for bad in (0, -3, 1.5, 10000, "many"):
        with pytest.raises(abut.OptionError, match="pixels must be"):
            field.response(box, pixels=bad)
    with pytest.raises(abut.OptionError, match="velocity must have shape"):
        field.response(box, velocity=[1, 2, 3])
    with pytest.raises(abut.OptionError, match="velocity must be finite"):
        field.response(box, velocity=[1, 2, 3, 4, 5, np.nan])
    with pytest.raises(abut.OptionError, match="stiffness must be a number"):
        field.response(box, stiffness=-1)
    with pytest.raises(abut.OptionError, match="sampling must be one of"):
        field.response(box, sampling="corners")
    with pytest.raises(abut.OptionError, match="early_out must be one of"):
        field.response(box, early_out="late")
    with pytest.raises(abut.PointError, match="centre must be three"):
        field.response(box, centre=[1, 2])
    with pytest.raises(abut.PoseError):
        field.response(box, 2 * np.eye(4))
    with pytest.raises(abut.MeshError, match="must be an abut"):
        field.response("box")
