"""Cases of ``bench_everyday``: small questions asked once, a few times, or of many poses.

Models are scaled to a largest extent of 1; robot links keep their size, in metres.
"""

from dataclasses import replace
from functools import cache

import numpy as np

import abut
from benchmarks.cases import (
    Case,
    Question,
    _cloth,
    _gem,
    _knot,
    _load,
    _model,
    _unit,
    data_folder,
    random_poses,
)

MANY = 100_000
LINKS = "robots/rtcd_shelf/links/link5.obj", "robots/rtcd_shelf/links/link6.obj"
OPEN_LINK = "link7_0_obj"  # of the visual meshes of a robot: 5,374 faces
REACH = {"cows": 0.6, "links": 0.4, "dragon_armadillo": 0.75, "horses": 0.65}
FIRST_PAIRS = {
    "cow_cow": ("cow_5k", "cow_5k"),
    "cow_hand": ("cow_5k", "hand_cgal"),
    "bunny_cow": ("bunny_69k", "cow_5k"),
    "bunny_horse": ("bunny_69k", "horse_97k"),
    "fertility_hand": ("fertility_60k", "hand_cgal"),
    "fertility_bunny": ("fertility_60k", "bunny_69k"),
    "horse_armadillo": ("horse_97k", "armadillo_86k"),
    "dragon_armadillo": ("dragon_202k", "armadillo_86k"),
}


def one_first(device: str) -> list[Case]:
    """Whether two meshes intersect: boxes apart, meshes that just miss each other, in contact."""
    return [
        *_single("one_first", Question.FIRST, device, "tetrahedra", apart=True, contact=True),
        *_single("one_first", Question.FIRST, device, "cows", apart=True, near=True, contact=True),
        *_single("one_first", Question.FIRST, device, "links", apart=True, near=True, contact=True),
        *_single("one_first", Question.FIRST, device, "dragon_armadillo", near=True, contact=True),
    ]


def one_pairs(device: str) -> list[Case]:
    """All pairs of two meshes."""
    return [
        *_single("one_pairs", Question.PAIRS, device, "tetrahedra", apart=True, contact=True),
        *_single("one_pairs", Question.PAIRS, device, "cows", apart=True, near=True, contact=True),
    ]


def one_within(device: str) -> list[Case]:
    """All pairs at most a hundredth of a model apart."""
    return [
        *_single("one_within", Question.WITHIN, device, "tetrahedra", apart=True),
        *_single("one_within", Question.WITHIN, device, "cows", apart=True, contact=True),
    ]


def one_distance(device: str) -> list[Case]:
    """How far apart two meshes are."""
    return [
        *_single("one_distance", Question.DISTANCE, device, "tetrahedra", apart=True),
        *_single("one_distance", Question.DISTANCE, device, "cows", apart=True, near=True),
        *_single("one_distance", Question.DISTANCE, device, "links", apart=True, near=True),
        *_single("one_distance", Question.DISTANCE, device, "dragon_armadillo", near=True),
    ]


def one_point(device: str) -> list[Case]:
    """How far a mesh is from one point."""
    point = np.array([[0.7, 0.2, 0.4]])
    cases = []
    for name in ("tetrahedra", "cows", "dragon_armadillo"):
        prefix, vertices, faces, *_ = _meshes(name)
        variant = prefix + {"tetrahedra": "tetrahedron", "cows": "cow"}.get(name, "dragon")
        base = Case("one_point", variant, Question.POINTS, device, vertices, faces)
        cases.append(replace(base, points=point.astype(np.float32).astype(np.float64)))
    return cases


def poses_first(device: str) -> list[Case]:
    """Which of 10,000 and 100,000 poses are in contact."""
    cases = []
    for name in ("cows", "links", "dragon_armadillo", "horses"):
        sizes = (MANY,) if name == "horses" else (10_000, MANY)
        for count in (100, *sizes) if name == "cows" else sizes:
            cases.append(_batch("poses_first", Question.POSES, device, name, count))
    return cases


def poses_pairs(device: str) -> list[Case]:
    """All pairs at 10,000 poses."""
    return [_batch("poses_pairs", Question.POSE_PAIRS, device, "cows", 10_000)]


def poses_distance(device: str) -> list[Case]:
    """How far apart two meshes are at one, 10 and 10,000 poses."""
    return [
        _batch("poses_distance", Question.DISTANCES, device, name, count, reach=1.0)
        for name in ("cows", "dragon_armadillo")
        for count in (1, 10, 10_000)
    ]


def self_refit(device: str) -> list[Case]:
    """Self-contacts of moving meshes, hierarchy update included; the time is per frame."""
    cases = []
    for name, (prefix, faces, frames) in _animations().items():
        extras = {"frames": frames}
        question = Question.SELF_REFIT
        cases.append(
            Case("self_refit", prefix + name, question, device, frames[0], faces, **extras)
        )
    return cases


def million_points(device: str) -> list[Case]:
    """How far an open mesh is from a million points in its box, enlarged by a fifth."""
    prefix, vertices, faces = _open_link()
    low, high = vertices.min(axis=0).astype(np.float64), vertices.max(axis=0).astype(np.float64)
    share = np.random.default_rng(1).random((1_000_000, 3)) - 0.5
    points = ((low + high) / 2 + 1.2 * share * (high - low)).astype(np.float32).astype(np.float64)
    return [
        Case("million_points", prefix + name, question, device, vertices, faces, points=points)
        for name, question in (
            ("unsigned", Question.POINTS),
            ("signed", Question.SIGNED_POINTS),
        )
    ]


