"""Pictures of what is left after culling: ``python -m benchmarks.cull_pictures docs/images``.

The scenes of bench_cull, made of shapes that abut makes itself. What is left is red.
"""

import os
import sys
from pathlib import Path

import numpy as np

import abut
from abut import view
from abut.cases import Shape
from abut.view.body import GLOW
from benchmarks import cull_scenes
from benchmarks.bench_cull import SCENES, cull

SIZE = (560, 420)
GREEN = (0.45, 0.66, 0.38)
CAMERAS = {
    "bunnies": {"azimuth": -60, "elevation": 25},
    "breaking": {"azimuth": -75, "elevation": 12},
    "leaves": {"azimuth": -60, "elevation": 5},
    "cloth": {"azimuth": -60, "elevation": 18},
}
WAYS = {
    "bunnies": ("cullide", "far"),
    "breaking": ("cullide", "quick_cullide", "far"),
    "leaves": ("cullide", "quick_cullide", "far"),
    "cloth": ("cullide", "quick_cullide"),
}


def main(argv: list[str]) -> int:
    """Draw all scenes, or those named after the folder."""
    os.environ["ABUT_DATA"] = os.devnull  # nothing there: shapes made on the spot stand in
    folder, *names = argv
    for name in names or WAYS:
        frames = getattr(cull_scenes, name)()
        frame = frames[1 if name == "leaves" else len(frames) // 2]
        pictures = [_seen(name, frame, way) for way in WAYS[name]]
        path = view.save_picture(Path(folder) / f"cull_{name}.png", np.concatenate(pictures, 1))
        print(path)
    return 0


def _seen(name: str, frame: list[Shape], way: str) -> np.ndarray:
    meshes = [abut.Mesh(*shape, device="cpu") for shape in frame]
    culled = cull(meshes, SCENES[name], way)
    rows = culled.faces.numpy()
    if name == "bunnies":  # the faces that are found to meet, as in FAR's figure 7
        met = set(map(tuple, abut.collide(*meshes).pairs.numpy().tolist()))
        left = np.array(sorted(met & set(map(tuple, culled.pairs.numpy().tolist()))))
        rows = np.concatenate([np.stack([np.full(len(left), k), left[:, k]], 1) for k in (0, 1)])
    print(name, way, len(culled), len(rows))
    marked = [rows[rows[:, 0] == k, 1] for k in range(len(frame))]
    bodies = [
        view.Body(shape, _color(name, k, len(frame)), _opacity(name, k), marked[k], view.RED)
        for k, shape in enumerate(frame)
    ]
    if name != "cloth":  # the red shines through
        red = [Shape(s.vertices, s.faces[m]) for s, m in zip(frame, marked, strict=True) if len(m)]
        bodies += [view.Body(shape, view.RED, finish=GLOW) for shape in red]
    seen = frame[1:] if name == "leaves" else frame
    points = np.concatenate([shape.vertices for shape in seen])
    camera = view.Camera.around(points, aspect=SIZE[0] / SIZE[1], **CAMERAS[name])
    return view.render(bodies, camera=camera, size=SIZE, device="cpu", wire=0.05)


def _color(name: str, k: int, count: int) -> view.Color:
    """Bodies in quiet colours: the tree and the pieces, the leaves, what falls."""
    if name == "leaves":
        return GREEN if k else view.SAND
    if name == "cloth":
        return view.INDIGO
    return view.TEAL if k == count - 1 else view.SAND


def _opacity(name: str, k: int) -> float:
    """The second of two is glass, pieces and leaves are half so."""
    return {"bunnies": 0.35 if k else 1.0, "cloth": 1.0}.get(name, 0.45)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
