"""Readers of models with named parts: IFC, STEP, USD, meshes and arrays."""
