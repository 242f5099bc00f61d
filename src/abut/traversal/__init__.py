"""Descend hierarchies to the pairs of faces that may meet."""