def first_distances(device: str) -> list[Case]:
    """Twenty poses of pairs of models, almost all apart, for the first calls of new meshes."""
    cases = []
    for name, files in FIRST_PAIRS.items():
        prefix, vertices, faces = _model(f"models/{files[0]}.ply", _gem)
        _, other, other_faces = _model(f"models/{files[1]}.ply", _knot)
        vertices, other = _unit(vertices), _unit(other)
        base = Case("first_distances", prefix + name, Question.DISTANCE, device, vertices, faces)
        poses = random_poses(other, 20, reach=1.0)
        cases.append(replace(base, other=other, other_faces=other_faces, pose=poses))
    return cases


def _single(
    job: str,
    question: Question,
    device: str,
    name: str,
    apart: bool = False,
    near: bool = False,
    contact: bool = False,
) -> list[Case]:
    """One pose each: boxes apart, boxes overlap but no faces meet, faces meet."""
    prefix, vertices, faces, other, other_faces = _meshes(name)
    found = {"apart": apart, "near": near, "contact": contact}
    poses = _poses_of(name, device)
    base = Case(job, "", question, device, vertices, faces, other, other_faces=other_faces)
    return [
        replace(base, variant=f"{prefix}{name}_{how}", pose=poses[how], distance=0.01)
        for how, wanted in found.items()
        if wanted
    ]


def _batch(
    job: str, question: Question, device: str, name: str, count: int, reach: float | None = None
) -> Case:
    """The first of 100,000 random poses; without ``reach`` about half are in contact."""
    prefix, vertices, faces, other, other_faces = _meshes(name)
    moved = vertices if other is None else other
    size = float(np.ptp(vertices, axis=0).max() / np.ptp(moved, axis=0).max())
    reach = REACH[name] if reach is None else reach
    poses = random_poses(moved, MANY, reach * max(size, 1.0))[:count]
    base = Case(job, f"{prefix}{name}_{count}", question, device, vertices, faces, other)
    return replace(base, other_faces=other_faces, pose=poses)


@cache
def _meshes(
    name: str,
) -> tuple[str, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return a variant prefix, and vertices and faces of two meshes, or of one asked twice."""
    if name == "tetrahedra":
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
        faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
        return "", corners, faces, corners.copy(), faces
    if name == "cows":
        prefix, vertices, faces = _model("models/cow_5k.ply", _knot)
        return prefix, _unit(vertices), faces, None, None
    if name == "horses":
        prefix, vertices, faces = _model("models/horse_97k.ply", _gem)
        return prefix, _unit(vertices), faces, None, None
    if name == "links":
        prefix, vertices, faces = _model(LINKS[0], _knot)
        return prefix, vertices, faces, *_model(LINKS[1], _knot)[1:]
    prefix, vertices, faces = _model("models/dragon_202k.ply", _gem)
    _, other, other_faces = _model("models/armadillo_86k.ply", _knot)
    return prefix, _unit(vertices), faces, _unit(other), other_faces


@cache
def _poses_of(name: str, device: str) -> dict[str, np.ndarray]:
    """A pose with boxes apart, one near without contact, and one in contact."""
    _, vertices, faces, other, other_faces = _meshes(name)
    moved = vertices if other is None else other
    a = abut.Mesh(vertices, faces, device)
    b = a if other is None else abut.Mesh(other, other_faces, device)
    poses = random_poses(moved, 200, 0.5)
    colliding = abut.collide(a, b, pose_b=poses, first=True).colliding.numpy()
    away = np.eye(4)
    away[0, 3] = 5.0 * float(np.ptp(vertices, axis=0).max())
    near = poses[np.flatnonzero(~colliding)[0]] if not colliding.all() else away
    return {"apart": away, "near": near, "contact": poses[np.flatnonzero(colliding)[0]]}


@cache
def _animations() -> dict[str, tuple[str, np.ndarray, tuple[np.ndarray, ...]]]:
    """Return for each animation a variant prefix, the faces and some frames."""
    found, folder = {"cloth_ball": _cloth()}, data_folder()
    if folder is not None:
        files = [folder / "ccd_frames" / "cloth-funnel" / f"{n}.ply" for n in (227, 228)]
        (first, faces), (second, _) = (_load(file) for file in files)
        found["cloth_funnel"] = "", faces, (first, second)
        anims = {"dancer": "rumba_dancing_25k_f0-59", "horse": "horse_poses_17k_01-03"}
        for name, file in anims.items():
            with np.load(folder / "anim" / f"{file}.npz") as arrays:
                frames = tuple(np.ascontiguousarray(v, np.float32) for v in arrays["V"][:3])
                found[name] = "", np.ascontiguousarray(arrays["F"], np.int32), frames
    return found


@cache
def _open_link() -> tuple[str, np.ndarray, np.ndarray]:
    folder = data_folder()
    if folder is None:
        from abut.cases import folded_cloth

        vertices, faces = folded_cloth(60, 45, 1.6)
        return "procedural_", vertices.astype(np.float32), faces
    with np.load(folder / "robots" / "panda.npz") as arrays:
        vertices, faces = arrays[f"{OPEN_LINK}__V"], arrays[f"{OPEN_LINK}__F"]
    return "", np.asarray(vertices, np.float32), np.ascontiguousarray(faces, np.int32)
