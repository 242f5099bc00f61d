"""Numbers of connected regions of contact of many pairs of parts."""

import numpy as np

from abut.coordination.checks.part_contacts import PartContacts
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.narrow.contact_features import contact_features
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.solids.contact_groups import contact_groups


def region_counts(
    surfaces: PartSurfaces, pairs: np.ndarray, contacts: PartContacts, wanted: np.ndarray
) -> np.ndarray:
    """(k,) connected sets of common points of the surfaces of each wanted pair.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts.
        contacts: Their contacts.
        wanted: Rows of pairs that are asked about; others have 0.

    Guarantee:
        Exact.
    """
    counts = np.zeros(len(pairs), np.int32)
    for k in wanted.tolist():
        faces = contacts.faces[contacts.of(k)]
        if not len(faces):
            continue
        meshes = [surfaces[row].mesh for row in pairs[k].tolist()]
        poses = [surfaces.pose(row) for row in pairs[k].tolist()]
        posed = [make_posed_mesh(m.points, m.faces, p) for m, p in zip(meshes, poses, strict=True)]
        bits = contact_features(posed[0], posed[1], surfaces.on_device(faces)).bits
        welded = [m.topology.welded[m.faces.numpy()].astype(np.int64) for m in meshes]
        counts[k] = contact_groups(faces, bits, welded).max() + 1
    return counts
