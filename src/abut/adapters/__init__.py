"""Classes with the methods of other libraries, answered by abut."""

from abut.adapters import trimesh as trimesh
