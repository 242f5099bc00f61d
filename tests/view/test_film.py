"""Films are steady, and written as they should be."""

import subprocess
import sys

import numpy as np
import pytest

from abut import cases, view
from abut.errors import ToolError

CORNERS = np.array([[x, y, z] for x in (-2, 2) for y in (-2, 2) for z in (-1, 1)], float)


def film(count=3):
    found = view.Film(CORNERS, size=(48, 32), device="cpu")
    for k in range(count):
        ball = cases.icosphere(80, 0.5).moved((0.5 * k - 0.5, 0, 0))
        found.take([view.Body(ball, (1.0, 0.1, 0.1))])
    return found


def redness(picture):
    return picture[..., 0].astype(float) - picture[..., 2]


def test_camera_is_fixed():
    pictures = film().pictures
    middles = [redness(p)[:, :].sum(axis=0).argmax() for p in pictures]
    assert middles[0] < middles[1] < middles[2]
    assert np.abs(pictures[0][:4].astype(int) - pictures[2][:4]).max() <= 2


def test_sheets():
    pictures = [np.full((4, 6, 3), shade, np.uint8) for shade in (10, 20, 30, 40, 50)]
    sheet = view.contact_sheet(pictures, 3, gap=1)
    assert sheet.shape == (2 * 5 + 1, 3 * 7 + 1, 3)
    assert [sheet[2, 2, 0], sheet[2, 9, 0], sheet[7, 2, 0], sheet[7, 9, 0]] == [10, 20, 40, 50]
    assert (sheet[0] == sheet[5]).all()
    assert view.contact_sheet(pictures[:1], 3, gap=1).shape == (6, 8, 3)


def test_a_sheet_begins_and_ends_with_the_film():
    found = film()
    sheet = found.sheet(2, 2, gap=0)
    assert np.array_equal(sheet[:, :48], found.pictures[0])
    assert np.array_equal(sheet[:, 48:], found.pictures[2])


def test_files(tmp_path):
    from PIL import Image

    found = film()
    with Image.open(found.save(tmp_path / "new" / "film.gif", width=24)) as gif:
        assert (gif.n_frames, gif.size) == (3, (24, 16))
        gif.seek(2)
        last = np.asarray(gif.convert("RGB"))
    assert redness(last)[:, 12:].sum() > redness(last)[:, :12].sum()
    with Image.open(found.save_sheet(tmp_path / "sheet.png", 2, 2)) as png:
        assert png.size == (2 * 56 + 8, 40 + 8)


def test_mp4(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="MP4 needs imageio-ffmpeg")
    path = str(film(4).save(tmp_path / "film.mp4", seconds=0.1))
    decode = [ffmpeg.get_ffmpeg_exe(), "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(decode, capture_output=True, check=True)
    frames = np.frombuffer(done.stdout, np.uint8).reshape(-1, 32, 48, 3)
    assert len(frames) == 4 and b"10 fps" in done.stderr
    assert redness(frames[-1])[:, 24:].sum() > redness(frames[-1])[:, :24].sum()


def test_mp4_without_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ToolError, match=r"abut\[film\]"):
        film(1).save(tmp_path / "film.mp4")


def test_quality_changes_noise_alone():
    body = [view.Body(cases.icosphere(320), (1.0, 0.1, 0.1))]
    fine, coarse = (
        view.render(body, size=(48, 32), device="cpu", quality=q).astype(float) for q in (1.0, 0.2)
    )
    assert np.abs(fine - coarse).mean() < 6


def test_a_colour_for_each_face():
    ball = cases.icosphere(320)
    colors = np.where(ball.vertices[ball.faces].mean(axis=1)[:, 2:] > 0, [1, 0, 0], [0, 0, 1])
    picture = view.render([view.Body(ball, colors)], size=(48, 48), device="cpu", wire=0.0)
    assert redness(picture)[14, 24] > 50
    assert redness(picture)[42, 24] < -50


@pytest.mark.parametrize("frames", [1, 2])
def test_short_films(tmp_path, frames):
    assert film(frames).save(tmp_path / "film.gif").is_file()
