"""BVTT fronts: the node pairs at which a traversal stopped, from which the next one starts."""
