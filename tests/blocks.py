"""Parts for tests of coordination: boxes, tubes and tables of them."""

import itertools
from pathlib import Path

import numpy as np

from abut import cases
from abut.coordination.parts.part_table import PartTable
from abut.io.models.part_model import Link, ModelPart, PartMesh, PartModel


def block(size, at=(0.0, 0.0, 0.0)):
    """Vertices and faces of a box with its lowest corner at a point."""
    vertices, faces = cases.box(size)
    return np.asarray(vertices, np.float64) - np.min(vertices, axis=0) + at, np.asarray(faces)


def union(*shapes):
    """Vertices and faces of several shapes in one mesh."""
    first = np.cumsum([0, *(len(v) for v, _ in shapes)])
    faces = [f + k for (_, f), k in zip(shapes, first, strict=False)]
    return np.concatenate([v for v, _ in shapes]), np.concatenate(faces)


def tube(outer, inner, length, sections=24):
    """Vertices and faces of a hollow cylinder along z, centred."""
    import trimesh

    made = trimesh.creation.annulus(inner, outer, length, sections=sections)
    return np.asarray(made.vertices), np.asarray(made.faces)


def model(shapes, path="model.ifc", poses=None, **columns):
    """A model of shapes by id; columns are dicts by id."""
    meshes = [
        PartMesh(np.asarray(v, np.float64), np.asarray(f, np.int32)) for v, f in shapes.values()
    ]
    parts = []
    for k, name in enumerate(shapes):
        about = {c: columns.get(c, {}).get(name, "") for c in ("name", "type", "layer", "assembly")}
        pose = np.eye(4) if poses is None else poses[name]
        properties = columns.get("properties", {}).get(name, {})
        about["name"] = about["name"] or name
        parts.append(ModelPart(name, **about, properties=properties, mesh=k, pose=pose))
    links = [Link(*link) for link in columns.get("links", [])]
    deviation = columns.get("deviation", 0.0)
    return PartModel(Path(path), 1.0, deviation, meshes, parts, [], links)


def table(shapes, **options):
    """A table of the parts of one model."""
    return PartTable.of_models([model(shapes, **options)])


def all_pairs(parts):
    """(k, 2) all pairs of parts."""
    return np.array(list(itertools.combinations(range(len(parts)), 2))).reshape(-1, 2)
