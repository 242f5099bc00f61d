"""Record the answers of every query, to show that a change of the code changes none of them.

Usage:
    python tools/record_answers.py --device cpu --out before.csv
    python tools/record_answers.py --device cpu --out after.csv
    python tools/record_answers.py --compare before.csv after.csv

A line holds the name of a case, its number of rows, a hash of the rows, a hash of the witnesses and
the sum of the witnesses. Rows are integers and booleans, and for each distance whether it is zero,
negative or infinite. Witnesses are floats, which may differ in the last bits between devices, and
choices that abut leaves open: the pair found with ``first=True``, the faces named at distance 0.
A case that raises records the class of the exception in place of its rows.

Only documented names of abut are used. Every case makes meshes of its own. ``ABUT_THREADS`` is the
number of CPU threads; ``ABUT_DATA`` is the folder of models, else ``../shared/data``.
"""

import argparse
import csv
import gzip
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
import warp as wp

import abut
from abut import cases, hardware, primitives, sim

Case = tuple[str, Callable[[str], Iterator[Any]]]  # the function yields results on a device

DATA = Path(os.environ.get("ABUT_DATA", Path(__file__).parents[2] / "shared" / "data"))
COLUMNS = ("case", "rows", "rows_sha256", "witnesses_sha256", "witnesses_sum")
# Documented attributes of results; integers and booleans are rows, floats are witnesses.
FIELDS = """pairs face faces features time value distance force pose objects kind converged coplanar
    colliding contained object_pairs pair_objects sign segments points point barycentric first
    safe_step direction gradient torque area energy mean_force mean_torque fragment_count
    on_other.force on_other.torque cycles dop_tests axis_tests leaf_pairs bursts box.lower
    box.spacing centre""".split()
CHOSEN = {"pairs", "features", "kind", "converged", "coplanar", "faces", "curve_sizes"}
STATISTICS = ("queries", "faces", "bfv", "ffv", "sfv", "nfv")
CONTACT_METHODS = {
    "bvh": {},
    "obb": {"bound": "obb"},
    "rss": {"bound": "rss"},
    "bound-kdop": {"bound": "kdop"},
    "brute": {"method": "brute"},
    "kdop": {"method": "kdop"},
    "kdop-11": {"method": "kdop", "width": 11},
    "far": {"method": "far", "pixels": 64},
    "cullide": {"method": "cullide", "pixels": 128},
    "quick_cullide": {"method": "quick_cullide", "pixels": 128},
}
SCENE_METHODS = ("bvh", "brute", "front", "kdop", "far", "cullide", "quick_cullide")
SHIFT = np.array([0.3, 0.1, -0.2])
BROAD_METHODS = ("all_pairs", "sweep", "tree")
MODELS = "cow_5k hand_cgal bunny_69k armadillo_86k fertility_60k horse_97k dragon_202k".split()
ROBOT = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="base" pos="0 0 0.5"><geom type="box" size="0.3 0.3 0.4"/>
    <body name="arm" pos="0 0 0.5"><joint axis="0 1 0" range="-2 2" limited="true"/>
      <geom type="capsule" size="0.15" fromto="0 0 0 1.4 0 0"/>
      <body name="hand" pos="1.5 0 0"><joint type="slide" axis="1 0 0" range="-1 1" limited="true"/>
        <geom type="sphere" size="0.2"/></body></body></body>
</worldbody></mujoco>"""


class Loose:
    """A result whose existence is fixed, but not its identity."""

    def __init__(self, result: Any) -> None:
        self.result = result


class Record:
    """Hashes of the results of one case."""

    def __init__(self) -> None:
        self.rows, self.witnesses = hashlib.sha256(), hashlib.sha256()
        self.count, self.sum = 0, 0.0

    def add(self, result: Any) -> None:
        """Hash a result: a dict of arrays, or an object with the attributes in FIELDS."""
        loose = isinstance(result, Loose)
        result = result.result if loose else result
        fields = {name: plain(value) for name, value in fields_of(result).items()}
        for k, (name, array) in enumerate(fields.items()):
            self.count += (len(array) if array.ndim else 1) if k == 0 else 0
            if name in ("distance", "value"):
                with np.errstate(invalid="ignore"):
                    signs = np.where(np.isinf(array), 2, np.sign(array))
                feed(self.rows, f"sign of {name}", signs.astype(np.int64))
            chosen = loose and (name in CHOSEN or (name == "objects" and "time" in fields))
            if name == "faces" and "value" in fields and not chosen:  # of faces that meet, any two
                met = fields["value"] == 0
                feed(self.witnesses, "faces that meet", array[met])
                feed(self.rows, name, np.where(met[..., None], -2, array))
                continue
            feed(self.witnesses if chosen or array.dtype.kind == "f" else self.rows, name, array)
            if array.dtype.kind == "f":
                self.sum += float(np.abs(array[np.isfinite(array)]).sum())

    def line(self, name: str) -> tuple[Any, ...]:
        """The columns of the table."""
        return name, self.count, self.rows.hexdigest(), self.witnesses.hexdigest(), repr(self.sum)


def fields_of(result: Any) -> dict[str, Any]:
    """The attributes of a result that it has, by name; curves where there are segments."""
    if isinstance(result, dict):
        return result
    fields = {}
    for name in FIELDS:
        try:
            value = attrgetter(name)(result)
        except AttributeError:
            continue
        if value is not None:
            fields[name] = value
    if "segments" in fields and "pose" not in fields:
        curves = result.curves()
        fields["curve_sizes"] = np.sort([len(curve) for curve in curves]).astype(np.int64)
        fields["curves"] = np.concatenate([np.zeros((0, 3)), *curves])
    if hasattr(result, "statistics"):
        table = [[getattr(row, name) for name in STATISTICS] for row in result.statistics]
        fields["statistics"] = np.array(table, np.int64)
    return fields


def plain(value: Any) -> np.ndarray:
    """A NumPy array of int64, float64 or characters."""
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind in "US":
        return array
    array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array


def feed(digest: Any, name: str, array: np.ndarray) -> None:
    """Hash a name, a shape and values."""
    digest.update(f"{name} {array.shape} ".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


# ---- Inputs


def uniform(seed: int, *shape: int) -> np.ndarray:
    """Numbers in [0, 1) from raw bits, which are the same in every version of NumPy."""
    bits = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(shape)


def poses(seed: int, count: int, reach: float = 1.0) -> np.ndarray:
    """(count, 4, 4) rotations and shifts up to ``reach``; of one, (4, 4) for a count of 0."""
    q = uniform(seed, max(count, 1), 4) - 0.5
    x, y, z, w = (q / np.sqrt((q * q) @ np.ones(4))[:, None]).T
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, 0, :3] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], 1)
    out[:, 1, :3] = np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], 1)
    out[:, 2, :3] = np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], 1)
    out[:, :3, 3] = (uniform(seed + 1, len(q), 3) - 0.5) * 2 * reach
    return out if count else out[0]


def shifts(seed: int, count: int, reach: float) -> np.ndarray:
    """(count, 4, 4) shifts up to ``reach``."""
    out = np.tile(np.eye(4), (count, 1, 1))
    out[:, :3, 3] = (uniform(seed, count, 3) - 0.5) * 2 * reach
    return out


def lattice(seed: int, count: int, side: int = 5) -> cases.Shape:
    """Faces of random corners with integer coordinates: much touches, or is without area."""
    corners = np.floor(uniform(seed, 3 * count, 3) * side)
    return cases.Shape(corners, np.arange(3 * count).reshape(-1, 3))


@cache
def model(name: str) -> cases.Shape:
    """Vertices and faces of a file, moved and scaled into the unit box about the origin."""
    mesh = abut.Mesh.load(DATA / name, "cpu")
    points = mesh.vertices.numpy().astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    return cases.Shape((points - (low + high) / 2) / (high - low).max(), mesh.faces.numpy())


@cache
def archive(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file."""
    with np.load(DATA / name) as file:
        return {key: file[key] for key in file.files}


