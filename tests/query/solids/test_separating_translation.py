"""Translations that separate solids, against exact separating axes and support widths."""

import numpy as np
import pytest
from convex_pieces import first_free_along, interiors_meet, random_solid
from scipy.spatial.transform import Rotation

import abut
from abut.query.solids.closed_surface import closed_surface_of
from abut.query.solids.relation import RELATIONS, relations
from abut.query.solids.separating_translation import separate, separate_along

TOLERANCE = 1e-7
AT_MOST_TOUCHING = (RELATIONS.index("apart"), RELATIONS.index("touching"))
CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
BOX_FACES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ]
)  # fmt: skip


def box(low, high, device="cpu"):
    low, high = np.asarray(low, float), np.asarray(high, float)
    return abut.Mesh(low + CORNERS * (high - low), BOX_FACES, device)


def boxes(*spans, device="cpu"):
    """One mesh of several boxes that at most touch."""
    parts = [np.asarray(low) + CORNERS * (np.asarray(high) - low) for low, high in spans]
    faces = [BOX_FACES + 8 * i for i in range(len(spans))]
    return abut.Mesh(np.concatenate(parts), np.concatenate(faces), device)


def pose_of(rng, reach=1.0):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    pose[:3, 3] = rng.uniform(-reach, reach, 3)
    return pose


def translated(pose, s):
    out = np.eye(4)
    out[:3, 3] = s
    return out @ pose


def moved(points, pose):
    x, y, z = points.T
    return np.stack([r[0] * x + r[1] * y + r[2] * z + r[3] for r in pose[:3]], axis=1)


def separated(a, b, pose_a=None, pose_b=None):
    poses = [None if p is None else p[None] for p in (pose_a, pose_b)]
    found = separate(a, b, *poses, TOLERANCE)
    s = found.translation[0]
    mover = np.eye(4) if pose_b is None else pose_b
    assert relations(a, b, poses[0], translated(mover, s)[None])[0] in AT_MOST_TOUCHING
    added = abut.Mesh(moved(b.vertices.numpy().astype(float), mover) + s, b.faces.numpy(), b.device)
    assert relations(a, added, poses[0])[0] in AT_MOST_TOUCHING
    return s, bool(found.converged[0])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((0.75, 0.25, 0.25), (1.75, 1.25, 1.25), (0.25, 0, 0)),
        ((0.25, 0.25, 0.625), (0.75, 0.75, 3), (0, 0, 0.375)),
        ((0, 0.75, 0), (1, 1.75, 1), (0, 0.25, 0)),
        ((0.25, 0.5, 0.5), (0.375, 0.625, 0.625), (-0.375, 0, 0)),
        ((-1, -1, 0.875), (2, 2, 2), (0, 0, 0.125)),
    ],
)
def test_boxes(device, low, high, expected):
    s, converged = separated(box([0, 0, 0], [1, 1, 1], device), box(low, high, device))
    assert converged
    assert np.linalg.norm(s) == pytest.approx(np.linalg.norm(expected), abs=1e-15)
    assert np.allclose(s, expected, atol=1e-9)


def test_equal_boxes(device):
    s, converged = separated(box([0, 0, 0], [1, 2, 3], device), box([0, 0, 0], [1, 2, 3], device))
    assert converged and sorted(np.abs(s)) == [0, 0, 1]


@pytest.mark.parametrize("low", [(1, 0, 0), (1, 1, 1), (1, 0.5, 0.5), (3, 0, 0)])
def test_solids_that_do_not_overlap_stay(device, low):
    a, b = box([0, 0, 0], [1, 1, 1], device), box(low, np.add(low, 1), device)
    found = separate(a, b, None, None, TOLERANCE)
    assert (found.translation == 0).all() and found.converged.all()


def test_duct_through_a_wall(device):
    wall = box([0, 0, 0], [0.25, 4, 3], device)
    duct = box([-2, 1.5, 2.5], [2, 2, 2.75], device)
    s, converged = separated(wall, duct)
    assert converged and np.allclose(s, [0, 0, 0.5], atol=1e-9)


