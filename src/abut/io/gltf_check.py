"""Check a glTF file: refuse data that trimesh would leave out or read as zeros."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError

LARGEST = np.finfo(np.float64).max
GLB_HEADER, CHUNK_HEADER = 12, 8  # bytes
TRIANGLES, STRIP, FAN = 4, 5, 6
LENGTHS = {"matrix": 16, "translation": 3, "rotation": 4, "scale": 3}


def gltf_triangles(path: Path) -> int | None:
    """Return how many triangles the nodes of the scene place; None if there are strips.

    Raises:
        FileError: A node or a mesh refers to something that is not there, a transform is not
            finite, nodes form no tree, or faces are of a kind that is not read.
    """
    tree = _tree_of(path)
    total: int | None = 0
    for node in _placed_nodes(tree, path):
        for name, length in LENGTHS.items():
            if name in node and not _are_numbers(node[name], length):
                raise FileError(f"{path} has a node whose {name} is not {length} finite numbers.")
        if "mesh" in node:
            mesh = _at(tree, "meshes", node["mesh"], path)
            for primitive in mesh["primitives"]:
                count = _triangles(tree, primitive, path)
                total = None if total is None or count is None else total + count
    return total


def _tree_of(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    if content[:4] == b"glTF":
        length = int.from_bytes(content[GLB_HEADER : GLB_HEADER + 4], "little")
        content = content[GLB_HEADER + CHUNK_HEADER :][:length]
    return json.loads(content)


def _placed_nodes(tree: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """Yield the nodes below the roots of the scene; each may be reached once."""
    scene = _at(tree, "scenes", tree.get("scene", 0), path)
    seen: set[int] = set()
    waiting = list(scene.get("nodes", []))
    while waiting:
        index = waiting.pop()
        node = _at(tree, "nodes", index, path)
        if index in seen:
            raise FileError(f"{path}: its nodes form no tree; node {index} has two parents.")
        seen.add(index)
        waiting += node.get("children", [])
        yield node


def _triangles(tree: dict[str, Any], primitive: dict[str, Any], path: Path) -> int | None:
    """Return the triangles of a primitive, or None for a strip."""
    mode = primitive.get("mode", TRIANGLES)
    if mode not in (TRIANGLES, STRIP, FAN):
        return 0  # points or lines
    if mode == FAN or "KHR_draco_mesh_compression" in primitive.get("extensions", {}):
        raise FileError(f"{path} has faces as fans or compressed by Draco, which are not read.")
    points = _accessor(tree, primitive["attributes"]["POSITION"], path)
    if points.get("type") != "VEC3":
        raise FileError(f"{path} has positions of type {points.get('type')}, not VEC3.")
    corners = _accessor(tree, primitive["indices"], path) if "indices" in primitive else points
    return None if mode == STRIP else corners["count"] // 3


def _accessor(tree: dict[str, Any], index: Any, path: Path) -> dict[str, Any]:
    accessor = _at(tree, "accessors", index, path)
    view = accessor.get("bufferView")
    packed = view is not None and _at(tree, "bufferViews", view, path).get("extensions")
    if packed or (view is None and "sparse" not in accessor):
        raise FileError(f"{path} has an accessor that is packed or without data; none is read.")
    return accessor


def _at(tree: dict[str, Any], kind: str, index: Any, path: Path) -> Any:
    held = tree.get(kind, [])
    if not isinstance(index, int) or not 0 <= index < len(held):
        raise FileError(f"{path} refers to {kind}[{index}], but has {len(held)} of them.")
    return held[index]


def _are_numbers(values: Any, length: int) -> bool:
    return len(values) == length and all(abs(float(value)) <= LARGEST for value in values)
