"""Bounding volumes: device functions to fit, merge and test each kind."""
