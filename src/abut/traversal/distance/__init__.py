"""Traversals for distances: the nearest faces of posed pairs, and all faces within a distance."""
