"""Catalogue: objects in columns on disk, with boxes and sizes but without their meshes."""

import hashlib
import json
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from abut.errors import FileError, OptionError
from abut.io.file_errors import reading
from abut.scale.columns import ArrayWriter, TextColumn, TextWriter, open_array

FORMAT = "abut catalogue"
VERSION = 1
INDEX = "catalogue.json"  # written last: a folder without it is no catalogue


class Catalogue:
    """Objects in columns, memory-mapped from a folder.

    Attributes:
        folder: Where the columns are.
        boxes: (n, 2, 3) float64: bounds of each object in the world.
        face_count: (n,) int32.
        mesh: (n,) int64: objects with one number share a mesh.
        source: (n,) int32: index into ``sources``.
        item: (n,) int64: place of the object in its source.
        keys: Unique names of the objects.
        sources: Where to load objects: values of JSON, such as the names of files.
        about: Facts about the whole: a value of JSON.
        digest: Hash of all columns.
    """

    def __init__(self, folder: Any) -> None:
        """Open the catalogue in a folder.

        Raises:
            FileError: There is none, or it is damaged.
        """
        self.folder = Path(folder)
        path = self.folder / INDEX
        with reading(path, "a catalogue"):
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or found.get("format") != FORMAT:
                raise FileError(f"{path} is no catalogue of abut.")
            if found["version"] != VERSION:
                raise FileError(f"{path} has version {found['version']}, not {VERSION}.")
            self.sources: list[Any] = found["sources"]
            self.about: Any = found["about"]
            self.digest: str = found["digest"]
            count: int = found["count"]
        self.boxes = open_array(self.folder / "boxes.npy")
        self.face_count = open_array(self.folder / "face_count.npy")
        self.mesh = open_array(self.folder / "mesh.npy")
        self.source = open_array(self.folder / "source.npy")
        self.item = open_array(self.folder / "item.npy")
        self.keys = TextColumn(self.folder, "key")
        if len({count, len(self.boxes), len(self.face_count), len(self.keys)}) != 1:
            raise FileError(f"{path} names {count} objects, and its columns have other lengths.")

    def __len__(self) -> int:
        """Number of objects."""
        return len(self.boxes)

    def __reduce__(self) -> tuple[type["Catalogue"], tuple[Path]]:
        """Pickle the folder's name alone."""
        return type(self), (self.folder,)


class CatalogueWriter:
    """Writes a catalogue in one pass: ``with CatalogueWriter(folder) as writer: writer.add(…)``.

    The catalogue is there when the block ends; after an error it is not. Further columns may be
    opened with ``column`` and ``texts``; they count towards the digest.

    Args:
        folder: Where to write; made if it is missing. A catalogue there is replaced.
        about: Facts about the whole: a value of JSON.
    """

    def __init__(self, folder: Any, about: Any = None) -> None:
        self.folder = Path(folder)
        self.about = about
        self.sources: list[Any] = []
        self.count = 0
        self._writers: list[ArrayWriter] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / INDEX).unlink(missing_ok=True)
            self._boxes = self.column("boxes", np.float64, (2, 3))
            self._face_count = self.column("face_count", np.int32)
            self._mesh = self.column("mesh", np.int64)
            self._source = self.column("source", np.int32)
            self._item = self.column("item", np.int64)
            self._keys = self.texts("key")
        except OSError as error:
            raise FileError(f"{folder} cannot be written: {error.strerror or error}.") from None

    def __enter__(self) -> "CatalogueWriter":
        """Return the writer."""
        return self

    def column(self, name: str, dtype: Any, shape: tuple[int, ...] = ()) -> ArrayWriter:
        """Open a column of arrays."""
        writer = ArrayWriter(self.folder / f"{name}.npy", dtype, shape)
        self._writers.append(writer)
        return writer

    def texts(self, name: str) -> TextWriter:
        """Open a column of texts."""
        writer = TextWriter(self.folder, name)
        self._writers += writer.writers
        return writer

    def add(
        self,
        source: Any,
        keys: list[str],
        boxes: Any,
        face_count: Any,
        *,
        items: Any = None,
        meshes: Any = None,
    ) -> None:
        """Append the objects of a source.

        Args:
            source: Where to load them; a value of JSON.
            keys: (k,) unique names.
            boxes: (k, 2, 3) bounds in the world.
            face_count: (k,).
            items: (k,) places in the source; None: 0, 1, ….
            meshes: (k,) numbers of meshes; None: each has its own.

        Raises:
            OptionError: A box is empty or not finite, or lengths differ.
        """
        boxes = np.asarray(boxes, np.float64).reshape(-1, 2, 3)
        items = np.arange(len(keys)) if items is None else np.asarray(items)
        meshes = self.count + np.arange(len(keys)) if meshes is None else np.asarray(meshes)
        face_count = np.asarray(face_count)
        if len({len(keys), len(boxes), len(face_count), len(items), len(meshes)}) != 1:
            raise OptionError("keys, boxes, face_count, items and meshes need one length.")
        bad = ~(np.isfinite(boxes).all(axis=(1, 2)) & (boxes[:, 0] <= boxes[:, 1]).all(axis=1))
        if bad.any():
            raise OptionError(f"the box of {keys[int(bad.argmax())]!r} is empty or not finite.")
        self._keys.append(keys)
        self._boxes.append(boxes)
        self._face_count.append(face_count)
        self._mesh.append(meshes)
        self._source.append(np.full(len(keys), len(self.sources)))
        self._item.append(items)
        self.sources.append(source)
        self.count += len(keys)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the index, or leave none after an error."""
        if kind is not None:
            for writer in self._writers:
                writer.abandon()
            return
        for writer in self._writers:
            writer.close()
        facts = json.dumps([self.sources, self.about], sort_keys=True)
        parts = [writer.digest.hexdigest() for writer in self._writers]
        index = {
            "format": FORMAT,
            "version": VERSION,
            "count": self.count,
            "sources": self.sources,
            "about": self.about,
            "digest": hashlib.sha256("\n".join([facts, *parts]).encode()).hexdigest(),
        }
        new = self.folder / f".{INDEX}.new"
        new.write_text(json.dumps(index), encoding="utf-8")
        new.replace(self.folder / INDEX)
