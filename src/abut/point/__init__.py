"""Queries from points: the nearest face, and the side of the surface."""
