"""Files: reading and checking meshes and arrays, writing."""

from abut.io.file_errors import existing, reading
from abut.io.models.read_model import read_model
from abut.io.read import PlacedMesh, read_mesh, read_scene

__all__ = ["PlacedMesh", "existing", "read_mesh", "read_model", "read_scene", "reading"]
