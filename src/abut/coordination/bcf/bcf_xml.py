"""XML of BCF files: elements, texts without forbidden characters, stable GUIDs."""

import re
from typing import Any
from uuid import UUID, uuid5
from xml.etree import ElementTree

NAMESPACE = UUID("6f1d2b0e-93a4-5d3c-8a57-2c8f0b1e7d46")  # of all GUIDs that abut makes
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2
IFC_GUID = re.compile(r"[0-3][0-9A-Za-z_$]{21}")
IFC_SUFFIXES = (".ifc", ".ifczip", ".ifcxml")

Element = ElementTree.Element


def stable_guid(*words: str) -> str:
    """A GUID that depends on the words alone."""
    return str(uuid5(NAMESPACE, "\n".join(words)))


def xml_text(value: Any) -> str:
    """A text without the characters that XML forbids; they become U+FFFD."""
    return FORBIDDEN.sub("\ufffd", str(value))


def filled(value: Any, instead: str) -> str:
    """A text in one line, or another one where nothing but space is left."""
    return " ".join(xml_text(value).split()) or instead


def add(parent: Element, tag: str, text: Any = None, **attributes: Any) -> Element:
    """Append an element; attributes without a value are left out."""
    given = {name: xml_text(value) for name, value in attributes.items() if value is not None}
    made = ElementTree.SubElement(parent, tag, given)
    if text is not None:
        made.text = xml_text(text)
    return made


def add_triple(parent: Element, tag: str, values: Any) -> Element:
    """Append an element with X, Y and Z."""
    made = add(parent, tag)
    for name, value in zip("XYZ", values, strict=True):
        add(made, name, repr(float(value)))
    return made


def document(root: Element) -> bytes:
    """Bytes of an XML file."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def truth(value: bool) -> str:
    """A boolean in XML."""
    return "true" if value else "false"


def ifc_guid(file: str, part_id: str) -> str | None:
    """The GlobalId of a part of an IFC file; None for another part."""
    from_ifc = file.lower().endswith(IFC_SUFFIXES)
    return part_id if from_ifc and IFC_GUID.fullmatch(part_id) else None
