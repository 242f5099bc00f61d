"""Pairs of links of a robot that a scene does not test, as they are now."""

from typing import TYPE_CHECKING

import numpy as np

from abut.scene.files.robot_description import LinkPair

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot


def untested_links(robot: "Robot") -> list[LinkPair]:
    """Pairs of links of which no two objects are tested, with reasons.

    Those that the files of the robot name come first, in their order. Attached objects, the
    filter of static objects, and pairs within a link have no part in it. Pairs of a link without
    objects are those of the files.
    """
    known = {frozenset(pair[:2]): pair for pair in robot._state.description.pairs}
    ignored = {frozenset((a, b)) for a, b in _ignored(robot)}
    full = set(_owners(robot).values())
    kept = [
        pair
        for names, pair in known.items()
        if names in ignored or not names <= {robot.links[k] for k in full}
    ]
    fresh = [pair for pair in _ignored(robot) if frozenset(pair) not in known]
    near, index = robot.kinematics.neighbours(), {x: k for k, x in enumerate(robot.links)}
    for a, b in fresh:
        reason = "Adjacent" if near[index[a], index[b]] else "User"
        kept.append(LinkPair(a, b, reason))
    return kept


def _owners(robot: "Robot") -> dict[int, int]:
    """The link of each object that is not attached, by its row."""
    parts = zip(robot.objects.tolist(), robot.kinematics.parts, strict=True)
    return {row: link for row, (link, _) in parts if row not in robot.attached}


def _ignored(robot: "Robot") -> list[tuple[str, str]]:
    """Names of two links, parents first, of which no two objects are tested."""
    owners = _owners(robot)
    rows, links = np.array(list(owners), np.int64), np.array(list(owners.values()), np.int64)
    low, high = np.nonzero(links[:, None] < links)
    pairs = np.stack([rows[low], rows[high]], axis=1)
    count = len(robot.links)
    tested = np.zeros((count, count), bool)
    met = robot.scene._objects.tested(pairs, with_static=False)
    tested[links[low][met], links[high][met]] = True
    full = np.unique(links)
    return [
        (robot.links[a], robot.links[b])
        for i, a in enumerate(full)
        for b in full[i + 1 :]
        if not tested[a, b]
    ]
