"""Viewpoints of BCF files: a camera, the two parts of a clash selected and coloured."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from abut.coordination.bcf.bcf_xml import Element, add, add_triple, document, ifc_guid, truth
from abut.coordination.pictures.clash_cameras import ASPECT
from abut.coordination.pictures.clash_frame import PART_COLORS
from abut.coordination.report.report_columns import PartFacts
from abut.view.body import Color
from abut.view.camera import Camera


@dataclass(frozen=True)
class BcfView:
    """A viewpoint.

    Attributes:
        guid: Its GUID.
        camera: Perspective.
        parts: The facts of parts a and b.
        alone: All other parts are hidden.
        line: (2, 3) the nearest points of parts that are apart, else None.
        aspect: Width over height.
    """

    guid: str
    camera: Camera
    parts: dict[str, PartFacts]
    alone: bool
    line: np.ndarray | None = None
    aspect: float = ASPECT


def viewpoint_file(view: BcfView, version: str) -> bytes:
    """The file of a viewpoint in BCF 3.0 or 2.1."""
    root = Element("VisualizationInfo", Guid=view.guid)
    _add_components(add(root, "Components"), view, version)
    camera = add(root, "PerspectiveCamera")
    add_triple(camera, "CameraViewPoint", view.camera.eye)
    add_triple(camera, "CameraDirection", view.camera.ahead)
    add_triple(camera, "CameraUpVector", view.camera.up)
    add(camera, "FieldOfView", repr(2 * float(np.degrees(np.arctan(view.camera.tangent)))))
    if version == "3.0":
        add(camera, "AspectRatio", repr(view.aspect))
    if view.line is not None:
        line = add(add(root, "Lines"), "Line")
        add_triple(line, "StartPoint", view.line[0])
        add_triple(line, "EndPoint", view.line[1])
    return document(root)


def _add_components(components: Element, view: BcfView, version: str) -> None:
    """Selection, visibility and colours; the order of elements differs between the versions."""
    hints = dict.fromkeys(("SpacesVisible", "SpaceBoundariesVisible", "OpeningsVisible"), "false")
    if version == "2.1":
        add(components, "ViewSetupHints", **hints)
    _add_parts(add(components, "Selection"), view.parts.values())
    visibility = add(components, "Visibility", DefaultVisibility=truth(not view.alone))
    if version == "3.0":
        add(visibility, "ViewSetupHints", **hints)
    if view.alone:
        _add_parts(add(visibility, "Exceptions"), view.parts.values())
    coloring = add(components, "Coloring")
    for side, facts in view.parts.items():
        color = add(coloring, "Color", Color=color_code(PART_COLORS[side]))
        _add_parts(add(color, "Components") if version == "3.0" else color, [facts])


def _add_parts(parent: Element, parts: Iterable[PartFacts]) -> None:
    for facts in parts:
        guid = ifc_guid(facts.file, facts.id)
        part = add(parent, "Component", IfcGuid=guid)
        if guid is None and facts.id.strip():
            add(part, "AuthoringToolId", facts.id)


def color_code(color: Color) -> str:
    """Six hexadecimal digits of an sRGB colour."""
    return "".join(f"{round(255 * channel):02X}" for channel in color)