def test_l_in_a_u_moves_out_of_both_walls(device):
    u = boxes([(0, 0, 0), (4, 1, 1)], [(0, 1, 0), (1, 4, 1)], [(3, 1, 0), (4, 4, 1)], device=device)
    inner = box([0.875, 0.75, 0.0], [2, 3, 1], device)  # 0.125 in the wall, 0.25 in the floor
    s, converged = separated(u, inner)
    assert converged and np.allclose(s, [0.125, 0.25, 0], atol=1e-9)


def test_ball_in_its_socket_touches(device):
    ball = abut.cases.icosphere(320)
    points = np.asarray(ball.vertices, float)
    shell = np.concatenate([points, 2.0 * points])
    faces = np.concatenate([ball.faces[:, ::-1], ball.faces + len(points)])
    a, b = abut.Mesh(shell, faces, device), abut.Mesh(points, ball.faces, device)
    assert (separate(a, b, None, None, TOLERANCE).translation == 0).all()


def test_nested_spheres(device):
    ball = abut.cases.icosphere(320)
    points = np.asarray(ball.vertices, float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    a = abut.Mesh(points, ball.faces, device)
    b = abut.Mesh(0.5 * points + [0.25, 0, 0], ball.faces, device)
    s, converged = separated(a, b)
    assert converged and 1.2 < np.linalg.norm(s) < 1.25
    assert support_width(points, 0.5 * points + [0.25, 0, 0], s) == pytest.approx(
        np.linalg.norm(s), abs=2 * TOLERANCE
    )


def support_width(points_a, points_b, s):
    u = s / np.linalg.norm(s)
    return (points_a @ u).max() - (points_b @ u).min()


def test_turned_boxes_are_locally_shortest(device):
    """A translation between convex solids is locally shortest if a plane separates across it."""
    rng = np.random.default_rng(1)
    a, b = box([-1, -1, -1], [1, 1, 1], device), box([-0.5, -1, -2], [0.5, 1, 2], device)
    lengths = []
    for _ in range(60):
        pose_a, pose_b = pose_of(rng), pose_of(rng)
        s, converged = separated(a, b, pose_a, pose_b)
        assert converged
        if s.any():
            points = moved(a.vertices.numpy(), pose_a), moved(b.vertices.numpy(), pose_b)
            assert support_width(*points, s) == pytest.approx(np.linalg.norm(s), abs=2 * TOLERANCE)
            lengths.append((np.linalg.norm(s), depth_of_boxes(*points, pose_a, pose_b)))
    length, least = np.transpose(lengths)
    assert len(length) > 40 and (length >= least - TOLERANCE).all()
    assert (length <= least + TOLERANCE).mean() > 0.8  # mostly the shortest of all


def depth_of_boxes(points_a, points_b, pose_a, pose_b):
    """The shortest separating translation of boxes: the least width over 15 axes."""
    axes = np.concatenate([pose_a[:3, :3].T, pose_b[:3, :3].T])
    edges = np.cross(pose_a[:3, :3].T[:, None], pose_b[:3, :3].T[None]).reshape(-1, 3)
    axes = np.concatenate([axes, edges / np.linalg.norm(edges, axis=1, keepdims=True)])
    return min(support_width(points_a, points_b, way * u) for u in axes for way in (1, -1))


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1e-3, 1e3), (1e3, 1e9)]
)
def test_scales_and_offsets(device, scale, offset):
    rng = np.random.default_rng(2)
    a = box(np.full(3, -scale), np.full(3, scale), device)
    b = box(np.full(3, -scale), np.full(3, 2 * scale), device)
    for _ in range(8):
        pose_a, pose_b = pose_of(rng), pose_of(rng)
        for pose in (pose_a, pose_b):
            pose[:3, 3] = scale * pose[:3, 3] + offset
        found = separate(a, b, pose_a[None], pose_b[None], 1e-6 * scale)
        s = found.translation[0]
        assert found.converged[0]
        for corners in (
            moved(b.vertices.numpy(), translated(pose_b, s)),
            moved(b.vertices.numpy(), pose_b) + s,
        ):
            lifted = abut.Mesh(corners, b.faces.numpy(), device)
            assert relations(a, lifted, pose_a[None])[0] in AT_MOST_TOUCHING
        points = moved(a.vertices.numpy(), pose_a), moved(b.vertices.numpy(), pose_b)
        width = support_width(*points, s)
        assert width == pytest.approx(np.linalg.norm(s), abs=3e-6 * scale + 1e-14 * offset)


