"""PartCatalogue: the parts of models on disk, with boxes, records and, where stored, meshes."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from abut.coordination.parts.part_table import PartTable, boxes_of_parts, stems_of_files
from abut.io.models.part_model import ModelPart, PartMesh, PartModel
from abut.mesh import Mesh
from abut.scale.catalogue import Catalogue, CatalogueWriter
from abut.scale.columns import ArrayWriter, TextColumn, open_array


class ModelSource(Protocol):
    """Models that can be made again; picklable."""

    def model(self, number: int) -> PartModel:
        """The model of a number; equal on every call."""
        ...


class PartCatalogue:
    """Parts of models in a folder.

    Args:
        folder: Folder of a catalogue that ``write_part_catalogue`` wrote.
        source: Makes models again whose meshes were not stored.

    Attributes:
        catalogue: Keys (ids of parts), boxes, numbers of faces, meshes, sources (files), items.
        poses: (n, 4, 4) float64.
        deviation: (n,) float64 [m].
        stems: Names of the files in the keys of parts; None where ids are keys.

    Raises:
        FileError: There is no catalogue, or it is damaged.
    """

    def __init__(self, folder: Any, source: ModelSource | None = None) -> None:
        self.folder, self.source = Path(folder), source
        self.catalogue = Catalogue(folder)
        self.poses = open_array(self.folder / "pose.npy")
        self.deviation = open_array(self.folder / "deviation.npy")
        self.records = TextColumn(self.folder, "record")
        self.stems: list[str | None] = self.catalogue.about["stems"]

    def __len__(self) -> int:
        """Number of parts."""
        return len(self.catalogue)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder's name and the source."""
        return type(self), (self.folder, self.source)

    @cached_property
    def links(self) -> list[tuple[str, str, str]]:
        """(key, key, kind) of parts that belong together; the lower key comes first."""
        rows = TextColumn(self.folder, "link")
        found = [json.loads(rows[k]) for k in range(len(rows))]
        stems = self.stems
        both = [(_key(stems[s], a), _key(stems[s], b), kind) for s, a, b, kind in found]
        return sorted({(min(a, b), max(a, b), kind) for a, b, kind in both})

    def keys(self, rows: np.ndarray) -> list[str]:
        """Keys of rows."""
        stems = [self.stems[k] for k in self.catalogue.source[rows].tolist()]
        ids = self.catalogue.keys.of(rows)
        return [_key(stem, one) for stem, one in zip(stems, ids, strict=True)]

    def table(
        self, rows: np.ndarray, meshes: "Callable[[int, int], LoadedMesh] | None" = None
    ) -> tuple[PartTable, np.ndarray]:
        """The parts of rows, in the order of their keys, and the rows in this order.

        Args:
            rows: Rows of the catalogue.
            meshes: Returns a mesh for its number and the row of a part that has it; None: meshes
                are loaded when they are first used.
        """
        keys = self.keys(rows)
        order = sorted(range(len(rows)), key=keys.__getitem__)
        rows = np.asarray(rows)[order]
        key = _texts([keys[k] for k in order])
        records = [json.loads(text) for text in self.records.of(rows)]
        texts = [_texts([record[k] for record in records]) for k in range(4)]
        file = _texts([record[5] for record in records])
        numbers, first, mesh = np.unique(
            self.catalogue.mesh[rows], return_index=True, return_inverse=True
        )
        wanted = list(zip(numbers.tolist(), rows[first].tolist(), strict=True))
        made: dict[tuple[int, str], Mesh] = {}
        part_meshes: Sequence[PartMesh] = PartMeshes(self, wanted)
        if meshes is not None:
            loaded = [meshes(number, row) for number, row in wanted]
            part_meshes = [one.part for one in loaded]
            made = {(k, str(one.mesh.device)): one.mesh for k, one in enumerate(loaded)}
        known = set(key.tolist())
        links = [link for link in self.links if link[0] in known and link[1] in known]
        columns = [self.poses, self.catalogue.boxes, self.deviation]
        poses, boxes, deviation = (np.array(column[rows]) for column in columns)
        name, type_, layer, assembly = texts
        properties = [record[4] for record in records]
        mesh = mesh.reshape(-1).astype(np.int32)
        about = name, type_, layer, assembly, file, properties
        table = PartTable(key, *about, mesh, poses, boxes, deviation, links, part_meshes, made)
        return table, rows

    def mesh_of(self, number: int, row: int) -> PartMesh:
        """The mesh of a number, of the part in a row."""
        if self.source is None:
            return self._stored[number]
        source = int(self.catalogue.source[row])
        if self._last is None or self._last[0] != source:
            self._last = source, self.source.model(source)
        model = self._last[1]
        return model.meshes[model.parts[int(self.catalogue.item[row])].mesh]

    @cached_property
    def _stored(self) -> "StoredMeshes":
        return StoredMeshes(self.folder)

    _last: tuple[int, PartModel] | None = None  # the model that was made last


@dataclass(frozen=True, eq=False)
class LoadedMesh:
    """A mesh in memory, as given and on a device."""

    part: PartMesh
    mesh: Mesh


