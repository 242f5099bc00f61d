"""Film: pictures of a moving scene, as a contact sheet and as an animation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import ToolError
from abut.io.write import replacing
from abut.view.body import Body
from abut.view.camera import Camera
from abut.view.picture import render, save_picture

QUALITY = 0.25  # share of the rays of a single picture
PAPER = 245  # grey between the pictures of a sheet
COLORS = 96  # of an animation; few colours keep files small


class Film:
    """Pictures of a moving scene, all from one camera.

    Args:
        around: Points (n, 3) to keep in view; they determine camera, ground and light.
        size: Width and height [pixels].
        azimuth, elevation: Direction from the points to the camera [degrees].
        quality: Share of the rays of a single picture, in (0, 1].
        device: None is the first CUDA device, else the CPU.

    Attributes:
        pictures: Pictures taken so far, each (height, width, 3) uint8.
    """

    def __init__(
        self,
        around: np.ndarray,
        *,
        size: tuple[int, int] = (640, 400),
        azimuth: float = -60.0,
        elevation: float = 25.0,
        quality: float = QUALITY,
        device: Any = None,
    ) -> None:
        self.around, self.size = np.array(around, float), size
        self.quality, self.device = quality, device
        self.camera = Camera.around(
            self.around,
            azimuth=azimuth,
            elevation=elevation,
            aspect=size[0] / size[1],
            margin=1.05,
        )
        self.pictures: list[np.ndarray] = []

    def take(self, bodies: Sequence[Body], curves: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Take a picture."""
        options = {"camera": self.camera, "around": self.around, "size": self.size, "wire": 0.0}
        picture = render(bodies, curves, quality=self.quality, device=self.device, **options)
        self.pictures.append(picture)
        return picture

    def sheet(self, count: int = 6, columns: int = 3, gap: int = 8) -> np.ndarray:
        """A contact sheet: ``count`` pictures, evenly spread over the film, in rows."""
        return contact_sheet(_spread(self.pictures, count), columns, gap)

    def save(self, path: Any, *, seconds: float = 1 / 15, width: int | None = None) -> Path:
        """Write the film as an animated GIF, or as an MP4 if the name ends in .mp4.

        Args:
            path: Name of the file; folders are created.
            seconds: Duration of a frame.
            width: Width in pixels; None keeps the size of the pictures.

        Raises:
            ToolError: MP4 needs imageio-ffmpeg: ``pip install abut[film]``.
        """
        from PIL import Image

        path = Path(path)
        frames = [Image.fromarray(picture) for picture in self.pictures]
        if width is not None:
            height = round(self.size[1] * width / self.size[0])
            frames = [frame.resize((width, height), Image.Resampling.LANCZOS) for frame in frames]
        if path.suffix.lower() == ".mp4":
            return _save_mp4(path, frames, seconds)
        middle = frames[len(frames) // 2].quantize(COLORS)
        frames = [f.quantize(palette=middle, dither=Image.Dither.NONE) for f in frames]
        first, *rest = frames
        duration = max(20, round(1e3 * seconds))
        options = {"save_all": True, "append_images": rest, "optimize": False, "loop": 0}
        with replacing(path, folders=True) as new:
            first.save(new, None, duration=duration, **options)
        return path

    def save_sheet(self, path: Any, count: int = 6, columns: int = 3) -> Path:
        """Write a contact sheet as a picture."""
        return save_picture(path, self.sheet(count, columns))


def contact_sheet(pictures: Sequence[np.ndarray], columns: int, gap: int = 8) -> np.ndarray:
    """Pictures of one size in rows of ``columns``, with ``gap`` pixels between them."""
    height, width, _ = pictures[0].shape
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    sheet = np.full(
        (rows * (height + gap) + gap, columns * (width + gap) + gap, 3), PAPER, np.uint8
    )
    for k, picture in enumerate(pictures):
        row, column = divmod(k, columns)
        top, left = gap + row * (height + gap), gap + column * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def _spread(pictures: list[np.ndarray], count: int) -> list[np.ndarray]:
    at = np.linspace(0, len(pictures) - 1, min(count, len(pictures))).round().astype(int)
    return [pictures[k] for k in at]


def _save_mp4(path: Path, frames: Sequence[Any], seconds: float) -> Path:
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError:
        raise ToolError("MP4 needs imageio-ffmpeg; pip install 'abut[film]' brings it.") from None
    size = frames[0].size
    options: dict[str, Any] = {"fps": 1 / seconds, "macro_block_size": 2}
    with replacing(path, folders=True) as new:
        writer = imageio_ffmpeg.write_frames(str(new), size, **options)
        writer.send(None)
        for frame in frames:
            writer.send(frame.tobytes())
        writer.close()
    return path
