"""Pictures of meshes and of their intersections, and a page in the browser."""

from abut.view.aim import aim
from abut.view.body import CORAL, GOLD, INDIGO, INK, RED, SAND, TEAL, Body, Color
from abut.view.camera import Camera
from abut.view.film import Film, contact_sheet
from abut.view.page import Page
from abut.view.picture import render, save_picture
from abut.view.show import show

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