def changed(shape: Any, scale: float = 1.0, shift: float = 0.0, dtype: Any = None) -> cases.Shape:
    """A shape scaled, shifted along the diagonal, and rounded to a dtype."""
    return cases.Shape((shape.vertices * scale + shift).astype(dtype or np.float64), shape.faces)


def noisy(shape: Any, seed: int, size: float) -> np.ndarray:
    """The vertices of a shape, each moved by up to ``size``."""
    return shape.vertices + (uniform(seed, *shape.vertices.shape) - 0.5) * 2 * size


def mesh_of(shape: Any, device: str) -> abut.Mesh:
    """A new mesh."""
    return abut.Mesh(shape.vertices.copy(), shape.faces.copy(), device=device)


def scene_of(placed: Any, device: str) -> abut.Scene:
    """A scene of shapes at their poses; equal shapes share a mesh."""
    scene = abut.Scene(device)
    meshes = {id(shape): mesh_of(shape, device) for shape in placed.shapes}
    for shape, pose in zip(placed.shapes, placed.poses, strict=True):
        scene.add(meshes[id(shape)], pose)
    return scene


def assembly(name: str, most: int) -> cases.PlacedShapes:
    """The first parts of a file of parts."""
    file = archive(name)
    keys = sorted(key[:-3] for key in file if key.endswith("__V"))[:most]
    parts = [cases.Shape(file[key + "__V"], file[key + "__F"]) for key in keys]
    return cases.PlacedShapes(parts, np.tile(np.eye(4), (len(parts), 1, 1)))


# ---- What is asked


def given(operands: Any, device: str) -> list[Any]:
    """Operands with a new mesh for every shape."""
    return [mesh_of(x, device) if isinstance(x, cases.Shape) else x for x in operands]


def ask(verb: Callable[..., Any], *operands: Any, device: str, **options: Any) -> Iterator[Any]:
    """Call a verb with new meshes; other operands are passed on."""
    result = verb(*given(operands, device), **options)
    yield Loose(result) if options.get("first") or options.get("tolerance", 0) > 0 else result


def case(name: str, verb: Callable[..., Any], *operands: Any, **options: Any) -> Case:
    """A case of ``ask``."""
    return name, lambda device: ask(verb, *operands, device=device, **options)


def custom_case(
    name: str, steps: Callable[..., Iterator[Any]], *about: Any, **options: Any
) -> Case:
    """Return a case from a function that yields results."""
    return name, partial(steps, *about, **options)


def deforming(verb: Callable[..., Any], shapes: Any, options: Any, device: str) -> Iterator[Any]:
    """Repeat a query while the first mesh deforms, first a little and then much."""
    meshes = [mesh_of(shape, device) for shape in shapes]
    for frame in range(4):
        meshes[0].deform(noisy(shapes[0], frame, 0.01 * 3**frame))
        yield verb(*meshes, **options)


def properties(mesh: abut.Mesh) -> dict[str, Any]:
    """Return the attributes of a mesh."""
    names = ("faces", "vertices", "edges", "watertight", "oriented")
    return {name: getattr(mesh, name) for name in names}


def repeated(verb: Callable[..., Any], shapes: Any, options: Any, device: str) -> Iterator[Any]:
    """Repeat a query, so the hierarchies of its meshes improve."""
    meshes = [mesh_of(shape, device) for shape in shapes]
    for seed in range(4):
        result = verb(*meshes, pose_b=poses(seed, 150), **options)
        yield Loose(result) if options.get("first") else result


def impacts(shapes: Any, ends: Any, options: dict, device: str) -> Iterator[Any]:
    """CCD of one or two motions; an end is an array of vertices or a pair of poses."""
    moves = []
    for shape, end in zip(shapes, ends, strict=True):
        mesh = mesh_of(shape, device)
        if isinstance(end, tuple):
            moves.append(abut.Motion(mesh, start_pose=end[0], end_pose=end[1]))
        else:
            moves.append(abut.Motion(mesh, end=end))
    result = abut.ccd(*moves, **options)
    yield Loose(result) if options.get("first") else result


