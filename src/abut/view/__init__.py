"""Pictures of meshes and of their intersections."""

from abut.view.aim import aim
from abut.view.body import CORAL, GOLD, INDIGO, INK, RED, SAND, TEAL, Body, Color
from abut.view.camera import Camera
from abut.view.film import Film, contact_sheet
from abut.view.picture import render, save_picture

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
    "aim",
    "contact_sheet",
    "render",
    "save_picture",
]
