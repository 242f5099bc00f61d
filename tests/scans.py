"""Meshes as scanners and their software leave them: slivers, doubles, holes, fins, no area."""

import numpy as np

from abut import cases

SCALES = (1.0, 1.0, 1.0, 1e-9, 1e-3, 1e6, 1e9)


def patch(rng, models, most):
    """Some faces of a model around one of them, in a box of size 1."""
    vertices, faces = models[rng.integers(len(models))]
    if len(faces) > most:
        middles = vertices[faces].mean(axis=1)
        far = ((middles - middles[rng.integers(len(faces))]) ** 2).sum(axis=1)
        faces = faces[np.argsort(far)[:most]]
    used, faces = np.unique(faces, return_inverse=True)
    vertices = vertices[used] - vertices[used].mean(axis=0)
    return vertices / np.abs(vertices).max(), faces.reshape(-1, 3)


def flaw(rng, vertices, faces):
    """One more face that should not be there."""
    a, b, c = faces[rng.integers(len(faces))].tolist()
    kind = rng.integers(6)
    if kind < 4:
        return vertices, [[a, b, c], [c, b, a], [a, a, b], [a, a, a]][kind]
    new = (vertices[a] + vertices[b]) / 2  # no area
    if kind == 5:  # a fin, or a sliver
        new = vertices[a] + rng.normal(size=3) * 10.0 ** rng.uniform(-12, -1)
    return np.concatenate([vertices, [new]]), [a, b, len(vertices)]


def scan(rng, models, most=90):
    """(vertices, faces) of size 1 with some flaws."""
    vertices, faces = patch(rng, models, int(rng.integers(4, most)))
    if rng.random() < 0.3:
        vertices = vertices * 10.0 ** rng.uniform(-6, 0, 3)  # all but flat
    if rng.random() < 0.3:
        vertices = np.round(vertices * 16) / 16  # touching, coplanar, of no area
    for _ in range(rng.integers(0, 8)):
        vertices, face = flaw(rng, vertices, faces)
        faces = np.concatenate([faces, [face]])
    if rng.random() < 0.2:  # of no face
        vertices = np.concatenate([vertices, rng.normal(size=(3, 3)) * 100])
    if rng.random() < 0.2:
        vertices, faces = vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
    if rng.random() < 0.2:
        faces = np.where(rng.random((len(faces), 1)) < 0.3, faces[:, ::-1], faces)
    return vertices, faces


def two_scans(rng, models, most=90):
    """Two of them near each other, at some scale and place; what they are scaled and moved by."""
    a, b = scan(rng, models, most), scan(rng, models, most)
    b = a if rng.random() < 0.2 else b
    apart = rng.normal(size=3) * 10.0 ** rng.uniform(-4, 0.2)
    scale, at = rng.choice(SCALES), np.zeros(3)
    if rng.random() < 0.4:
        at = rng.normal(size=3) * scale * 10.0 ** rng.uniform(0, 7)
    kind = np.float32 if rng.random() < 0.4 else np.float64
    sides = [((v * scale + at).astype(kind), f) for v, f in (a, (b[0] + apart, b[1]))]
    return sides, scale, at


def models_of(folder):
    """Real ones where there are any, and some that abut makes."""
    made = [cases.icosphere(80), cases.torus(8, 6), cases.box(), cases.single("thick_knot", 400)]
    models = [(np.asarray(v, float), np.asarray(f)) for v, f in made]
    if folder is not None:
        import trimesh

        names = ("models/cow_5k.ply", "selfint/cgal_elk.ply", "selfint/cgal_folded_star.ply")
        for path in (folder / name for name in names):
            if path.exists():
                read = trimesh.load(path, process=False, force="mesh")
                models.append((np.asarray(read.vertices, float), np.asarray(read.faces)))
    return models
