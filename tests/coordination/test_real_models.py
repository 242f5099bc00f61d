"""Clashes of real models against brute force over all pairs of parts."""

from itertools import combinations

import numpy as np
import pytest

import abut
from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.check_pairs import check_pairs
from abut.coordination.checks.part_contacts import part_contacts
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.coordination.parts.part_table import PartTable
from abut.io import read_model

CLEARANCE, TOLERANCE = 0.05, 0.001
# parts and pairs that share a point
BUILDING = (38, 97)


def parts_of(folder, names):
    for name in names:
        if not (folder / name).is_file():
            pytest.skip(f"there is no {folder / name}")
    return PartTable.of_models([read_model(folder / name) for name in names])


def building(data, names="Architecture Hvac Landscaping Structural"):
    pytest.importorskip("ifcopenshell", reason="IfcOpenShell is missing: pip install 'abut[bim]'")
    return parts_of(data / "ifc", [f"Building-{name}.ifc" for name in names.split()])


def all_pairs(parts):
    return np.array(list(combinations(range(len(parts)), 2)))


def brute(parts, pairs):
    """The pairs that meet, by every face of one against every face of the other."""
    found = set()
    for i, j in pairs.tolist():
        poses = {"pose_a": parts.poses[i], "pose_b": parts.poses[j]}
        a, b = parts.mesh_of(i, "cpu"), parts.mesh_of(j, "cpu")
        if abut.collide(a, b, first=True, method="brute", **poses):
            found.add((i, j))
    return found


def met(parts, pairs):
    contacts = part_contacts(PartSurfaces(parts, "cpu"), pairs)
    return set(map(tuple, pairs[np.unique(contacts.pair)].tolist()))


def test_some_pairs_of_a_building(data):
    parts = building(data, "Architecture Hvac")
    pairs = all_pairs(parts)
    found = met(parts, pairs)
    assert found == brute(parts, pairs) and len(found) > 10


@pytest.mark.slow
def test_all_pairs_of_a_building(data):
    """Hard clashes and clearances are those of brute force over all pairs of parts."""
    parts = building(data)
    pairs = all_pairs(parts)
    expected = brute(parts, pairs)
    assert (len(parts), len(expected)) == BUILDING
    assert met(parts, pairs) == expected
    check = Check("near", CheckKind.CLEARANCE, CLEARANCE, TOLERANCE, touch=True)
    rows = check_pairs(parts, pairs, [check], device="cpu")
    ends = np.stack([parts.rows_of(rows.a.tolist()), parts.rows_of(rows.b.tolist())], axis=1)
    reported = {tuple(sorted(pair)): k for k, pair in enumerate(ends.tolist())}
    for i, j in pairs.tolist():
        if (i, j) in expected:
            assert rows.distance[reported[i, j]] == 0.0
            continue
        poses = {"pose_a": parts.poses[i], "pose_b": parts.poses[j]}
        near = abut.distance(
            parts.mesh_of(i, "cpu"), parts.mesh_of(j, "cpu"), method="brute", **poses
        )
        contained = (i, j) in reported and rows.verdict[reported[i, j]] == "envelope"
        assert contained or ((i, j) in reported) == (near.value < CLEARANCE)
        if (i, j) in reported and not contained:
            assert rows.distance[reported[i, j]] == pytest.approx(near.value, abs=1e-12)
    assert rows.counts()["duplicate"] == 12  # two markers that each of the four files repeats


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2CylinderEngine", "Ifc4_SampleHouse"])
def test_all_pairs_of_an_assembly(data, name):
    parts = parts_of(data / "assemblies", [f"{name}.npz"])
    pairs = all_pairs(parts)
    low, high = parts.boxes[:, 0], parts.boxes[:, 1]
    near = (low[pairs[:, 0]] <= high[pairs[:, 1]]) & (low[pairs[:, 1]] <= high[pairs[:, 0]])
    contacts = part_contacts(PartSurfaces(parts, "cpu"), pairs)
    found = set(map(tuple, pairs[np.unique(contacts.pair)].tolist()))
    assert found == brute(parts, pairs[near.all(axis=1)])