def tracked(shapes: Any, frames: Any, method: str, device: str, **options: Any) -> Iterator[Any]:
    """Frames through a tracker: contacts, then impacts on the way back."""
    meshes = [mesh_of(shape, device) for shape in shapes]
    tracker = abut.Tracker(meshes[0] if len(meshes) == 1 else tuple(meshes), method=method)
    for vertices in frames:
        yield tracker.step(*vertices)
    for vertices in frames[::-1]:
        yield tracker.advance(*vertices, **options)


def asked(make: Callable[[str], Any], name: str, options: dict, device: str) -> Iterator[Any]:
    """A method of an object that is made first: a scene or a field."""
    about, owner = dict(options), make(device)
    result = getattr(owner, name)(*given(about.pop("of", ()), device), **about)
    if name == "colliding":
        result = {"colliding": result}
    yield Loose(result) if about.get("first") else result


def scene_sequence(method: str, device: str) -> Iterator[Any]:
    """Yield the contacts after objects are added, moved, deformed, split and removed."""
    scene = abut.Scene(device)
    ball, ring = mesh_of(cases.icosphere(80), device), mesh_of(cases.torus(12, 8), device)
    places = poses(1, 12, 2.0)
    scene.add(mesh_of(cases.box((6, 6, 1)), device), name="floor", static=True)
    balls = list(scene.add(ball, places))
    own = method not in ("kdop",)
    contacts = partial(scene.collide, method=method, self_collisions=own)
    yield contacts()
    rings = list(scene.add(ring, poses(2, 5, 2.0), group=2, mask=1))
    scene.move(balls[:4], poses(3, 4, 1.5))
    yield contacts()
    scene.deform(balls[0], noisy(cases.icosphere(80), 4, 0.3))
    scene.ignore(balls[1], rings)
    yield contacts()
    pieces = list(scene.split(balls[2], np.arange(80) // 20))
    scene.remove(balls[5:8])
    yield contacts()
    scene.move(pieces, poses(5, 4, 0.5))
    scene.add(ring, places[0], name="late")
    yield contacts()
    yield scene.within(0.1)
    yield scene.distance()
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.6
    yield scene.ccd(ends, vertices={balls[0]: cases.icosphere(80).vertices})


def loaded(path: Any, text: Any, count: int, device: str) -> Iterator[Any]:
    """Load a scene from a file or from text; pose a robot in many positions."""
    with tempfile.TemporaryDirectory() as folder:
        if text is not None:
            path = Path(folder) / path
            path.write_bytes(text())
        scene = abut.Scene.load(path, device)
    yield {"names": np.array(sorted(scene.names)), "poses": scene.poses.numpy()}
    yield scene.collide()
    yield scene.distance(upper_bound=0.2)
    if scene.robot is not None:
        limits = np.clip(scene.robot.limits, -3.0, 3.0)
        values = limits[:, 0] + uniform(7, count, len(limits)) * (limits[:, 1] - limits[:, 0])
        batch = scene.robot.poses(values)
        yield {"poses": batch}
        yield scene.collide(poses=batch)
        yield {"colliding": scene.colliding(poses=batch)}
        scene.move(scene.indices, batch[0])
        yield scene.ccd(batch[1])


def glb() -> bytes:
    """A scene file of three nodes."""
    scene = trimesh.Scene()
    for k, shape in enumerate((cases.icosphere(80), cases.box(), cases.torus(12, 8))):
        part = trimesh.Trimesh(*shape, process=False)
        scene.add_geometry(part, node_name=f"part {k}", transform=poses(k, 0, 0.4))
    return scene.export(file_type="glb")


def differentiated(field: Callable[[str], Any], shape: Any, device: str) -> Iterator[Any]:
    """The response of a field and its derivative on a tape."""
    made, ring = field(device), mesh_of(shape, device)
    at = [wp.transformd(wp.vec3d(0.4, 0.1, 0.0), wp.quatd(0.0, 0.0, 0.0, 1.0))]
    at = wp.array(at, dtype=wp.transformd, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        held = made.response_on_tape(ring, at, pixels=48)
    tape.backward(grads={held.energy: wp.array([1.0], dtype=wp.float64, device=device)})
    yield {"energy": held.energy, "gradient": at.grad}


def culled(placed: Any, options: dict, device: str) -> Iterator[Any]:
    """The potentially colliding set of meshes at poses, and of a scene of them."""
    meshes = [mesh_of(shape, device) for shape in placed.shapes]
    yield abut.cull(meshes, poses=placed.poses, **options)
    yield abut.cull(scene_of(placed, device), **options)


def rows_asked(name: str, arrays: Any, options: dict, device: str) -> Iterator[Any]:
    """A function of ``abut.primitives``."""
    found = getattr(primitives, name)(*(wp.array(a, device=device) for a in arrays), **options)
    if name == "intersect_tri_tri":
        yield {"met": found}
    elif name == "distance_tri_tri":
        yield {"distance": found[0], "points": found[1]}
    else:
        yield {"found": np.isfinite(found.numpy()), "time": found}


def cloth_steps(device: str) -> Iterator[Any]:
    """Yield steps of a sheet that falls on a table."""
    cloth = sim.Cloth(*cases.drape_table(faces=200).placed(), device=device)
    for _ in range(6):
        cloth.step(0.01)
    yield {"vertices": cloth.mesh.vertices}


# ---- The table of cases, a generator for each verb; ``big`` asks for more and larger data


def collide_cases(big: bool) -> Iterator[Case]:
    """Cases of two meshes: methods, bounds, poses, dtypes, solids, degenerate shapes."""
    both = {"pose_a": poses(1, 6, 0.3), "pose_b": poses(2, 6, 0.6)}
    asks = CONTACT_METHODS | {
        "first": {"first": True},
        "solid": {"solid": True},
        "pose": {"pose_b": poses(3, 0, 0.5)},
        "batch": {"pose_b": poses(4, 20)},
        "batch-first": {"pose_b": poses(4, 20), "first": True},
        "batch-solid": {"pose_b": poses(4, 20), "solid": True},
        "both": both,
        "one-both": {"pose_a": poses(5, 0, 0.1), "pose_b": poses(6, 8, 0.5)},
    }
    pairs = {name: cases.pair(name, 700) for name in cases.PAIRS}
    pairs["lattice"] = lattice(1, 150), lattice(2, 150)
    for name, (a, b) in pairs.items():
        for how, options in asks.items():
            yield case(f"collide/{name}/{how}", abut.collide, a, b, **options)
    a, b = cases.pair("knot", 1200)
    for how, options in CONTACT_METHODS.items():
        yield case(f"collide/knot/both/{how}", abut.collide, a, b, **both, **options)
        yield case(f"collide/knot/first/{how}", abut.collide, a, b, first=True, **options)
        single = [changed(x, dtype=np.float32) for x in (a, b)]
        yield case(f"collide/knot/float32/{how}", abut.collide, *single, **options)
        yield custom_case(f"collide/knot/deform/{how}", deforming, abut.collide, (a, b), options)
    mixed = changed(a, dtype=np.float32), b
    yield case("collide/knot/mixed", abut.collide, *mixed)
    yield custom_case("collide/knot/again", repeated, abut.collide, (a, b), {})
    yield custom_case("collide/knot/again-first", repeated, abut.collide, (a, b), {"first": True})
    for size, shift in ((1e-9, 0.0), (1.0, 1e6), (1e9, 0.0), (1e-150, 0.0), (1e150, 0.0)):
        hard = [changed(x, size, shift) for x in cases.pair("knot", 100)]
        yield case(f"collide/knot/scale {size:g} shift {shift:g}", abut.collide, *hard)


def self_cases(big: bool) -> Iterator[Case]:
    """Cases of one mesh against itself."""
    shapes = {name: cases.single(name, 1500) for name in cases.SINGLES}
    shapes |= {"lattice": lattice(3, 300, 6), "tree": cases.leaves(1, 2000).shapes[0]}
    for name, shape in shapes.items():
        order = np.arange(3 * len(shape.faces)).reshape(-1, 3)
        soup = cases.Shape(shape.vertices[shape.faces].reshape(-1, 3), order)
        for weld in (True, False):
            mark = "weld" if weld else "index"
            for method in ("bvh", "brute", "far", "cullide", "quick_cullide"):
                about = {"method": method, "weld": weld, "pixels": 200}
                yield case(f"self/{name}/{mark}/{method}", abut.self_collide, shape, **about)
            yield case(f"self/{name}/soup/{mark}", abut.self_collide, soup, weld=weld)
        yield custom_case(f"self/{name}/deform", deforming, abut.self_collide, (shape,), {})
        single = changed(shape, dtype=np.float32)
        yield case(f"self/{name}/float32", abut.self_collide, single)


def ccd_cases(big: bool) -> Iterator[Case]:
    """Straight and rigid motions, of two meshes and of one."""
    asks = {
        "plain": {},
        "brute": {"method": "brute"},
        "cubic": {"solver": "cubic"},
        "gap": {"min_distance": 0.05},
        "loose": {"tolerance": 1e-3},
        "first": {"first": True},
        "first-gap": {"first": True, "min_distance": 0.05},
        "index": {"weld": False},
    }
    pairs = {name: cases.pair(name, 250) for name in ("knot", "apart", "terrain", "stacked_boxes")}
    pairs["lattice"] = lattice(4, 60, 8), lattice(5, 60, 8)
    for name, (a, b) in pairs.items():
        ends = {
            "shift": (noisy(a, 1, 0.0) + SHIFT, b.vertices),
            "bend": (noisy(a, 1, 0.1), noisy(b, 2, 0.1)),
            "turn": ((poses(1, 0, 0.3), poses(2, 0, 0.3)), (np.eye(4), np.eye(4))),
            "both": ((poses(3, 0, 0.3), poses(4, 0, 0.3)), noisy(b, 3, 0.05)),
        }
        for way, end in ends.items():
            for how, options in asks.items():
                yield custom_case(f"ccd/{name}/{way}/{how}", impacts, (a, b), end, options)
    for name, shape in {
        "folded_cloth": cases.single("folded_cloth", 800),
        "thick_knot": cases.single("thick_knot", 600),
        "lattice": lattice(6, 80, 8),
    }.items():
        for how, options in asks.items():
            end = noisy(shape, 5, 0.04)
            yield custom_case(f"ccd/{name}/self/{how}", impacts, (shape,), (end,), options)
        single = changed(shape, dtype=np.float32)
        end = noisy(shape, 6, 0.04).astype(np.float32)
        yield custom_case(f"ccd/{name}/self/float32", impacts, (single,), (end,), {})


def distance_cases(big: bool) -> Iterator[Case]:
    """Distances, and faces within a distance."""
    asks = {"plain": {}, "brute": {"method": "brute"}}
    asks |= {bound: {"bound": bound} for bound in ("aabb", "obb", "rss")}
    more = {"tolerance": {"tolerance": 0.05}, "bound": {"upper_bound": 0.3}}
    more |= {"pose": {"pose_b": poses(1, 0, 2.0)}, "batch": {"pose_b": poses(2, 30, 2.5)}}
    more["both"] = {"pose_a": poses(3, 9), "pose_b": poses(4, 9, 2.0), "upper_bound": 0.5}
    more["far"] = {"pose_b": poses(5, 9, 1e12)}
    pairs = {name: cases.pair(name, 500) for name in cases.PAIRS}
    pairs["lattice"] = lattice(7, 40), changed(lattice(8, 40), shift=3)
    for name, (a, b) in pairs.items():
        for how, options in (asks | more).items():
            yield case(f"distance/{name}/{how}", abut.distance, a, b, **options)
        for how in ("plain", "brute"):
            for reach in (0.0, 0.1):
                name_of = f"within/{name}/{reach}/{how}"
                yield case(name_of, abut.within, a, b, reach, **asks[how])
                self_name = f"within/{name}/one mesh/{reach}/{how}"
                yield case(self_name, abut.within, a, None, reach, **asks[how])
            both = {"pose_a": poses(3, 5, 0.2), "pose_b": poses(4, 5), **asks[how]}
            yield case(f"within/{name}/both/{how}", abut.within, a, b, 0.1, **both)
    shapes = cases.pair("apart", 1200)
    del asks["brute"]
    for how, options in asks.items():
        about = {"pose_b": poses(6, 40, 3.0), **options}
        yield case(f"distance/apart/batch/{how}", abut.distance, *shapes, **about)
        yield custom_case(f"distance/apart/deform/{how}", deforming, abut.distance, shapes, options)
        yield custom_case(f"distance/apart/again/{how}", repeated, abut.distance, shapes, options)
    for size, shift in ((1e-9, 0.0), (1.0, 1e6), (1e-150, 0.0), (1e150, 0.0)):
        hard = [changed(x, size, shift) for x in cases.pair("apart", 100)]
        yield case(f"distance/apart/scale {size:g} shift {shift:g}", abut.distance, *hard)
        yield case(f"within/apart/scale {size:g} shift {shift:g}", abut.within, *hard, 0.2 * size)


def point_cases(big: bool) -> Iterator[Case]:
    """Closest points with and without signs."""
    points = (uniform(1, 1500, 3) - 0.5) * 3
    asks = {"plain": {}, "bound": {"upper_bound": 0.1}, "brute": {"method": "brute"}}
    asks |= {f"signed-{s}": {"signed": s} for s in (True, "winding", "pseudonormal")}
    asks |= {"batch": {"pose": poses(1, 3)}, "batch-signed": {"pose": poses(1, 3), "signed": True}}
    asks["brute-signed"] = {"method": "brute", "signed": True, "upper_bound": 0.5}
    shapes = {name: cases.pair(name, 800)[0] for name in cases.PAIRS}
    shapes |= {name: cases.single(name, 800) for name in ("folded_cloth", "thick_knot")}
    shapes["lattice"] = changed(lattice(9, 60), 0.5, -1.0)
    shapes["shells"] = cases.joined(cases.icosphere(320), cases.icosphere(320, 0.6), cases.box())
    for name, shape in shapes.items():
        for how, options in asks.items():
            yield case(f"closest_point/{name}/{how}", abut.closest_point, shape, points, **options)
        on = shape.vertices[shape.faces].mean(axis=1)
        yield case(f"closest_point/{name}/on", abut.closest_point, shape, on, signed=True)
        single = points.astype(np.float32)
        yield case(f"closest_point/{name}/float32", abut.closest_point, shape, single)


def field_cases(big: bool) -> Iterator[Case]:
    """Distance fields: their samples, what is closest, and responses."""

    def make(shape: Any, options: dict, device: str) -> abut.DistanceField:
        return abut.DistanceField(mesh_of(shape, device), **options)

    knot, ring = cases.pair("knot", 1500)[0], cases.torus(24, 12, 0.5, 0.2)
    sheet = cases.single("folded_cloth", 600)
    made = {
        "knot": (knot, {"resolution": 40}),
        "winding": (knot, {"resolution": 24, "sign": "winding"}),
        "band": (knot, {"spacing": 0.05, "band": 0.1, "margin": 0.3}),
        "brute": (knot, {"resolution": 12, "method": "brute"}),
        "open": (sheet, {"resolution": 32}),
    }
    spin = uniform(3, 6) - 0.5
    for name, (shape, options) in made.items():
        field, points = partial(make, shape, options), (uniform(2, 2000, 3) - 0.5) * 3

        def grid(device: str, field: Any = field) -> Iterator[Any]:
            yield field(device)

        yield f"field/{name}", grid
        yield custom_case(f"field/{name}/sample", asked, field, "sample", {"of": (points,)})
        for pose, mark in ((poses(4, 0, 0.3), "one"), (poses(5, 5, 0.6), "batch")):
            for sampling in ("dominant", "views", "faces"):
                about = {"of": (ring, pose), "pixels": 96, "sampling": sampling}
                end = f"closest/{mark}/{sampling}"
                yield custom_case(f"field/{name}/{end}", asked, field, "closest", about)
            for early in ("bound", "depth", "nothing"):
                about = {"of": (ring, pose), "pixels": 96, "early_out": early}
                about |= {"stiffness": 50.0, "damping": 1.0, "friction": 0.3, "slip": 0.1}
                about |= {"velocity": spin, "field_velocity": spin[::-1].copy()}
                end = f"response/{mark}/{early}"
                yield custom_case(f"field/{name}/{end}", asked, field, "response", about)
        about = {"of": (ring, poses(4, 0, 0.3)), "pixels": 64, "sampling": "faces"}
        yield custom_case(f"field/{name}/response/faces", asked, field, "response", about)
    field = partial(make, knot, {"resolution": 32})
    yield custom_case("field/knot/tape", differentiated, field, ring)


def scene_cases(big: bool) -> Iterator[Case]:
    """Scenes: contacts by every method, gaps, distances, impacts, batches, files."""
    crowds = {
        "balls": cases.balls(20, 80, 1.2),
        "boxes": cases.boxes(60, room=1.3),
        "leaves": cases.leaves(10, 600),
        "pieces": cases.breaking(1200, 12),
    }
    for name, placed in crowds.items():
        scene, count = partial(scene_of, placed), len(placed.poses)
        batch = placed.poses @ shifts(1, 6 * count, 0.2).reshape(6, count, 4, 4)
        ends = placed.poses @ poses(2, count, 0.3)
        asks = {f"collide/{m}": ("collide", {"method": m, "pixels": 128}) for m in SCENE_METHODS}
        asks |= {
            f"collide/{m}/own": ("collide", {"method": m, "pixels": 128, "self_collisions": True})
            for m in SCENE_METHODS
        }
        asks |= {f"collide/{b}": ("collide", {"broad": b}) for b in BROAD_METHODS}
        asks |= {
            "collide/first": ("collide", {"first": True}),
            "collide/batch": ("collide", {"poses": batch}),
            "collide/batch/brute": ("collide", {"poses": batch, "method": "brute"}),
            "collide/batch/first": ("collide", {"poses": batch, "first": True}),
            "collide/batch/own": ("collide", {"poses": batch, "self_collisions": True}),
            "colliding": ("colliding", {}),
            "colliding/batch": ("colliding", {"poses": batch}),
        }
        for method in ("bvh", "brute"):
            how = {"method": method}
            asks |= {
                f"within/{method}": ("within", {"of": (0.1,), **how}),
                f"within/{method}/own": ("within", {"of": (0.05,), "self_collisions": True, **how}),
                f"distance/{method}": ("distance", how),
                f"distance/{method}/bound": ("distance", {"upper_bound": 0.5, **how}),
            }
            if method == "bvh" or name == "boxes":
                asks[f"ccd/{method}"] = ("ccd", {"of": (ends,), **how})
        asks["ccd/gap"] = ("ccd", {"of": (ends,), "min_distance": 0.02})
        asks["ccd/own"] = ("ccd", {"of": (ends,), "self_collisions": True})
        asks["ccd/first"] = ("ccd", {"of": (ends,), "first": True})
        for how, (verb, options) in asks.items():
            yield custom_case(f"scene/{name}/{how}", asked, scene, verb, options)
    for method in SCENE_METHODS:
        yield custom_case(f"scene/story/{method}", scene_sequence, method)
    yield custom_case("scene/glb", loaded, "parts.glb", glb, 0)
    yield custom_case("scene/mjcf", loaded, "robot.xml", ROBOT.encode, 30)
    yield custom_case("sim/cloth", cloth_steps)


def cull_cases(big: bool, backends: tuple[str, ...] = ("warp",)) -> Iterator[Case]:
    """What may collide, by methods, views, levels, distances and orders."""
    crowds = {"leaves": cases.leaves(12, 800), "boxes": cases.boxes(50, room=1.4)}
    crowds["pieces"] = cases.breaking(1000, 10)
    asks = {"plain": {}, "coarse": {"pixels": 16}, "view": {"views": "zX"}}
    asks |= {order: {"order": order} for order in ("drawn", "free")}
    asks |= {"object": {"level": "object"}, "near": {"distance": 0.05}}
    asks["own"] = {"self_collisions": True}
    for backend in backends:
        for name, placed in crowds.items():
            for method in ("far", "cullide", "quick_cullide"):
                for how, options in asks.items():
                    about = {"pixels": 128, "method": method, "backend": backend} | options
                    yield custom_case(
                        f"cull/{backend}/{name}/{method}/{how}", culled, placed, about
                    )


def tracker_cases(big: bool) -> Iterator[Case]:
    """Frames of one mesh and of two."""
    cloth, (a, b) = cases.single("folded_cloth", 1500), cases.pair("tori", 800)
    alone = [(noisy(cloth, k, 0.02),) for k in range(5)]
    both = [(noisy(a, k, 0.02), noisy(b, k + 9, 0.05) if k % 2 else None) for k in range(5)]
    for method in ("bvh", "front", "brute"):
        about = {"min_distance": 0.005, "tolerance": 1e-5}
        yield custom_case(f"tracker/cloth/{method}", tracked, (cloth,), alone, method, **about)
        yield custom_case(f"tracker/tori/{method}", tracked, (a, b), both, method)


def other_cases(big: bool) -> Iterator[Case]:
    """Meshes, primitives, the hardware model, and input that is refused."""
    for name in cases.PAIRS:
        for side, shape in enumerate(cases.pair(name, 600)):
            yield case(f"mesh/{name}/{side}", properties, shape)
    sides = [uniform(k, 4000, 3, 3) for k in (1, 2)]
    grid = [np.floor(uniform(k, 4000, 3, 3) * 4) for k in (3, 4)]
    moves = [uniform(k, 3000, 4, 3) for k in (5, 6)]
    steps = [np.floor(uniform(k, 3000, 4, 3) * 4) for k in (7, 8)]
    for dtype in (np.float32, np.float64):
        for mark, *arrays in (("random", sides, moves), ("lattice", grid, steps)):
            tri, quad = ([x.astype(dtype) for x in rows] for rows in arrays)
            end = f"{mark}/{dtype.__name__}"
            for name in ("intersect_tri_tri", "distance_tri_tri"):
                yield custom_case(f"primitives/{name}/{end}", rows_asked, name, tri, {})
            for name in ("ccd_vertex_face", "ccd_edge_edge"):
                yield custom_case(f"primitives/{name}/{end}", rows_asked, name, quad, {})
                gap = {"min_distance": 0.1, "tolerance": 1e-4}
                yield custom_case(f"primitives/{name}/{end}/gap", rows_asked, name, quad, gap)
    knot = cases.pair("knot", 250)
    machines = {"width": (11, 18, 35), "pipelines": (4,), "sides": (14,), "axis_count": (9,)}
    for key, value in ((key, value) for key, values in machines.items() for value in values):
        about = {"engine": "model", "pose_b": poses(1, 0, 0.2), key: value}
        yield case(f"hardware/{key} {value}", hardware.simulate, *knot, **about)
    ball, nothing = cases.icosphere(20), cases.Shape(np.zeros((0, 3)), np.zeros((0, 3), np.int32))
    bad = cases.Shape(np.full((12, 3), np.nan), ball.faces)
    missing = cases.Shape(ball.vertices[:5], ball.faces)
    large = np.diag([2.0, 2, 2, 1])
    for name, shape in {"nan": bad, "index": missing}.items():
        yield case(f"refused/{name}", abut.self_collide, shape)
    for verb in (abut.collide, abut.distance):
        yield case(f"refused/{verb.__name__}/pose", verb, ball, ball, pose_b=large)
        yield case(f"refused/{verb.__name__}/empty", verb, ball, nothing)
        yield case(f"refused/{verb.__name__}/method", verb, ball, ball, method="best")
    yield case("refused/distance/bound", abut.distance, ball, ball, bound="kdop")
    sheet, sign = cases.plane(4, 4), {"resolution": 8, "sign": "pseudonormal"}
    yield case("refused/field/open", abut.DistanceField, sheet, **sign)
    yield case("refused/within/negative", abut.within, ball, ball, -1.0)
    yield case("refused/closest_point/nan", abut.closest_point, ball, np.full((2, 3), np.nan))
    yield case("refused/closest_point/empty", abut.closest_point, nothing, np.zeros((2, 3)))


def data_cases(big: bool) -> Iterator[Case]:
    """Real models, animations, assemblies, robots and published queries."""
    for path in sorted(DATA.glob("selfint/*.ply")):
        shape, name = model(f"selfint/{path.name}"), f"data/self/{path.stem}"
        yield case(f"{name}/mesh", properties, shape)
        for weld in (True, False):
            yield case(f"{name}/{weld}", abut.self_collide, shape, weld=weld)
        yield case(f"{name}/within", abut.within, shape, None, 1e-3 if big else 1e-4)
    names = MODELS if big else MODELS[:5]
    cow, hand, bunny, *large = (model(f"models/{name}.ply") for name in names)
    bunnies = [changed(bunny, dtype=np.float32), changed(bunny, 1.0, 0.2, np.float32)]
    spinning = model("pqp/spinning/bunny.ply"), model("pqp/spinning/torus.ply")
    maze = model("fcl/env.obj"), changed(model("fcl/rob.obj"), 0.2)
    cows = cow, changed(cow, 1.0, 0.05)
    pairs = {"cows": cows, "hands": (hand, cow), "bunnies": bunnies, "pqp": spinning}
    pairs |= {"fcl": maze, "large": (large[0], large[1])}
    pairs |= {"dragon": (large[3], large[0]), "horse": (large[2], large[1])} if big else {}
    count, points = (1000, 100_000) if big else (100, 5000)
    cloud = (uniform(1, points, 3) - 0.5) * 1.5
    for name, (a, b) in pairs.items():
        batch = {"pose_b": poses(1, count if len(a.faces) < 10_000 else count // 10, 0.6)}
        for bound in ("aabb", "obb", "rss", "kdop"):
            many, mark = {"bound": bound, **batch}, f"data/collide/{name}/bound-{bound}"
            yield case(mark, abut.collide, a, b, bound=bound)
            yield case(f"{mark}/batch", abut.collide, a, b, **many)
            if bound != "kdop":
                yield case(f"data/distance/{name}/{bound}", abut.distance, a, b, **many)
        for method in ("kdop", "far", "cullide", "quick_cullide"):
            yield case(f"data/collide/{name}/{method}", abut.collide, a, b, method=method)
        yield case(f"data/collide/{name}/first", abut.collide, a, b, **batch, first=True)
        yield case(f"data/collide/{name}/solid", abut.collide, a, b, **batch, solid=True)
        yield case(f"data/within/{name}", abut.within, a, b, 0.002)
        turn = (poses(2, 0, 0.3), poses(3, 0, 0.3))
        end = ((np.eye(4), turn[1]), (turn[0], turn[0]))
        if len(a.faces) < 10_000:
            yield custom_case(f"data/ccd/{name}/turn", impacts, (a, b), end, {})
        yield custom_case(f"data/ccd/{name}/first", impacts, (a, b), end, {"first": True})
        for signed in (False, True):
            mark = f"data/closest_point/{name}/{signed}"
            yield case(mark, abut.closest_point, a, cloud, signed=signed)
    yield case("data/self/drape", abut.self_collide, model("cloth/multilayer_drape_84k.ply"))
    yield from motion_data_cases(big)
    yield from scene_data_cases(big)


def motion_data_cases(big: bool) -> Iterator[Case]:
    """Animations, frames of cloth, published queries."""
    for name in ("cloth-funnel", "cloth-ball"):
        frames = [abut.Mesh.load(p, "cpu") for p in sorted(DATA.glob(f"ccd_frames/{name}/*.ply"))]
        start = cases.Shape(frames[0].vertices.numpy(), frames[0].faces.numpy())
        end = frames[1].vertices.numpy()
        for how in ({}, {"first": True}, {"min_distance": 1e-4}, {"solver": "cubic"}):
            mark = " ".join(f"{key} {value}" for key, value in how.items())
            yield custom_case(f"data/ccd/{name}/{mark or 'plain'}", impacts, (start,), (end,), how)
        yield case(f"data/self/{name}", abut.self_collide, start)
        yield case(f"data/cull/{name}", lambda m: abut.cull([m], self_collisions=True), start)
    horse = archive("anim/horse_poses_17k_01-03.npz")
    for k, vertices in enumerate(horse["V"]):
        yield case(f"data/self/horse {k}", abut.self_collide, cases.Shape(vertices, horse["F"]))
    for name in ("rumba_dancing_25k_f0-59", "rumba_unfixed_25k_f0-9"):
        file = archive(f"anim/{name}.npz")
        shape = cases.Shape(file["V"][0], file["F"])
        frames = [(vertices,) for vertices in file["V"][1 : 20 if big else 4]]
        for method in ("bvh", "front"):
            yield custom_case(f"data/tracker/{name}/{method}", tracked, (shape,), frames, method)
    for kind in ("vertex-face", "edge-edge"):
        for path in sorted(DATA.glob(f"ccd_queries/*/{kind}/*.csv.gz")):
            lines = [line.split(",") for line in gzip.open(path, "rt")]
            exact = [[Fraction(int(r[i]), int(r[i + 1])) for i in (0, 2, 4)] for r in lines]
            rows = np.array(exact, dtype=np.float64).reshape(-1, 8, 3)
            rows = rows[:, :4].copy(), rows[:, 4:].copy()
            verb, mark = "ccd_" + kind.replace("-", "_"), f"{path.parts[-3]}/{kind}"
            yield custom_case(f"data/queries/{mark}", rows_asked, verb, rows, {})
            yield custom_case(
                f"data/queries/{mark}/gap", rows_asked, verb, rows, {"min_distance": 1e-3}
            )


def scene_data_cases(big: bool) -> Iterator[Case]:
    """Assemblies and robots."""
    for name, most in (("Ifc4_SampleHouse", 58), ("2CylinderEngine", 115 if big else 25)):
        placed = assembly(f"assemblies/{name}.npz", most)
        scene = partial(scene_of, placed)
        batch = shifts(1, 3 * len(placed.poses), 0.01).reshape(3, -1, 4, 4)
        for method in SCENE_METHODS[:1] + SCENE_METHODS[2:]:
            about = {"method": method, "pixels": 128}
            yield custom_case(f"data/scene/{name}/{method}", asked, scene, "collide", about)
        asks = {"own": ("collide", {"self_collisions": True})}
        asks |= {"first": ("collide", {"first": True}), "batch": ("collide", {"poses": batch})}
        asks |= {"distance": ("distance", {}), "bound": ("distance", {"upper_bound": 0.05})}
        asks["within"] = ("within", {"of": (1e-3,)})
        for how, (verb, options) in asks.items():
            yield custom_case(f"data/scene/{name}/{how}", asked, scene, verb, options)
        yield custom_case(f"data/cull/{name}", culled, placed, {"pixels": 256})
    for name in ("mbm_panda", "rtcd_shelf"):
        path = DATA / "robots" / name / "panda.urdf"
        yield custom_case(f"data/robot/{name}", loaded, path, None, 500 if big else 50)


GROUPS = (collide_cases, self_cases, ccd_cases, distance_cases, point_cases, field_cases,
          scene_cases, cull_cases, tracker_cases, other_cases, data_cases)  # fmt: skip


def all_cases(data: str, gl: bool) -> Iterator[Case]:
    """Every case there is; those of models where their folder is."""
    for group in GROUPS:
        if group is data_cases and not DATA.is_dir():
            print(f"there is no data at {DATA}; set ABUT_DATA", file=sys.stderr)
        else:
            yield from kept_going(group(data == "all"), group.__name__)
    if gl:
        yield from cull_cases(data == "all", ("gl",))


def kept_going(group: Iterator[Case], name: str) -> Iterator[Case]:
    """The cases of a group; where making one raises, a case that raises the same comes last."""
    try:
        yield from group
    except Exception as error:

        def raising(device: str, error: Exception = error) -> Iterator[Any]:
            yield {}
            raise error

        yield f"{name} cannot be made", raising


def record(out: Path, device: str, found: Iterator[Case], only: str) -> None:
    """Run all cases and write the table."""
    with out.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        begun, names, raised = time.perf_counter(), set(), 0
        for name, run in found:
            if only not in name:
                continue
            assert name not in names, f"two cases are called {name}"
            names.add(name)
            start, kept = time.perf_counter(), Record()
            try:
                for result in run(device):
                    kept.add(result)
                line = kept.line(name)
            except Exception as error:  # one case must not stop the others
                kind = type(error).__name__
                line = name, kind, hashlib.sha256(kind.encode()).hexdigest(), "", ""
                raised += 1
                print(f"  {name}: {kind}: {str(error)[:200]}", file=sys.stderr)
            table.writerow(line)
            file.flush()
            print(f"{time.perf_counter() - start:8.3f} s  {name}: {line[1]}", file=sys.stderr)
    seconds = time.perf_counter() - begun
    print(f"{len(names)} cases, {raised} raised, {seconds:.0f} s, {abut.__file__}", file=sys.stderr)


def compare(before: Path, after: Path, strict: bool) -> int:
    """List the differences of two tables; 1 where rows differ, or with ``strict`` anything does."""
    old, new = ({row["case"]: row for row in csv.DictReader(p.open())} for p in (before, after))
    rows, witnesses = [], []
    for name in (name for name in old if name in new):
        was, now = old[name], new[name]
        if (was["rows"], was["rows_sha256"]) != (now["rows"], now["rows_sha256"]):
            rows.append(f"rows differ: {name}: {was['rows']} before, {now['rows']} after")
        elif was["witnesses_sha256"] != now["witnesses_sha256"]:
            sums = " and ".join(row["witnesses_sum"] for row in (was, now))
            witnesses.append(f"witnesses differ: {name}: sums {sums}")
    missing = [f"missing: {name}" for name in old if name not in new]
    added = [f"added: {name}" for name in new if name not in old]
    for line in (*missing, *added, *witnesses, *rows):
        print(line)
    counts = f"{len(rows)} differ in rows, {len(witnesses)} in witnesses alone"
    counts += f", {len(missing)} are missing, {len(added)} added"
    print(f"{len(old)} cases before, {len(new)} after: {counts}")
    return int(bool(rows) or (strict and bool(witnesses or missing or added)))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--out", type=Path, default=Path("answers.csv"), help="the table to write")
    parser.add_argument("--data", choices=("small", "all"), default="small", help="how much data")
    parser.add_argument("--gl", action="store_true", help="also cull by the graphics pipeline")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--strict", action="store_true", help="fail where anything differs")
    told_to = parser.parse_args()
    if told_to.compare:
        return compare(*told_to.compare, told_to.strict)
    wp.config.log_level = wp.LOG_WARNING
    record(told_to.out, told_to.device, all_cases(told_to.data, told_to.gl), told_to.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
