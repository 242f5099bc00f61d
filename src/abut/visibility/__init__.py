"""Culling by visibility: what is not fully visible may collide."""
