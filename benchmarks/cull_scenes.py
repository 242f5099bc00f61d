"""Scenes for culling, after those of the papers: bunnies, a breaking dragon, a cloth, leaves.

Each is a list of frames; a frame is a list of shapes in the world. Models come from ``ABUT_DATA``,
see cases; without them shapes made on the spot stand in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import abut
from abut import cases as shapes
from abut.cases import Shape
from benchmarks.cases import _bunny_poses, _gem, _model

Frame = list[Shape]
DRAGON_FACES, BUNNY_FACES = 112_000, 35_000  # FAR §5.1
PIECES, CLOTH_FACES = 300, 20_000
GIVE_WAY = 6  # rounds a frame
STEPS_A_FRAME, ADVANCES_A_FRAME = 20, 5
FRAMES_A_FRAME = 5  # of the simulated fracture
CLOTH_MOMENT, LEAVES_MOMENT = 0.03, 1 / 60  # seconds


def bunnies() -> list[Frame]:
    """Two bunnies, deep in each other (FAR §5.1, figure 7)."""
    _, vertices, faces = _model("models/bunny_69k.ply", _gem)
    bunny = Shape(vertices.astype(np.float64), faces)
    pose = _bunny_poses(vertices)["x05"]
    return [[bunny, Shape(bunny.vertices @ pose[:3, :3].T + pose[:3, 3], faces)]]


def fracture(frame_count: int = 8, steps: int = FRAMES_A_FRAME) -> list[Frame]:
    """A knot breaks into 219 pieces under a ball, as ``abut.sim`` simulates it: 53K faces.

    The pieces pile up on the floor and push each other: contact never ceases. A frame is ``steps``
    frames of the simulation after the one before.
    """
    from abut.sim.rigid_scenes import breaking_object

    play = breaking_object(device="cpu")
    frames = []
    for _ in range(frame_count):
        for _ in range(steps):
            play.advance()
        shape, body = play.solver.placed()
        faces = [shape.faces[body == k] for k in np.unique(body)]
        frames.append([_used(Shape(shape.vertices, own)) for own in faces])
    return frames


def breaking_full(frame_count: int = 8) -> list[Frame]:
    """The breaking dragon with all of its 202K faces: 237K with the bunny."""
    return breaking(frame_count, 10**9)


def breaking(frame_count: int = 8, dragon_faces: int = DRAGON_FACES) -> list[Frame]:
    """A bunny falls on a dragon and breaks it, from above down (FAR figure 5): 147K faces.

    What has not broken yet is one object, the first. Pieces fly off and turn, and give way where
    they meet, as far as they can in a frame.
    """
    dragon = _resting(_of_size(_shape("models/dragon_202k.ply", _knot), dragon_faces), 1.0)
    bunny = _resting(_of_size(_shape("models/bunny_69k.ply", _gem), BUNNY_FACES), 0.45)
    top = dragon.vertices[np.argmax(dragon.vertices[:, 2])]
    bunny = bunny.moved(tuple(top - bunny.vertices.mean(axis=0) * [1, 1, 0]))
    label = shapes.cell_labels(dragon, shapes.broken_sites(dragon, PIECES, top, seed=1))
    pieces = [_used(Shape(dragon.vertices, dragon.faces[label == k])) for k in np.unique(label)]
    off = np.array([np.linalg.norm(piece.vertices.mean(axis=0) - top) for piece in pieces])
    rng = np.random.default_rng(2)
    spin, given = rng.normal(size=(len(pieces), 3)), np.zeros((len(pieces), 3))
    frames = []
    for t in np.linspace(0.8, 0.1, frame_count)[::-1]:
        since = t - 0.8 * off / off.max()  # the last piece breaks off at the end
        loose = np.flatnonzero(since > 0)
        fixed = [piece for piece, s in zip(pieces, since, strict=True) if s <= 0]
        rest = [_used(shapes.joined(*fixed))] if fixed else []
        for _ in range(GIVE_WAY):
            flown = [_flown(pieces[k], spin[k], since[k]).moved(given[k]) for k in loose]
            frame = [*rest, *flown, bunny]
            stuck = _stuck(frame) - len(rest)
            stuck = loose[stuck[(stuck >= 0) & (stuck < len(loose))]]
            given[stuck] += rng.normal(scale=0.02, size=(len(stuck), 3))
        frames.append(frame)
        bunny = bunny.moved((0.0, 0.0, -0.5 / frame_count))
    return frames


def leaves(frame_count: int = 8) -> list[Frame]:
    """150 leaves of 156 faces fall from a tree and bend as they go (FAR figure 1): 40K faces.

    Each is an object, after the tree. As with the cloth, looked at is where they would go.
    """
    from abut.sim.cloth_scenes import falling_leaves

    play = falling_leaves()
    faces = play.cloth.mesh.faces.numpy()
    one = faces[: len(faces) // play.count]
    frames = []
    for _ in range(frame_count):
        for _ in range(ADVANCES_A_FRAME):
            play.advance()
        each = np.split(_ahead(play.cloth, LEAVES_MOMENT), play.count)
        frames.append([play.tree, *(Shape(points, one) for points in each)])
    return frames


def cloth(frame_count: int = 8) -> list[Frame]:
    """A sheet of 20K faces falls over a round table (Quick-CULLIDE figure 4), alone.

    The simulation lets it cut nothing: looked at is where it would go in a moment if it could, as
    in a simulation that finds collisions after the fact.
    """
    from abut.sim import Cloth

    sheet, table = shapes.drape_table(CLOTH_FACES).placed()
    falling = Cloth(sheet, table)
    frames = []
    for _ in range(frame_count):
        for _ in range(STEPS_A_FRAME):
            falling.step()
        frames.append([Shape(_ahead(falling, CLOTH_MOMENT), sheet.faces)])
    return frames


def cloth_table(frame_count: int = 8) -> list[Frame]:
    """The sheet and its table: they touch in most frames where the sheet would go."""
    _, table = shapes.drape_table(CLOTH_FACES).placed()
    return [[*frame, table] for frame in cloth(frame_count)]


def _stuck(placed: Frame) -> np.ndarray:
    """Objects that meet others."""
    scene = abut.Scene()
    for shape in placed:
        scene.add(abut.Mesh(*shape))
    return np.unique(scene.collide().objects.numpy())


def _ahead(cloth: Any, moment: float) -> np.ndarray:
    """Vertices a moment later, if nothing held them."""
    return cloth.mesh.points.numpy() + moment * cloth.velocity.numpy()


def _flown(piece: Shape, spin: np.ndarray, t: float) -> Shape:
    """A piece some time after it broke off: away from what it covered, and turned."""
    middle = piece.vertices.mean(axis=0)
    a, b, c = (piece.vertices[corner] for corner in piece.faces.T)
    out = np.cross(b - a, c - a).sum(axis=0)
    shift = out / max(np.linalg.norm(out), 1e-12) * 0.5 * t
    return Shape((piece.vertices - middle) @ _turn(spin * t).T + middle + shift, piece.faces)


def _knot() -> Shape:
    return shapes.torus_knot(1200, 48, q=5, thick=0.24)


def _turn(by: np.ndarray) -> np.ndarray:
    """The rotation about an axis by its length [radians] (Rodrigues)."""
    angle = np.linalg.norm(by)
    x, y, z = by / max(angle, 1e-12)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def _shape(name: str, stand_in: Callable) -> Shape:
    _, vertices, faces = _model(name, stand_in)
    return Shape(vertices.astype(np.float64), faces)


def _resting(shape: Shape, size: float) -> Shape:
    """As large as that, upright (y is up in these models), on the ground."""
    x, y, z = shape.vertices.T
    vertices = np.stack([x, -z, y], axis=1)
    vertices *= size / np.ptp(vertices, axis=0).max()
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return Shape(vertices - [*(low + high)[:2] / 2, low[2]], shape.faces)


def _of_size(shape: Shape, face_count: int) -> Shape:
    """The shape with about so many faces: vertices in one cell of a grid become one."""
    few, many = 1.0, 4096.0  # cells along the longest side
    best = shape
    for _ in range(12):
        cells = (few * many) ** 0.5
        clustered = _clustered(shape, cells)
        if len(clustered.faces) > face_count:
            many = cells
        else:
            few, best = cells, clustered
    return best if len(shape.faces) > face_count else shape


def _clustered(shape: Shape, cells: float) -> Shape:
    low = shape.vertices.min(axis=0)
    cell = np.floor((shape.vertices - low) * (cells / np.ptp(shape.vertices, axis=0).max()))
    _, of = np.unique(cell.astype(np.int64), axis=0, return_inverse=True)
    of = of.ravel()
    mean = np.stack([np.bincount(of, axis) for axis in shape.vertices.T], axis=1)
    mean /= np.bincount(of)[:, None]
    faces = of[shape.faces]
    whole = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    _, first = np.unique(np.sort(faces[whole], axis=1), axis=0, return_index=True)
    return _used(Shape(mean, faces[whole][np.sort(first)].astype(np.int32)))


def _used(shape: Shape) -> Shape:
    """The shape without vertices that no face uses."""
    used, faces = np.unique(shape.faces, return_inverse=True)
    return Shape(shape.vertices[used], faces.reshape(-1, 3).astype(np.int32))
