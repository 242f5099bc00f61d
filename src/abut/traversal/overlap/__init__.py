"""Faces whose bounding volumes overlap, found by walking hierarchies."""
