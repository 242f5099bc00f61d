"""From candidate pairs of faces to the pairs that meet, and where they do."""
