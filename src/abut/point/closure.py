"""What closes an open mesh: a cone over each part of its rim.

A mesh and its closure together wind around a point a whole number of times, which a ray counts
exactly; the closure's own part is a sum over its faces, which are few where the rim is short.
The difference is the generalised winding number of the mesh.
"""

import numpy as np

from abut.geometry.topology import Topology, components
from abut.mesh import Mesh


def closure_of(mesh: Mesh) -> Mesh | None:
    """The cones that close a mesh in its present shape; None where nothing is open."""
    return mesh.per_shape("closure", lambda: _closure(mesh, mesh.topology))


def _closure(mesh: Mesh, topology: Topology) -> Mesh | None:
    if not len(topology.boundary):
        return None
    corners, rim = np.unique(topology.boundary, return_inverse=True)
    rim = rim.reshape(-1, 2)
    points = mesh.points.numpy()[corners]
    _, part = np.unique(components(rim, len(corners)), return_inverse=True)
    share = 1.0 / np.bincount(part)
    tips = np.stack([np.bincount(part, weights=x * share[part]) for x in points.T], axis=1)
    faces = np.column_stack([rim[:, 1], rim[:, 0], len(corners) + part[rim[:, 0]]])
    return Mesh(np.concatenate([points, tips]), faces.astype(np.int32), mesh.device)
