"""Mesh files: reading and checking."""

from abut.io.read import PlacedMesh, existing, read_mesh, read_scene

__all__ = ["PlacedMesh", "existing", "read_mesh", "read_scene"]
