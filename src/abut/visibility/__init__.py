"""Culling by visibility: objects and faces that are not fully visible may collide."""
