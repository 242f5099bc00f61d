"""Scenes of bench_gproximity: what stands in for those of the paper.

A dancer stands in for its two dancers in cloth; the cloth over a ball is the paper's own, of which
two frames are published; the balls are simulated by ``abut.sim``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import trimesh

import abut
from abut import cases as shapes
from abut import sim
from benchmarks import cases

DANCER_FRAMES = 3  # there and back: four steps
BALL_FRAMES = 2
WARM_FRAMES = 8  # until balls touch
BATCH = 100  # poses


@dataclass
class Animation:
    """Faces, and where their vertices are in each frame; the last is followed by the first."""

    faces: np.ndarray
    frames: list[np.ndarray]


def dancer() -> Animation:
    """Return the frames of a dancer of 25,472 faces, there and back."""
    dance = np.load(_data("anim/rumba_dancing_25k_f0-59.npz"))
    frames = [np.asarray(v, dtype=np.float64) for v in dance["V"][:DANCER_FRAMES]]
    return Animation(np.asarray(dance["F"], dtype=np.int32), frames + frames[-2:0:-1])


def cloth_ball() -> Animation:
    """Return the two published frames of a cloth of 92,230 faces over a ball."""
    files = [_data(f"ccd_frames/cloth-ball/cloth_ball{k}.ply") for k in (92, 93)]
    meshes = [trimesh.load(file, process=False) for file in files]
    frames = [np.array(m.vertices, dtype=np.float32).astype(np.float64) for m in meshes]
    return Animation(np.array(meshes[0].faces, dtype=np.int32), frames)


def balls() -> Animation:
    """Return the frames of 456 balls of 320 faces that attract each other, there and back."""
    swarm = sim.swarm_of_balls(145_920, "cpu")
    for _ in range(WARM_FRAMES):
        swarm.advance()
    frames = []
    for _ in range(BALL_FRAMES):
        swarm.advance()
        shape, _body = swarm.solver.placed()
        frames.append(np.array(shape.vertices))
    return Animation(np.array(shape.faces, dtype=np.int32), frames + frames[-2:0:-1])


ANIMATIONS: dict[str, Callable[[], Animation]] = {
    "dancer": dancer,
    "cloth_ball": cloth_ball,
    "balls": balls,
}


@dataclass
class Approach:
    """Two meshes, and poses of the second near the first."""

    a: shapes.Shape
    b: shapes.Shape
    poses: np.ndarray


def catheter() -> Approach:
    """Return a tube that winds like a knot in another one, a little wider: 12K faces."""
    outer, inner = (shapes.torus_knot(125, 24, thick=thick) for thick in (0.16, 0.14))
    return Approach(outer, inner, _near(0.002))


def letters() -> Approach:
    """Return two linked tori of 5.5K faces together."""
    ring = shapes.torus(53, 26)
    turn = np.eye(4)
    turn[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    turn[0, 3] = 1.28
    return Approach(ring, ring, turn @ _near(0.01))


def dragon_armadillo() -> Approach:
    """Return a dragon and an armadillo, 289,002 faces, in place of a car and its seat."""
    models = []
    for name in ("dragon_202k", "armadillo_86k"):
        mesh = trimesh.load(_data(f"models/{name}.ply"), process=False)
        v = np.array(mesh.vertices, dtype=np.float64)
        v = (v - v.mean(axis=0)) / np.ptp(v, axis=0).max()
        models.append(shapes.Shape(v, np.array(mesh.faces, dtype=np.int32)))
    poses = _near(0.01)
    poses[:, :3, 3] += [0.84, 0.1, 0.0]
    return Approach(*models, poses)


APPROACHES: dict[str, Callable[[], Approach]] = {
    "catheter": catheter,
    "letters": letters,
    "dragon_armadillo": dragon_armadillo,
}


def mesh_of(shape: shapes.Shape, device: str) -> abut.Mesh:
    """Return a mesh on a device."""
    return abut.Mesh(shape.vertices, shape.faces, device)


def _near(shift: float) -> np.ndarray:
    """Return small random motions: turns up to a tenth of a radian, shifts along each axis."""
    rng = np.random.default_rng(0)
    poses = np.tile(np.eye(4), (BATCH, 1, 1))
    turn = 0.02 * rng.uniform(-1.0, 1.0, (BATCH, 3)) * min(1.0, shift / 0.02)
    poses[:, :3, :3] = np.array([_rotation(w) for w in turn])
    poses[:, :3, 3] = rng.uniform(-shift, shift, (BATCH, 3))
    return poses


def _rotation(w: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(w)
    x, y, z = w / angle
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew


def _data(name: str) -> str:
    folder = cases.data_folder()
    assert folder is not None, "no data folder (ABUT_DATA)"
    return str(folder / name)
