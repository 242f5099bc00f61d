"""Signed distance fields on regular grids: build, sample, closest point and penalty forces."""
