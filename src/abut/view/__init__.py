"""Pictures of meshes and of their intersections, and a page in the browser."""

from typing import TYPE_CHECKING

from abut.view.aim import aim
from abut.view.body import CORAL, GOLD, INDIGO, INK, RED, SAND, TEAL, Body, Color
from abut.view.camera import Camera
from abut.view.film import Film, contact_sheet
from abut.view.picture import render, save_picture

if TYPE_CHECKING:
    from abut.view.page.page import Page
    from abut.view.page.show_page import show

__all__ = [
    "CORAL",
    "GOLD",
    "INDIGO",
    "INK",
    "RED",
    "SAND",
    "TEAL",
    "Body",
    "Camera",
    "Color",
    "Film",
    "Page",
    "aim",
    "contact_sheet",
    "render",
    "save_picture",
    "show",
]


def __getattr__(name: str) -> object:
    """Import the page when it is first used: pictures do not need it."""
    if name == "Page":
        from abut.view.page.page import Page

        return Page
    if name == "show":
        from abut.view.page.show_page import show

        return show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
