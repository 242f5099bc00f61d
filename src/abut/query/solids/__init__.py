"""Measures of two solids: relation, depth, separation, common part and regions of contact."""
