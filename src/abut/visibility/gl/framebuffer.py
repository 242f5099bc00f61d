"""Screens: framebuffers out of sight."""

from typing import Any

from abut.visibility.gl.driver import Driver

R32UI = 0x8236


class Screen:
    """Depth of one tile, for the fixed pipeline and for shaders; made when first used."""

    def __init__(self, driver: Driver, side: int) -> None:
        self.context, self.size = driver.context, (side, side)
        self._depth: Any = None
        self._nearest: Any = None

    @property
    def depth(self) -> Any:
        """A framebuffer with nothing but depth."""
        if self._depth is None:
            self._depth = self.context.framebuffer(
                depth_attachment=self.context.depth_renderbuffer(self.size)
            )
        return self._depth

    def clear_depth(self) -> None:
        """Nothing drawn yet."""
        self.depth.depth_mask = True
        self.depth.clear(depth=1.0)

    def clear_nearest(self) -> None:
        """Nothing drawn yet; bind the image in which shaders keep depths."""
        if self._nearest is None:
            image = self.context.texture(self.size, 1, dtype="f4")
            target = self.context.framebuffer(color_attachments=[image])
            self._nearest = image, target, self.context.empty_framebuffer(self.size)
        image, target, nothing = self._nearest
        target.clear(1.0)  # as bits, greater than any depth below 1
        nothing.use()
        image.bind_to_image(0, read=True, write=True, format=R32UI)


def screen_of(driver: Driver, side: int) -> Screen:
    """The driver's screen of a size; the last one used is kept."""
    if side not in driver.screens:
        driver.screens.clear()
        driver.screens[side] = Screen(driver, side)
    return driver.screens[side]