def random_pair(rng):
    a, b = (random_solid(rng, int(rng.integers(5, 9)), rng.uniform(0.3, 1.0)) for _ in range(2))
    poses = [None if rng.random() < 0.3 else pose_of(rng, 0.7) for _ in range(2)]
    return a, b, poses


def check_random_poses(rng, device, count):
    """Separate two random solids at random poses, and check that; return operands and answers."""
    (points_a, tets_a, faces_a), (points_b, tets_b, faces_b), _ = random_pair(rng)
    a, b = abut.Mesh(points_a, faces_a, device), abut.Mesh(points_b, faces_b, device)
    pose_a, pose_b = (np.array([pose_of(rng, 0.5) for _ in range(count)]) for _ in range(2))
    fixed = pose_a if rng.random() < 0.5 else None
    found = separate(a, b, fixed, pose_b, TOLERANCE)
    for k, s in enumerate(found.translation):
        pieces = moved(points_a, np.eye(4) if fixed is None else pose_a[k])[tets_a]
        placed = moved(points_b, pose_b[k])
        for corners in (moved(points_b, translated(pose_b[k], s)), placed + s):
            assert not interiors_meet(pieces, corners[tets_b])
        assert interiors_meet(pieces, placed[tets_b]) == bool(s.any())
    return (a, b, fixed, pose_b), found


def shorter_neighbours_are_free(rng, s, a, b, pose_a, pose_b):
    """Which of random translations close to s, and shorter, separate."""
    near = s + 1e-5 * rng.normal(size=(64, 3))
    near = near[np.linalg.norm(near, axis=1) < np.linalg.norm(s) - 2 * TOLERANCE]
    poses = np.array([translated(pose_b, n) for n in near])
    fixed = None if pose_a is None else pose_a[None]
    return np.isin(relations(a, b, fixed, poses), AT_MOST_TOUCHING)


@pytest.mark.parametrize("seed", range(20))
def test_random_solids(device, seed):
    rng = np.random.default_rng(seed)
    overlapping = converged = 0
    for _ in range(5):
        (a, b, pose_a, pose_b), found = check_random_poses(rng, device, 20)
        converged += found.converged.sum()
        for k in np.flatnonzero(found.translation.any(axis=1)):
            overlapping += 1
            fixed = None if pose_a is None else pose_a[k]
            shorter = shorter_neighbours_are_free(rng, found.translation[k], a, b, fixed, pose_b[k])
            assert not (found.converged[k] and shorter.any())
    assert overlapping > 30 and converged >= 97


def polycube(rng, count):
    """Cells (k, 3) of a connected set of unit cubes."""
    cells = {(0, 0, 0)}
    while len(cells) < count:
        cell = sorted(cells)[rng.integers(len(cells))]
        cells.add(tuple(int(x) for x in cell + rng.choice([-1, 1]) * np.eye(3)[rng.integers(3)]))
    return np.array(sorted(cells), float)


@pytest.mark.parametrize("seed", range(4))
def test_polycubes(device, seed):
    """Cubes on a grid touch in faces, edges and corners, all exactly."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        cells = [polycube(rng, rng.integers(1, 7)) for _ in range(2)]
        a, b = (
            closed_surface_of(boxes(*((c, c + 1) for c in part), device=device), "solid").mesh
            for part in cells
        )
        pose = translated(np.eye(4), 0.5 * rng.integers(-2, 3, 3))

        def meet(s, cells=cells, pose=pose):
            apart = np.abs(cells[0][:, None] - (cells[1] + pose[:3, 3] + s))
            return (apart < 1).all(axis=2).any()

        found = separate(a, b, None, pose[None], TOLERANCE)
        s = found.translation[0]
        assert found.converged[0] and not meet(s)
        assert meet(0 * s) == bool(s.any()) and (s == np.round(2 * s) / 2).all()
        near = s + 1e-4 * rng.normal(size=(200, 3))
        near = near[np.linalg.norm(near, axis=1) < np.linalg.norm(s) - 2 * TOLERANCE]
        assert all(meet(n) for n in near)


def sampled_depth(rng, a, b, pose_a, pose_b):
    """The largest distance to a's surface of random points that lie in both solids."""
    points = moved(np.asarray(b.vertices.numpy(), float), pose_b)
    points = rng.uniform(points.min(axis=0), points.max(axis=0), (4000, 3))
    points = points[abut.contains(b, points, pose=pose_b).numpy()]
    signed = abut.signed_distance(a, points, pose=pose_a).numpy() if len(points) else np.zeros(1)
    return max(0.0, -signed.min())