class StoredMeshes:
    """Meshes in a folder of columns, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        names = "mesh_vertices mesh_faces vertex_ends face_ends".split()
        self._columns = [open_array(folder / f"{name}.npy") for name in names]

    def __getitem__(self, number: int) -> PartMesh:
        """A mesh."""
        vertices, faces, *all_ends = self._columns
        some = []
        for rows, ends in zip((vertices, faces), all_ends, strict=True):
            start = int(ends[number - 1]) if number else 0
            some.append(np.array(rows[start : int(ends[number])]))
        return PartMesh(*some)


class PartMeshes(Sequence[PartMesh]):
    """Meshes of a table, loaded at each access and not cached."""

    def __init__(self, parts: PartCatalogue, wanted: list[tuple[int, int]]) -> None:
        self._parts, self._wanted = parts, wanted

    def __len__(self) -> int:
        """Number of meshes."""
        return len(self._wanted)

    def __getitem__(self, place: Any) -> Any:
        """A mesh."""
        return self._parts.mesh_of(*self._wanted[place])


def write_part_catalogue(
    models: Iterable[PartModel], folder: Any, *, source: ModelSource | None = None
) -> PartCatalogue:
    """Write the parts of models to a folder, one model after the other.

    Parts without faces are left out: they meet nothing.

    Args:
        models: The models; each is needed only while it is written.
        folder: Where to write. A catalogue there is replaced.
        source: Makes the models again, by their places; meshes are not stored then.

    Raises:
        FileError: The folder cannot be written.
    """
    paths: list[Path] = []
    with CatalogueWriter(folder) as writer:
        records, links = writer.texts("record"), writer.texts("link")
        poses = writer.column("pose", np.float64, (4, 4))
        deviation = writer.column("deviation", np.float64)
        store = None if source is not None else _MeshStore(writer)
        mesh_count = 0
        for model in models:
            number = np.array([part.mesh for part in model.parts], np.int64)
            pose = np.array([part.pose for part in model.parts], np.float64).reshape(-1, 4, 4)
            faces = np.array([len(mesh.faces) for mesh in model.meshes], np.int64)
            kept = np.flatnonzero(faces[number] > 0) if len(number) else number
            some = [model.parts[k] for k in kept.tolist()]
            boxes = boxes_of_parts(model.meshes, number[kept], pose[kept])
            ids, meshes = [part.id for part in some], mesh_count + number[kept]
            writer.add(str(model.path), ids, boxes, faces[number[kept]], items=kept, meshes=meshes)
            records.append(_record(part, model.path) for part in some)
            poses.append(pose[kept])
            deviation.append(np.full(len(kept), model.deviation))
            links.append(json.dumps([len(paths), *link]) for link in model.links)
            if store is not None:
                store.append(model.meshes)
            mesh_count += len(model.meshes)
            paths.append(model.path)
        writer.about = {"stems": stems_of_files(paths), "stored": source is None}
    return PartCatalogue(folder, source)


class _MeshStore:
    """Columns of the vertices and faces of meshes."""

    def __init__(self, writer: CatalogueWriter) -> None:
        self._vertices = writer.column("mesh_vertices", np.float64, (3,))
        self._faces = writer.column("mesh_faces", np.int32, (3,))
        self._ends = writer.column("vertex_ends", np.int64), writer.column("face_ends", np.int64)

    def append(self, meshes: Iterable[PartMesh]) -> None:
        for mesh in meshes:
            for rows, ends, given in zip(
                (self._vertices, self._faces), self._ends, (mesh.vertices, mesh.faces), strict=True
            ):
                _append(rows, ends, given)


def _append(rows: ArrayWriter, ends: ArrayWriter, given: np.ndarray) -> None:
    rows.append(given)
    ends.append([rows.count])


def write_table_catalogue(parts: PartTable, folder: Any) -> PartCatalogue:
    """Write the parts of a table, all with faces, to a folder.

    Raises:
        FileError: The folder cannot be written.
    """
    with CatalogueWriter(folder, {"stems": [None], "stored": True}) as writer:
        records, links = writer.texts("record"), writer.texts("link")
        poses = writer.column("pose", np.float64, (4, 4))
        deviation = writer.column("deviation", np.float64)
        faces = np.array([len(mesh.faces) for mesh in parts.part_meshes], np.int64)[parts.mesh]
        writer.add("table", parts.key.tolist(), parts.boxes, faces, meshes=parts.mesh)
        texts = (parts.name, parts.type, parts.layer, parts.assembly)
        rows = zip(*texts, parts.properties, parts.file, strict=True)
        records.append(json.dumps(row, ensure_ascii=False, default=_plain) for row in rows)
        poses.append(parts.poses)
        deviation.append(parts.deviation)
        links.append(json.dumps([0, *link]) for link in parts.links)
        _MeshStore(writer).append(parts.part_meshes)
    return PartCatalogue(folder)


def _key(stem: str | None, own: str) -> str:
    return own if stem is None else f"{stem}/{own}"


def _record(part: ModelPart, path: Path) -> str:
    about = [part.name, part.type, part.layer, part.assembly, part.properties, str(path)]
    return json.dumps(about, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """A value of a property as a JSON value."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _texts(texts: list[str]) -> np.ndarray:
    out = np.empty(len(texts), object)
    out[:] = texts
    return out
