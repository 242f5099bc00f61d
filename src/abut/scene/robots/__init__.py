"""Robots of scenes: joints, validity of configurations, motions, clearance."""
