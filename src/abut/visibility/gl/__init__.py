"""Visibility by the graphics pipeline: OpenGL without a display."""
