"""Signed distance on a regular grid: built, sampled."""
