"""A procedural plant: pipe racks with pipes, flanges, steel, trays and vessels, bay by bay.

Every bay can be made by itself. Neighbours touch or keep a gap, and clashes of every verdict are
planted, so that the right answer is known by construction.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from abut.cases.profiles import (
    elbow,
    extruded,
    hollow,
    ring_solid,
    section_box,
    section_i,
    section_u,
    sideways,
    upright,
    vessel,
)
from abut.cases.shape import Shape
from abut.cases.shapes import tube, uv_sphere
from abut.io.models.part_model import ModelPart, PartMesh, PartModel

LENGTH, WIDTH = 6.0, 8.0  # of a bay along x and y [m]
LEVELS = (2.5, 4.0, 5.5)  # tops of the cross beams
STRUTS = (4.5, 4.75)  # undersides, of even and odd bays
COLUMNS = (1.0, 5.0)  # y of the columns, which stand at x = MIDDLE
MIDDLE = 3.0
PIPES = tuple(1.625 + 0.5625 * k for k in range(6))  # y of the pipes of a level
TRAYS = (1.75, 2.5)  # y of the trays, which replace three pipes of the uppermost level
PLATE = 1 / 64
DEPTH = 5 / 16  # of a column
FLANGE = 1 / 8  # thickness
STAND = (MIDDLE, 6.5)  # of the vessel
KINDS = ("duplicate", "envelope", "pierce", "protrude", "encroach")
CLEARANCE = 0.05  # gaps are wider, except planted ones
GAP = 1 / 32  # of a planted encroachment


class Planted(NamedTuple):
    """A planted clash: the keys of its parts, the lower one first, and its verdict."""

    a: str
    b: str
    verdict: str


@dataclass(frozen=True)
class Plant:
    """A plant of ``bays[0]`` bays along x in ``bays[1]`` rows.

    Attributes:
        bays: Numbers of bays.
        seed: Names the plant.
        share: Share of bays with a planted clash, one each.
        detail: Scale of the number of faces; 1 makes about 1,000 for each object.
    """

    bays: tuple[int, int] = (4, 2)
    seed: int = 0
    share: float = 0.5
    detail: float = 1.0

    def __len__(self) -> int:
        """Number of bays."""
        return self.bays[0] * self.bays[1]

    @classmethod
    def of_size(cls, objects: int, **options: float) -> "Plant":
        """A plant with about as many objects, in rows of at most 100 bays."""
        bays = max(1, round(objects / (OBJECTS + options.get("share", 0.5))))
        rows = -(-bays // 100)
        return cls((-(-bays // rows), rows), **options)  # type: ignore[arg-type]

    def model(self, bay: int) -> PartModel:
        """The parts of a bay, in world coordinates by their poses."""
        x, y = bay % self.bays[0], bay // self.bays[0]
        pose = np.eye(4)
        pose[:3, 3] = LENGTH * x, WIDTH * y, 0.0
        shapes = self._shapes(bay)
        parts = [
            ModelPart(name, name, name.split("-")[0], f"row {y}", "", {}, k, pose)
            for k, name in enumerate(shapes)
        ]
        meshes = [PartMesh(*shape) for shape in shapes.values()]
        return PartModel(Path(f"{_stem(bay)}.plant"), 1.0, 0.0, meshes, parts)

    def planted(self, bay: int) -> Planted | None:
        """The planted clash of a bay; clearances are ``CLEARANCE``."""
        kind = self._kind(bay)
        if kind is None:
            return None
        a, b = sorted((f"{_stem(bay)}/planted", f"{_stem(bay)}/{_VICTIMS[kind]}"))
        return Planted(a, b, kind)

    def touching(self, bay: int) -> list[tuple[str, str]]:
        """Keys of the pairs that touch, of the bay and with the next one, without planted parts."""
        last = bay % self.bays[0] == self.bays[0] - 1
        here, ahead = _stem(bay), _stem(bay + 1)
        pairs = [(f"{here}/{a}", f"{here}/{b}") for a, b in _joints()]
        if not last:
            pairs += [(f"{here}/strut-{k}", f"{here}/column-{k}") for k in range(2)]
            pairs += [(f"{here}/{a}", f"{ahead}/{b}") for a, b in _joints_ahead()]
        return sorted((min(pair), max(pair)) for pair in pairs)

    def _kind(self, bay: int) -> str | None:
        rng = np.random.default_rng([self.seed, 1, bay])
        return KINDS[rng.integers(len(KINDS))] if rng.uniform() < self.share else None

    def _shapes(self, bay: int) -> dict[str, Shape]:
        maker = _Bay(self, bay)
        shapes = maker.steel() | maker.pipes() | maker.trays() | maker.apparatus()
        kind = self._kind(bay)
        if kind is not None:
            shapes["planted"] = maker.planted(kind, shapes)
        return shapes


class _Bay:
    """Makes the shapes of a bay in its own frame."""

    def __init__(self, plant: Plant, bay: int) -> None:
        self.strut = STRUTS[bay % plant.bays[0] % 2]
        self.last = bay % plant.bays[0] == plant.bays[0] - 1
        self.row = np.random.default_rng([plant.seed, 0, bay // plant.bays[0]])
        self.rng = np.random.default_rng([plant.seed, 2, bay])
        self.detail = plant.detail

    def _count(self, number: int, least: int = 2) -> int:
        return max(least, round(number * self.detail**0.5))

    def _sides(self, number: int = 32) -> int:
        return 4 * max(2, round(number * self.detail**0.5 / 4))

    def _steel(self, width: float, height: float, x: tuple[float, float]) -> Shape:
        plate = PLATE * (1.0 + 0.5 * self.rng.uniform()) if width < 0.2 else PLATE
        profile = section_i(width, height, plate)
        return extruded(profile, np.linspace(*x, max(2, round(40 * self.detail))))

    def steel(self) -> dict[str, Shape]:
        """Columns on foundations, cross beams between them, and struts to the next bay."""
        out = {}
        for k, y in enumerate(COLUMNS):
            stations = np.linspace(-0.5, 0.0, max(2, round(80 * self.detail)))
            size = 0.75 + 0.125 * self.rng.uniform()
            block = upright(extruded(section_box(size, size), stations))
            out[f"foundation-{k}"] = block.moved((MIDDLE, y - size / 2, 0.0))
            column = upright(self._steel(0.25, DEPTH, (0.0, 6.0)))
            x, h, z = column.vertices.T  # its web is along y
            turned = Shape(np.stack([MIDDLE + x, y - DEPTH / 2 + h, z], axis=1), column.faces)
            out[f"column-{k}"] = turned
            if not self.last:
                reach = MIDDLE + PLATE / 2, MIDDLE + LENGTH - PLATE / 2
                out[f"strut-{k}"] = self._steel(0.125, 0.125, reach).moved((0.0, y, self.strut))
        for k, top in enumerate(LEVELS):
            beam = sideways(
                self._steel(0.25, 0.25, (COLUMNS[0] + DEPTH / 2, COLUMNS[1] - DEPTH / 2))
            )
            out[f"beam-{k}"] = beam.moved((MIDDLE, 0.0, top - 0.25))
        return out

    def _tube(self, x: tuple[float, float], radius: float, thin: float) -> Shape:
        rings = self._count(8)
        return hollow(x, (radius * thin, radius), self._sides(), rings)

    def _flange(self, x: float, radius: float, thin: float) -> Shape:
        outer = radius + 1 / 16
        rise = np.linspace(radius * thin, outer, self._count(6))
        start, stop = np.full_like(rise, x), np.full_like(rise, x + FLANGE)
        along = np.linspace(x, x + FLANGE, self._count(4) + 2)[1:-1]
        loop = np.concatenate(
            [
                np.stack([stop, rise], axis=1),
                np.stack([along[::-1], np.full_like(along, outer)], axis=1),
                np.stack([start, rise[::-1]], axis=1),
                np.stack([along, np.full_like(along, radius * thin)], axis=1),
            ]
        )
        return ring_solid(loop, self._sides())

    def pipes(self) -> dict[str, Shape]:
        """Pipes that lie on the cross beams, each with a flange at its end."""
        out = {}
        for level, line in _lines():
            radius = float(self.row.integers(4, 9)) / 64
            thin = 0.75 + 0.125 * self.rng.uniform()
            place = (0.0, PIPES[line], LEVELS[level] + radius)
            pipe = self._tube((0.0, LENGTH - FLANGE), radius, thin)
            out[f"pipe-{level}-{line}"] = pipe.moved(place)
            flange = self._flange(LENGTH - FLANGE, radius, thin)
            out[f"flange-{level}-{line}"] = flange.moved(place)
        return out

    def trays(self) -> dict[str, Shape]:
        """Cable trays on the uppermost cross beam, from bay to bay."""
        out = {}
        for k, y in enumerate(TRAYS):
            rim = 0.0625 + 0.0625 * self.rng.uniform()
            stations = np.linspace(0.0, LENGTH, max(2, round(60 * self.detail)))
            out[f"tray-{k}"] = extruded(section_u(0.5, rim, PLATE), stations).moved(
                (0.0, y, LEVELS[2])
            )
        return out

    def apparatus(self) -> dict[str, Shape]:
        """A vessel on its stand, and the pipe from its top."""
        x, y = STAND
        stations = np.linspace(0.0, 0.5, max(2, round(80 * self.detail)))
        stand = upright(extruded(section_box(1.0, 1.0), stations)).moved((x, y - 0.5, 0.0))
        turn = np.linspace(0.0, np.pi / 2, self._count(10))
        dish = np.stack([0.25 * (1 - np.cos(turn)), 0.25 + 0.25 * np.sin(turn)], axis=1)
        wall = np.linspace(0.25, 2.25, self._count(20) + 2)[1:-1]
        height = np.concatenate([dish[:, 0], wall, 2.5 - dish[::-1, 0]])
        radius = np.concatenate([dish[:, 1], np.full_like(wall, 0.5), dish[::-1, 1]])
        body = upright(vessel(height, radius, self._sides()))
        thin = 0.75 + 0.125 * self.rng.uniform()
        pipe = 1 / 8
        bend = elbow((pipe * thin, pipe), 0.375, self._sides(24), self._count(12))
        place = (x, y, 3.875)
        return {
            "stand": stand,
            "vessel": body.moved((x, y, 0.5)),
            "nozzle": upright(self._tube((3.0, 3.5), pipe, thin)).moved((x, y, 0.0)),
            "elbow": bend.moved((x, y, 3.5)),
            "outlet": self._tube((0.375, 2.0), pipe, thin).moved(place),
            "cap": self._flange(2.0, pipe, thin).moved(place),
        }

    def planted(self, kind: str, shapes: dict[str, Shape]) -> Shape:
        """The part of a planted clash."""
        x, y = STAND
        if kind == "duplicate":
            return Shape(*(array.copy() for array in shapes["cap"]))
        if kind == "envelope":
            return uv_sphere(self._count(16, 4), self._sides(), 0.125).moved((x, y, 1.75))
        ends, radius = {
            "protrude": ([(x, y + 0.25, 1.75), (x, y + 1.0, 1.75)], 1 / 32),
            "pierce": ([(x - 0.25, 3.0, LEVELS[0] - 0.125), (x + 0.25, 3.0, 2.375)], 1 / 64),
            "encroach": ([(x, y + 0.5 + GAP + 1 / 64, z) for z in (0.125, 0.375)], 1 / 64),
        }[kind]
        start, stop = np.array(ends)
        line = np.linspace(start, stop, self._count(12))
        return tube(line, radius, self._sides(), closed=False)


_VICTIMS = {
    "duplicate": "cap",
    "envelope": "vessel",
    "protrude": "vessel",
    "pierce": "beam-0",
    "encroach": "stand",
}


def _lines() -> list[tuple[int, int]]:
    """(level, line) of the pipes."""
    return [(level, line) for level in range(3) for line in range(3 if level == 2 else 0, 6)]


OBJECTS = 4 + 2 + 3 + 2 * len(_lines()) + len(TRAYS) + 6  # in a bay, but for the ends of rows


def _joints() -> list[tuple[str, str]]:
    """Pairs that touch in a bay."""
    pairs = [(f"foundation-{k}", f"column-{k}") for k in range(2)]
    pairs += [(f"beam-{level}", f"column-{k}") for level in range(3) for k in range(2)]
    for level, line in _lines():
        pairs.append((f"pipe-{level}-{line}", f"flange-{level}-{line}"))
        pairs.append((f"pipe-{level}-{line}", f"beam-{level}"))
    pairs += [(f"tray-{k}", "beam-2") for k in range(2)]
    chain = ["stand", "vessel", "nozzle", "elbow", "outlet", "cap"]
    return pairs + list(pairwise(chain))


def _joints_ahead() -> list[tuple[str, str]]:
    """Pairs of a part and one of the next bay that touch, and struts."""
    pairs = [(f"flange-{level}-{line}", f"pipe-{level}-{line}") for level, line in _lines()]
    pairs += [(f"tray-{k}", f"tray-{k}") for k in range(2)]
    return pairs + [(f"strut-{k}", f"column-{k}") for k in range(2)]


def _stem(bay: int) -> str:
    return f"bay-{bay:06d}"
