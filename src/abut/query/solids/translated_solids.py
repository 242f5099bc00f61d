"""Two solids, the second of which is translated: freeness, pairs of faces, support widths."""

from functools import cached_property

import numpy as np

from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.distance import distance
from abut.query.solids.relation import RELATIONS, Relation, relations
from abut.query.within import within

FREE = [RELATIONS.index(r) for r in (Relation.APART, Relation.TOUCHING)]

BATCHES = (1, 8, 32, 128, 256)  # sizes of batches; few, as each has its own prepared query
WIDTH_SAMPLES = 512  # faces
ROUNDED = 16.0  # ulps that two ways of adding may differ by, with room


class TranslatedSolids:
    """Solid a in one pose, and solid b in one pose followed by translations.

    A translation is free if the solids at most touch after it, and blocked if they have common
    interior.
    """

    def __init__(
        self, a: Mesh, b: Mesh, pose_a: np.ndarray | None, pose_b: np.ndarray | None
    ) -> None:
        self.a, self.b, self.pose_a = a, b, pose_a
        self.pose_b = np.eye(4) if pose_b is None else pose_b

    def poses(self, translations: np.ndarray) -> np.ndarray:
        """Return (k, 4, 4) poses of b for translations (k, 3)."""
        poses = np.repeat(self.pose_b[None], len(translations), axis=0)
        poses[:, :3, 3] += translations
        return poses

    def free(self, translations: np.ndarray) -> np.ndarray:
        """Return which of (k, 3) translations are free. Exact."""
        count = len(translations)
        size = next((size for size in BATCHES if size >= count), count)
        padded = np.concatenate([translations, np.zeros((size - count, 3))])
        fixed = None if self.pose_a is None else self.pose_a[None]
        return np.isin(relations(self.a, self.b, fixed, self.poses(padded))[:count], FREE)

    def first_free(self, translations: np.ndarray) -> int | None:
        """Return the index of the first free translation of (k, 3), None if all are blocked."""
        free = self.free(translations)
        return int(np.argmax(free)) if free.any() else None

    def clears_rounding(self, translation: np.ndarray) -> bool:
        """Return whether a free translation is so however it is added to b's vertices.

        Added to the moved vertices they are rounded otherwise than in a pose.
        """
        pose = self.poses(translation[None])[0]
        if np.array_equal(_moved(self.b, pose), self.points_b + translation):
            return True
        gap = distance(self.a, self.b, pose_a=self.pose_a, pose_b=pose).value
        return gap > ROUNDED * self.ulp

    def free_when_added(self, translation: np.ndarray) -> bool:
        """Return whether the mesh of b's moved vertices plus a translation at most touches a."""
        mesh = Mesh(self.points_b + translation, self._faces[1], self.b.device)
        fixed = None if self.pose_a is None else self.pose_a[None]
        return bool(relations(self.a, mesh, fixed)[0] in FREE)

    def normals(self, most: int) -> np.ndarray:
        """Return (k, 3) normals of a's faces and opposite normals of b's, of at most ``most``."""
        found = [np.zeros((0, 3))]
        for p, way in ((self.corners_a, 1.0), (self.corners_b, -1.0)):
            if len(p) <= most:
                found.append(way * np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]))
        return np.concatenate(found)

    def meeting(self, translation: np.ndarray) -> np.ndarray:
        """Return (n, 2) pairs of faces that meet."""
        pose = self.poses(translation[None])[0]
        return collide(self.a, self.b, pose_a=self.pose_a, pose_b=pose).pairs.numpy()

    def near(self, translation: np.ndarray, distance: float) -> np.ndarray:
        """Return (n, 2) pairs of faces at most ``distance`` apart."""
        pose = self.poses(translation[None])[0]
        return within(self.a, self.b, distance, pose_a=self.pose_a, pose_b=pose).pairs.numpy()

    def corners(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (n, 3, 3) corners of the faces of a and of b, without a translation."""
        return self.corners_a[pairs[:, 0]], self.corners_b[pairs[:, 1]]

    @cached_property
    def corners_a(self) -> np.ndarray:
        """(m, 3, 3) corners of the faces of a in its pose."""
        return self.points_a[self._faces[0]]

    @cached_property
    def corners_b(self) -> np.ndarray:
        """(m, 3, 3) corners of the faces of b in its pose, without a translation."""
        return self.points_b[self._faces[1]]

    @cached_property
    def points_a(self) -> np.ndarray:
        """(n, 3) vertices of a in its pose."""
        return _moved(self.a, self.pose_a)

    @cached_property
    def points_b(self) -> np.ndarray:
        """(n, 3) vertices of b in its pose, without a translation."""
        return _moved(self.b, self.pose_b)

    @cached_property
    def _faces(self) -> tuple[np.ndarray, np.ndarray]:
        return self.a.faces.numpy(), self.b.faces.numpy()

    @cached_property
    def ulp(self) -> float:
        """Spacing of floating-point numbers at the largest coordinate, before and after poses."""
        parts = [self.points_a, self.points_b, self.b.points.numpy(), self.pose_b[:3, 3]]
        return float(np.spacing(max(np.abs(part).max() for part in parts)))

    @cached_property
    def face_size(self) -> float:
        """The typical edge of the mesh with larger faces."""
        few = (p[:: 1 + len(p) // 1024] for p in (self.corners_a, self.corners_b))
        return float(max(np.linalg.norm(p[:, 1] - p[:, 0], axis=1).mean() for p in few))

    def support_width(self, direction: np.ndarray) -> float:
        """Return the length of a translation along a unit vector that separates by a plane."""
        far = (self.corners_a @ direction).max() - (self.corners_b @ direction).min()
        return max(float(far), 0.0)

    def sampled_widths(self, directions: np.ndarray) -> np.ndarray:
        """Return (k,) support widths of some corners of faces."""
        x, y, z = (u[:, None] for u in directions.T)
        on_a, on_b = (
            x * p[:, 0] + y * p[:, 1] + z * p[:, 2]  # BLAS threads would spin on so small a product
            for p in (
                corners[:: 1 + len(corners) // WIDTH_SAMPLES].reshape(-1, 3)
                for corners in (self.corners_a, self.corners_b)
            )
        )
        return on_a.max(axis=1) - on_b.min(axis=1)


def _moved(mesh: Mesh, pose: np.ndarray | None) -> np.ndarray:
    """Return the vertices, moved and rounded as kernels do it."""
    points = mesh.points.numpy().astype(np.float64)
    if pose is None:
        return points
    x, y, z = points.T
    return np.stack([r[0] * x + r[1] * y + r[2] * z + r[3] for r in pose[:3]], axis=1)