@pytest.mark.parametrize("seed", range(3))
def test_no_translation_is_shorter_than_a_depth(device, seed):
    rng = np.random.default_rng(seed)
    (a, b, _, pose_b), found = check_random_poses(rng, device, 1)
    pose_a = pose_of(rng, 0.3)
    found = separate(a, b, pose_a[None], pose_b, TOLERANCE)
    depth = sampled_depth(rng, a, b, pose_a, pose_b[0])
    assert np.linalg.norm(found.translation) >= max(
        depth, sampled_depth(rng, b, a, pose_b[0], pose_a)
    )


def subdivided(mesh):
    """The same surface with every face cut in four."""
    points, faces = mesh.vertices.numpy(), mesh.faces.numpy()
    corners = points[faces]
    middles = 0.5 * (corners + np.roll(corners, -1, axis=1))
    every = np.concatenate([corners, middles], axis=1).reshape(-1, 3)
    parts = np.array([(0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)])
    fine = (6 * np.arange(len(faces))[:, None, None] + parts).reshape(-1, 3)
    points, which = np.unique(every, axis=0, return_inverse=True)
    return abut.Mesh(points, which.reshape(-1)[fine], mesh.device)


def test_swaps_subdivisions_and_motions(device):
    """Of boxes, whose shortest translation is nearly always found."""
    rng = np.random.default_rng(3)
    a, b = box([-1, -1, -1], [1, 1, 1], device), box([-0.5, -1, -2], [0.5, 1, 2], device)
    same = 0
    for _ in range(20):
        pose_a, pose_b, motion = pose_of(rng), pose_of(rng), pose_of(rng)
        s, _ = separated(a, b, pose_a, pose_b)
        length = np.linalg.norm(s)
        others = [
            separated(b, a, pose_b, pose_a)[0],
            separated(subdivided(a), subdivided(b), pose_a, pose_b)[0],
            separated(a, b, motion @ pose_a, motion @ pose_b)[0],
        ]
        same += all(abs(np.linalg.norm(o) - length) < 2 * TOLERANCE for o in others)
    assert same >= 18


@pytest.mark.parametrize("low", [(0.75, 0.25, 0.25), (0.25, 0.25, 0.625), (0.3, 0.5, 0.9)])
def test_subdivided_boxes_move_as_far(device, low):
    a, b = box([0, 0, 0], [1, 1, 1], device), box(low, np.add(low, 1.1), device)
    length = np.linalg.norm(separated(a, b)[0])
    direction = np.array([1.0, 2.0, 3.0])
    along = separate_along(a, b, None, None, direction, TOLERANCE)
    for x, y in ((subdivided(a), b), (a, subdivided(b)), (subdivided(a), subdivided(b))):
        assert np.linalg.norm(separated(x, y)[0]) == pytest.approx(length, rel=1e-12)
        other = separate_along(x, y, None, None, direction, TOLERANCE)
        assert other == pytest.approx(along, rel=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "direction", "expected"),
    [
        ((0.5, 0.25, 0.25), (1.5, 1, 1), (1, 0, 0), 0.5),
        ((0.5, 0.25, 0.25), (1.5, 1, 1), (-3, 0, 0), 1.5),
        ((0.25, 0.25, 0.25), (0.5, 0.5, 0.5), (0, 0, 2), 0.75),  # from within
        ((-1, -1, -1), (2, 2, 2), (0, 1, 0), 2),  # around
        ((0, 0, 0), (1, 1, 1), (0, 1, 0), 1),  # equal
        ((0, 0, 0), (1, 1, 1), (1, 1, 0), 2**0.5),
        ((1, 0, 0), (2, 1, 1), (-1, 0, 0), 0),  # touching
    ],
)
def test_boxes_along(device, low, high, direction, expected):
    a, b = box([0, 0, 0], [1, 1, 1], device), box(low, high, device)
    length = separate_along(a, b, None, None, np.array(direction, float), TOLERANCE)
    assert length == pytest.approx([expected], abs=1e-14)


