"""Checks of pairs of parts: verdicts, depths, relations, piercing."""
