"""Poses of a robot arm: the kinematic tree of an MJCF file, for many joint angles at once."""

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass
class Part:
    """A mesh on a link."""

    vertices: np.ndarray
    faces: np.ndarray
    link: int


@dataclass
class Arm:
    """Links in the order of the file: parents come first.

    Attributes:
        parents: The link each hangs on, -1 for the world.
        frames: (n, 4, 4), in the frame of the parent at angle 0.
        hinges: Whether each turns about its z axis.
        parts: Meshes.
    """

    parents: list[int]
    frames: np.ndarray
    hinges: list[bool]
    parts: list[Part]

    def poses(self, angles: np.ndarray) -> np.ndarray:
        """(B, parts, 4, 4) of all parts for (B, links) angles."""
        links = np.zeros((len(angles), len(self.parents), 4, 4))
        for k, parent in enumerate(self.parents):
            above = np.eye(4) if parent < 0 else links[:, parent]
            links[:, k] = above @ self.frames[k]
            if self.hinges[k]:
                links[:, k] = links[:, k] @ _turns(angles[:, k])
        return links[:, [part.link for part in self.parts]]


def load_panda(folder: Path) -> Arm:
    """The arm with its 59 visual meshes."""
    held = np.load(folder / "panda.npz")
    arm = Arm([], np.zeros((0, 4, 4)), [], [])
    frames: list[np.ndarray] = []

    def visit(body: ElementTree.Element, parent: int) -> None:
        number = len(arm.parents)
        arm.parents.append(parent)
        frames.append(_frame(body))
        joints = [j for j in body.findall("joint") if j.get("class") != "finger"]
        arm.hinges.append(bool(joints))
        for geom in body.findall("geom"):
            key = f"{geom.get('mesh')}_obj"
            if geom.get("class") == "visual" and f"{key}__V" in held:
                arm.parts.append(Part(held[f"{key}__V"], held[f"{key}__F"], number))
        for child in body.findall("body"):
            visit(child, number)

    world = ElementTree.parse(folder / "panda_panda.xml").getroot().find("worldbody")
    assert world is not None
    for body in world.findall("body"):
        visit(body, -1)
    arm.frames = np.stack(frames)
    return arm


def _numbers(text: str | None, default: str) -> np.ndarray:
    return np.array((text or default).split(), dtype=float)


def _frame(body: ElementTree.Element) -> np.ndarray:
    w, x, y, z = (q := _numbers(body.get("quat"), "1 0 0 0")) / np.linalg.norm(q)
    out = np.eye(4)
    out[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    out[:3, 3] = _numbers(body.get("pos"), "0 0 0")
    return out


def _turns(angles: np.ndarray) -> np.ndarray:
    """(B, 4, 4) turns about z."""
    out = np.tile(np.eye(4), (len(angles), 1, 1))
    out[:, 0, 0] = out[:, 1, 1] = np.cos(angles)
    out[:, 1, 0] = np.sin(angles)
    out[:, 0, 1] = -out[:, 1, 0]
    return out
