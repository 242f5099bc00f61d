"""Certified motions of jointed bodies: intervals of time and pairs of nodes, halved together."""
