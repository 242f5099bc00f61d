"""Pairs of objects whose boxes overlap: complete lists, in ascending order."""
