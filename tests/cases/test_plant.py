"""The plant: closed solids, bays that can be made alone, sizes that were asked for."""

import numpy as np
import pytest

from abut.cases.plant import CLEARANCE, KINDS, Plant
from abut.geometry.topology import topology_of


def test_bays_can_be_made_alone():
    plant, again = Plant((3, 2), seed=5), Plant((3, 2), seed=5)
    for bay in (4, 1):
        a, b = plant.model(bay), again.model(bay)
        assert [part.id for part in a.parts] == [part.id for part in b.parts]
        for mesh, other in zip(a.meshes, b.meshes, strict=True):
            assert mesh.vertices.tobytes() == other.vertices.tobytes()
            assert mesh.faces.tobytes() == other.faces.tobytes()
        assert plant.planted(bay) == again.planted(bay)
    other = Plant((3, 2), seed=6).model(4)
    assert any(
        x.vertices.shape != y.vertices.shape or (x.vertices != y.vertices).any()
        for x, y in zip(other.meshes, plant.model(4).meshes, strict=False)
    )


@pytest.mark.parametrize("detail", [1.0, 0.2])
def test_parts_are_solids_oriented_outwards(detail):
    plant = Plant((2, 1), share=1.0, detail=detail)
    for bay in range(2):
        model = plant.model(bay)
        for part in model.parts:
            mesh = model.meshes[part.mesh]
            edges = np.sort(mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
            assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all(), part.id
            corners = mesh.vertices[mesh.faces]
            volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
            assert volume > 0, part.id
            assert len(topology_of(mesh.vertices, mesh.faces).anchors) == 1, part.id


def test_size_and_faces():
    plant = Plant.of_size(10_000)
    models = [plant.model(bay) for bay in range(0, len(plant), 40)]
    assert len(plant) * np.mean([len(model.parts) for model in models]) == pytest.approx(
        1e4, rel=0.03
    )
    faces = [len(mesh.faces) for model in models for mesh in model.meshes]
    assert 900 < np.mean(faces) < 1300


def test_planted_clashes_of_every_kind():
    plant = Plant((60, 1), share=0.5)
    planted = [found for bay in range(60) if (found := plant.planted(bay))]
    assert 20 < len(planted) < 40
    assert {found.verdict for found in planted} == set(KINDS)
    assert all(found.a < found.b for found in planted)
    assert CLEARANCE > 0
