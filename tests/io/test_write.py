"""Files are replaced whole, or stay as they were."""

import os
import stat

import numpy as np
import pytest

import abut
from abut import cases, view
from abut.io.write import replacing, require_writable
from limits import files_limited_to


@pytest.fixture(scope="module")
def field():
    return abut.DistanceField(abut.Mesh(*cases.box(), "cpu"), resolution=24)


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "new" / "folder" / "words.txt"
    for words in ("one", "two"):
        with replacing(path, folders=True) as new:
            assert new.suffix == ".txt" and new.parent == path.parent
            new.write_text(words)
        assert path.read_text() == words
    assert os.listdir(path.parent) == ["words.txt"]


def test_a_file_stays_after_an_error(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), replacing(path) as new:
        new.write_text("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["words.txt"]


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "words.txt", tmp_path / "link.txt"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as new:
        new.write_text("after")
    assert link.is_symlink() and path.read_text() == "after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("ending", ["npz", "nvdb"])
def test_a_field_survives_a_full_disk(tmp_path, field, ending):
    """Regression: a good field was destroyed by one that did not fit."""
    path = tmp_path / f"field.{ending}"
    field.save(path)
    before = path.read_bytes()
    with files_limited_to(2000), pytest.raises(abut.FileError, match=rf"field\.{ending} cannot be"):
        field.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_a_picture_survives_a_full_disk(tmp_path):
    path = tmp_path / "noise.png"
    view.save_picture(path, np.zeros((8, 8, 3), np.uint8))
    before = path.read_bytes()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    with files_limited_to(2000), pytest.raises(abut.FileError, match=r"noise\.png cannot be"):
        view.save_picture(path, noise)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_a_picture_of_no_format(tmp_path):
    with pytest.raises(abut.FileError, match=r"picture\.words should end in"):
        view.save_picture(tmp_path / "picture.words", np.zeros((8, 8, 3), np.uint8))


def test_devices_are_written_directly(tmp_path, field):
    path = tmp_path / "field.npz"
    path.symlink_to("/dev/full")
    with pytest.raises(abut.FileError, match=r"field\.npz cannot be written: No space left"):
        field.save(path)
    assert path.is_symlink()


def test_paths_are_tried_first(tmp_path):
    require_writable(tmp_path / "new" / "file.npz", folders=True)
    assert os.listdir(tmp_path / "new") == []
    (tmp_path / "plain").touch()
    for path in (tmp_path / "plain" / "f.npz", tmp_path / "new", tmp_path / "no" / "f.npz"):
        with pytest.raises(abut.FileError, match="cannot be written"):
            require_writable(path)
