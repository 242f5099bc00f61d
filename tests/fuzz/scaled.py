"""Questions about random meshes at any scale, with answers that do not depend on the scale.

Coordinates are multiples of 2**-8 below 8, so that a power of two scales them exactly. An answer is
(rows, numbers): rows are integers that must agree, numbers are lengths in units of the scale, or
times, that must agree up to rounding.
"""

import numpy as np

import abut


def soup(rng, count):
    """Faces anywhere, many of which touch, and some degenerate ones."""
    centre = rng.integers(-512, 512, size=(count, 1, 3))
    points = (centre + rng.integers(-200, 201, size=(count, 3, 3))).reshape(-1, 3)
    flat = rng.random(len(points)) < 0.3
    points[flat] &= ~127
    faces = np.arange(3 * count).reshape(-1, 3)
    faces[rng.random(count) < 0.1, 2] = faces[0, 0]
    return points / 256.0, faces


def sheet(rng, side):
    """A bumpy sheet."""
    x, y = np.meshgrid(*(np.arange(side + 1) * 128 - 64 * side,) * 2, indexing="ij")
    points = np.stack([x, y, rng.integers(-40, 41, size=x.shape)], axis=-1).reshape(-1, 3)
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).reshape(-1, 1)
    corners = np.array([[0, side + 1, 1], [1, side + 1, side + 2]])
    faces = np.concatenate([corner + corners[0], corner + corners[1]])
    return points / 256.0, faces


def box(rng):
    """A closed box with corners off their places."""
    corners = np.stack(np.meshgrid(*([-1, 1],) * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return (256 * corners + rng.integers(-60, 61, size=corners.shape)) / 256.0, np.array(faces)


def shape(rng):
    """Vertices and faces of a random shape."""
    kind = rng.integers(3)
    if kind == 0:
        return soup(rng, int(rng.integers(1, 16)))
    return sheet(rng, int(rng.integers(1, 5))) if kind == 1 else box(rng)


def pose(rng):
    """A pose: shifted, and rotated in half of all cases."""
    out = np.eye(4)
    if rng.random() < 0.5:
        q = rng.normal(size=4)
        w, x, y, z = q / np.linalg.norm(q)
        out[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    out[:3, 3] = rng.integers(-600, 601, size=3) / 256.0
    return out


class Case:
    """Four random shapes with poses at the start and at the end of a step.

    ``mixed``: Some shapes are far larger or smaller than others.
    """

    def __init__(self, seed, mixed=False):
        rng = np.random.default_rng(seed)
        sizes = 2.0 ** rng.choice([-60, -20, -3, 0, 3, 20, 60], size=4) if mixed else np.ones(4)
        shapes = [shape(rng) for _ in range(4)]
        self.shapes = [(v * size, f) for (v, f), size in zip(shapes, sizes, strict=True)]
        self.starts, self.ends = (np.stack([pose(rng) for _ in range(4)]) for _ in range(2))
        self.points = rng.integers(-700, 701, size=(12, 3)) / 256.0

    def at(self, exponent, device):
        """The case, 2**exponent times as large."""
        return ScaledCase(self, 2.0**exponent, device)


class ScaledCase:
    """Meshes, poses and points of a case at a scale."""

    def __init__(self, case, scale, device):
        self.scale, self.device = scale, device
        self.meshes = [abut.Mesh(v * scale, f, device) for v, f in case.shapes]
        self.starts, self.ends = (self._scaled(poses) for poses in (case.starts, case.ends))
        self.points = case.points * scale

    def _scaled(self, poses):
        poses = poses.copy()
        poses[:, :3, 3] *= self.scale
        return poses

    def scene(self):
        """A scene of all meshes at the start."""
        scene = abut.Scene(device=self.device)
        for mesh, at in zip(self.meshes, self.starts, strict=True):
            scene.add(mesh, pose=at)
        return scene

    def collide(self, **options):
        a, b = self.meshes[:2]
        return abut.collide(a, b, pose_b=self.starts[1], **options).pairs.numpy(), ()

    def collide_batch(self, **options):
        a, b = self.meshes[:2]
        found = abut.collide(a, b, pose_b=self.ends, **options)
        return np.c_[found.pose.numpy(), found.pairs.numpy()], ()

    def self_collide(self, **options):
        return abut.self_collide(self.meshes[0], **options).pairs.numpy(), ()

    def within(self, **options):
        a, b = self.meshes[:2]
        found = abut.within(a, b, 0.25 * self.scale, pose_b=self.starts[1], **options)
        return found.pairs.numpy(), found.distance.numpy() / self.scale

    def distance(self, **options):
        a, b = self.meshes[:2]
        found = abut.distance(a, b, pose_b=self.starts[1], **options)
        return (), [found.value / self.scale]

    def distance_batch(self, **options):
        a, b = self.meshes[:2]
        return (), abut.distance(a, b, pose_b=self.ends, **options).value.numpy() / self.scale

    def closest_point(self, **options):
        found = abut.closest_point(self.meshes[0], self.points, **options)
        return (), found.distance.numpy() / self.scale

    def signed_distance(self, **options):
        found = abut.closest_point(self.meshes[0], self.points, signed=True, **options)
        return (), found.distance.numpy() / self.scale

    def ccd(self, **options):
        moves = [
            abut.Motion(self.meshes[k], start_pose=self.starts[k], end_pose=self.ends[k])
            for k in (0, 1)
        ]
        return self._impacts(abut.ccd(*moves, **options))

    def ccd_straight(self, **options):
        a, b = self.meshes[:2]
        end = a.vertices.numpy() + (self.ends[0, :3, 3] - self.starts[0, :3, 3])
        return self._impacts(abut.ccd(abut.Motion(a, end), abut.Motion(b, b.vertices), **options))

    def scene_collide(self, **options):
        found = self.scene().collide(**options)
        return np.c_[found.objects.numpy(), found.pairs.numpy()], ()

    def scene_self_collide(self, **options):
        return self.scene_collide(self_collisions=True, **options)

    def scene_within(self, **options):
        found = self.scene().within(0.25 * self.scale, **options)
        rows = np.c_[found.objects.numpy(), found.pairs.numpy()]
        return rows, found.distance.numpy() / self.scale

    def scene_distance(self, **options):
        found = self.scene().distance(**options)
        return found.objects.numpy()[:, :1], found.value.numpy() / self.scale

    def scene_ccd(self, **options):
        found = self.scene().ccd(self.ends, **options)
        rows, times = self._impacts(found)
        return np.c_[found.objects.numpy(), rows], times

    def cull(self, method="far"):
        """Faces that a culling keeps, of those that meet another: all of them."""
        left = abut.cull(self.scene(), self_collisions=True, pixels=64, method="far")
        kept = {tuple(row) for row in left.faces.numpy().tolist()}
        met, _ = self.scene_self_collide(method="brute")
        return [row for row in met.tolist() if {(row[0], row[2]), (row[1], row[3])} <= kept], ()

    def _impacts(self, found):
        return np.c_[found.kind.numpy(), found.features.numpy()], found.time.numpy()


def exponents(rng, count, least=-900, most=1000):
    """Powers of two, many of them near the ends of float32, of its squares and of cubes."""
    ends = rng.choice([-340, -149, -131, -126, -75, -64, 64, 75, 127, 128, 340], size=count)
    near = ends + rng.integers(-6, 7, size=count)
    return np.where(rng.random(count) < 0.5, near, rng.integers(least, most + 1, size=count))


QUESTIONS = [name for name in vars(ScaledCase) if not name.startswith("_") and name != "scene"]
