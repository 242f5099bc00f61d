"""PartTable: the parts of all models in columns, with keys that are unique among all files."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from abut.core.device import resolve_device
from abut.errors import MeshError
from abut.io.models.part_model import PartMesh, PartModel
from abut.mesh import Mesh
from abut.scene.scene import Scene
from abut.scene.touching_solids import moved


@dataclass(frozen=True, eq=False)
class PartTable:
    """Parts in columns, sorted by key, so that the order of files has no effect.

    Attributes:
        key: (n,) str: "file stem/part id". Files with one stem have a longer name, as much of
            their path as tells them apart.
        name, type, layer, assembly: (n,) str, as in ``ModelPart``.
        file: (n,) str: path of the file.
        properties: Properties of each part.
        mesh: (n,) int32: index into ``part_meshes``.
        poses: (n, 4, 4) float64: the frame of the mesh in the world.
        boxes: (n, 2, 3) float64 [m]: world bounds of the faces, rounded outwards.
        deviation: (n,) float64 [m]: largest distance of the mesh from the true surface.
        links: (key, key, kind) of parts that belong together; the lower key comes first.
        part_meshes: Meshes that parts share.
    """

    key: np.ndarray
    name: np.ndarray
    type: np.ndarray
    layer: np.ndarray
    assembly: np.ndarray
    file: np.ndarray
    properties: list[dict[str, Any]]
    mesh: np.ndarray
    poses: np.ndarray
    boxes: np.ndarray
    deviation: np.ndarray
    links: list[tuple[str, str, str]]
    part_meshes: Sequence[PartMesh]
    _made: dict[tuple[int, str], Mesh] = field(default_factory=dict, repr=False)

    @classmethod
    def of_models(cls, models: Iterable[PartModel]) -> "PartTable":
        """Join the parts of models."""
        models = list(models)
        meshes: list[PartMesh] = []
        rows: list[tuple[Any, ...]] = []
        links = []
        for stem, model in zip(
            stems_of_files([model.path for model in models]), models, strict=True
        ):
            for part in model.parts:
                key, mesh = f"{stem}/{part.id}", len(meshes) + part.mesh
                about = part.name, part.type, part.layer, part.assembly, str(model.path)
                rows.append((key, about, part.properties, mesh, part.pose, model.deviation))
            meshes += model.meshes
            links += [(f"{stem}/{link.a}", f"{stem}/{link.b}", link.kind) for link in model.links]
        return _table(rows, links, meshes, {})

    @classmethod
    def of_scene(cls, scene: Scene) -> "PartTable":
        """The objects of a scene, by name, or by index where they have none."""
        numbers: dict[int, int] = {}
        meshes: list[PartMesh] = []
        made: dict[tuple[int, str], Mesh] = {}
        rows = []
        for thing in scene:
            mesh = thing.mesh
            number = numbers.setdefault(id(mesh), len(numbers))
            if number == len(meshes):
                meshes.append(PartMesh(mesh.points.numpy(), mesh.faces.numpy()))
                made[number, str(scene.device)] = mesh
            name = str(thing.index) if thing.name is None else thing.name
            rows.append((f"scene/{name}", (name, "", "", "", ""), {}, number, thing.pose, 0.0))
        return _table(rows, [], meshes, made)

    def __len__(self) -> int:
        """Number of parts."""
        return len(self.key)

    def mesh_of(self, row: int, device: Any = None) -> Mesh:
        """The mesh of a part, in its own frame; made once for each device.

        Raises:
            MeshError: The mesh cannot be used; the message names the part.
        """
        device = resolve_device(device)
        name = int(self.mesh[row]), str(device)
        if name not in self._made:
            given = self.part_meshes[name[0]]
            try:
                self._made[name] = Mesh(given.vertices, given.faces, device)
            except MeshError as error:
                raise MeshError(f"{self.key[row]}: {error}") from None
        return self._made[name]

    def rows_of(self, keys: Sequence[str]) -> np.ndarray:
        """Rows of keys; -1 for a key that no part has."""
        found = {key: row for row, key in enumerate(self.key.tolist())}
        return np.array([found.get(key, -1) for key in keys], np.int64)

    def world_points(self, row: int) -> np.ndarray:
        """(k, 3) float64: vertices of a part in the world."""
        return moved(self.poses[row], self.part_meshes[self.mesh[row]].vertices)

    def subset(self, rows: np.ndarray) -> "PartTable":
        """The parts of ascending rows, with all meshes."""
        keys = set(self.key[rows].tolist())
        columns = "key name type layer assembly file mesh poses boxes deviation".split()
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in columns}
        some["properties"] = [self.properties[row] for row in rows.tolist()]
        some["links"] = [link for link in self.links if link[0] in keys and link[1] in keys]
        return replace(self, **some)

    def __getstate__(self) -> dict[str, Any]:
        """Return the columns, without the meshes made for devices."""
        return self.__dict__ | {"_made": {}}


def _table(
    rows: list[tuple[Any, ...]],
    links: list[tuple[str, str, str]],
    meshes: list[PartMesh],
    made: dict[tuple[int, str], Mesh],
) -> PartTable:
    """Make the columns of rows (key, (name, …, file), properties, mesh, pose, deviation)."""
    rows = sorted(rows, key=lambda row: row[0])
    texts = np.empty((len(rows), 6), object)
    for k, (key, about, *_) in enumerate(rows):
        texts[k] = (key, *about)
    mesh = np.array([row[3] for row in rows], np.int32)
    poses = np.array([row[4] for row in rows], np.float64).reshape(-1, 4, 4)
    key, name, type_, layer, assembly, file = texts.T.copy()
    return PartTable(
        key,
        name,
        type_,
        layer,
        assembly,
        file,
        [row[2] for row in rows],
        mesh,
        poses,
        boxes_of_parts(meshes, mesh, poses),
        np.array([row[5] for row in rows], np.float64),
        sorted({(min(a, b), max(a, b), kind) for a, b, kind in links}),
        meshes,
        made,
    )


def boxes_of_parts(meshes: Sequence[PartMesh], mesh: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(n, 2, 3) world bounds of the faces of each part, one step of float64 larger."""
    used = [part.vertices[_used_vertices(part)] for part in meshes]
    boxes = np.empty((len(mesh), 2, 3))
    for row, number in enumerate(mesh.tolist()):
        points = moved(poses[row], used[number])
        boxes[row, 0], boxes[row, 1] = np.inf, -np.inf  # of a part without faces
        if len(points):
            boxes[row] = points.min(axis=0), points.max(axis=0)
    boxes[:, 0] = np.nextafter(boxes[:, 0], -np.inf)
    boxes[:, 1] = np.nextafter(boxes[:, 1], np.inf)
    return boxes


def _used_vertices(part: PartMesh) -> np.ndarray:
    """Vertices of the faces; indices of none are left out."""
    rows = np.unique(part.faces)
    return rows[(rows >= 0) & (rows < len(part.vertices))].astype(np.int64)


def stems_of_files(paths: list[Path]) -> list[str]:
    """Names of files: the stem, or as much of the path as makes them differ."""
    names = [path.stem for path in paths]
    full = [path.resolve() for path in paths]
    for count in range(1, max((len(path.parts) for path in full), default=0) + 1):
        uses = Counter(names)
        if len(uses) == len(names):
            break
        long = ["/".join(path.parts[-count:]) for path in full]
        names = [long[k] if uses[name] > 1 else name for k, name in enumerate(names)]
    return names
