"""The inside of a hierarchy, as arrays."""

import numpy as np


def links_of(tree):
    """Per slot: the split of an inner node, or the complement of a leaf's face."""
    return tree.nodes.numpy().view(np.int32)[0::2, 3]


def escapes_of(tree):
    """Per slot: the slot that follows the subtree, -1 at the end."""
    return tree.nodes.numpy().view(np.int32)[1::2, 3]


def boxes_of(tree):
    """Return (slots, 2, 3) lower and upper corners, relative to the origin of the BVH."""
    return tree.nodes.numpy().reshape(-1, 2, 4)[:, :, :3]


def leaf_boxes(tree):
    """Boxes of leaves in the order of faces."""
    links = links_of(tree)
    leaves = np.flatnonzero(links < 0)
    return boxes_of(tree)[leaves[np.argsort(-1 - links[leaves])]]


def cost_of(tree):
    """Area of all boxes over that of the root: how many nodes a random query visits."""
    x, y, z = np.diff(boxes_of(tree).astype(float), axis=1)[:, 0].T
    area = x * y + y * z + z * x
    return area.sum() / area[-1]
