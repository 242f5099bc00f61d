"""Catalogues: columns on disk, written in one pass."""

import pickle

import numpy as np
import pytest

from abut.errors import FileError, OptionError
from abut.scale.catalogue import Catalogue, CatalogueWriter
from abut.scale.columns import TextColumn


def write(folder, seed=0, chunks=3, shift=0.0):
    rng = np.random.default_rng(seed)
    with CatalogueWriter(folder, {"unit": 1.0}) as writer:
        notes = writer.texts("note")
        for chunk in range(chunks):
            low = rng.uniform(0, 1, (5, 3)) + shift
            keys = [f"Wänd {chunk}/{k}" for k in range(5)]
            boxes = np.stack([low, low + 1], axis=1)
            writer.add({"file": f"{chunk}.ifc"}, keys, boxes, [12] * 5, meshes=[chunk] * 5)
            notes.append(["", "é", "a\nb", "", "z"])
    return Catalogue(folder)


def test_columns_are_read_as_written(tmp_path):
    catalogue = write(tmp_path)
    assert len(catalogue) == 15
    assert catalogue.about == {"unit": 1.0}
    assert catalogue.sources == [{"file": f"{k}.ifc"} for k in range(3)]
    assert catalogue.keys.of([0, 14, 7]) == ["Wänd 0/0", "Wänd 2/4", "Wänd 1/2"]
    assert catalogue.source.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert catalogue.item.tolist() == [0, 1, 2, 3, 4] * 3
    assert catalogue.mesh.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert isinstance(catalogue.boxes, np.memmap)
    rng = np.random.default_rng(0)
    assert (catalogue.boxes[:5, 0] == rng.uniform(0, 1, (5, 3))).all()
    assert TextColumn(tmp_path, "note").of([5, 6, 7, 9]) == ["", "é", "a\nb", "z"]
    assert (np.load(tmp_path / "boxes.npy") == catalogue.boxes).all()


def test_equal_contents_have_equal_digests(tmp_path):
    first = write(tmp_path / "a")
    assert write(tmp_path / "b").digest == first.digest
    assert write(tmp_path / "c", shift=1e-12).digest != first.digest
    assert write(tmp_path / "d", chunks=2).digest != first.digest


def test_an_empty_catalogue(tmp_path):
    with CatalogueWriter(tmp_path):
        pass
    assert len(Catalogue(tmp_path)) == 0


def test_pickling_names_the_folder(tmp_path):
    catalogue = write(tmp_path)
    data = pickle.dumps(catalogue)
    assert len(data) < 500
    assert pickle.loads(data).digest == catalogue.digest


def test_an_error_leaves_no_catalogue(tmp_path):
    write(tmp_path)
    boxes = [[[0.0] * 3, [1.0] * 3], [[0.0] * 3, [-1.0] * 3]]
    with pytest.raises(OptionError, match="'b' is empty"), CatalogueWriter(tmp_path) as writer:
        writer.add(0, ["a", "b"], boxes, [1, 1])
    with pytest.raises(FileError, match="catalogue"):
        Catalogue(tmp_path)


def test_damaged_catalogues_are_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "boxes.npy").write_bytes(b"broken")
    with pytest.raises(FileError, match=r"boxes\.npy"):
        Catalogue(tmp_path)
    (tmp_path / "catalogue.json").write_text("[]")
    with pytest.raises(FileError, match="no catalogue"):
        Catalogue(tmp_path)
