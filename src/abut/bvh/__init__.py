"""Bounding volume hierarchies over the faces of a mesh."""