@pytest.mark.parametrize(("gap", "expected"), [(0.75, 2.25), (1.0, 0.5), (1.5, 0.5)])
def test_the_first_gap_along_a_direction(device, gap, expected):
    """A gap that just fits is free for one instant."""
    a = boxes([(0, 0, 0), (1, 1, 1)], [(1 + gap, 0, 0), (2 + gap, 1, 1)], device=device)
    b = box([0.5, 0.25, 0.25], [1.5, 0.75, 0.75], device)
    length = separate_along(a, b, None, None, np.array([1.0, 0, 0]), TOLERANCE)
    assert length == pytest.approx([expected], abs=1e-14)


def test_sliding_along_a_face_blocks_nothing(device):
    """Regression: rays in the plane of a face stayed inside the solid to the end of the face."""
    a = boxes(([0, 0, 0], [2, 1, 1]), ([0, 0, 1], [3, 1, 2]), device=device)
    b = box([0, 0, 0], [1, 1, 1], device)
    length = separate_along(a, b, None, None, np.array([1.0, 0, 0]), TOLERANCE)
    assert length == pytest.approx(2.0, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(5))
def test_random_solids_along(device, seed):
    rng = np.random.default_rng(seed)
    moved_far = 0
    for _ in range(60):
        (points_a, tets_a, faces_a), (points_b, tets_b, faces_b), poses = random_pair(rng)
        a, b = abut.Mesh(points_a, faces_a, device), abut.Mesh(points_b, faces_b, device)
        u = rng.normal(size=3)
        batch = [None if p is None else p[None] for p in poses]
        (length,) = separate_along(a, b, *batch, u, TOLERANCE)
        u = u / np.linalg.norm(u)
        pose_a, pose_b = (np.eye(4) if p is None else p for p in poses)
        fixed, mover = moved(points_a, pose_a)[tets_a], moved(points_b, pose_b)
        for corners in (moved(points_b, translated(pose_b, length * u)), mover + length * u):
            assert not interiors_meet(fixed, corners[tets_b])
        expected = first_free_along(fixed, mover[tets_b], u)
        assert expected - 1e-12 < length < expected + TOLERANCE
        moved_far += length > 0
    assert moved_far > 20


def test_batches_of_poses(device):
    rng = np.random.default_rng(7)
    a, b = box([-1, -1, -1], [1, 1, 1], device), box([-0.5, -1, -2], [0.5, 1, 2], device)
    pose_a, pose_b = (np.array([pose_of(rng, 2.0) for _ in range(6)]) for _ in range(2))
    ways = rng.normal(size=(6, 3))
    found = separate(a, b, pose_a, pose_b, TOLERANCE)
    along = separate_along(a, b, pose_a, pose_b, ways, TOLERANCE)
    for k in range(6):
        rows = pose_a[k : k + 1], pose_b[k : k + 1]
        one = separate(a, b, *rows, TOLERANCE)
        assert (one.translation[0] == found.translation[k]).all()
        assert one.converged[0] == found.converged[k]
        assert separate_along(a, b, *rows, ways[k], TOLERANCE)[0] == along[k]
    assert 0 < (along > 0).sum() and (along >= np.linalg.norm(found.translation, axis=1) / 3).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_solids(device, seed):
    """100,000 pairs on each device."""
    rng = np.random.default_rng(seed)
    found = [check_random_poses(rng, device, 100)[1] for _ in range(50)]
    assert sum(rows.converged.sum() for rows in found) > 4_900
